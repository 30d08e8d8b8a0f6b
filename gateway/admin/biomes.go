package admin

import (
	"context"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/host/admission"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// refusedUpload is an upload's refusal with the whole report.
type refusedUpload struct {
	refusal *abi.Error
	report  *admission.Report
}

func (r refusedUpload) Error() string { return r.refusal.Error() }
func (r refusedUpload) Unwrap() error { return r.refusal }

// Problems is what the problem document lists.
func (r refusedUpload) Problems() any { return r.report.Problems }

// uploaded is what an accepted upload answers.
type uploaded struct {
	Biome  policy.Biome      `json:"biome"`
	Report *admission.Report `json:"report"`
}

// upload admits a module: read, validated and compiled in the confined child, tried once
// without authority, then stored and recorded. Nothing of a refused module is kept (PF-I2).
func (s *Server) upload(c *call) (*reply, error) {
	biome := wasm.Original{Module: c.body, Manifest: c.manifest}
	report := s.o.Host.Inspect(biome)
	if err := report.Err(); err != nil {
		return nil, refusedUpload{abi.AsError(err), report}
	}
	if err := s.o.Policy.CheckBiome(c.principal, c.org, report.Digest, report.Manifest); err != nil {
		return nil, err
	}
	report, err := s.o.Host.Admit(c.ctx, biome)
	if err != nil {
		if e := abi.AsError(err); e.Code == abi.CodeModuleRefused {
			return nil, refusedUpload{e, report}
		}
		return nil, err
	}
	// One upload is stored at a time, and is judged again before it is: of two that claim the
	// same name or capability at once, nothing of the second is kept (PF-I2, PF-A16).
	s.storing.Lock()
	defer s.storing.Unlock()
	if err := s.o.Policy.CheckBiome(c.principal, c.org, report.Digest, report.Manifest); err != nil {
		return nil, s.discard(c.ctx, report.Digest, err)
	}
	if err := s.o.Modules.Put(report.Digest, biome); err != nil {
		return nil, err
	}
	b, isNew, err := s.o.Policy.PutBiome(c.ctx, c.principal, policy.BiomeRequest{
		Org: c.org, Digest: report.Digest, Manifest: report.ManifestBytes, Functions: functions(report),
	})
	if err != nil {
		return nil, err
	}
	if !isNew {
		return okTagged(b.Revision, uploaded{b, report}, nil)
	}
	out, err := created("/v1/biomes/"+b.Name, uploaded{b, report}, nil)
	out.etag = etag(b.Revision)
	return out, err
}

// discard drops the compiled form of a module that was admitted and then not stored, unless the
// same bytes are stored for somebody else. It returns why.
func (s *Server) discard(ctx context.Context, digest string, why error) error {
	if _, err := s.o.Modules.Get(ctx, digest); abi.CodeOf(err) == abi.CodeNotFound {
		if err := s.o.Host.Forget(digest); err != nil {
			s.o.Log.Warn("the compiled form of a refused upload stays", "digest", digest, "error", err)
		}
	}
	return why
}

func (s *Server) listBiomes(c *call) (*reply, error) {
	items, err := s.o.Policy.Biomes(c.principal, c.org)
	return page(c, items, err, func(b policy.Biome) string { return b.Name }, nil)
}

func (s *Server) getBiome(c *call) (*reply, error) {
	b, err := s.o.Policy.Biome(c.principal, c.org, c.r.PathValue("name"))
	return okTagged(b.Revision, b, err)
}

func (s *Server) listUploads(c *call) (*reply, error) {
	items, err := s.o.Policy.Uploads(c.principal, c.org, c.r.PathValue("name"))
	return page(c, items, err, func(u policy.Version) string { return u.Digest }, nil)
}

func (s *Server) disableBiome(c *call) (*reply, error) { return s.setDisabled(c, true) }
func (s *Server) enableBiome(c *call) (*reply, error)  { return s.setDisabled(c, false) }

func (s *Server) setDisabled(c *call, disabled bool) (*reply, error) {
	e, err := c.expect()
	if err != nil {
		return nil, err
	}
	b, err := s.o.Policy.SetBiomeDisabled(c.ctx, c.principal, c.org, c.r.PathValue("name"), disabled, e)
	return okTagged(b.Revision, b, err)
}

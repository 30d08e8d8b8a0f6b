package policy

import (
	"context"
	"encoding/hex"
	"slices"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/catalogue"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// SystemOrg is the organisation whose capabilities every organisation can be granted.
const SystemOrg = gate.SystemOrg

// CheckBiome answers whether an upload with this digest and manifest would be taken: the role, whether
// its name and refs are free (CAPABILITY_TAKEN), and whether there is room for one more
// (QUOTA_EXCEEDED). It is asked before the expensive part of admission; [Service.PutBiome] asks again.
func (s *Service) CheckBiome(p session.Principal, org, digest string, m *abi.Manifest) error {
	return s.read(p, OpUpload, org, func(st *state, o *orgState) error {
		if err := st.free(o, m); err != nil {
			return err
		}
		return s.room(o, digest, m.Name)
	})
}

// room refuses a version more than an organisation may have.
func (s *Service) room(o *orgState, digest, biome string) error {
	if b := o.biomes[biome]; b != nil && b.uploads[digest] != nil || o.uploads < s.maxUploads {
		return nil
	}
	return abi.Errorf(abi.CodeQuotaExceeded, "%d versions are kept of the organisation's biomes, and no more may be", o.uploads)
}

// free refuses a biome that is archived, and names and refs that another biome has in this organisation or in the system
// organisation; for the system organisation, in any. The first stays (PF-A16).
func (st *state) free(own *orgState, m *abi.Manifest) error {
	if b := own.biomes[m.Name]; b != nil && b.record.Archived {
		return archived(m.Name)
	}
	for id, o := range st.orgs {
		if o != own && id != SystemOrg && own.record.ID != SystemOrg {
			continue
		}
		if _, taken := o.biomes[m.Name]; taken && o != own {
			return abi.Errorf(abi.CodeAlreadyExists, "the biome name %s is taken", abi.Quote(m.Name)).At("/name")
		}
		for i := range m.Provides {
			if by, taken := o.providers[m.Provides[i].Ref]; taken && (o != own || by != m.Name) {
				return abi.Errorf(abi.CodeCapabilityTaken, "another biome provides %s; the first stays", abi.Quote(string(m.Provides[i].Ref))).
					At("/provides")
			}
		}
	}
	return nil
}

// PutBiome records an upload that admission has passed. It is callable in sandbox and in
// trusted-dev only, until an install grant admits it elsewhere. created is false when the same
// digest is the newest already.
func (s *Service) PutBiome(ctx context.Context, p session.Principal, r BiomeRequest) (b Biome, created bool, err error) {
	m, problems := abi.DecodeManifest(r.Manifest)
	in := intent{by: p, op: OpUpload, org: r.Org, target: r.Digest, fields: []string{"manifest", "module"}}
	err = s.apply(ctx, in, func(st *state) (*change, error) {
		o := st.orgs[r.Org]
		switch {
		case o == nil:
			return nil, notThere("organisation", r.Org)
		case len(problems) > 0:
			return nil, problems[0]
		case !digest(r.Digest):
			return nil, abi.Errorf(abi.CodeInvalidRequest, "%s is not a digest", abi.Quote(r.Digest))
		}
		if err := st.free(o, m); err != nil {
			return nil, err
		}
		if err := s.room(o, r.Digest, m.Name); err != nil {
			return nil, err
		}
		now := s.clock().UTC()
		c := &change{org: r.Org, target: m.Name + "@" + r.Digest}
		have := o.biomes[m.Name]
		b = Biome{Org: r.Org, Name: m.Name, Digest: r.Digest, Stage: grant.SandboxInstalled, Revision: 1, UpdatedBy: p.Name(), UpdatedAt: now}
		if have != nil {
			if have.record.Digest == r.Digest {
				b = o.shown(have, now)
				return nil, nil
			}
			b.Disabled, b.Revision = have.record.Disabled, have.record.Revision+1
		}
		if have == nil || have.uploads[r.Digest] == nil {
			c.records = append(c.records, Upload{Org: r.Org, Biome: m.Name, Digest: r.Digest, Manifest: r.Manifest, Functions: r.Functions, CreatedBy: p.Name(), CreatedAt: now})
			for i := range m.Provides {
				c.extra = append(c.extra, pair{catalogue.Key(r.Org, r.Digest, m.Provides[i].Ref), []byte(m.Provides[i].Reach.String())})
			}
		}
		c.records = append(c.records, b)
		created = true
		return c, nil
	})
	return b, created && err == nil, err
}

func digest(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 32 && hex.EncodeToString(raw) == s
}

// shown is a biome's record with its stage: archived, org-installed when an install grant stands, or
// review-required when somebody is asked for one.
func (o *orgState) shown(b *biomeState, now time.Time) Biome {
	out := b.record
	if out.Archived {
		out.Stage = grant.Archived
		return out
	}
	switch {
	case len(o.installed(b)) > 0:
		out.Stage = grant.OrgInstalled
	case len(o.underReview(out.Name, now)) > 0:
		out.Stage = grant.ReviewRequired
	}
	return out
}

// Biome returns one biome.
func (s *Service) Biome(p session.Principal, org, name string) (out Biome, err error) {
	err = s.read(p, OpRead, org, func(_ *state, o *orgState) error {
		b := o.biomes[name]
		if b == nil {
			return notThere("biome", name)
		}
		out = o.shown(b, s.clock())
		return nil
	})
	return out, err
}

// Biomes lists an organisation's biomes by name.
func (s *Service) Biomes(p session.Principal, org string) (out []Biome, err error) {
	err = s.read(p, OpRead, org, func(_ *state, o *orgState) error {
		for _, b := range sorted(o.biomes) {
			out = append(out, o.shown(b, s.clock()))
		}
		return nil
	})
	return out, err
}

// Uploads lists a biome's versions, oldest first.
func (s *Service) Uploads(p session.Principal, org, name string) (out []Version, err error) {
	err = s.read(p, OpRead, org, func(_ *state, o *orgState) error {
		b := o.biomes[name]
		if b == nil {
			return notThere("biome", name)
		}
		review := o.underReview(name, s.clock())
		for _, u := range b.uploads {
			out = append(out, Version{u.record, o.stageOf(b, u.record.Digest, review)})
		}
		slices.SortFunc(out, func(a, b Version) int { return a.CreatedAt.Compare(b.CreatedAt) })
		return nil
	})
	return out, err
}

// SetBiomeDisabled disables or enables a biome, all its versions alike. Running invocations of
// a disabled one end at their next host call.
func (s *Service) SetBiomeDisabled(ctx context.Context, p session.Principal, org, name string, disabled bool, e Expect) (out Biome, err error) {
	op := OpEnable
	if disabled {
		op = OpDisable
	}
	err = s.apply(ctx, intent{by: p, op: op, org: org, target: name, fields: []string{"disabled"}}, func(st *state) (*change, error) {
		o := st.orgs[org]
		if o == nil || o.biomes[name] == nil {
			return nil, notThere("biome", name)
		}
		b := o.biomes[name]
		out = o.shown(b, s.clock())
		if err := e.check(b.record.Revision); err != nil {
			return nil, err
		}
		if b.record.Disabled == disabled {
			return nil, nil
		}
		rec := b.record
		rec.Disabled, rec.Revision, rec.UpdatedBy, rec.UpdatedAt = disabled, rec.Revision+1, p.Name(), s.clock().UTC()
		out.Disabled, out.Revision, out.UpdatedBy, out.UpdatedAt = rec.Disabled, rec.Revision, rec.UpdatedBy, rec.UpdatedAt
		return &change{records: []any{rec}, org: org}, nil
	})
	return out, err
}

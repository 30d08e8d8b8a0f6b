package policy

import (
	"context"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// Rollback installs what was installed before: the digest of the last install grant of another
// version, with its configuration and with the environments, calls, endpoints and secrets that it named and that are there still.
// It is a new install grant, in place of the newest that stands, whose revision goes into e; those
// beside it stay. So rolling back twice is back where it began. CONFLICT when nothing was installed before.
func (s *Service) Rollback(ctx context.Context, p session.Principal, org, biome string, e Expect) (grant.Install, error) {
	var out grant.Install
	err := s.apply(ctx, intent{by: p, op: OpRollback, org: org, target: biome}, func(st *state) (*change, error) {
		o, b, err := st.biome(org, biome)
		if err != nil {
			return nil, err
		}
		standing := o.installed(b)
		if len(standing) == 0 {
			return nil, abi.Errorf(abi.CodeConflict, "nothing of the biome is installed")
		}
		if err := e.check(revisionOf(standing)); err != nil {
			return nil, err
		}
		was, ok := o.before(b, &standing[0])
		if !ok {
			return nil, abi.Errorf(abi.CodeConflict, "no other version of the biome was installed before")
		}
		out = st.still(o, was)
		if err := st.checkInstall(o, b, b.uploads[was.Digest], requestOf(&out)); err != nil {
			return nil, abi.Errorf(abi.CodeConflict, "what was installed before cannot be installed any more: %w", err).
				WithHint("install that digest with what there is now: biome install " + biome + " --digest " + was.Digest)
		}
		replaces := func(i *grant.Install) bool { return i.ID == standing[0].ID || i.Digest == was.Digest }
		out.Alongside = slices.ContainsFunc(standing, func(i grant.Install) bool { return !replaces(&i) })
		return s.admit(o, b, p, &out, replaces), nil
	})
	return out, err
}

// before is the last install grant of another version, before one that stands.
func (o *orgState) before(b *biomeState, now *grant.Install) (grant.Install, bool) {
	for _, id := range slices.Backward(b.installs) {
		if i := o.installs[id]; i.Revision < now.Revision && i.Digest != now.Digest {
			return i, true
		}
	}
	return grant.Install{}, false
}

// still is what an install grant named and is there still.
func (st *state) still(o *orgState, was grant.Install) grant.Install {
	outward := false
	was.Environments = slices.DeleteFunc(list(was.Environments), func(ref abi.EnvironmentRef) bool {
		e, err := st.find(o, ref)
		outward = outward || err == nil && abi.ReachIntegration.Within(e.Reach)
		return err != nil
	})
	was.Calls = slices.DeleteFunc(list(was.Calls), func(ref abi.CapabilityRef) bool { return !st.provided(o.record.ID, ref) })
	was.Endpoints = slices.DeleteFunc(list(was.Endpoints), func(name string) bool {
		e := o.endpoints[name]
		return !outward || e == nil || e.record.Removed
	})
	was.Secrets = slices.DeleteFunc(list(was.Secrets), func(name string) bool {
		v, there := o.secrets[name]
		return !outward || !there || v.Removed
	})
	return was
}

// requestOf asks for an install grant as it is.
func requestOf(i *grant.Install) InstallRequest {
	return InstallRequest{
		Org: i.Org, Biome: i.Biome, Digest: i.Digest, Environments: i.Environments, Calls: i.Calls, Endpoints: i.Endpoints,
		Secrets: i.Secrets, Config: i.Config, Obligations: i.Obligations,
	}
}

// Archive ends a biome's development: nothing of it is uploaded or installed any more, and nothing
// takes that back. What is installed goes on (X62); [Service.SetBiomeDisabled] and
// [Service.Uninstall] end that, too.
func (s *Service) Archive(ctx context.Context, p session.Principal, org, biome string, e Expect) (out Biome, err error) {
	err = s.apply(ctx, intent{by: p, op: OpArchive, org: org, target: biome, fields: []string{"archived"}}, func(st *state) (*change, error) {
		o, b, err := st.biome(org, biome)
		if err != nil {
			return nil, err
		}
		if err := e.check(b.record.Revision); err != nil {
			return nil, err
		}
		rec := b.record
		if rec.Archived {
			out = o.shown(b, s.clock())
			return nil, nil
		}
		rec.Archived, rec.Revision, rec.UpdatedBy, rec.UpdatedAt = true, rec.Revision+1, p.Name(), s.clock().UTC()
		out = rec
		out.Stage = grant.Archived
		return &change{records: []any{rec}, org: org}, nil
	})
	return out, err
}

func archived(name string) error {
	return abi.Errorf(abi.CodeConflict, "the biome %s is archived", abi.Quote(name)).WithHint("what is installed of it goes on; another name takes new versions")
}

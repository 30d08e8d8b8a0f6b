package policy

import (
	"context"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// Install admits one digest of a biome to environments and keeps for it what the manifest
// requires and the request names: nothing that is not named (PF-A1), and nothing the manifest
// does not ask for. The biome is granted what it keeps to call, in each of the environments.
// The answer is what holds (PF-A21).
//
// An install grant that stands is replaced: its revision goes into e, it is revoked together
// with the grants it made, and invocations that run under it end at their next host call.
func (s *Service) Install(ctx context.Context, p session.Principal, r InstallRequest, e Expect) (grant.Install, error) {
	var out grant.Install
	in := intent{by: p, op: OpInstall, org: r.Org, target: r.Biome, fields: []string{"digest", "environments", "calls", "endpoints", "secrets", "permissions"}}
	err := s.apply(ctx, in, func(st *state) (*change, error) {
		o, b, err := st.biome(r.Org, r.Biome)
		if err != nil {
			return nil, err
		}
		u := b.uploads[r.Digest]
		if u == nil {
			return nil, abi.AsError(notThere("upload with the digest", r.Digest)).At("/digest")
		}
		if err := st.checkInstall(o, u, r); err != nil {
			return nil, err
		}
		old := o.installed(b)
		if err := e.check(revisionOf(old)); err != nil {
			return nil, err
		}
		permissions, err := digestOf(u.permissions())
		if err != nil {
			return nil, err
		}
		if r.Permissions != "" && r.Permissions != permissions {
			return nil, abi.Errorf(abi.CodePreconditionFailed, "the permissions of this version are not those that were looked at").At("/permissions").
				WithHint("look at them again: biome diff " + r.Biome)
		}
		now := s.clock().UTC()
		out = grant.Install{
			ID: session.NewID(now), Org: r.Org, Biome: r.Biome, Digest: r.Digest,
			Environments: list(r.Environments), Calls: list(r.Calls), Endpoints: list(r.Endpoints), Secrets: list(r.Secrets), Obligations: r.Obligations, Permissions: permissions,
			Stage: grant.OrgInstalled, Revision: o.installs[b.install].Revision + 1, CreatedBy: p.Name(), CreatedAt: now,
			Grants: []string{},
		}
		c := &change{org: r.Org, target: r.Biome + "@" + r.Digest}
		replaced := map[string]bool{}
		if old != nil {
			for _, rec := range s.ending(o, p, old) {
				replaced[rec.(grant.Revocation).Grant] = true
				c.records = append(c.records, rec)
			}
		}
		for _, g := range s.biomeGrants(o, p, &out, replaced) {
			out.Grants = append(out.Grants, g.ID)
			c.records = append(c.records, g)
		}
		c.records = append(c.records, out)
		return c, nil
	})
	return out, err
}

// list copies a list and is never nil.
func list[T any](in []T) []T { return append([]T{}, in...) }

func revisionOf(i *grant.Install) uint64 {
	if i == nil {
		return 0
	}
	return i.Revision
}

func (st *state) biome(org, name string) (*orgState, *biomeState, error) {
	o := st.orgs[org]
	if o == nil {
		return nil, nil, notThere("organisation", org)
	}
	b := o.biomes[name]
	if b == nil {
		return nil, nil, abi.AsError(notThere("biome", name)).At("/biome")
	}
	return o, b, nil
}

// checkInstall refuses what could not be applied as it stands.
func (st *state) checkInstall(o *orgState, u *uploadState, r InstallRequest) error {
	if _, err := grant.CompileObligations(r.Obligations); err != nil {
		return err
	}
	outward := false
	if err := distinct("/environments", r.Environments, func(ref abi.EnvironmentRef) error {
		e, err := st.find(o, ref)
		if err != nil {
			return err
		}
		outward = outward || abi.ReachIntegration.Within(e.Reach)
		return nil
	}); err != nil {
		return err
	}
	if len(r.Environments) == 0 {
		return abi.Errorf(abi.CodeInvalidRequest, "an install grant admits at least one environment").At("/environments")
	}
	if n := len(r.Endpoints) + len(r.Secrets); n > 0 && (!outward || r.Org == SystemOrg) {
		return abi.Errorf(abi.CodeUnsupportedRule, "endpoints and secrets could not be used there").At("/environments").
			WithHint("none of the environments reaches outside, or the organisation is the system's, which has none")
	}
	asked := u.manifest.Requires
	if err := distinct("/calls", r.Calls, func(ref abi.CapabilityRef) error {
		if !slices.Contains(asked.Capabilities, ref) {
			return notAsked(string(ref))
		}
		if !st.provided(r.Org, ref) {
			return abi.Errorf(abi.CodeCapabilityUnknown, "nobody provides %s", abi.Quote(string(ref)))
		}
		return nil
	}); err != nil {
		return err
	}
	if err := distinct("/endpoints", r.Endpoints, func(name string) error {
		if !slices.Contains(names(asked.Endpoints), name) {
			return notAsked(name)
		}
		if e := o.endpoints[name]; e == nil || e.record.Removed {
			return notThere("endpoint", name)
		}
		return nil
	}); err != nil {
		return err
	}
	return distinct("/secrets", r.Secrets, func(name string) error {
		if !slices.Contains(names(asked.Secrets), name) {
			return notAsked(name)
		}
		if v, ok := o.secrets[name]; !ok || v.Removed {
			return notThere("secret", name)
		}
		return nil
	})
}

func notAsked(name string) error {
	return abi.Errorf(abi.CodeInvalidRequest, "the manifest does not ask for %s", abi.Quote(name))
}

// distinct checks each member of a list and that none is there twice.
func distinct[T comparable](at string, list []T, check func(T) error) error {
	seen := map[T]bool{}
	for _, v := range list {
		if seen[v] {
			return abi.Errorf(abi.CodeInvalidRequest, "something is listed twice").At(at)
		}
		seen[v] = true
		if err := check(v); err != nil {
			return abi.AsError(err).At(at)
		}
	}
	return nil
}

// biomeGrants are the grants of biome:<name> that an install makes. One that an administrator
// made by hand, and that is not being replaced, stays as it is.
func (s *Service) biomeGrants(o *orgState, p session.Principal, i *grant.Install, replaced map[string]bool) []grant.Grant {
	var out []grant.Grant
	subject := biomeSubject(i.Biome)
	for _, env := range i.Environments {
		for _, ref := range i.Calls {
			if o.standing(subject, ref, env, i.CreatedAt, replaced) {
				continue
			}
			out = append(out, grant.Grant{
				ID: session.NewID(i.CreatedAt), Org: i.Org, Subject: subject, Capability: ref, Environment: env,
				Globs: []string{grant.Everything}, Install: i.ID, CreatedBy: p.Name(), CreatedAt: i.CreatedAt,
			})
		}
	}
	return out
}

// ending is what revokes an install grant and the grants it made.
func (s *Service) ending(o *orgState, p session.Principal, i *grant.Install) []any {
	out := []any{s.revocation(p, i.Org, i.ID)}
	for _, id := range i.Grants {
		if _, gone := o.revoked[id]; !gone {
			out = append(out, s.revocation(p, i.Org, id))
		}
	}
	return out
}

// Uninstall revokes the install grant of a biome and the grants it made. The biome falls back
// to what an upload may: sandbox and trusted-dev.
func (s *Service) Uninstall(ctx context.Context, p session.Principal, org, biome string, e Expect) (grant.Revocation, error) {
	var out grant.Revocation
	err := s.apply(ctx, intent{by: p, op: OpUninstall, org: org, target: biome}, func(st *state) (*change, error) {
		o, b, err := st.biome(org, biome)
		if err != nil {
			return nil, err
		}
		i := o.installed(b)
		if i == nil {
			return nil, notThere("install grant of the biome", biome)
		}
		if err := e.check(i.Revision); err != nil {
			return nil, err
		}
		records := s.ending(o, p, i)
		out = records[0].(grant.Revocation)
		return &change{records: records, org: org, target: i.ID}, nil
	})
	return out, err
}

// InstallOf returns the install grant that stands for a biome.
func (s *Service) InstallOf(p session.Principal, org, biome string) (out grant.Install, err error) {
	err = s.read(p, OpRead, org, func(_ *state, o *orgState) error {
		if b := o.biomes[biome]; b != nil {
			if i := o.installed(b); i != nil {
				out = *i
				return nil
			}
		}
		return notThere("install grant of the biome", biome)
	})
	return out, err
}

// Installs lists the install grants that stand, by biome.
func (s *Service) Installs(p session.Principal, org string) (out []grant.Install, err error) {
	err = s.read(p, OpRead, org, func(_ *state, o *orgState) error {
		for _, b := range sorted(o.biomes) {
			if i := o.installed(b); i != nil {
				out = append(out, *i)
			}
		}
		return nil
	})
	return out, err
}

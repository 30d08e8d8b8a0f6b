package policy

import (
	"context"
	"maps"
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
// The revision of the install grant that stands, or of the newest of several, goes into e. Those
// that stand are replaced: revoked together with the grants they made, and invocations that run
// under one end at their next host call. With Alongside only that of the same digest is; of two that
// provide a capability the newer one serves it.
func (s *Service) Install(ctx context.Context, p session.Principal, r InstallRequest, e Expect) (grant.Install, error) {
	var out grant.Install
	in := intent{
		by: p, op: OpInstall, org: r.Org, target: r.Biome,
		fields: []string{"digest", "environments", "calls", "endpoints", "secrets", "config", "permissions", "alongside"},
	}
	err := s.apply(ctx, in, func(st *state) (*change, error) {
		o, b, err := st.biome(r.Org, r.Biome)
		if err != nil {
			return nil, err
		}
		if out, err = st.installOf(o, b, r); err != nil {
			return nil, err
		}
		if err := e.check(revisionOf(o.installed(b))); err != nil {
			return nil, err
		}
		return s.admit(o, b, p, &out, replacedBy(r)), nil
	})
	return out, err
}

// replacedBy says which install grants that stand a request takes the place of.
func replacedBy(r InstallRequest) func(*grant.Install) bool {
	return func(i *grant.Install) bool { return !r.Alongside || i.Digest == r.Digest }
}

// installOf is the install grant that a request asks for, checked, and bound to the permission document
// of its version.
func (st *state) installOf(o *orgState, b *biomeState, r InstallRequest) (out grant.Install, err error) {
	u := b.uploads[r.Digest]
	if u == nil {
		return out, abi.AsError(notThere("upload with the digest", r.Digest)).At("/digest")
	}
	if err := st.checkInstall(o, b, u, r); err != nil {
		return out, err
	}
	out = grant.Install{
		Org: r.Org, Biome: r.Biome, Digest: r.Digest, Environments: list(r.Environments), Calls: list(r.Calls),
		Endpoints: list(r.Endpoints), Secrets: list(r.Secrets), Config: maps.Clone(r.Config), Obligations: r.Obligations,
		Alongside: r.Alongside,
	}
	if out.Permissions, err = digestOf(u.permissions()); err != nil {
		return out, err
	}
	if r.Permissions != "" && r.Permissions != out.Permissions {
		return out, abi.Errorf(abi.CodePreconditionFailed, "the permissions of this version are not those that were looked at").At("/permissions").
			WithHint("look at them again: biome diff " + r.Biome)
	}
	return out, nil
}

// admit completes a new install grant, and is the change that makes it in place of those that end.
func (s *Service) admit(o *orgState, b *biomeState, p session.Principal, i *grant.Install, ends func(*grant.Install) bool) *change {
	now := s.clock().UTC()
	i.ID, i.Stage, i.CreatedBy, i.CreatedAt, i.Grants, i.Revision = session.NewID(now), grant.OrgInstalled, p.Name(), now, []string{}, 1
	if n := len(b.installs); n > 0 {
		i.Revision = o.installs[b.installs[n-1]].Revision + 1
	}
	c := &change{org: i.Org, target: i.Biome + "@" + i.Digest}
	replaced := map[string]bool{}
	for _, rec := range s.ending(o, b, p, ends) {
		replaced[rec.(grant.Revocation).Grant] = true
		c.records = append(c.records, rec)
	}
	for _, g := range s.biomeGrants(o, p, i, replaced) {
		i.Grants = append(i.Grants, g.ID)
		c.records = append(c.records, g)
	}
	c.records = append(c.records, *i)
	return c
}

// list copies a list and is never nil.
func list[T any](in []T) []T { return append([]T{}, in...) }

func revisionOf(standing []grant.Install) uint64 {
	if len(standing) == 0 {
		return 0
	}
	return standing[0].Revision
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
func (st *state) checkInstall(o *orgState, b *biomeState, u *uploadState, r InstallRequest) error {
	if b.record.Archived {
		return archived(b.record.Name)
	}
	if _, err := grant.CompileObligations(r.Obligations); err != nil {
		return err
	}
	if err := r.Config.Check(); err != nil {
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

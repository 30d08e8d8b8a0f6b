package policy

import (
	"context"
	"strings"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// CreateGrant makes a grant (X33). The capability must be there (CAPABILITY_UNKNOWN), and no
// grant in force may cover the same subject, capability and environment (ALREADY_EXISTS):
// grants are immutable, so one is changed by making another that replaces it: the next decision knows
// the new one, and none in between knows neither (X34, X35).
func (s *Service) CreateGrant(ctx context.Context, p session.Principal, r GrantRequest) (grant.Grant, error) {
	made, err := s.CreateGrants(ctx, p, r.Org, []GrantRequest{r})
	if err != nil {
		return grant.Grant{}, err
	}
	return made[0], nil
}

// MaxTogether bounds what one change makes.
const MaxTogether = 1000

// CreateGrants makes grants of one organisation together, at most [MaxTogether]: all of them in
// one change, or none. Its audit event names each.
func (s *Service) CreateGrants(ctx context.Context, p session.Principal, org string, rs []GrantRequest) ([]grant.Grant, error) {
	var out []grant.Grant
	in := intent{by: p, op: OpGrantCreate, org: org, fields: []string{"subject", "capability", "environment", "globs", "urls", "spaces", "expires", "rate", "approval", "obligations", "replaces"}}
	err := s.apply(ctx, in, func(st *state) (*change, error) {
		if len(rs) == 0 || len(rs) > MaxTogether {
			return nil, tooMany("grants")
		}
		now := s.clock().UTC()
		c := &change{org: org}
		var ids []string
		made := map[grantKey]bool{}
		for _, r := range rs {
			g, err := s.newGrant(st, p, org, r, now)
			if err != nil {
				return nil, err
			}
			k := grantKey{g.Subject, g.Capability, g.Environment}
			if made[k] {
				return nil, covered()
			}
			made[k] = true
			if g.Replaces != "" {
				c.records = append(c.records, s.revocation(p, org, g.Replaces))
			}
			out, ids, c.records = append(out, g), append(ids, g.ID), append(c.records, g)
		}
		c.target = strings.Join(ids, " ")
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// grantKey is what at most one grant in force has.
type grantKey struct {
	subject     abi.Subject
	capability  abi.CapabilityRef
	environment abi.EnvironmentRef
}

func tooMany(what string) error {
	return abi.Errorf(abi.CodeInvalidRequest, "one change makes 1 to %d %s", MaxTogether, what)
}

func covered() error {
	return abi.Errorf(abi.CodeAlreadyExists, "a grant in force covers this already").WithHint("revoke it to make another")
}

// newGrant checks a request against the state and makes its record.
func (s *Service) newGrant(st *state, p session.Principal, org string, r GrantRequest, now time.Time) (grant.Grant, error) {
	none := grant.Grant{}
	o := st.orgs[org]
	if o == nil || r.Org != org {
		return none, notThere("organisation", r.Org)
	}
	if err := s.checkRight(st, o, r.Subject, r.Environment, r.Expires); err != nil {
		return none, err
	}
	if !st.provided(org, r.Capability) {
		return none, abi.Errorf(abi.CodeCapabilityUnknown, "nobody provides %s", abi.Quote(string(r.Capability))).At("/capability")
	}
	globs, err := grant.ParseGlobs(r.Globs)
	if err != nil {
		return none, err
	}
	if err := r.Rate.Check(); err != nil {
		return none, err
	}
	if _, err := grant.CompileObligations(r.Obligations); err != nil {
		return none, err
	}
	if _, err := grant.CompileURLs(r.URLs); err != nil {
		return none, err
	}
	if err := o.checkSpaces(r.Spaces); err != nil {
		return none, err
	}
	replaced, refused := o.replaced(r)
	if refused != nil {
		return none, refused
	}
	if o.standing(r.Subject, r.Capability, r.Environment, now, replaced) {
		return none, covered()
	}
	return grant.Grant{
		ID: session.NewID(now), Org: org, Subject: r.Subject, Capability: r.Capability, Environment: r.Environment,
		Globs: globs, URLs: r.URLs, Spaces: r.Spaces, Replaces: r.Replaces, Expires: r.Expires, Rate: r.Rate, Approval: r.Approval, Obligations: r.Obligations, CreatedBy: p.Name(), CreatedAt: now,
	}, nil
}

// checkSpaces holds a list of spaces to those there are.
func (o *orgState) checkSpaces(ids []string) error {
	if ids != nil && (len(ids) == 0 || len(ids) > grant.MaxSpaces) {
		return abi.Errorf(abi.CodeUnsupportedRule, "a grant names 1 to %d spaces", grant.MaxSpaces).At("/spaces").
			WithHint("leave the field out for every space that is not a user's")
	}
	return distinct("/spaces", ids, func(id string) error {
		if _, there := o.spaces[id]; !there {
			return notThere("space", id)
		}
		return nil
	})
}

// replaced is the grant that a new one takes the place of, as a set of its id.
func (o *orgState) replaced(r GrantRequest) (map[string]bool, error) {
	if r.Replaces == "" {
		return nil, nil
	}
	g := o.grants[r.Replaces]
	switch {
	case g == nil:
		return nil, abi.AsError(notThere("grant in force", r.Replaces)).At("/replaces")
	case g.Subject != r.Subject || g.Capability != r.Capability || g.Environment != r.Environment:
		return nil, abi.Errorf(abi.CodeInvalidRequest, "it is for another subject, capability or environment").At("/replaces")
	case g.Install != "":
		return nil, abi.Errorf(abi.CodeConflict, "an install grant made it and ends it").At("/replaces").WithHint("change the install grant")
	}
	return map[string]bool{g.ID: true}, nil
}

// checkRight checks what all rights have in common.
func (s *Service) checkRight(st *state, o *orgState, subject abi.Subject, env abi.EnvironmentRef, expires *time.Time) error {
	if _, err := abi.ParseSubject(string(subject)); err != nil {
		return abi.AsError(err).At("/subject")
	}
	if _, err := st.find(o, env); err != nil {
		return abi.AsError(err).At("/environment")
	}
	if expires != nil && !s.clock().Before(*expires) {
		return abi.Errorf(abi.CodeInvalidRequest, "it would have expired already").At("/expires")
	}
	return nil
}

// provided reports whether the organisation or the system provides a ref.
func (st *state) provided(org string, ref abi.CapabilityRef) bool {
	for _, id := range []string{org, SystemOrg} {
		if o := st.orgs[id]; o != nil {
			if _, ok := o.providers[ref]; ok {
				return true
			}
		}
	}
	return false
}

// standing reports whether a grant in force has this key, leaving out those that are about to
// be revoked.
func (o *orgState) standing(subject abi.Subject, ref abi.CapabilityRef, env abi.EnvironmentRef, now time.Time, without map[string]bool) bool {
	for _, g := range o.shard.Held(subject, ref) {
		if g.Environment == env && !without[g.ID] && grant.Active(g.Expires, now) {
			return true
		}
	}
	return false
}

// RevokeGrant ends a grant with a record of its own (X34). When it returns, no decision and no
// host call of a running invocation is allowed by the grant (X35). Revoking twice answers the
// first revocation.
func (s *Service) RevokeGrant(ctx context.Context, p session.Principal, org, id string) (grant.Revocation, error) {
	return s.revoke(ctx, p, OpGrantRevoke, org, id, func(o *orgState) bool {
		_, revoked := o.revoked[id]
		_, environment := o.environments[id]
		_, install := o.installs[id]
		_, approve := o.approveGrants[id]
		return o.grants[id] != nil || revoked && !environment && !install && !approve
	})
}

// RevokeEnvironmentGrant is [Service.RevokeGrant] for an environment grant. It ends the sessions that the
// grant opened, as closing them does, and no others (X35, X36).
func (s *Service) RevokeEnvironmentGrant(ctx context.Context, p session.Principal, org, id string) (grant.Revocation, error) {
	return s.revoke(ctx, p, OpEnvRevoke, org, id, func(o *orgState) bool { _, ok := o.environments[id]; return ok })
}

func (s *Service) revoke(ctx context.Context, p session.Principal, op Op, org, id string, there func(*orgState) bool) (grant.Revocation, error) {
	var out grant.Revocation
	err := s.apply(ctx, intent{by: p, op: op, org: org, target: id}, func(st *state) (*change, error) {
		o := st.orgs[org]
		if o == nil || !there(o) {
			return nil, notThere("grant", id)
		}
		if r, ok := o.revoked[id]; ok {
			out = r
			return nil, nil
		}
		out = s.revocation(p, org, id)
		return &change{records: []any{out}, org: org}, nil
	})
	return out, err
}

func (s *Service) revocation(p session.Principal, org, id string) grant.Revocation {
	return grant.Revocation{Grant: id, Org: org, CreatedBy: p.Name(), CreatedAt: s.clock().UTC()}
}

// Grants lists an organisation's grants, revoked ones included, of one subject and one
// capability unless these are "".
func (s *Service) Grants(ctx context.Context, p session.Principal, org string, subject abi.Subject, ref abi.CapabilityRef, cut Cut) (Page[GrantStatus], error) {
	return listing(ctx, s, p, OpRead, "grant", org, cut, func(tx store.Tx, g *grant.Grant) (GrantStatus, bool, error) {
		if subject != "" && g.Subject != subject || ref != "" && g.Capability != ref {
			return GrantStatus{}, false, nil
		}
		r, err := lookup[grant.Revocation](tx, keyOf(grant.Revocation{Org: org, Grant: g.ID}))
		return GrantStatus{Grant: *g, Revoked: r}, true, err
	})
}

// CreateEnvironmentGrant lets a principal that may otherwise open no session open them for one
// subject in one environment (X36), in the spaces it names or in each that is not a user's.
func (s *Service) CreateEnvironmentGrant(ctx context.Context, p session.Principal, r EnvironmentGrantRequest) (grant.EnvironmentGrant, error) {
	var out grant.EnvironmentGrant
	in := intent{by: p, op: OpEnvGrant, org: r.Org, fields: []string{"principal", "subject", "environment", "spaces", "expires"}}
	err := s.apply(ctx, in, func(st *state) (*change, error) {
		o := st.orgs[r.Org]
		if o == nil {
			return nil, notThere("organisation", r.Org)
		}
		if _, ok := o.principals[r.Principal]; !ok {
			return nil, abi.AsError(notThere("principal", r.Principal)).At("/principal")
		}
		if err := s.checkRight(st, o, r.Subject, r.Environment, r.Expires); err != nil {
			return nil, err
		}
		if err := o.checkSpaces(r.Spaces); err != nil {
			return nil, err
		}
		now := s.clock().UTC()
		out = grant.EnvironmentGrant{
			ID: session.NewID(now), Org: r.Org, Principal: r.Principal, Subject: r.Subject, Environment: r.Environment, Spaces: r.Spaces,
			Expires: r.Expires, CreatedBy: p.Name(), CreatedAt: now,
		}
		return &change{records: []any{out}, org: r.Org, target: out.ID}, nil
	})
	return out, err
}

// EnvironmentGrantStatus is an environment grant with its revocation, if there is one.
type EnvironmentGrantStatus struct {
	grant.EnvironmentGrant
	Revoked *grant.Revocation `json:"revoked,omitempty"`
}

// EnvironmentGrant is one environment grant, revoked or not.
func (s *Service) EnvironmentGrant(p session.Principal, org, id string) (out EnvironmentGrantStatus, err error) {
	err = s.read(p, OpRead, org, func(_ *state, o *orgState) error {
		g, there := o.environments[id]
		if !there {
			return notThere("environment grant", id)
		}
		out.EnvironmentGrant = g
		if r, revoked := o.revoked[id]; revoked {
			out.Revoked = &r
		}
		return nil
	})
	return out, err
}

// EnvironmentGrants lists an organisation's environment grants that were not revoked.
func (s *Service) EnvironmentGrants(ctx context.Context, p session.Principal, org string, cut Cut) (Page[grant.EnvironmentGrant], error) {
	return listing(ctx, s, p, OpRead, "environment-grant", org, cut, func(tx store.Tx, g *grant.EnvironmentGrant) (grant.EnvironmentGrant, bool, error) {
		r, err := lookup[grant.Revocation](tx, keyOf(grant.Revocation{Org: org, Grant: g.ID}))
		return *g, r == nil, err
	})
}

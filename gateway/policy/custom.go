package policy

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// EnvironmentRequest makes or changes an environment of an organisation's own. What is absent is the
// base's, save the list of capabilities: without one there is none.
type EnvironmentRequest struct {
	Org     string
	Slug    string
	Base    abi.EnvironmentRef
	Reach   abi.Reach
	MaxData abi.Classification
	// Family is "boundary" or "refinement", or "" for the base's.
	Family  string
	Allowed []abi.CapabilityRef // nil for none; an empty list is refused
	Limits  map[string]int64
}

var environmentFields = []string{"slug", "base", "reachCeiling", "maxDataClassification", "enforcement", "allowedCapabilities", "limits"}

// CreateEnvironment makes an environment of an organisation's own (X53, X54). It derives from a
// built-in one and is within it and within the organisation's override of it: CEILING_LOOSENED (X56).
// A slug that was used once is not used again: what was granted there would come back.
func (s *Service) CreateEnvironment(ctx context.Context, p session.Principal, r EnvironmentRequest) (environment.Environment, error) {
	in := intent{by: p, op: OpEnvCreate, org: r.Org, target: r.Slug, fields: environmentFields}
	return s.putEnvironment(ctx, in, r, func(o *orgState, rec *environment.Custom) error {
		if have, used := o.own[r.Slug]; used {
			if have.Removed {
				return abi.Errorf(abi.CodeConflict, "the slug was used before").At("/slug").WithHint("what was granted there would come back; choose another")
			}
			return abi.Errorf(abi.CodeAlreadyExists, "there is an environment %s", abi.Quote(r.Slug)).At("/slug")
		}
		live := 0
		for _, c := range o.own {
			if !c.Removed {
				live++
			}
		}
		if live >= environment.MaxCustom {
			return abi.Errorf(abi.CodeQuotaExceeded, "an organisation has at most %d environments of its own", environment.MaxCustom)
		}
		rec.Revision, rec.CreatedBy, rec.CreatedAt = 1, p.Name(), rec.UpdatedAt
		return nil
	})
}

// ReplaceEnvironment changes an environment of an organisation's own to what the request says. What it
// derives from is fixed. Invocations that run there and have more than it still gives end at their
// next host call.
func (s *Service) ReplaceEnvironment(ctx context.Context, p session.Principal, r EnvironmentRequest, e Expect) (environment.Environment, error) {
	in := intent{by: p, op: OpLimits, org: r.Org, target: r.Slug, fields: environmentFields}
	in.may = func(*state) error { return Allowed(p, OpEnvCreate, r.Org) } // built-in ones are the operator's alone
	return s.putEnvironment(ctx, in, r, func(o *orgState, rec *environment.Custom) error {
		old, ok := o.own[r.Slug]
		if !ok || old.Removed {
			return notThere("environment", r.Slug)
		}
		if r.Base != "" && r.Base != old.Base {
			return abi.Errorf(abi.CodeInvalidRequest, "what an environment derives from is fixed").At("/base")
		}
		if err := e.check(old.Revision); err != nil {
			return err
		}
		rec.Base, rec.Revision, rec.CreatedBy, rec.CreatedAt = old.Base, old.Revision+1, old.CreatedBy, old.CreatedAt
		return nil
	})
}

// putEnvironment checks and writes a record. begin says what it follows on, and fixes its base.
func (s *Service) putEnvironment(ctx context.Context, in intent, r EnvironmentRequest, begin func(*orgState, *environment.Custom) error) (environment.Environment, error) {
	ref := abi.MakeEnvironmentRef(r.Slug)
	err := s.apply(ctx, in, func(st *state) (*change, error) {
		o := st.orgs[r.Org]
		if o == nil {
			return nil, notThere("organisation", r.Org)
		}
		rec := environment.Custom{
			Org: r.Org, Slug: r.Slug, Base: r.Base, Reach: r.Reach, MaxData: r.MaxData, Boundary: r.Family == environment.Boundary.String(),
			Allowed: r.Allowed, Limits: r.Limits, UpdatedBy: in.by.Name(), UpdatedAt: s.clock().UTC(),
		}
		if err := begin(o, &rec); err != nil {
			return nil, err
		}
		if err := st.derive(o, &rec, r.Family); err != nil {
			return nil, err
		}
		return &change{records: []any{rec}, org: r.Org}, nil
	})
	if err != nil {
		return environment.Environment{}, err
	}
	if e := s.Snapshot().EnvironmentIn(r.Org, ref); e != nil {
		return *e, nil
	}
	return environment.Environment{}, notThere("environment", r.Slug)
}

// derive fills in what a request left to the base and holds the record to it.
func (st *state) derive(o *orgState, rec *environment.Custom, family string) error {
	base := st.builtIn(rec.Base)
	if base == nil {
		base = &environment.Environment{}
	}
	over := o.shard.Overrides.At(rec.Base)
	rec.Reach, rec.MaxData = cmp.Or(rec.Reach, base.Reach), cmp.Or(rec.MaxData, base.Effective(over))
	if err := rec.Check(); err != nil {
		return err
	}
	if family != "" && family != environment.Boundary.String() {
		if family != environment.Refinement.String() {
			return abi.Errorf(abi.CodeInvalidRequest, "%s is not one of boundary, refinement", abi.Quote(family)).At("/enforcement")
		}
		if base.Boundary() {
			return abi.Errorf(abi.CodeCeilingLoosened, "%s is a boundary", base.Slug).At("/enforcement")
		}
	}
	return asError(rec.Within(base, over))
}

// DeleteEnvironment takes an environment of an organisation's own away. As long as sessions are open
// there it is ENVIRONMENT_IN_USE, with their ids. What was granted there is of no use any more.
func (s *Service) DeleteEnvironment(ctx context.Context, p session.Principal, org, slug string, e Expect) error {
	return s.apply(ctx, intent{by: p, op: OpEnvDelete, org: org, target: slug}, func(st *state) (*change, error) {
		o := st.orgs[org]
		if o == nil {
			return nil, notThere("organisation", org)
		}
		rec, ok := o.own[slug]
		if !ok || rec.Removed {
			return nil, notThere("environment", slug)
		}
		if err := e.check(rec.Revision); err != nil {
			return nil, err
		}
		if open := s.live.in(org, rec.Ref(), s.clock()); len(open) > 0 {
			return nil, abi.Errorf(abi.CodeEnvironmentInUse, "%d sessions are open there", len(open)).
				WithHint("close them first").WithCause(openSessions(open))
		}
		rec.Removed, rec.Revision, rec.UpdatedBy, rec.UpdatedAt = true, rec.Revision+1, p.Name(), s.clock().UTC()
		return &change{records: []any{rec}, org: org}, nil
	})
}

// openSessions is the sessions that are in the way of something.
type openSessions []string

func (u openSessions) Error() string { return "sessions are open" }

// Problems lists them for the answer, the first hundred.
func (u openSessions) Problems() any {
	type open struct {
		Session string `json:"session"`
	}
	out := []open{}
	for _, id := range u[:min(len(u), 100)] {
		out = append(out, open{id})
	}
	return out
}

// OwnEnvironments lists an organisation's own environments as they are resolved now, by slug.
func (s *Service) OwnEnvironments(p session.Principal, org string) (out []environment.Environment, err error) {
	err = s.read(p, OpRead, org, func(st *state, o *orgState) error {
		for _, c := range sorted(o.own) {
			if e, err := st.find(o, c.Ref()); err == nil && !c.Removed {
				out = append(out, e)
			}
		}
		return nil
	})
	return out, err
}

// OwnEnvironment is one of them.
func (s *Service) OwnEnvironment(p session.Principal, org, slug string) (e environment.Environment, err error) {
	err = s.read(p, OpRead, org, func(st *state, o *orgState) error {
		if c, ok := o.own[slug]; !ok || c.Removed {
			return notThere("environment", slug)
		}
		var err error
		e, err = st.find(o, abi.MakeEnvironmentRef(slug))
		return err
	})
	return e, err
}

// in lists the open sessions of an organisation that are bound to an environment, oldest first.
func (l *sessions) in(org string, ref abi.EnvironmentRef, now time.Time) []string {
	var out []string
	if e := l.orgs[org]; e != nil {
		for _, x := range e.ends {
			if s := l.get(x.id); s != nil && s.now().Environment == ref && s.stands(now) == nil {
				out = append(out, x.id)
			}
		}
	}
	slices.Sort(out)
	return out
}

package policy

import (
	"context"
	"maps"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// Environments lists the built-in environments as they are resolved now.
func (s *Service) Environments() []environment.Environment {
	return slices.Clone(s.Snapshot().Environments)
}

// find is an environment that an organisation can name: a built-in one or one of its own. The answer
// for another organisation's is that for one that is nobody's (X53).
func (st *state) find(o *orgState, ref abi.EnvironmentRef) (environment.Environment, error) {
	if e := st.builtIn(ref); e != nil {
		return *e, nil
	}
	if o != nil {
		if c, ok := o.own[ref.Slug()]; ok && !c.Removed {
			if base := st.builtIn(c.Base); base != nil {
				return c.Resolve(base, o.shard.Overrides.At(c.Base)), nil
			}
		}
	}
	return environment.Environment{}, notThere("environment", string(ref))
}

// builtIn is a built-in environment as it is resolved now, or nil.
func (st *state) builtIn(ref abi.EnvironmentRef) *environment.Environment {
	for i := range st.environments {
		if st.environments[i].Ref == ref {
			return &st.environments[i]
		}
	}
	return nil
}

// SetEnvironmentLimits changes limits of a built-in environment, which is the operator's
// configuration; everything else about a built-in is immutable. Limits apply to invocations
// that begin afterwards.
func (s *Service) SetEnvironmentLimits(ctx context.Context, p session.Principal, ref abi.EnvironmentRef, changes map[string]int64, e Expect) (environment.Environment, error) {
	in := intent{by: p, op: OpLimits, org: p.Org, target: string(ref), fields: slices.Sorted(maps.Keys(changes))}
	err := s.apply(ctx, in, func(st *state) (*change, error) {
		old, err := st.find(nil, ref)
		if err != nil {
			return nil, err
		}
		if err := e.check(old.Revision); err != nil {
			return nil, err
		}
		limits, refused := environment.SetLimits(old.Limits, changes)
		if refused != nil {
			return nil, refused
		}
		rec := limitsRecord{
			Environment: ref, Limits: environment.LimitsByName(limits), Revision: old.Revision + 1,
			UpdatedBy: p.Name(), UpdatedAt: s.clock().UTC(),
		}
		return &change{records: []any{rec}, limits: true}, nil
	})
	if err != nil {
		return environment.Environment{}, err
	}
	return *s.Snapshot().EnvironmentIn("", ref), nil
}

// PutOverride caps what one organisation admits to a built-in environment (X19, X20). It can be
// raised again up to the built-in's own ceiling, never above: CEILING_LOOSENED.
func (s *Service) PutOverride(ctx context.Context, p session.Principal, r OverrideRequest, e Expect) (environment.Override, error) {
	var out environment.Override
	in := intent{by: p, op: OpOverride, org: r.Org, target: string(r.Environment), fields: []string{"maxDataClassification"}}
	err := s.apply(ctx, in, func(st *state) (*change, error) {
		o := st.orgs[r.Org]
		if o == nil {
			return nil, notThere("organisation", r.Org)
		}
		old := o.overrides[r.Environment]
		out = environment.Override{
			Org: r.Org, Environment: r.Environment, MaxData: r.MaxData, Revision: old.Revision + 1,
			UpdatedBy: p.Name(), UpdatedAt: s.clock().UTC(),
		}
		if err := out.Check(); err != nil {
			return nil, err
		}
		if err := e.check(present(old.Revision, old.Removed)); err != nil {
			return nil, err
		}
		return &change{records: []any{out}, org: r.Org}, nil
	})
	return out, err
}

// RemoveOverride takes an override away: the built-in's own ceiling holds again, and nothing above it.
func (s *Service) RemoveOverride(ctx context.Context, p session.Principal, org string, ref abi.EnvironmentRef, e Expect) error {
	return s.apply(ctx, intent{by: p, op: OpOverrideDrop, org: org, target: string(ref)}, func(st *state) (*change, error) {
		o := st.orgs[org]
		if o == nil {
			return nil, notThere("organisation", org)
		}
		rec, ok := o.overrides[ref]
		if !ok || rec.Removed {
			return nil, notThere("override of", string(ref))
		}
		if err := e.check(rec.Revision); err != nil {
			return nil, err
		}
		rec.Removed, rec.Revision, rec.UpdatedBy, rec.UpdatedAt = true, rec.Revision+1, p.Name(), s.clock().UTC()
		return &change{records: []any{rec}, org: org}, nil
	})
}

// Overrides lists an organisation's overrides.
func (s *Service) Overrides(p session.Principal, org string) (out []environment.Override, err error) {
	err = s.read(p, OpRead, org, func(_ *state, o *orgState) error {
		for _, r := range sorted(o.overrides) {
			if !r.Removed {
				out = append(out, r)
			}
		}
		return nil
	})
	return out, err
}

// OverrideOf is an organisation's override of one built-in environment.
func (s *Service) OverrideOf(p session.Principal, org string, ref abi.EnvironmentRef) (out environment.Override, err error) {
	err = s.read(p, OpRead, org, func(_ *state, o *orgState) error {
		if out = o.overrides[ref]; out.Revision == 0 || out.Removed {
			return notThere("override of", string(ref))
		}
		return nil
	})
	return out, err
}

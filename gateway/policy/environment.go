package policy

import (
	"context"
	"maps"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// Environments lists the environments as they are resolved now.
func (s *Service) Environments() []environment.Environment {
	return slices.Clone(s.Snapshot().Environments)
}

// SetEnvironmentLimits changes limits of a built-in environment, which is the operator's
// configuration; everything else about a built-in is immutable. Limits apply to invocations
// that begin afterwards.
func (s *Service) SetEnvironmentLimits(ctx context.Context, p session.Principal, ref abi.EnvironmentRef, changes map[string]int64, e Expect) (environment.Environment, error) {
	in := intent{by: p, op: OpLimits, org: p.Org, target: string(ref), fields: slices.Sorted(maps.Keys(changes))}
	err := s.apply(ctx, in, func(st *state) (*change, error) {
		if err := environment.Known(ref); err != nil {
			return nil, err
		}
		var old environment.Environment
		for _, have := range st.environments {
			if have.Ref == ref {
				old = have
			}
		}
		if err := e.check(old.Revision); err != nil {
			return nil, err
		}
		limits, err := environment.SetLimits(old.Limits, changes)
		if err != nil {
			return nil, err
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
	return *s.Snapshot().Environment(ref), nil
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
		if err := e.check(old.Revision); err != nil {
			return nil, err
		}
		return &change{records: []any{out}, org: r.Org}, nil
	})
	return out, err
}

// Overrides lists an organisation's overrides.
func (s *Service) Overrides(p session.Principal, org string) (out []environment.Override, err error) {
	err = s.read(p, OpRead, org, func(_ *state, o *orgState) error {
		out = sorted(o.overrides)
		return nil
	})
	return out, err
}

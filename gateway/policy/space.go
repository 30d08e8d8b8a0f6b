package policy

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/space"
)

// CreateOrg makes an organisation and its own space, which is named as the organisation's
// spaces without a parent are found by default.
func (s *Service) CreateOrg(ctx context.Context, p session.Principal, id string) (Org, error) {
	var out Org
	err := s.apply(ctx, intent{by: p, op: OpOrgCreate, org: id, target: id, fields: []string{"id"}}, func(st *state) (*change, error) {
		if _, err := abi.ParseSlug("an organisation", id); err != nil {
			return nil, abi.AsError(err).At("/id")
		}
		if st.orgs[id] != nil {
			return nil, abi.Errorf(abi.CodeAlreadyExists, "there is an organisation %s", abi.Quote(id)).At("/id")
		}
		var own space.Space
		out, own = s.newOrg(id, space.Org, p.Name())
		return &change{records: []any{out, s.newRates(id, p.Name(), out.CreatedAt), own}, org: id}, nil
	})
	return out, err
}

// RootSpace is the id of the space that every organisation begins with.
const RootSpace = "default"

func (s *Service) newOrg(id string, kind space.Kind, by string) (Org, space.Space) {
	now := s.clock().UTC()
	return Org{ID: id, CreatedBy: by, CreatedAt: now}, space.Space{
		Org: id, ID: RootSpace, Kind: kind, Dev: s.dev, Floor: abi.Public, Clearance: abi.Regulated, CreatedBy: by, CreatedAt: now,
	}
}

// Orgs lists the organisations: all for an operator, otherwise one's own.
func (s *Service) Orgs(p session.Principal) ([]Org, error) {
	if err := Allowed(p, OpRead, p.Org); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []Org
	for id, o := range s.state.orgs {
		if p.Role == session.Operator || id == p.Org {
			out = append(out, o.record)
		}
	}
	slices.SortFunc(out, func(a, b Org) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// CreateSpace makes a space. A child may only raise the floor and lower the clearance of the
// space around it: CEILING_LOOSENED otherwise (X23).
func (s *Service) CreateSpace(ctx context.Context, p session.Principal, r SpaceRequest) (SpaceStatus, error) {
	var out SpaceStatus
	in := intent{by: p, op: OpSpaceCreate, org: r.Org, target: r.ID, fields: []string{"id", "kind", "parent", "production", "floor", "clearance"}}
	err := s.apply(ctx, in, func(st *state) (*change, error) {
		o := st.orgs[r.Org]
		if o == nil {
			return nil, notThere("organisation", r.Org)
		}
		if _, taken := o.spaces[r.ID]; taken {
			return nil, abi.Errorf(abi.CodeAlreadyExists, "there is a space %s", abi.Quote(r.ID)).At("/id")
		}
		if (r.Kind == space.System) != (r.Org == SystemOrg) && r.Parent == "" && r.Kind != space.User {
			return nil, abi.Errorf(abi.CodeInvalidRequest, "a space of kind %s does not belong into this organisation", r.Kind).At("/kind")
		}
		var around []space.Space
		if r.Parent != "" {
			var err error
			if around, err = o.named(r.Parent); err != nil {
				return nil, abi.AsError(err).At("/parent")
			}
			r.Parent = around[len(around)-1].ID
		}
		made := space.Space{
			Org: r.Org, ID: r.ID, Kind: r.Kind, Parent: r.Parent, Production: r.Production, Dev: s.dev,
			Floor: r.Floor, Clearance: r.Clearance, CreatedBy: p.Name(), CreatedAt: s.clock().UTC(),
		}
		inherit(&made, around)
		if err := made.Check(around...); err != nil {
			return nil, err
		}
		out = SpaceStatus{made, space.URIOf(append(around, made)...)}
		return &change{records: []any{made}, org: r.Org}, nil
	})
	return out, err
}

// inherit fills in the labels a request left out.
func inherit(s *space.Space, around []space.Space) {
	outer := space.Effective{Floor: abi.Public, Clearance: abi.Regulated}
	if len(around) > 0 {
		outer = space.Resolve(around...)
	}
	if !s.Floor.Valid() {
		s.Floor = outer.Floor
	}
	if !s.Clearance.Valid() {
		s.Clearance = outer.Clearance
	}
}

// Spaces lists an organisation's spaces by id.
func (s *Service) Spaces(p session.Principal, org string) (out []SpaceStatus, err error) {
	err = s.read(p, OpRead, org, func(_ *state, o *orgState) error {
		for _, one := range sorted(o.spaces) {
			out = append(out, SpaceStatus{one, space.URIOf(o.chain(one.ID)...)})
		}
		return nil
	})
	return out, err
}

// SpaceNamed is one space, by id.
func (s *Service) SpaceNamed(p session.Principal, org, id string) (out SpaceStatus, err error) {
	err = s.read(p, OpRead, org, func(_ *state, o *orgState) error {
		one, there := o.spaces[id]
		if !there {
			return notThere("space", id)
		}
		out = SpaceStatus{one, space.URIOf(o.chain(id)...)}
		return nil
	})
	return out, err
}

// named is the chain of the space that an id or a URI names. A URI names the space with that chain, and
// no other: what was moved into it by writing it differently is not there (X69).
func (o *orgState) named(name string) ([]space.Space, error) {
	id := name
	if space.IsURI(name) {
		u, err := space.ParseURI(name)
		if err != nil {
			return nil, err
		}
		id = u.ID()
	}
	chain := o.chain(id)
	if chain == nil || id != name && space.URIOf(chain...).String() != name {
		return nil, notThere("space", name)
	}
	return chain, nil
}

// sorted lists the values of a map in the order of its keys.
func sorted[K cmp.Ordered, V any](m map[K]V) []V {
	out := make([]V, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}

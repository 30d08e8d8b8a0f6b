package policy

import (
	"context"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// Capability is one capability of an organisation, over all versions that provide it.
type Capability struct {
	Capability abi.CapabilityRef `json:"capability"`
	Biome      string            `json:"biome"`
	Title      string            `json:"title"`
	Reach      abi.Reach         `json:"reach"`
	RiskTier   abi.RiskTier      `json:"riskTier"`
	State      grant.State       `json:"state"`
	ReplacedBy abi.CapabilityRef `json:"replacedBy,omitempty"`
	// Digest is the version that serves it where an install grant counts; "" when none does.
	Digest string `json:"digest,omitempty"`
	// Revision is of the record that says deprecated or retired; 0 when there is none.
	Revision uint64 `json:"revision"`
}

// LifecycleRequest takes a capability further.
type LifecycleRequest struct {
	Org        string            `json:"org"`
	Capability abi.CapabilityRef `json:"capability"`
	State      grant.State       `json:"state"`
	ReplacedBy abi.CapabilityRef `json:"replacedBy,omitempty"`
}

// Capabilities lists an organisation's capabilities in order of refs, whatever became of them.
func (s *Service) Capabilities(p session.Principal, org string) (out []Capability, err error) {
	err = s.read(p, OpRead, org, func(_ *state, o *orgState) error {
		for ref := range o.providers {
			out = append(out, o.capability(ref))
		}
		return nil
	})
	return out, err
}

// Capability shows one capability.
func (s *Service) Capability(p session.Principal, org string, ref abi.CapabilityRef) (out Capability, err error) {
	err = s.read(p, OpRead, org, func(_ *state, o *orgState) error {
		if _, provided := o.providers[ref]; !provided {
			return notThere("capability", string(ref))
		}
		out = o.capability(ref)
		return nil
	})
	return out, err
}

func (o *orgState) capability(ref abi.CapabilityRef) Capability {
	b := o.biomes[o.providers[ref]]
	out := Capability{Capability: ref, Biome: o.providers[ref], State: o.stateOf(ref)}
	l := o.states.said[ref]
	out.ReplacedBy, out.Revision = l.ReplacedBy, l.Revision
	if i := o.serves(b, ref); i != nil {
		out.Digest = i.Digest
	}
	var shown *uploadState // the version that serves, or else the newest that has it
	for _, u := range b.uploads {
		if u.capabilities[ref] == nil || shown != nil && shown.record.Digest == out.Digest {
			continue
		}
		if shown == nil || u.record.Digest == out.Digest || u.record.CreatedAt.After(shown.record.CreatedAt) {
			shown = u
		}
	}
	d := shown.capabilities[ref]
	out.Title, out.Reach, out.RiskTier = d.Title, d.Reach, d.RiskTier
	return out
}

// serves is the install grant under which a capability of a biome is served, or nil.
func (o *orgState) serves(b *biomeState, ref abi.CapabilityRef) *grant.Install {
	for _, i := range o.installed(b) {
		if b.uploads[i.Digest].capabilities[ref] != nil {
			return &i
		}
	}
	return nil
}

// stateOf is how far a capability has come. One that an install grant admitted once stays published
// when the grant is revoked: it goes forward only.
func (o *orgState) stateOf(ref abi.CapabilityRef) grant.State {
	if l, ok := o.states.said[ref]; ok {
		return l.State
	}
	if _, published := o.states.published[ref]; published {
		return grant.Published
	}
	return grant.Proposed
}

// SetLifecycle deprecates or retires a capability. A retired one is denied to whoever may know of it,
// from its running invocations' next host call on; nothing brings it back (X61). The successor may be changed as
// long as the state is not.
func (s *Service) SetLifecycle(ctx context.Context, p session.Principal, r LifecycleRequest, e Expect) (out Capability, err error) {
	in := intent{by: p, op: OpLifecycle, org: r.Org, target: string(r.Capability), fields: []string{"state", "replacedBy"}}
	err = s.apply(ctx, in, func(st *state) (*change, error) {
		o := st.orgs[r.Org]
		if o == nil {
			return nil, notThere("organisation", r.Org)
		}
		if _, provided := o.providers[r.Capability]; !provided {
			return nil, notThere("capability", string(r.Capability))
		}
		was := o.states.said[r.Capability]
		if err := e.check(was.Revision); err != nil {
			return nil, err
		}
		rec := grant.Lifecycle{
			Org: r.Org, Capability: r.Capability, State: r.State, ReplacedBy: r.ReplacedBy,
			Revision: was.Revision + 1, UpdatedBy: p.Name(), UpdatedAt: s.clock().UTC(),
		}
		if err := rec.Check(); err != nil {
			return nil, err
		}
		if is := o.stateOf(r.Capability); is.After(r.State) {
			return nil, abi.Errorf(abi.CodeConflict, "the capability is %s, and a state is never taken back", is).At("/state")
		}
		if err := st.checkSuccessor(o, &rec); err != nil {
			return nil, err
		}
		out = o.capability(r.Capability)
		out.State, out.ReplacedBy, out.Revision = rec.State, rec.ReplacedBy, rec.Revision
		return &change{records: []any{rec}, org: r.Org}, nil
	})
	return out, err
}

// checkSuccessor refuses a successor that could not be invoked instead: one that nobody provides, that
// is retired itself, or that leads back.
func (st *state) checkSuccessor(o *orgState, l *grant.Lifecycle) error {
	if l.ReplacedBy == "" {
		return nil
	}
	if !st.provided(l.Org, l.ReplacedBy) {
		return abi.AsError(notThere("capability", string(l.ReplacedBy))).At("/replacedBy")
	}
	if st.lifecycleOf(o, l.ReplacedBy).State == grant.Retired {
		return abi.Errorf(abi.CodeConflict, "%s is retired itself", abi.Quote(string(l.ReplacedBy))).At("/replacedBy")
	}
	seen := []abi.CapabilityRef{l.Capability}
	for ref := l.ReplacedBy; ref != ""; ref = st.lifecycleOf(o, ref).ReplacedBy {
		if slices.Contains(seen, ref) {
			return abi.Errorf(abi.CodeConflict, "%s leads back to where it is to replace something", abi.Quote(string(l.ReplacedBy))).At("/replacedBy")
		}
		seen = append(seen, ref)
	}
	return nil
}

// lifecycleOf is the record of a capability of the organisation or the system's.
func (st *state) lifecycleOf(o *orgState, ref abi.CapabilityRef) grant.Lifecycle {
	if _, own := o.providers[ref]; !own && st.orgs[SystemOrg] != nil {
		o = st.orgs[SystemOrg]
	}
	return o.states.said[ref]
}

// states is what an organisation knows of its capabilities' states.
type states struct {
	said      map[abi.CapabilityRef]grant.Lifecycle // deprecated or retired
	published map[abi.CapabilityRef]struct{}        // an install grant admitted it once
}

func newStates() states {
	return states{said: map[abi.CapabilityRef]grant.Lifecycle{}, published: map[abi.CapabilityRef]struct{}{}}
}

func (o *orgState) applyLifecycle(l grant.Lifecycle) error {
	o.states.said[l.Capability] = l
	if name, provided := o.providers[l.Capability]; provided {
		o.staleBiomes[name] = struct{}{}
	}
	return asError(l.Check())
}

package gate

import (
	"cmp"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/grant"
)

// Holder is a subject and what it holds grants for. Grants are found by it, in all environments
// at once: who holds one anywhere may know of the capability.
type Holder struct {
	Subject    abi.Subject
	Capability abi.CapabilityRef
}

// Held is the grants of one holder, in the order of environments and then of ids: at most one for
// an environment, because another is made only when none stands. It is immutable.
type Held []*grant.Grant

// In returns the grant for an environment, or nil.
func (h Held) In(env abi.EnvironmentRef) *grant.Grant {
	for i := len(h) - 1; i >= 0; i-- { // the last one made, were there two
		if h[i].Environment == env {
			return h[i]
		}
	}
	return nil
}

// With returns what is held once g was made. What had expired by then counts no more: it is left
// out, so that what was renewed a thousand times is as short as what was not. The result does
// not depend on the order in which grants are added.
func (h Held) With(g *grant.Grant) Held {
	out := make(Held, 0, len(h)+1)
	for _, have := range h {
		switch {
		case have.ID == g.ID || ended(have, g):
		case ended(g, have):
			return h
		default:
			out = append(out, have)
		}
	}
	i, _ := slices.BinarySearchFunc(out, g, compareHeld)
	return slices.Insert(out, i, g)
}

// ended reports whether one grant had expired when another for the same environment was made.
func ended(one, other *grant.Grant) bool {
	return one.Environment == other.Environment && one.Expires != nil && !other.CreatedAt.Before(*one.Expires)
}

func compareHeld(a, b *grant.Grant) int {
	return cmp.Or(cmp.Compare(a.Environment, b.Environment), cmp.Compare(a.ID, b.ID))
}

// Without returns what is held without the grant that has this id.
func (h Held) Without(id string) Held {
	i := slices.IndexFunc(h, func(g *grant.Grant) bool { return g.ID == id })
	if i < 0 {
		return h
	}
	return slices.Concat(h[:i], h[i+1:])
}

// Held returns what a subject holds for a capability.
func (o *Org) Held(subject abi.Subject, ref abi.CapabilityRef) Held {
	return o.Grants.At(Holder{subject, ref})
}

package engine

import (
	"slices"
	"strings"

	"github.com/ecotone-dev/ecotone/host/boundary"
)

// Keeping says how instances of an image may be kept and put back. Whoever prepared the module
// knows; the zero value says nothing and keeps nothing.
type Keeping struct {
	// Never says why they may not be, in words for the author; "" when they may.
	Never string
	// Seeded is set when the author accepts that what the initialiser learned of time and
	// randomness is the same in many invocations (S13).
	Seeded bool
	// Globals are the names under which the module exports its mutable globals: all of them.
	Globals []string
	// Overhead estimates what an instance takes of the host beside its memory, in bytes.
	Overhead int64

	said bool
}

// Keep says how instances of the image may be kept. It must be called before the first
// invocation; an image about which nothing is said keeps nothing.
func (i *Image) Keep(k Keeping) {
	k.said = true
	i.keeping = k
}

// FreshBecause says why each invocation of the image gets a new instance whatever the pool, or
// is "" as far as is known: what the initialiser asks for shows when it first runs.
func (i *Image) FreshBecause() string {
	switch {
	case !i.keeping.said:
		return "nothing is known of the module"
	case i.keeping.Never != "":
		return i.keeping.Never
	}
	if why := i.learned.Load(); why != nil {
		return *why
	}
	return ""
}

// seedable are the functions whose answers an author may accept to be frozen.
var seedable = []string{"random_get", "clock_time_get", "clock_res_get", "poll_oneoff"}

// learn notes what the initialiser asked for and reports whether what it left may be frozen.
func (i *Image) learn(inv *boundary.Invocation) bool {
	asked := slices.Clone(inv.Asked())
	if i.keeping.Seeded {
		asked = slices.DeleteFunc(asked, func(name string) bool { return slices.Contains(seedable, name) })
	}
	if len(asked) > 0 {
		slices.Sort(asked)
		why := "its initialiser asks for " + strings.Join(asked, ", ")
		i.learned.CompareAndSwap(nil, &why)
	}
	return i.FreshBecause() == ""
}

package gate

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
)

// X69, X22: what is named is what counts: the starting label is the join of the labels that are named, the ceiling
// the meet of the ceilings, whatever the world is.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		f := drawFacts(t, w)
		d := decide(w, f)
		labels, ceilings := Bounds(w.snapshot(), &f)
		if d.Biome == "" {
			return
		}
		start, ceiling := abi.Public, abi.Regulated
		for _, b := range labels {
			start = abi.Join(start, b.Level)
		}
		for _, b := range ceilings {
			ceiling = abi.Meet(ceiling, b.Level)
		}
		if start != d.Start || ceiling != d.Ceiling {
			t.Fatalf("%v under %v, and it begins %s under %s", labels, ceilings, d.Start, d.Ceiling)
		}
	})
}

package catalogue

import (
	"context"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
)

// X12, X13, X15: what is remembered is what the catalogue says now: a change is seen with the version it
// makes, an outage hides what was never asked, and nothing unknown or failed is remembered.
func TestKept(t *testing.T) {
	s := stored(t)
	version := uint64(1)
	below := NewSwitch(Stored{Store: s})
	c := NewKept(below, func() uint64 { return version })
	ask := func(digest string, want abi.Reach, known, ok bool) {
		t.Helper()
		if r, k, err := c.Reach(t.Context(), "acme", digest, ref); r != want || k != known || (err == nil) != ok {
			t.Errorf("%s: %s %v %v", digest, r, k, err)
		}
	}
	ask("d1", 0, false, true)
	set(t, s, "d1", "owner") // what was not known is asked for again
	ask("d1", abi.ReachOwner, true, true)
	set(t, s, "d2", "platform")
	below.Stop()
	ask("d1", abi.ReachOwner, true, true)
	ask("d2", 0, false, false)
	below.Start()
	ask("d2", abi.ReachPlatform, true, true)
	set(t, s, "d1", "integration")
	version++
	ask("d1", abi.ReachIntegration, true, true)
	set(t, s, "d1", "")
	version++
	ask("d1", 0, false, true)
	set(t, s, "d2", "damaged")
	version++
	ask("d2", 0, false, false)
}

func BenchmarkKept(b *testing.B) {
	c := NewKept(fixed(abi.ReachOwner), func() uint64 { return 1 })
	b.ReportAllocs()
	for b.Loop() {
		if _, known, err := c.Reach(context.Background(), "acme", "d1", ref); !known || err != nil {
			b.Fatal(err)
		}
	}
}

type fixed abi.Reach

func (f fixed) Reach(context.Context, string, string, abi.CapabilityRef) (abi.Reach, bool, error) {
	return abi.Reach(f), true, nil
}

package biomes_test

import (
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
)

// What a Go guest does the first time only, its initialiser has done when a capability is
// made with guest.Capability: every invocation begins behind that. Fuel is the measure, which
// no load on this machine changes.
func TestWarm(t *testing.T) {
	w := newWorld(t, "warm")
	input := map[string]any{"names": []string{"ada", "grace", "barbara"}}
	fuel := map[string]int64{}
	for _, which := range []string{"cold", "ready"} {
		o := w.run(abi.CapabilityRef("warm:names."+which+"@1"), input)
		if o.Err != nil || string(o.Output) != `{"count":3}` {
			t.Fatalf("%s: %s %v", which, o.Output, o.Err)
		}
		fuel[which] = o.Receipt.Fuel
	}
	t.Logf("%v", fuel)
	if 3*fuel["ready"] > 2*fuel["cold"] {
		t.Errorf("made ready it costs %d, and else %d", fuel["ready"], fuel["cold"])
	}
	// A call that takes some memory finds it there.
	small, large := w.run("warm:names.ready@1", input), w.run("warm:names.ready@1", map[string]any{"names": []string{strings.Repeat("a", 50<<10)}})
	if large.Err != nil || large.Receipt.PeakMemory != small.Receipt.PeakMemory {
		t.Errorf("with 50 KiB of input the memory grew: %d, %d, %v", small.Receipt.PeakMemory, large.Receipt.PeakMemory, large.Err)
	}
	o := w.run("warm:init.tried@1", "{}")
	if o.Err != nil || string(o.Output) != `{"tried":3,"refused":3}` {
		t.Errorf("the initialiser's own: %s %v", o.Output, o.Err)
	}
}

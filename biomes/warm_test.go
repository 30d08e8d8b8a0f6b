package biomes_test

import (
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
	o := w.run("warm:init.tried@1", "{}")
	if o.Err != nil || string(o.Output) != `{"tried":3,"refused":3}` {
		t.Errorf("the initialiser's own: %s %v", o.Output, o.Err)
	}
}

package boundary_test

import (
	"context"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// Of an invocation whose state is used again nothing is left; one that somebody may still look at is
// not used again (S1, S7).
func TestFree(t *testing.T) {
	services := func() boundary.Services {
		return boundary.Services{KV: stillKV{}, Journal: (&outside{}).services().Journal}
	}
	for name, c := range map[string]struct {
		during func(context.Context, *boundary.Invocation)
		used   bool // again
	}{
		"alone":       {func(context.Context, *boundary.Invocation) {}, true},
		"a service":   {func(ctx context.Context, inv *boundary.Invocation) { hostCall(t, ctx, inv, "kv_get", 0, 11) }, false},
		"waited for":  {func(ctx context.Context, _ *boundary.Invocation) { ctx.Done() }, false},
		"derived":     {func(ctx context.Context, _ *boundary.Invocation) { context.AfterFunc(ctx, func() {}) }, false},
		"out of time": {func(context.Context, *boundary.Invocation) { time.Sleep(2 * time.Millisecond) }, false},
	} {
		spec := permissive()
		deadline := time.Now().Add(time.Hour)
		if name == "out of time" {
			deadline = time.Now().Add(time.Millisecond)
		}
		inv := boundary.New(boundary.Spec{
			Authority: authority.New(spec, func() *abi.Error { return nil }), Input: []byte(`{"secret":1}`), Services: services(),
		})
		ctx, end := inv.Within(context.Background(), deadline)
		inv.Enter(boundary.PhaseInitialize)
		inv.Enter(boundary.PhaseRun)
		hostCall(t, ctx, inv, "input")
		hostCall(t, ctx, inv, "output", 64, 9)
		c.during(ctx, inv)
		o := inv.Conclude(ctx, nil, 0)
		end()
		inv.Free()
		if boundary.Blank(inv) != c.used {
			t.Errorf("%s: used again: %t", name, !c.used)
		}
		if c.used && (o.Err != nil || string(o.Output) != `{"out":1}`) { // the outcome is its receiver's
			t.Errorf("%s: %s %v", name, o.Output, o.Err)
		}
	}
	running := boundary.New(boundary.Spec{Authority: authority.New(permissive(), func() *abi.Error { return nil }), Input: []byte(`{}`)})
	if running.Free(); boundary.Blank(running) {
		t.Error("one that has not ended is used again")
	}
}

func hostCall(t *testing.T, ctx context.Context, inv *boundary.Invocation, name string, args ...uint64) {
	t.Helper()
	mem := make(ram, 4096)
	mem.put(0, "notes/today")
	mem.put(64, `{"out":1}`)
	if inv.Over() == nil {
		boundary.Call(ctx, inv, function(t, name), mem, args)
	}
}

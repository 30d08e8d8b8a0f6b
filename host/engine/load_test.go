package engine_test

import (
	"context"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/engine"
	"github.com/ecotone-dev/ecotone/host/share"
)

// burnt is an organisation's virtual time, which nobody but its scheduler needs to know.
func burnt(o *share.Org) int64 {
	return reflect.ValueOf(o).Elem().FieldByName("at").FieldByName("v").Int()
}

// S10: pages that are put back are paid for by the organisation whose guest wrote them: with its share of
// the processors, and not with the invocation's fuel, which is the same whatever a pool has.
func TestRestoringIsPaid(t *testing.T) {
	needsImages(t)
	image := keepable(t, hunter())
	p, e := pooled(t)
	org := share.New(share.Options{Tokens: 1}).Org("acme")
	run := func(pool *engine.Engine, export string) int64 {
		t.Helper()
		o := pool.Run(patience(t), image, invocation{export: export, input: `1`, spec: in("acme"), share: org}.make())
		if describe(o) != "1" {
			t.Fatalf("%s: %v", export, o.Cause)
		}
		p.Shrink(1)
		return o.Receipt.Fuel
	}
	run(e, "leave")
	const rounds, all = 10, 2 << 16 // bytes of memory, which "leave" writes
	before, fuel := burnt(org), int64(0)
	for range rounds {
		fuel += run(e, "leave")
	}
	paid := burnt(org) - before - fuel
	written := uint64(all)
	if paid != rounds*engine.RestoreFuel(written) {
		t.Errorf("%d was paid for what costs %d", paid, rounds*engine.RestoreFuel(written))
	}
	if engine.RestoreFuel(16<<20) < 100*engine.RestoreFuel(4096) {
		t.Error("much costs little more than little")
	}
	if fresh, kept := run(engine.New(engine.Fresh{}), "leave"), run(e, "leave"); fresh != kept {
		t.Errorf("an invocation costs %d new and %d put back", fresh, kept)
	}
}

// PF-D11: thousands of calls leave no goroutine and no timer behind, and a call that takes its time
// is not ended by the deadlines of those beside it.
func TestCallsLeaveNothingRunning(t *testing.T) {
	needsImages(t)
	image := keepable(t, hunter())
	_, e := pooled(t, func(o *engine.PoolOptions) { o.Verify = false })
	ctx := patience(t)
	entered, leave, long := make(chan struct{}), make(chan struct{}), make(chan boundary.Outcome)
	go func() {
		long <- e.Run(ctx, image, invocation{export: "leave_fetch", spec: in("acme"), fetch: func(context.Context) (boundary.Result, error) {
			close(entered)
			<-leave
			return boundary.Result{}, nil
		}}.make())
	}()
	<-entered
	e.Run(ctx, image, invocation{input: `1`, spec: in("acme")}.make())
	before := runtime.NumGoroutine()
	for n := range 10_000 {
		if n%100 == 0 {
			o := e.Run(ctx, image, invocation{export: "leave_loop", spec: func(s *authority.Spec) {
				in("acme")(s)
				s.Deadline = time.Now().Add(time.Millisecond)
			}}.make())
			if o.Err == nil || o.Err.Code != abi.CodeDeadline {
				t.Fatalf("call %d: %v", n, o.Err)
			}
			continue
		}
		if got := describe(e.Run(ctx, image, invocation{input: `1`, spec: in("acme")}.make())); got != "1" {
			t.Fatalf("call %d: %s", n, got)
		}
	}
	// One for each core may be putting something back.
	if after := runtime.NumGoroutine(); after > before+runtime.GOMAXPROCS(0) {
		t.Errorf("%d goroutines, then %d", before, after)
	}
	close(leave)
	if o := <-long; describe(o) != "1" {
		t.Errorf("the long call: %v", o.Cause)
	}
}

// PF-E4, S11: an instance serves its number of invocations and not one more, however many are at it, and none
// after its call did not end by itself.
func TestInstancesRetire(t *testing.T) {
	needsImages(t)
	image := keepable(t, hunter())
	const most, callers, calls = 7, 100, 21
	p, e := pooled(t, func(o *engine.PoolOptions) { o.Retire = most })
	ctx := patience(t)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range calls {
				if got := describe(e.Run(ctx, image, invocation{input: `1`, spec: in("acme")}.make())); got != "1" {
					t.Error(got)
				}
			}
		})
	}
	wg.Wait()
	p.Shrink(1000)
	s := p.Stats()
	if s.Made < callers*calls/most || s.Made != s.Discarded+int64(s.Idle) {
		t.Errorf("%d invocations, %d in each instance at most: %+v", callers*calls, most, s)
	}
	if most := p.MostLent(); most >= 7 {
		t.Errorf("an idle instance has served %d", most)
	}
}

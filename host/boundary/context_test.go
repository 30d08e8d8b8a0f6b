package boundary_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

func within(t *testing.T, parent context.Context, deadline time.Time) (context.Context, *boundary.Invocation, context.CancelFunc) {
	t.Helper()
	r := newRig(t)
	ctx, end := r.inv.Within(parent, deadline)
	t.Cleanup(end)
	return ctx, r.inv, end
}

// The context of a run keeps what every context promises, though it has no timer until somebody waits:
// Err and Done agree, Err never changes again, derived contexts end with it, and the cause is the
// caller's.
func TestRunContext(t *testing.T) {
	later := time.Now().Add(time.Hour)
	type key struct{}
	parent, cancel := context.WithCancelCause(context.WithValue(context.Background(), key{}, "value"))
	ctx, inv, _ := within(t, parent, later)
	if boundary.From(ctx) != inv || boundary.From(context.WithValue(ctx, key{}, 1)) != inv || ctx.Value(key{}) != "value" {
		t.Error("it does not carry what it should")
	}
	if d, ok := ctx.Deadline(); !ok || !d.Equal(later) || ctx.Err() != nil {
		t.Errorf("%v, %v", d, ctx.Err())
	}
	child, stop := context.WithTimeout(ctx, 30*time.Minute)
	defer stop()
	fired := make(chan struct{})
	context.AfterFunc(ctx, func() { close(fired) })
	cancel(abi.Errorf(abi.CodeGrantRevoked, "withdrawn"))
	<-ctx.Done()
	<-child.Done()
	<-fired
	if !errors.Is(ctx.Err(), context.Canceled) || boundary.Ended(ctx).Code != abi.CodeGrantRevoked || boundary.Ended(child).Code != abi.CodeGrantRevoked {
		t.Errorf("%v, %v", ctx.Err(), boundary.Ended(ctx))
	}
}

func TestRunContextEnds(t *testing.T) {
	soon, cancel := context.WithDeadline(context.Background(), time.Now().Add(time.Minute))
	defer cancel()
	ctx, _, _ := within(t, soon, time.Now().Add(time.Hour))
	if d, _ := ctx.Deadline(); time.Until(d) > time.Minute {
		t.Error("later than its parent")
	}

	late, _, _ := within(t, context.Background(), time.Now().Add(-time.Second))
	if !errors.Is(late.Err(), context.DeadlineExceeded) || boundary.Ended(late).Code != abi.CodeDeadline {
		t.Errorf("past its deadline: %v", late.Err())
	}
	<-late.Done() // closed at once, though nobody waited before
	if !errors.Is(late.Err(), context.DeadlineExceeded) {
		t.Errorf("it changed to %v", late.Err())
	}

	over, _, end := within(t, context.Background(), time.Now().Add(time.Hour))
	if over.Err() != nil {
		t.Error(over.Err())
	}
	end()
	<-over.Done()
	if !errors.Is(over.Err(), context.Canceled) {
		t.Errorf("after the run: %v", over.Err())
	}

	waited, _, finish := within(t, context.Background(), time.Now().Add(time.Hour))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { <-waited.Done() })
	}
	finish()
	wg.Wait()

	timed, _, _ := within(t, context.Background(), time.Now().Add(10*time.Millisecond))
	<-timed.Done()
	if boundary.Ended(timed).Code != abi.CodeDeadline {
		t.Errorf("%v", boundary.Ended(timed))
	}
}

// Nothing is allocated for a run that nobody waits for.
func TestRunContextAllocatesNothing(t *testing.T) {
	ctx, inv, _, _ := steady(t)
	if n := testing.AllocsPerRun(100, func() {
		if ctx.Err() != nil || boundary.From(ctx) != inv || boundary.Ended(ctx) != nil {
			t.Error("ended")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestOneRunForEachInvocation(t *testing.T) {
	_, inv, _ := within(t, context.Background(), time.Now().Add(time.Hour))
	defer func() {
		if recover() == nil {
			t.Error("a second run")
		}
	}()
	inv.Within(context.Background(), time.Now())
}

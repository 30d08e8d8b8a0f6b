package boundary_test

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// gauge is a metered guest's global.
type gauge int64

func (g *gauge) Get() uint64  { return uint64(*g) }
func (g *gauge) Set(v uint64) { *g = gauge(v) }

// guest is what a metered guest does about fuel: it takes, and asks when it is below zero.
type guest struct {
	*rig
	fuel gauge
}

func (r *rig) metered() *guest {
	g := &guest{rig: r}
	r.inv.Meter(&g.fuel)
	return g
}

// work reports whether the guest may go on.
func (g *guest) work(n int64) bool {
	g.fuel -= gauge(n)
	for g.fuel < 0 && g.inv.Over() == nil {
		g.inv.Refuel(context.Background())
	}
	return g.inv.Over() == nil
}

func (g *guest) done() boundary.Outcome {
	g.inv.Unmeter()
	return g.conclude()
}

func withFuel(n int64) func(*authority.Spec) {
	return func(s *authority.Spec) { s.Limits[abi.LimitFuel] = n }
}

// What an invocation costs, and where it ends, does not depend on how much fuel is handed out at a
// time, nor do those of its children; none of them takes more than there is.
func TestFuelDoesNotDependOnSlices(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		most := rapid.OneOf(rapid.Int64Range(1, 300_000), rapid.Int64Range(1, 5000)).Draw(rt, "limit")
		steps := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 40).Draw(rt, "steps")
		sizes := rapid.SliceOfN(rapid.Int64Range(1, 20_000), 40, 40).Draw(rt, "sizes")
		type result struct {
			at           int
			fuel, bottom int64
			code         abi.Code
		}
		play := func(slice int64) (out result) {
			r := newRig(t, withFuel(most))
			r.inv.SetSlice(slice)
			g := r.metered()
			r.out.during = func(context.Context, boundary.Scope, ...[]byte) {
				child := r.below()
				child.inv.SetSlice(slice)
				c := child.metered()
				for n := range 3 {
					if !c.work(sizes[n]) {
						break
					}
					c.call("time_now")
				}
				out.bottom += c.done().Receipt.Fuel
			}
			for i, step := range steps {
				out.at = i
				switch step {
				case 0:
					g.call("time_now")
				case 1:
					g.call("output", string(make([]byte, sizes[i])))
				case 2:
					g.call("capability_invoke", argumentsFor(function(t, "capability_invoke"))...)
				case 3:
					g.fuel -= gauge(sizes[i] % 4096) // looked at later
				default:
					g.work(sizes[i])
				}
				if over := g.inv.Over(); over != nil {
					out.code = over.Code
					break
				}
			}
			out.fuel = g.done().Receipt.Fuel
			if out.fuel+out.bottom > most {
				rt.Fatalf("%d and %d of %d", out.fuel, out.bottom, most)
			}
			return out
		}
		want := play(1 << 40)
		for _, slice := range []int64{1 << 20, 1000, 61, 7} {
			if got := play(slice); got != want {
				rt.Fatalf("slices of %d: %+v, else %+v", slice, got, want)
			}
		}
	})
}

// S10: every host function costs its price, before it acts; without it nothing acts and the
// invocation is over.
func TestHostCallsArePriced(t *testing.T) {
	forEach(t, func(t *testing.T, fn *abi.Function) {
		kib := func(n int64) int64 { return (n + 1023) / 1024 }
		r := newRig(t)
		r.out.answer = boundary.Result{Body: make([]byte, 5000)}
		g := r.metered()
		r.ok(r.call(fn.Name, argumentsFor(fn)...))
		receipt := g.done().Receipt
		in, out := int64(0), int64(0)
		for _, a := range argumentsFor(fn) {
			if s, ok := a.(string); ok {
				in += int64(len(s))
			}
		}
		if fn.Group != abi.GroupCall {
			out = 5000
		}
		base, per := int64(fn.Price.Base), int64(fn.Price.PerKiB)
		if least := base + per*kib(in+out); receipt.Fuel < least || receipt.Fuel > least+per*kib(int64(1)<<16) || base == 0 {
			t.Errorf("%d fuel, at least %d", receipt.Fuel, least)
		}

		for _, fuel := range []int64{base - 1, base + per*kib(in) - 1} {
			poor := newRig(t, withFuel(fuel))
			g := poor.metered()
			poor.call(fn.Name, argumentsFor(fn)...)
			if len(poor.out.events) > 0 {
				t.Errorf("with %d fuel: %v", fuel, poor.out.events)
			}
			if over := poor.inv.Over(); over == nil || over.Code != abi.CodeFuelExhausted {
				t.Errorf("with %d fuel: %v", fuel, over)
			}
			if o := g.done(); o.Receipt.Fuel > fuel {
				t.Errorf("%d fuel of %d", o.Receipt.Fuel, fuel)
			}
		}
	})
}

// A guest may owe a little when it calls, and what it owes comes first.
func TestDebtIsPaidFirst(t *testing.T) {
	price := int64(function(t, "time_now").Price.Base)
	for owed, want := range map[int64]abi.Code{9: "", 10: abi.CodeFuelExhausted} {
		r := newRig(t, withFuel(price+10))
		r.inv.SetSlice(1)
		g := r.metered()
		g.work(1)
		g.fuel -= gauge(owed)
		r.call("time_now")
		var code abi.Code
		if over := r.inv.Over(); over != nil {
			code = over.Code
		}
		if o := g.done(); code != want || o.Receipt.Fuel != price+10 {
			t.Errorf("owing %d: %q, %d fuel", owed, code, o.Receipt.Fuel)
		}
	}
}

// What comes out is paid too, and an answer that cannot be paid is not given.
func TestBytesOutArePaid(t *testing.T) {
	fn := function(t, "kv_get")
	r := newRig(t, withFuel(int64(fn.Price.Base+fn.Price.PerKiB*100)))
	r.out.answer = boundary.Result{Body: make([]byte, 200<<10)}
	g := r.metered()
	r.call("kv_get", "key")
	if o := g.done(); o.Cause == nil || o.Cause.Code != abi.CodeFuelExhausted {
		t.Errorf("%v", o.Cause)
	}
}

// S4: a child has no more fuel than those above it have left, whatever its own limit.
func TestChildrenSpendTheFuelAboveThem(t *testing.T) {
	r := newRig(t, withFuel(100_000))
	g := r.metered()
	g.work(10_000)
	var child boundary.Outcome
	r.out.during = func(context.Context, boundary.Scope, ...[]byte) {
		c := r.below()
		low := c.metered()
		for low.work(1000) {
		}
		child = low.done()
	}
	r.call("capability_invoke", argumentsFor(function(t, "capability_invoke"))...)
	if child.Cause == nil || child.Cause.Code != abi.CodeFuelExhausted {
		t.Errorf("the child: %v", child.Cause)
	}
	if g.work(1) {
		t.Error("the parent goes on")
	}
	if own := g.done().Receipt.Fuel; own+child.Receipt.Fuel != 100_000 {
		t.Errorf("%d and %d of 100000", own, child.Receipt.Fuel)
	}
}

// S18, PF-D4: whoever asks for fuel is told that the invocation has ended.
// S10: what was done for an invocation before it was made is the first fuel it uses, is on its receipt, and
// is neither refunded with an initialiser nor more than there is.
func TestWorkBeforeIsFuel(t *testing.T) {
	made := func(work, limit int64) *guest {
		r := newRig(t, withFuel(limit))
		r.inv = boundary.New(boundary.Spec{Authority: r.inv.Authority(), Work: work})
		r.inv.Enter(boundary.PhaseInitialize)
		return r.metered()
	}
	g := made(1000, 5000)
	if !g.work(300) {
		t.Fatal(g.inv.Over())
	}
	g.inv.Unmeter()
	g.inv.Refund()
	g.inv.Enter(boundary.PhaseRun)
	g.inv.Meter(&g.fuel)
	if !g.work(3900) || g.work(200) {
		t.Errorf("1000 of 5000 were used before, and %v", g.inv.Over())
	}
	if o := g.done(); o.Receipt.Fuel != 5000 || abi.CodeOf(o.Err) != abi.CodeFuelExhausted {
		t.Errorf("%d, %v", o.Receipt.Fuel, o.Err)
	}
	g = made(1<<50, 5000)
	g.inv.Enter(boundary.PhaseRun)
	if g.work(1) {
		t.Error("it runs on fuel that was used before")
	}
	if o := g.done(); o.Receipt.Fuel != 5000 {
		t.Errorf("%d of 5000", o.Receipt.Fuel)
	}
	parent := made(0, 5000)
	child := boundary.New(boundary.Spec{Authority: parent.inv.Authority(), Work: 2000, Parent: parent.inv})
	if parent.inv.Enter(boundary.PhaseRun); child == nil || !parent.work(2900) || parent.work(200) {
		t.Errorf("a child's work of 2000 is not its parent's: %v", parent.inv.Over())
	}
}

func TestFuelIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*rig) context.Context
		want abi.Code
	}{
		"revoked": {func(r *rig) context.Context {
			r.revoked = abi.Errorf(abi.CodeGrantRevoked, "withdrawn")
			return context.Background()
		}, abi.CodeGrantRevoked},
		"cancelled": {func(*rig) context.Context {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return ctx
		}, abi.CodeCanceled},
		"late": {func(r *rig) context.Context {
			ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
			r.t.Cleanup(cancel)
			return ctx
		}, abi.CodeDeadline},
	} {
		r := newRig(t)
		g := r.metered()
		if !g.work(1) {
			t.Fatal(r.inv.Over())
		}
		r.inv.Refuel(c.end(r))
		if over := r.inv.Over(); over == nil || over.Code != c.want {
			t.Errorf("%s: %v", name, over)
		}
		g.done()
	}
	r := newRig(t)
	r.inv.Refuel(context.Background())
	if over := r.inv.Over(); over == nil || over.Code != abi.CodeInternal {
		t.Errorf("without a guest: %v", over)
	}
}

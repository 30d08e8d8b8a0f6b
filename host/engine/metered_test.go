package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/engine"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
	"github.com/ecotone-dev/ecotone/testdata/hostile"
)

// endless are modules that nothing but metering stops, and the loop.
var endless = []string{"cpu_loop", "cpu_call_ladder", "cpu_recursion_exponential", "cpu_indirect", "cpu_bulk"}

func eachPool(t *testing.T, f func(t *testing.T, e *engine.Engine)) {
	t.Run("fresh", func(t *testing.T) { f(t, engine.New(engine.Fresh{})) })
	t.Run("pooled", func(t *testing.T) {
		_, e := pooled(t)
		f(t, e)
	})
}

// S18, PF-D4: revocation, cancellation and the deadline bite in guests that only compute and make no
// host call, whatever they are made of.
func TestEndingsBiteWhileComputing(t *testing.T) {
	const after = 5 // times that the guest asked for fuel, or the engine whether it may start
	revoked := abi.Errorf(abi.CodeGrantRevoked, "withdrawn")
	ends := map[string]struct {
		spec func(*authority.Spec)
		asks func(n int, cancel context.CancelFunc) *abi.Error
		want abi.Code
	}{
		"revoked": {nil, func(n int, _ context.CancelFunc) *abi.Error {
			if n > after {
				return revoked
			}
			return nil
		}, abi.CodeGrantRevoked},
		"cancelled": {nil, func(n int, cancel context.CancelFunc) *abi.Error {
			if n == after {
				cancel()
			}
			return nil
		}, abi.CodeCanceled},
		"late":  {wall(20), func(int, context.CancelFunc) *abi.Error { return nil }, abi.CodeDeadline},
		"spent": {fuel(5_000_000), func(int, context.CancelFunc) *abi.Error { return nil }, abi.CodeFuelExhausted},
	}
	for _, name := range endless {
		image := keepable(t, hostile.Named(name).Bytes())
		t.Run(name, func(t *testing.T) {
			eachPool(t, func(t *testing.T, e *engine.Engine) {
				for how, c := range ends {
					ctx, cancel := context.WithCancel(patience(t))
					n := 0
					o := e.Run(ctx, image, invocation{export: "run", spec: c.spec, current: func() *abi.Error {
						n++
						return c.asks(n, cancel)
					}}.make())
					cancel()
					if o.Err == nil || o.Err.Code != c.want {
						t.Errorf("%s: %v", how, o.Err)
					}
					if c.want != abi.CodeDeadline && o.Receipt.Fuel == 0 || how == "spent" && o.Receipt.Fuel != 5_000_000 {
						t.Errorf("%s: %d fuel", how, o.Receipt.Fuel)
					}
				}
			})
		})
	}
}

// Engine-and-toolchains 1: guests made of calls alone run, and the collector finishes and other
// organisations' invocations go on meanwhile.
func TestEndlessGuestsHoldUpNobody(t *testing.T) {
	ctx := patience(t)
	decent := keepable(t, hunter())
	_, e := pooled(t)
	stop, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, name := range endless {
		image := keepable(t, hostile.Named(name).Bytes())
		wg.Go(func() {
			o := e.Run(stop, image, invocation{export: "run", spec: func(s *authority.Spec) {
				s.Org, s.Limits[abi.LimitWall], s.Limits[abi.LimitFuel] = "hostile", 60_000, abi.OperatorMax
			}}.make())
			if o.Err == nil || o.Err.Code != abi.CodeCanceled {
				t.Errorf("%s: %v", name, o.Err)
			}
		})
	}
	for n := range 5 {
		runtime.GC() // returns when a collection is complete
		want := fmt.Sprint(n)
		if got := describe(e.Run(ctx, decent, invocation{input: want}.make())); got != want {
			t.Errorf("answered %s", got)
		}
	}
	cancel()
	wg.Wait()
	if ctx.Err() != nil {
		t.Fatal("hung")
	}
}

func fuel(n int64) func(*authority.Spec) {
	return func(s *authority.Spec) { s.Limits[abi.LimitFuel] = n }
}

// The same image and input cost the same each time, the first included, in whatever kind of
// instance.
func TestFuelIsDeterministic(t *testing.T) {
	costs := map[string]int64{}
	for _, export := range []string{"echo", "leave", "look", "size"} {
		eachPool(t, func(t *testing.T, e *engine.Engine) {
			image := keepable(t, hunter())
			run := func(spec func(*authority.Spec)) boundary.Outcome {
				return e.Run(patience(t), image, invocation{export: export, input: `{"a":1}`, spec: spec}.make())
			}
			for range 4 {
				o := run(nil)
				if o.Err != nil || o.Receipt.Fuel <= 0 {
					t.Fatalf("%s: %v, %d fuel", export, o.Err, o.Receipt.Fuel)
				}
				if costs[export] == 0 {
					costs[export] = o.Receipt.Fuel
				}
				if costs[export] != o.Receipt.Fuel {
					t.Errorf("%s: %d fuel, and %d", export, o.Receipt.Fuel, costs[export])
				}
			}
			// Room for the initialiser, whose fuel is given back.
			if o := run(fuel(costs[export] + 1<<20)); o.Err != nil || o.Receipt.Fuel != costs[export] {
				t.Errorf("%s: %d fuel, %v", export, o.Receipt.Fuel, o.Err)
			}
		})
	}
}

// S11: frames are bounded by the environment's limit, fast, and the instance's next call has all
// of its stack again.
func TestStackIsBounded(t *testing.T) {
	image := load(t, guests)
	eachPool(t, func(t *testing.T, e *engine.Engine) {
		cost := func(bytes int64) int64 {
			o := e.Run(patience(t), image, invocation{export: "recurse", spec: func(s *authority.Spec) {
				s.Limits[abi.LimitStackBytes] = bytes
			}}.make())
			if o.Err == nil || o.Err.Code != abi.CodeStackLimit {
				t.Fatal(o.Err)
			}
			return o.Receipt.Fuel
		}
		small, large := cost(1<<20), cost(16<<20)
		if again := cost(1 << 20); again != small || large < 10*small {
			t.Errorf("%d and %d fuel for 1 MiB, %d for 16 MiB", small, again, large)
		}
	})
}

// An initialiser is metered as well: at admission, whose budget it must end in, and in an
// invocation, whose budget it must end in.
func TestInitialisersAreMetered(t *testing.T) {
	b := w.New()
	last := b.Func(nil, nil, nil)
	for range 40 {
		last = b.Func(nil, nil, nil, w.Call(last), w.Call(last))
	}
	b.ExportFunc("_initialize", last)
	b.Capability("run", w.I32Const(0))
	image := keepable(t, b.Memory(1).ExportMemory().Bytes())
	limits := abi.DefaultLimits()
	for name, c := range map[string]struct {
		fuel int64
		wall time.Duration
	}{"fuel": {1_000_000, time.Minute}, "wall": {abi.OperatorMax, 50 * time.Millisecond}} {
		limits[abi.LimitFuel] = c.fuel
		if err := engine.New(engine.Fresh{}).Trial(patience(t), image, &limits, c.wall); err == nil || err.Code != abi.CodeInitializeFailed {
			t.Errorf("%s: %v", name, err)
		}
	}
	eachPool(t, func(t *testing.T, e *engine.Engine) {
		if o := e.Run(patience(t), image, invocation{export: "run", spec: fuel(1_000_000)}.make()); o.Err == nil || o.Err.Code != abi.CodeFuelExhausted {
			t.Error(o.Err)
		}
	})
}

// What was not metered does not become an image: nothing would end it.
func TestUnmeteredModulesAreRefused(t *testing.T) {
	b := w.New()
	b.Capability("run")
	if err := unmetered(t, b.Memory(1).ExportMemory().Bytes()); abi.CodeOf(err) != abi.CodeInternal {
		t.Error(err)
	}
}

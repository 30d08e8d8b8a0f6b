package meter_test

import (
	"context"
	"testing"

	"github.com/ecotone-dev/ecotone/host/meter"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// late is a module whose function f, of n, returns at once for 0 and else goes on with rest, in
// which f is function 0 and n local 0; run does what it is given.
func late(rest, run []byte) []byte {
	b := w.New()
	p := w.Types(w.I32)
	b.Func(p, p, nil, w.LocalGet(0), w.Op(0x45), w.If(w.I32Const(7), w.Op(w.OpReturn)), rest)
	b.ExportFunc("run", b.Func(p, p, nil, run))
	return b.Memory(1).Bytes()
}

var (
	less  = w.Cat(w.LocalGet(0), w.I32Const(1), w.Op(w.OpI32Sub))
	again = w.Cat(less, w.Call(0))
)

// Wherever a function that takes depth late is left, it gives back what it took, and only that.
func TestLateDepthComesBack(t *testing.T) {
	for name, rest := range map[string][]byte{
		"end":           again,
		"return":        w.Cat(again, w.Op(w.OpReturn)),
		"branch":        w.Cat(again, w.Br(0)),
		"inner branch":  w.Cat(w.Block(again, w.Br(1)), w.Op(w.OpUnreachable)),
		"either way":    w.Cat(w.LocalGet(0), w.I32Const(2), w.Op(0x70), w.If(again, w.Op(w.OpReturn)), again),
		"dead code":     w.Cat(again, w.Op(w.OpReturn), w.I32Const(1), w.Op(w.OpReturn)),
		"in a loop":     w.Cat(w.Loop(again, w.Op(w.OpReturn)), w.Op(w.OpUnreachable)),
		"returns twice": w.Cat(again, w.Op(w.OpDrop), again),
	} {
		t.Run(name, func(t *testing.T) {
			res := rewrite(t, late(rest, w.Cat(w.LocalGet(0), w.Call(0))))
			if res.Stats.Late != 1 {
				t.Fatalf("%+v", res.Stats)
			}
			m := start(t, res.Module, endless())
			for _, n := range []uint64{0, 1, 2, 9} {
				results, err := m.ExportedFunction("run").Call(context.Background(), n)
				if err != nil || results[0] != 7 || depthOf(m) != res.StartDepth {
					t.Errorf("%d: %v %v, depth %d of %d", n, results, err, depthOf(m), res.StartDepth)
				}
			}
		})
	}
}

// A conditional way out of the function, of which it is not known whether it is taken, is none that
// depth can be given back on: such a function takes depth when it is entered.
func TestNotLate(t *testing.T) {
	for name, rest := range map[string][]byte{
		"br_if":          w.Cat(again, w.LocalGet(0), w.BrIf(0)),
		"br_table":       w.Cat(again, w.LocalGet(0), w.BrTable(0, 0)),
		"inner br_if":    w.Cat(again, w.Op(w.OpDrop), w.Block(w.I32Const(7), w.LocalGet(0), w.BrIf(1), w.Op(w.OpDrop)), w.I32Const(7)),
		"called earlier": nil,
	} {
		module := late(rest, w.Cat(w.LocalGet(0), w.Call(0)))
		if rest == nil {
			b := w.New()
			p := w.Types(w.I32)
			b.Func(p, p, nil, w.LocalGet(0), w.If(again, w.Op(w.OpReturn)), w.I32Const(7))
			b.ExportFunc("run", b.Func(p, p, nil, w.LocalGet(0), w.Call(0)))
			module = b.Bytes()
		}
		res := rewrite(t, module)
		if res.Stats.Late != 0 || res.Stats.Accounted != 1 {
			t.Errorf("%s: %+v", name, res.Stats)
		}
		m := start(t, res.Module, endless())
		if results, err := m.ExportedFunction("run").Call(context.Background(), 5); err != nil || results[0] != 7 || depthOf(m) != res.StartDepth {
			t.Errorf("%s: %v %v, depth %d of %d", name, results, err, depthOf(m), res.StartDepth)
		}
	}
}

// S11: a recursion that takes depth late is bounded all the same, and one without end ends.
func TestLateRecursionIsBounded(t *testing.T) {
	res := rewrite(t, late(again, w.Cat(w.LocalGet(0), w.Call(0))), func(o *meter.Options) { o.StackBytes = 64 << 10 })
	m := start(t, res.Module, endless())
	if _, err := m.ExportedFunction("run").Call(context.Background(), 100); err != nil {
		t.Error(err)
	}
	if _, err := m.ExportedFunction("run").Call(context.Background(), 1<<20); kind(err) != errOverflow.Error() {
		t.Errorf("%v", err)
	}
}

// S10: calls that return before they look at fuel are counted by who makes them: however many stand
// in a row, little is owed.
func TestCallsThatDoNotLookAreCounted(t *testing.T) {
	calls := many(5000, func(int) []byte { return w.Cat(w.I32Const(0), w.Call(0), w.Op(w.OpDrop)) })
	res := rewrite(t, late(again, w.Cat(calls, w.I32Const(7))))
	k := &tank{slice: 1, budget: 1 << 40}
	m := start(t, res.Module, k)
	if _, err := m.ExportedFunction("run").Call(context.Background(), 0); err != nil {
		t.Fatal(err)
	}
	// Of the 5,000 calls each takes some ten units.
	if k.lowest < -2000 || k.refuels < 20 {
		t.Errorf("%d was owed at most, in %d looks", -k.lowest, k.refuels)
	}
}

package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/ecotone-dev/ecotone/host/engine"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// diver is a module that calls itself as often as its input has bytes, times 64, and answers 1; and
// as many exports that do the same as there may be.
func diver(exports int) []byte {
	b := w.New()
	input, output := b.Host("input"), b.Host("output")
	const i32Eqz, i32Mul = 0x45, 0x6c
	const self = 2 // the functions that are imported come first
	dive := b.Func(w.Types(w.I32), w.Types(w.I32), w.Types(w.I64, w.I64, w.I64, w.I64),
		w.LocalGet(0), w.Op(i32Eqz), w.Op(0x04, w.I32), w.I32Const(0), w.Op(0x05),
		w.LocalGet(0), w.I32Const(1), w.Op(w.OpI32Sub), w.Call(self), w.I32Const(1), w.Op(w.OpI32Add), w.Op(0x0b))
	if dive != self {
		panic("the module is not as it was")
	}
	for n := range exports {
		b.Capability(fmt.Sprintf("dive%d", n),
			w.Call(input), w.Op(w.OpI32WrapI64), w.I32Const(64), w.Op(i32Mul), w.Call(dive), w.Op(w.OpDrop),
			w.I32Const(0), w.I32Const('1'), w.Store8(0), w.I32Const(0), w.I32Const(1), w.Call(output), w.Op(w.OpI32WrapI64))
	}
	return b.Memory(1).ExportMemory().Bytes()
}

// S11, PF-D25: an instance that is kept keeps its way into the guest with it, and the stack that the engine
// made for the deepest call is not kept: not after one such call, and not after thousands among other
// ones.
func TestDeepStacksAreNotKept(t *testing.T) {
	needsImages(t)
	image := keepable(t, diver(1))
	p, e := pooled(t, func(o *engine.PoolOptions) { o.Verify = false })
	ctx := context.Background()
	dive := func(bytes int) {
		t.Helper()
		in := make([]byte, bytes)
		if got := describe(e.Run(ctx, image, invocation{export: "dive0", input: string(in), spec: in2minutes}.make())); got != "1" {
			t.Fatalf("%d deep: %s", bytes*64, got)
		}
	}
	dive(1)
	shallow := p.Stacks()
	if shallow == 0 || shallow > engine.MaxStack {
		t.Fatalf("%d bytes of stack after a shallow call", shallow)
	}
	dive(1)
	if got := p.Stacks(); got != shallow {
		t.Errorf("%d bytes of stack after another", got)
	}
	dive(300)
	if got := p.Stacks(); got != 0 {
		t.Errorf("%d bytes of stack are kept after a deep call", got)
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	many := func(n int) {
		for i := range n {
			dive(1 + i%100/99*200)
		}
	}
	many(1000)
	before := heap()
	many(10_000)
	if after := heap(); after > before+2<<20 {
		t.Errorf("%d KiB of heap, then %d", before>>10, after>>10)
	}
	if s := p.Stats(); s.Made != s.Discarded+int64(s.Idle) || s.Idle != 1 {
		t.Errorf("%+v", s)
	}
}

// However many exports a module has, an instance keeps ways into few of them.
func TestHandlesAreFew(t *testing.T) {
	needsImages(t)
	image := keepable(t, diver(20))
	p, e := pooled(t)
	for n := range 60 {
		export := fmt.Sprintf("dive%d", n%20)
		if got := describe(e.Run(patience(t), image, invocation{export: export, input: "1", spec: in2minutes}.make())); got != "1" {
			t.Fatal(got)
		}
	}
	if got := p.Stacks(); got == 0 || got > 4*16<<10 {
		t.Errorf("%d bytes of stack", got)
	}
}

var in2minutes = in("acme")

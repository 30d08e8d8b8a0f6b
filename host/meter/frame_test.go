package meter_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/ecotone-dev/ecotone/host/meter"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// shape is a function that calls itself without end, and counts in a global how often it did.
type shape struct {
	name           string
	params, locals []byte
	before, after  []byte // the code before the call, arguments included, and after it
	most           int64  // times its real frame, that a frame may be taken for; 0: it is no typical function
}

func many(n int, code func(i int) []byte) (out []byte) {
	for i := range n {
		out = append(out, code(i)...)
	}
	return out
}

// The counter is global 0.
var counted = w.Cat(w.GlobalGet(0), w.I32Const(1), w.Op(w.OpI32Add), w.GlobalSet(0))

func shapes() []shape {
	i64s := func(n int) []byte { return bytes.Repeat([]byte{w.I64}, n) }
	keep := func(i int) []byte {
		return w.Cat(w.GlobalGet(0), w.Op(w.OpI64ExtendI32), w.I64Const(int64(i)), w.Op(w.OpI64Add), w.LocalSet(uint32(i)))
	}
	use := func(i int) []byte {
		return w.Cat(w.LocalGet(uint32(i)), w.Op(w.OpI32WrapI64), w.GlobalGet(0), w.Op(w.OpI32Add), w.GlobalSet(0))
	}
	alive := func(n int, most int64) shape {
		return shape{locals: i64s(n), before: many(n, keep), after: many(n, use), most: most}
	}
	named := func(name string, s shape) shape { s.name = name; return s }
	argument := func(i int) []byte { return w.LocalGet(uint32(i)) }
	vector := func(i int) []byte {
		return w.Cat(w.GlobalGet(0), w.Op(0xfd, 17), w.LocalSet(uint32(i))) // i32x4.splat
	}
	lane := func(i int) []byte {
		return w.Cat(w.LocalGet(uint32(i)), w.Op(0xfd, 27, 0), w.GlobalGet(0), w.Op(w.OpI32Add), w.GlobalSet(0))
	}
	// Each of so many blocks is left early with other values in all locals than in the end, so
	// that behind each end every local is a value of its own.
	joined := func(locals, blocks int) shape {
		leave := w.Cat(many(locals, keep), many(blocks, func(i int) []byte { return w.Cat(w.GlobalGet(0), w.Op(0x45), w.BrIf(uint32(i))) }))
		return shape{
			locals: i64s(locals),
			before: w.Cat(many(blocks, func(int) []byte { return w.Op(0x02, w.BlockVoid) }), leave,
				many(blocks, func(i int) []byte { return w.Cat(many(locals, keep), w.Op(w.OpEnd)) })),
			after: many(locals, use),
		}
	}
	return []shape{
		named("nothing", alive(0, 5)),
		named("a value", alive(1, 5)),
		named("8 values", alive(8, 3)),
		named("30 values", alive(30, 3)),
		named("100 values", alive(100, 3)),
		named("1000 values", alive(1000, 3)),
		{name: "2 parameters", params: i64s(2), before: many(2, argument), after: many(2, use), most: 4},
		{name: "12 parameters", params: i64s(12), before: many(12, argument), after: many(12, use), most: 3},
		{name: "200 parameters", params: i64s(200), before: many(200, argument), after: many(200, use), most: 3},
		{
			name:   "20 on the stack",
			before: many(20, func(i int) []byte { return w.Cat(w.GlobalGet(0), w.I32Const(int32(i)), w.Op(0x6c)) }),
			after:  bytes.Repeat(w.Cat(w.GlobalGet(0), w.Op(w.OpI32Add), w.GlobalSet(0)), 20), most: 4,
		},
		{
			name:   "500 on the stack",
			before: many(500, func(i int) []byte { return w.Cat(w.GlobalGet(0), w.I32Const(int32(i)), w.Op(0x6c)) }),
			after:  bytes.Repeat(w.Cat(w.GlobalGet(0), w.Op(w.OpI32Add), w.GlobalSet(0)), 500), most: 3,
		},
		{name: "40 vectors", locals: bytes.Repeat([]byte{w.V128}, 40), before: many(40, vector), after: many(40, lane), most: 3},
		{
			name: "8 floats", locals: bytes.Repeat([]byte{w.F64}, 8),
			before: many(8, func(i int) []byte { return w.Cat(w.GlobalGet(0), w.Op(0xb7), w.LocalSet(uint32(i))) }),
			after: many(8, func(i int) []byte {
				return w.Cat(w.LocalGet(uint32(i)), w.Op(0xfc, 2), w.GlobalGet(0), w.Op(w.OpI32Add), w.GlobalSet(0))
			}), most: 4,
		},
		{
			name: "many uses, few alive", locals: i64s(2),
			before: bytes.Repeat(w.Cat(keep(0), w.LocalGet(0), w.I64Const(3), w.Op(w.OpI64Add), w.LocalSet(1)), 200), after: use(1), most: 5,
		},
		{
			name: "dispatch", locals: i64s(6), // as compilers for goroutines do it
			before: w.Cat(many(20, func(int) []byte { return w.Op(0x02, w.BlockVoid) }),
				w.GlobalGet(0), w.Op(0x0e, 19), many(20, func(i int) []byte { return w.LEB(uint64(i)) }),
				many(20, func(i int) []byte { return w.Cat(w.Op(w.OpEnd), keep(i%6)) })),
			after: many(6, use),
		},
		named("joins", joined(20, 30)),
		named("more joins", joined(100, 100)),
		{
			name: "divisions", locals: i64s(1),
			before: bytes.Repeat(w.Cat(w.LocalGet(0), w.I64Const(7), w.Op(0x82), w.GlobalGet(0), w.Op(w.OpI64ExtendI32), w.Op(0x7c), w.LocalSet(0)), 50),
			after:  use(0),
		},
		{
			name: "addresses", locals: bytes.Repeat([]byte{w.I32}, 60),
			before: w.Cat(
				many(60, func(i int) []byte {
					return w.Cat(w.GlobalGet(0), w.I32Const(int32(i)), w.Op(0x71), w.LocalSet(uint32(i)))
				}), // and
				bytes.Repeat(many(60, func(i int) []byte {
					return w.Cat(w.LocalGet(uint32(i)), w.LocalGet(uint32((i+1)%60)), w.Load32(4), w.Store32(8))
				}), 3)),
		},
		{
			name: "loops", locals: i64s(30),
			before: w.Cat(many(30, keep), many(12, func(int) []byte { return w.Op(0x03, w.BlockVoid) }), many(30, keep),
				many(12, func(i int) []byte {
					return w.Cat(w.LocalGet(uint32(i)), w.LocalGet(uint32(i+1)), w.Op(0x7c), w.LocalSet(uint32(i+2)),
						w.GlobalGet(0), w.Op(0x45), w.BrIf(0), w.Op(w.OpEnd))
				})),
			after: many(30, use),
		},
		{
			name: "choices", locals: i64s(20),
			before: w.Cat(many(20, keep), many(30, func(i int) []byte {
				return w.Cat(w.GlobalGet(0), w.Op(0x04, w.I64), w.LocalGet(uint32(i%20)), w.Op(w.OpElse), w.LocalGet(uint32((i+7)%20)), w.I64Const(3),
					w.Op(0x7c), w.Op(w.OpEnd), w.LocalSet(uint32((i+3)%20)))
			})),
			after: many(20, use),
		},
		{name: "fills", before: bytes.Repeat(w.Cat(w.I32Const(0), w.I32Const(0), w.I32Const(9), w.Op(0xfc, 11, 0)), 50)},
		{name: "indirect calls", before: bytes.Repeat(w.Cat(w.I32Const(1), w.CallIndirect(0, 0)), 50)},
	}
}

func (s shape) module() []byte {
	b := w.New()
	b.Type(nil, nil)
	g := b.Global(w.I32, true, w.I32Const(0))
	self := b.Func(s.params, nil, s.locals, counted, s.before, w.Call(0), s.after)
	b.Table(w.FuncRef, 2, 2)
	nop := b.Func(nil, nil, nil)
	run := self
	if len(s.params) > 0 {
		run = b.Func(nil, nil, nil, many(len(s.params), func(i int) []byte { return w.I64Const(int64(i)) }), w.Call(self))
	}
	return b.Memory(1).Elem(1, nop).ExportFunc("run", run).Export("depth", w.KindGlobal, g).Bytes()
}

// frames is how many frames of the shape there are before a stack of so many bytes is full: by the
// estimate, or, when there is more than the engine has, really.
func (s shape) frames(t *testing.T, stack int64) int64 {
	t.Helper()
	module := rewrite(t, s.module(), func(o *meter.Options) { o.StackBytes = stack }).Module
	k := endless()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, config())
	defer func() { _ = rt.Close(ctx) }()
	k.link(t, ctx, rt)
	m, err := rt.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.ExportedFunction("run").Call(ctx); kind(err) != errOverflow.Error() {
		t.Fatalf("%v", err)
	}
	if estimated := k.overflows == 1; estimated != (stack < 1<<40) {
		t.Fatalf("the wrong stack was full: %d", k.overflows)
	}
	return int64(m.ExportedGlobal("depth").Get())
}

// engineStack is what the engine's stack has come to when it gives up: it doubles, with room for the
// frame at hand, until it is over its ceiling.
func engineStack(frame int64) int64 {
	const first, ceiling = 10240, 50_000_000
	n := int64(first)
	for n <= ceiling {
		n = 2*n + frame + 64
	}
	return n
}

// realFrame is the size of which so many fill the engine's stack.
func realFrame(frames int64) int64 {
	low, high := int64(1), int64(64<<20)
	for low < high {
		if middle := (low + high + 1) / 2; engineStack(middle)/middle >= frames {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// S11, PF-D25: a frame is taken for no less than what the engine really takes, on this machine's
// architecture, whatever a function is like; and for a typical one not for much more, so that a deep
// recursion that is honest is not stopped early.
func TestFrames(t *testing.T) {
	const stack = 16 << 20
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			actual := realFrame(s.frames(t, 1<<50))
			estimate := int64(stack) / (s.frames(t, stack) + 1)
			t.Logf("a frame has %d bytes and is taken for %d, %.1f times as much", actual, estimate, float64(estimate)/float64(actual))
			if estimate < actual {
				t.Errorf("a frame of %d bytes is taken for %d", actual, estimate)
			}
			if s.most > 0 && estimate > s.most*actual {
				t.Errorf("a frame of %d bytes is taken for %d, more than %d times as much", actual, estimate, s.most)
			}
		})
	}
}

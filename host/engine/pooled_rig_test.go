package engine_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/engine"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// keepable loads a module as the host does for a pool: its globals exported, and with a word
// about how instances may be kept.
func keepable(t testing.TB, module []byte, change ...func(*engine.Keeping)) *engine.Image {
	t.Helper()
	result := metered(t, module)
	image := compiled(t, result.Module)
	k := engine.Keeping{Overhead: 32 << 10}
	if !result.Restorable {
		k.Never = result.Reasons[0].What
	}
	for _, g := range result.Globals {
		k.Globals = append(k.Globals, g.Name)
	}
	for _, f := range change {
		f(&k)
	}
	image.Keep(k)
	return image
}

func seeded(k *engine.Keeping) { k.Seeded = true }

// pooled is a pool that verifies every instance it lends, and an engine over it. No test may
// find that an instance differed.
func pooled(t testing.TB, change ...func(*engine.PoolOptions)) (*engine.Pooled, *engine.Engine) {
	t.Helper()
	o := engine.PoolOptions{Verify: true}
	for _, f := range change {
		f(&o)
	}
	p := engine.NewPooled(o)
	t.Cleanup(func() {
		p.Close()
		if s := p.Stats(); s.Mismatches != 0 || s.Bytes != 0 || s.Idle != 0 {
			t.Errorf("at the end: %+v", s)
		}
	})
	return p, engine.New(p)
}

// in is an invocation of an organisation that may take its time on a busy machine.
func in(org string) func(*authority.Spec) {
	return func(s *authority.Spec) { s.Org, s.Limits[abi.LimitWall] = org, 120_000 }
}

// The hunter leaves canaries wherever a guest can, and looks for them everywhere. Its
// initialiser grows the memory, writes a byte and sets a global, so that an image differs
// from a new instance. Below hunted it has its own answers.
const hunted = 1024

func hunter() []byte { return hunterOf(1) }

// hunters are hunters whose memory is put back in the one way or the other: compared whole, and by
// the pages that are known or found to be private.
var hunters = map[string]uint32{"small": 1, "large": 7}

// hunterOf is a hunter that begins with some pages of memory.
func hunterOf(pages uint32) []byte {
	const (
		i32Ne, i64Ne, f32Ne, f64Ne, i32LtU, i32Or, i32Shl = 0x47, 0x52, 0x5c, 0x62, 0x49, 0x72, 0x74
		request                                           = `{"method":"GET","url":"https://api.example/"}`
	)
	f32 := func(v float32) []byte {
		return binary.LittleEndian.AppendUint32([]byte{0x43}, math.Float32bits(v))
	}
	b := w.New()
	input, read, output := b.Host("input"), b.Host("result_read"), b.Host("output")
	log, fetch := b.Host("log"), b.Host("http_fetch")
	exit := b.WASI("proc_exit")
	b.Memory(pages, 65536).ExportMemory().Data(64, []byte(request))
	g32 := b.Global(w.I32, true, w.I32Const(4))
	g64 := b.Global(w.I64, true, w.I64Const(-6))
	gf32 := b.Global(w.F32, true, f32(1.5))
	gf64 := b.Global(w.F64, true, w.F64Const(2.5))
	b.Global(w.I32, false, w.I32Const(9))

	b.ExportFunc("_initialize", b.Func(nil, nil, nil,
		w.I32Const(1), w.MemoryGrow(), w.Op(w.OpDrop), w.I32Const(5), w.GlobalSet(g32), w.I32Const(512), w.I32Const(7), w.Store8(0)))
	// fill writes over all of memory, which is where a compiled guest's stack is too, and over
	// every global.
	fill := b.Func(nil, nil, nil,
		w.I32Const(512), w.I32Const(0xaa), w.MemorySize(), w.I32Const(16), w.Op(i32Shl), w.I32Const(512), w.Op(w.OpI32Sub), w.Op(0xfc, 0x0b, 0),
		w.I32Const(-1), w.GlobalSet(g32), w.I64Const(-1), w.GlobalSet(g64), f32(-1), w.GlobalSet(gf32), w.F64Const(-1), w.GlobalSet(gf64))
	answer := b.Func(w.Types(w.I32), w.Types(w.I32), nil,
		w.I32Const(0), w.LocalGet(0), w.I32Const('0'), w.Op(w.OpI32Add), w.Store8(0),
		w.I32Const(0), w.I32Const(1), w.Call(output), w.Op(w.OpI32WrapI64))
	done := w.Cat(w.I32Const(1), w.Call(answer))

	b.Capability("leave", w.Call(fill), done)
	b.Capability("leave_status", w.Call(fill), done, w.Op(w.OpDrop), w.I32Const(3))
	b.Capability("leave_log", w.I32Const(1), w.I32Const(64), w.I32Const(8), w.Call(log), w.Op(w.OpDrop), w.Call(fill), done)
	b.Capability("leave_grown", w.I32Const(1), w.MemoryGrow(), w.Op(w.OpDrop), w.Call(fill), done)
	b.Capability("leave_trap", w.Call(fill), w.Op(w.OpUnreachable))
	b.Capability("leave_exit", w.Call(fill), done, w.Op(w.OpDrop), w.I32Const(0), w.Call(exit), w.I32Const(0))
	b.Capability("leave_loop", w.Call(fill), w.Loop(w.Br(0)), w.I32Const(0))
	b.Capability("leave_fetch",
		w.I32Const(64), w.I32Const(int32(len(request))), w.I32Const(0), w.I32Const(0), w.Call(fetch), w.Op(w.OpDrop), w.Call(fill), done)
	b.Capability("size", w.MemorySize(), w.Call(answer))
	b.Capability("echo", w.Call(input), w.Op(w.OpDrop),
		w.I32Const(2048), w.I32Const(2048), w.I32Const(0), w.I32Const(32768), w.Call(read), w.Op(w.OpI32WrapI64), w.Call(output), w.Op(w.OpI32WrapI64))
	b.ExportFunc("look", b.Func(nil, w.Types(w.I32), w.Types(w.I32, w.I32),
		w.I32Const(hunted), w.LocalSet(0),
		w.Loop(
			w.LocalGet(1), w.LocalGet(0), w.Load32(0), w.Op(i32Or), w.LocalSet(1),
			w.LocalGet(0), w.I32Const(4), w.Op(w.OpI32Add), w.LocalTee(0),
			w.MemorySize(), w.I32Const(16), w.Op(i32Shl), w.Op(i32LtU), w.BrIf(0)),
		w.LocalGet(1), w.I32Const(512), w.Load8(0), w.I32Const(7), w.Op(i32Ne), w.Op(i32Or),
		w.GlobalGet(g32), w.I32Const(5), w.Op(i32Ne), w.Op(i32Or),
		w.GlobalGet(g64), w.I64Const(-6), w.Op(i64Ne), w.Op(i32Or),
		w.GlobalGet(gf32), f32(1.5), w.Op(f32Ne), w.Op(i32Or),
		w.GlobalGet(gf64), w.F64Const(2.5), w.Op(f64Ne), w.Op(i32Or),
		w.I32Const(0), w.Op(i32Ne), w.Call(answer)))
	return b.Bytes()
}

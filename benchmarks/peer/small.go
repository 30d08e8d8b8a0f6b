package peer

import (
	"github.com/ecotone-dev/ecotone/abi"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// The guests without a runtime are assembled here: each is what a C compiler would make of a
// copying loop, and no toolchain is needed to build them.

// Echo is a biome that answers its input, of at most capacity bytes.
func Echo(name string, ref string, capacity int32) []byte {
	const at = 1024
	b := w.New()
	input, read, output := b.Host("input"), b.Host("result_read"), b.Host("output")
	b.Capability("run",
		w.Call(input), w.Op(w.OpDrop),
		w.I32Const(at),
		w.I32Const(at), w.I32Const(0), w.I32Const(capacity), w.Call(read), w.Op(w.OpI32WrapI64),
		w.Call(output), w.Op(w.OpI32WrapI64),
	)
	pages := uint32(at+capacity)/65536 + 1
	return b.Memory(pages, pages).ExportMemory().Manifest(w.Manifest(name, w.Provide(ref, "run", abi.ReachOwner))).Bytes()
}

// Spin is a biome that never returns.
func Spin(name, ref string) []byte {
	return w.Biome(w.Manifest(name, w.Provide(ref, "run", abi.ReachOwner)), w.Loop(w.Br(0)), w.I32Const(0))
}

// Trap is a biome that divides by zero.
func Trap(name, ref string) []byte {
	return w.Biome(w.Manifest(name, w.Provide(ref, "run", abi.ReachOwner)), w.I32Const(1), w.I32Const(0), w.Op(0x6d))
}

// Grow is a biome that takes all the memory it can get, and then fails.
func Grow(name, ref string) []byte {
	return w.Biome(w.Manifest(name, w.Provide(ref, "run", abi.ReachOwner)),
		w.Loop(w.I32Const(1), w.MemoryGrow(), w.I32Const(0), w.Op(0x4e), w.BrIf(0)), w.I32Const(1))
}

// ExtismEcho is an Extism plug-in that answers its input. It copies through its own memory,
// eight bytes at a time, as Extism's PDKs do.
func ExtismEcho() []byte {
	const at = 1024
	const i64GtU, i64GeU, i64Load, i64Store = 0x56, 0x5a, 0x29, 0x37
	const length, i, block = 0, 1, 2 // locals
	b := w.New()
	fn := func(name string, params, results []byte) uint32 {
		return b.ImportFunc("extism:host/env", name, params, results)
	}
	inputLength := fn("input_length", nil, w.Types(w.I64))
	inputWord := fn("input_load_u64", w.Types(w.I64), w.Types(w.I64))
	inputByte := fn("input_load_u8", w.Types(w.I64), w.Types(w.I32))
	alloc := fn("alloc", w.Types(w.I64), w.Types(w.I64))
	storeWord := fn("store_u64", w.Types(w.I64, w.I64), nil)
	storeByte := fn("store_u8", w.Types(w.I64, w.I32), nil)
	outputSet := fn("output_set", w.Types(w.I64, w.I64), nil)

	address := w.Cat(w.LocalGet(i), w.Op(w.OpI32WrapI64))
	target := w.Cat(w.LocalGet(block), w.LocalGet(i), w.Op(w.OpI64Add))
	memory := func(op, align byte) []byte { return w.Cat(w.Op(op, align), w.LEB(at)) }
	// each copies the input in steps of eight bytes and then of one.
	each := func(word, one []byte) []byte {
		step := func(n int64) []byte {
			return w.Cat(w.LocalGet(i), w.I64Const(n), w.Op(w.OpI64Add), w.LocalSet(i), w.Br(0))
		}
		return w.Cat(
			w.I64Const(0), w.LocalSet(i),
			w.Block(w.Loop(w.LocalGet(i), w.I64Const(8), w.Op(w.OpI64Add), w.LocalGet(length), w.Op(i64GtU), w.BrIf(1), word, step(8))),
			w.Block(w.Loop(w.LocalGet(i), w.LocalGet(length), w.Op(i64GeU), w.BrIf(1), one, step(1))),
		)
	}
	run := b.Func(nil, w.Types(w.I32), w.Types(w.I64, w.I64, w.I64),
		w.Call(inputLength), w.LocalSet(length),
		each(
			w.Cat(address, w.LocalGet(i), w.Call(inputWord), memory(i64Store, 3)),
			w.Cat(address, w.LocalGet(i), w.Call(inputByte), memory(0x3a, 0)),
		),
		w.LocalGet(length), w.Call(alloc), w.LocalSet(block),
		each(
			w.Cat(target, address, memory(i64Load, 3), w.Call(storeWord)),
			w.Cat(target, address, memory(0x2d, 0), w.Call(storeByte)),
		),
		w.LocalGet(block), w.LocalGet(length), w.Call(outputSet),
		w.I32Const(0),
	)
	return b.ExportFunc("run", run).Memory(2).ExportMemory().Bytes()
}

// Kernels without a runtime: exports "loop" and "recursion", each (i32) -> i32.
func Kernels() []byte {
	b := w.New()
	// A loop of a multiplication and a few additions.
	loop := b.Func(w.Types(w.I32), w.Types(w.I32), w.Types(w.I32),
		w.Loop(
			w.LocalGet(1), w.I32Const(1664525), w.Op(0x6c), w.I32Const(1013904223), w.Op(w.OpI32Add), w.LocalSet(1),
			w.LocalGet(0), w.I32Const(1), w.Op(w.OpI32Sub), w.LocalTee(0), w.BrIf(0),
		),
		w.LocalGet(1))
	b.ExportFunc("loop", loop)
	// Fibonacci, the slow way: calls and nothing else.
	self := loop + 1
	fib := b.Func(w.Types(w.I32), w.Types(w.I32), nil,
		w.LocalGet(0), w.I32Const(2), w.Op(0x48), w.If(w.LocalGet(0), w.Op(w.OpReturn)),
		w.LocalGet(0), w.I32Const(1), w.Op(w.OpI32Sub), w.Call(self),
		w.LocalGet(0), w.I32Const(2), w.Op(w.OpI32Sub), w.Call(self),
		w.Op(w.OpI32Add))
	b.ExportFunc("recursion", fib)
	return b.Memory(1, 1).ExportMemory().Bytes()
}

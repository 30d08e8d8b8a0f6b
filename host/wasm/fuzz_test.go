package wasm_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
	"github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// everything is a module with something in every section and most kinds of immediates.
func everything() []byte {
	b := wasmtest.New()
	log := b.Host("log")
	b.Import("env", "g", wasmtest.KindGlobal, wasmtest.I32, 0)
	table := b.Table(wasmtest.FuncRef, 2, 4)
	b.Table(wasmtest.ExternRef, 1)
	g := b.Global(wasmtest.I32, true, wasmtest.GlobalGet(0))
	b.Global(wasmtest.FuncRef, false, wasmtest.Op(0xd0, 0x70))
	b.Global(wasmtest.V128, false, wasmtest.Op(0xfd, 0x0c), make([]byte, 16))
	f := b.Func(wasmtest.Types(wasmtest.I32), nil, wasmtest.Types(wasmtest.I64, wasmtest.F64),
		wasmtest.LocalGet(0), wasmtest.If(wasmtest.Br(0)), wasmtest.Block(wasmtest.Loop(wasmtest.I32Const(0), wasmtest.BrIf(0))),
		wasmtest.I32Const(1), wasmtest.I32Const(0), wasmtest.I32Const(0), wasmtest.Call(log), wasmtest.LocalSet(1),
		wasmtest.F64Const(1.5), wasmtest.Op(wasmtest.OpDrop), wasmtest.GlobalGet(g), wasmtest.GlobalSet(g),
		wasmtest.Block(wasmtest.Block(wasmtest.LocalGet(0), wasmtest.BrTable(0, 1, 0))),
		wasmtest.LocalGet(0), wasmtest.I32Const(0), wasmtest.CallIndirect(b.Type(wasmtest.Types(wasmtest.I32), nil), table),
		wasmtest.I32Const(0), wasmtest.Op(0xfd, 0x00, 4, 0), wasmtest.Op(0xfd, 0x80, 0x01), wasmtest.Op(0xfd, 0x15, 3), wasmtest.Op(wasmtest.OpDrop),
		wasmtest.I32Const(0), wasmtest.I32Const(0), wasmtest.I32Const(0), wasmtest.Op(0xfc, 8, 1, 0), wasmtest.Op(0xfc, 9, 1),
		wasmtest.I32Const(0), wasmtest.I32Const(0), wasmtest.I32Const(0), wasmtest.Op(0xfc, 10, 0, 0),
		wasmtest.Op(0xd0, 0x70), wasmtest.I32Const(1), wasmtest.Op(0xfc, 15, 0), wasmtest.Op(wasmtest.OpDrop),
		wasmtest.Op(0xd2, 1), wasmtest.Op(0xd1, wasmtest.OpDrop),
		wasmtest.I32Const(1), wasmtest.I32Const(2), wasmtest.I32Const(3), wasmtest.Op(0x1c, 1, 0x7f, wasmtest.OpDrop),
	)
	b.Start(b.Func(nil, nil, nil))
	b.Capability("run", wasmtest.MemorySize(), wasmtest.I32Const(0), wasmtest.MemoryGrow(), wasmtest.Op(wasmtest.OpI32Add))
	b.Memory(1, 2).ExportMemory().Elem(0, f).Data(8, []byte("hello")).PassiveData([]byte("x")).DataCount(2)
	return b.Custom("note", []byte("hi")).Bytes()
}

// lenient are the places where the engine takes bytes that are not what the specification
// says, or are not certainly the same program to every reader.
var lenient = []string{
	"the number of a vector instruction", // the engine looks at one byte of the number
	"belongs to the relaxed SIMD",        // the same: a larger number is cut to its first byte
	"the type of a block",                // numbers of value types in more than one byte
	"is not a reference type",            // in constants any number is the index of a type
	"belongs to the typed function",      // reference types are read whatever is switched on
	"belongs to the exception handling",  // and so is exnref
	"belongs to the garbage collection",  // and so are recursive groups
	"is not the type of a table",         // tables of numbers, with nothing in them
	"element segment of",                 // and segments for them
}

func FuzzRead(f *testing.F) {
	f.Add(everything())
	f.Add(wasmtest.Echo(wasmtest.Manifest("seed", wasmtest.Provide("seed:a.b@1", "run", abi.ReachOwner))))
	f.Add(wasmtest.Header())
	f.Add([]byte{})
	f.Add([]byte("(module)"))
	if dir := engineDir(); dir != "" {
		files, _ := filepath.Glob(filepath.Join(dir, "internal", "integration_test", "spectest", "v2", "testdata", "*.0.wasm"))
		more, _ := filepath.Glob(filepath.Join(dir, "internal", "integration_test", "fuzzcases", "testdata", "*.wasm"))
		for _, name := range append(files, more...) {
			if b, err := os.ReadFile(name); err == nil && len(b) < 4096 {
				f.Add(b)
			}
		}
	}
	e := newEngine(f)
	limits := generous()
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		before := bytes.Clone(data)
		m, problems := wasm.Read(data, limits)
		if !bytes.Equal(data, before) {
			t.Fatal("reading changed the bytes")
		}
		if len(problems) > wasm.MaxProblems {
			t.Fatalf("%d problems", len(problems))
		}
		for _, p := range problems {
			if p.Offset < 0 || p.Offset > len(data) {
				t.Fatalf("offset outside the module: %v", p)
			}
		}
		if len(problems) == 0 {
			ranges(t, data, m)
			return
		}
		// Custom sections are not given to the engine: it makes room for as many names as the
		// name section announces.
		stripped, err := wasm.StripCustom(data, nil)
		if err != nil {
			return
		}
		_, problems = wasm.Read(stripped, limits)
		for _, p := range problems {
			for _, l := range lenient {
				if strings.Contains(p.Message, l) {
					return
				}
			}
		}
		if len(problems) == 0 || lies(problems) {
			return
		}
		if e.takes(stripped) == nil {
			t.Fatalf("the engine takes it, the reader does not: %v", problems)
		}
	})
}

// lies keeps the fuzzer from asking the engine for gigabytes: the engine trusts counts, and
// reads them across the ends of sections, where the reader found that they cannot be true or
// did not read on.
func lies(problems []wasm.Problem) bool {
	for _, p := range problems {
		if p.Code == abi.CodeModuleLimit || p.Code == abi.CodeMemoryLimit {
			return true
		}
		for _, words := range []string{"announced", "remain", "ends before", "LEB128", "out of order", "left over", "id of a section"} {
			if strings.Contains(p.Message, words) {
				return true
			}
		}
	}
	return false
}

// ranges checks that what a complete module says of the bytes is true of them.
func ranges(t *testing.T, data []byte, m *wasm.Module) {
	t.Helper()
	at := uint32(8)
	for _, s := range m.Sections {
		if s.Offset != at || s.Payload.Start <= at || s.Payload.End < s.Payload.Start || int(s.Payload.End) > len(data) {
			t.Fatalf("section %v", s)
		}
		at = s.Payload.End
	}
	if int(at) != len(data) {
		t.Fatalf("sections end at %d of %d", at, len(data))
	}
	for _, f := range m.Functions {
		if f.Code.Start < f.Body.Start || f.Code.End != f.Body.End || data[f.Code.End-1] != 0x0b {
			t.Fatalf("function %v", f)
		}
	}
	for _, d := range m.Data {
		if d.Mode == wasm.Active && data[d.Offset.End-1] != 0x0b {
			t.Fatalf("segment %v", d)
		}
		_ = d.Init.Of(data)
	}
}

func FuzzAllocation(f *testing.F) {
	f.Add(everything())
	f.Add(wasmtest.Cat(wasmtest.Header(), wasmtest.Section(3, wasmtest.Cat(wasmtest.LEB(50000), make([]byte, 50000)))))
	f.Fuzz(func(t *testing.T, data []byte) { allocates(t, data) })
}

// allocates fails when reading data takes more memory than the package promises. The best of
// a few readings counts, since the counter is the whole process's.
func allocates(t testing.TB, data []byte) {
	t.Helper()
	limits := abi.DefaultLimits()
	allowed := uint64(wasm.MaxExpansion*len(data) + 64<<10)
	used := uint64(math.MaxUint64)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		wasm.Read(data, limits)
		runtime.ReadMemStats(&after)
		if used = min(used, after.TotalAlloc-before.TotalAlloc); used <= allowed {
			return
		}
	}
	t.Fatalf("reading %d bytes allocated %d, more than %d", len(data), used, allowed)
}

package wasm_test

import (
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// Every mutable global is exported, in its order, and nothing else changes; the number of
// exports may be written in any length.
func TestExportGlobals(t *testing.T) {
	b := w.New()
	b.Memory(1).ExportMemory()
	b.Global(w.I32, true, w.I32Const(1))
	b.Global(w.I64, false, w.I64Const(2))
	b.Global(w.F64, true, w.F64Const(3))
	b.Capability("run")
	exports := w.Cat(w.Name("memory"), []byte{w.KindMemory, 0}, w.Name("run"), []byte{w.KindFunc, 0})
	padded := w.Cat(w.Header(), w.Section(w.SectionType, []byte{1, 0x60, 0, 1, w.I32}), w.Section(w.SectionFunction, []byte{1, 0}),
		w.Section(w.SectionMemory, []byte{1, 0, 1}),
		w.Section(w.SectionGlobal, w.Cat([]byte{3, w.I32, 1, 0x41, 1, w.OpEnd, w.I64, 0, 0x42, 2, w.OpEnd, w.F64, 1}, w.F64Const(3), []byte{w.OpEnd})),
		w.Section(w.SectionExport, w.Cat(w.LEBPadded(2, 4), exports)),
		w.Section(w.SectionCode, []byte{1, 4, 0, 0x41, 0, w.OpEnd}))
	for name, module := range map[string][]byte{"short": b.Bytes(), "padded": padded} {
		before, problems := wasm.Read(module, abi.DefaultLimits())
		if len(problems) > 0 {
			t.Fatal(name, problems)
		}
		if before.MutableGlobals() != 2 {
			t.Errorf("%s: %d mutable globals", name, before.MutableGlobals())
		}
		after, problems := wasm.Read(wasm.ExportGlobals(module, before), abi.DefaultLimits())
		if len(problems) > 0 {
			t.Fatal(name, problems)
		}
		if len(after.Exports) != len(before.Exports)+2 || len(after.Sections) != len(before.Sections) || after.Uses.Instructions != before.Uses.Instructions {
			t.Errorf("%s: %+v", name, after.Exports)
		}
		for n, index := range []uint32{0, 2} {
			e := after.Exports[len(before.Exports)+n]
			if e.Name != wasm.GlobalName(n) || e.Kind != wasm.KindGlobal || e.Index != index {
				t.Errorf("%s: export %d is %+v", name, n, e)
			}
		}
	}
	none := w.New()
	none.Memory(1).ExportMemory()
	m, _ := wasm.Read(none.Bytes(), abi.DefaultLimits())
	if got := wasm.ExportGlobals(none.Bytes(), m); string(got) != string(none.Bytes()) {
		t.Error("a module without globals was changed")
	}
}

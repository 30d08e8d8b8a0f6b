package meter_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/meter"
	"github.com/ecotone-dev/ecotone/host/wasm"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

func exportNames(t *testing.T, module []byte) []string {
	t.Helper()
	m, problems := wasm.Read(module, generous())
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	var names []string
	for _, e := range m.Exports {
		names = append(names, e.Name)
	}
	return names
}

// S2: what is outside the contract is not exported any more, and neither is the guest's way to
// its own fuel.
func TestExports(t *testing.T) {
	b := w.New()
	g := b.Global(w.I32, true, w.I32Const(1))
	b.Global(w.F64, true, w.F64Const(1))
	b.Global(w.I64, false, w.I64Const(1))
	table := b.Table(w.FuncRef, 1)
	f := b.Func(nil, w.Types(w.I32), nil, w.I32Const(7))
	b.ExportFunc("run", f).ExportFunc("other", f).ExportFunc("_initialize", b.Func(nil, nil, nil))
	b.Export("table", w.KindTable, table).Export("g", w.KindGlobal, g)
	module := b.Memory(1).ExportMemory().Custom("name", []byte("x")).Bytes()

	only := func(o *meter.Options) { o.Exports = []string{"run"} }
	res := rewrite(t, module, only)
	want := []string{"run", "_initialize", "memory", meter.ExportFuel, meter.ExportDepth}
	if diff := cmp.Diff(want, exportNames(t, res.Module)); diff != "" {
		t.Error(diff)
	}
	if len(res.Globals) != 0 || !res.Restorable || res.Reasons != nil {
		t.Errorf("%+v", res)
	}
	parsed, _ := wasm.Read(res.Module, generous())
	if len(parsed.Custom("name")) != 0 {
		t.Error("a custom section stayed")
	}
	if got := parsed.Imports; len(got) != 2 || got[0].Module != meter.ImportModule || got[0].Name != meter.ImportRefuel || got[1].Name != meter.ImportOverflow {
		t.Errorf("imports: %+v", got)
	}

	res = rewrite(t, module, only, func(o *meter.Options) { o.ExportGlobals = true })
	want = append(want, "ecotone_global_0", "ecotone_global_1")
	if diff := cmp.Diff(want, exportNames(t, res.Module)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]meter.Global{{0, "ecotone_global_0", wasm.I32}, {1, "ecotone_global_1", wasm.F64}}, res.Globals); diff != "" {
		t.Error(diff)
	}
}

// Every name that is added is one that no upload may use.
func TestNamesAreReserved(t *testing.T) {
	for _, name := range []string{meter.ImportModule, meter.ExportFuel, meter.ExportDepth, meter.ExportGlobal} {
		if !bytes.HasPrefix([]byte(name), []byte(abi.ReservedPrefix)) {
			t.Errorf("%s", name)
		}
	}
	for _, name := range []string{meter.ImportRefuel, meter.ImportOverflow} {
		if _, ok := abi.FunctionByName(name); ok {
			t.Errorf("%s is in the function table", name)
		}
	}
}

func TestDeterministic(t *testing.T) {
	for _, module := range [][]byte{handmade(), kernels(t)} {
		before := bytes.Clone(module)
		a := rewrite(t, module)
		if !bytes.Equal(module, before) {
			t.Fatal("the original changed")
		}
		b := rewrite(t, module)
		if !bytes.Equal(a.Module, b.Module) || a.Stats != b.Stats || !slices.Equal(a.Reasons, b.Reasons) {
			t.Error("two rewritings of the same bytes differ")
		}
	}
}

// S12: what no image can hold is named, each with where it first is.
func TestReasons(t *testing.T) {
	null := w.Op(0xd0, 0x70)
	zero := w.I32Const(0)
	three := w.Cat(zero, zero, zero)
	for what, body := range map[string][]byte{
		"table.set":          w.Cat(zero, null, w.Op(0x26, 0)),
		"table.grow":         w.Cat(null, zero, w.Op(0xfc, 15, 0), w.Op(w.OpDrop)),
		"table.fill":         w.Cat(zero, null, zero, w.Op(0xfc, 17, 0)),
		"table.copy":         w.Cat(three, w.Op(0xfc, 14, 0, 0)),
		"table.init":         w.Cat(three, w.Op(0xfc, 12, 0, 0)),
		"elem.drop":          w.Op(0xfc, 13, 0),
		"memory.init":        w.Cat(three, w.Op(0xfc, 8, 0, 0)),
		"data.drop":          w.Op(0xfc, 9, 0),
		"ref.func in a body": w.Cat(w.Op(0xd2, 0), w.Op(w.OpDrop)),
	} {
		b := w.New()
		b.Table(w.FuncRef, 4, 8)
		f := b.Func(nil, nil, nil, body, body)
		b.ExportFunc("run", f).Memory(1).Elem(0, f).PassiveData([]byte("x")).DataCount(1)
		res := rewrite(t, b.Bytes())
		if res.Restorable || len(res.Reasons) != 1 || res.Reasons[0].What != what || res.Reasons[0].Count != 2 || res.Reasons[0].Offset == 0 {
			t.Errorf("%s: %+v", what, res.Reasons)
		}
		if _, err := start(t, res.Module, endless()).ExportedFunction("run").Call(context.Background()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	b := w.New()
	b.Global(w.V128, true, w.Op(0xfd, 0x0c), make([]byte, 16))
	b.Global(w.FuncRef, true, null)
	b.Global(w.ExternRef, false, w.Op(0xd0, 0x6f))
	res := rewrite(t, b.Bytes(), func(o *meter.Options) { o.ExportGlobals = true })
	got := []string{}
	for _, r := range res.Reasons {
		got = append(got, r.What)
	}
	if !slices.Equal(got, []string{"a mutable global of v128", "a mutable global of funcref"}) || len(res.Globals) != 0 {
		t.Errorf("%v %v", got, res.Globals)
	}
}

// A body that becomes more than the engine is to compile is refused.
func TestGrowthIsBounded(t *testing.T) {
	limits := abi.DefaultLimits()
	for name, body := range map[string][]byte{
		"body": bytes.Repeat(w.Loop(), int(limits[abi.LimitBlocks])),
		"size": bytes.Repeat(w.Cat(w.I32Const(0), w.MemoryGrow(), w.Op(w.OpDrop)), 40),
	} {
		b := w.New()
		b.ExportFunc("run", b.Func(nil, nil, nil, body))
		module := b.Memory(1).Bytes()
		small := limits
		if name == "body" {
			small[abi.LimitBodyBytes] = int64(len(body)) + 16
		} else {
			small[abi.LimitBodyBytes] = 8
		}
		parsed, problems := wasm.Read(module, limits)
		if len(problems) > 0 {
			t.Fatal(problems[0])
		}
		_, err := meter.Rewrite(module, parsed, meter.Options{StackBytes: stackBytes, Limits: small})
		if abi.CodeOf(err) != abi.CodeModuleLimit {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	module := handmade()
	parsed, _ := wasm.Read(module, generous())
	if _, err := meter.Rewrite(module, parsed, meter.Options{StackBytes: 1000, Limits: generous()}); abi.CodeOf(err) != abi.CodeInternal {
		t.Error(err)
	}
}

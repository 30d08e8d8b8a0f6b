package host

import (
	"bytes"
	"slices"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/admission"
	"github.com/ecotone-dev/ecotone/host/meter"
	"github.com/ecotone-dev/ecotone/host/wasm"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// What is compiled is metered, its tables are bounded, nothing is exported beyond the contract (S2),
// and nothing is left that is not needed to run it. It is the same every time.
func TestPrepare(t *testing.T) {
	b := w.New()
	b.Table(w.FuncRef, 1)
	b.Capability("run")
	secret := b.Func(nil, w.Types(w.I32), nil, w.I32Const(0))
	b.ExportFunc("secret", secret)
	global := b.Global(w.I32, true, w.I32Const(3))
	b.Memory(1).ExportMemory()
	b.Custom("name", []byte("\x01\x06\xff\xff\xff\xff\xff\x0f"))
	manifest := w.Manifest("prepared", w.Provide("test:it.run@1", "run", abi.ReachOwner))
	b.Manifest(manifest)
	module := b.Bytes()

	limits := abi.DefaultLimits()
	h := &Host{limits: limits, inspector: admission.Inspector{Limits: admission.UploadLimits(limits)}}
	structure, problems := wasm.Read(module, limits)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p, err := h.prepare(module, structure, manifest)
	if err != nil {
		t.Fatal(err)
	}
	got, problems := wasm.Read(p.module, metered(limits))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var names []string
	for _, e := range got.Exports {
		names = append(names, e.Name)
	}
	globals := []string{meter.ExportGlobal + "0"}
	if want := append([]string{"memory", meter.ExportFuel, meter.ExportDepth, "run"}, globals...); !sameNames(names, want) || global != 0 {
		t.Errorf("exports %v, want %v", names, want)
	}
	if !slices.Equal(p.keeping.Globals, globals) || p.keeping.Never != "" {
		t.Errorf("%+v", p.keeping)
	}
	if top := got.Tables[0].Limits; !top.HasMax || int64(top.Max) != limits.Get(abi.LimitTableEntries) {
		t.Errorf("a table up to %+v", top)
	}
	if _, ok := got.Section(wasm.SectionCustom); ok {
		t.Error("a custom section is left")
	}
	again, err := h.prepare(module, structure, manifest)
	if err != nil || !bytes.Equal(again.module, p.module) {
		t.Error("another module the second time", err)
	}
}

func sameNames(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

package host

import (
	"bytes"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

func TestPrepare(t *testing.T) {
	build := func(custom bool, limits ...uint32) []byte {
		b := w.New()
		b.Table(w.FuncRef, 1, limits...)
		b.Capability("run")
		b.Memory(1).ExportMemory()
		if custom {
			b.Custom("name", []byte("\x01\x06\xff\xff\xff\xff\xff\x0f")).Custom(abi.ManifestSection, []byte("{}")).Custom("", nil)
		}
		return b.Bytes()
	}
	limits := abi.DefaultLimits()
	h := &Host{limits: limits}
	most := uint32(limits.Get(abi.LimitTableEntries))
	for name, c := range map[string]struct{ in, want []byte }{
		"nothing to do":   {build(false, 7), build(false, 7)},
		"custom sections": {build(true, 7), build(false, 7)},
		"no maximum":      {build(true), build(false, most)},
	} {
		structure, problems := wasm.Read(c.in, limits)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if got := h.prepare(c.in, structure); !bytes.Equal(got, c.want) {
			t.Errorf("%s:\n%x\n%x", name, got, c.want)
		}
	}
}

package host

import (
	"bytes"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

func tables(limits ...[]uint32) []byte {
	b := w.New()
	for _, l := range limits {
		b.Table(w.FuncRef, l[0], l[1:]...)
	}
	b.Capability("run")
	return b.Memory(1).ExportMemory().Custom("name", []byte("kept")).Bytes()
}

func TestPrepareBoundsTables(t *testing.T) {
	for name, c := range map[string]struct{ in, want []byte }{
		"no table":        {tables(), tables()},
		"no maximum":      {tables([]uint32{3}), tables([]uint32{3, 1000})},
		"a small maximum": {tables([]uint32{3, 7}), tables([]uint32{3, 7})},
		"a large maximum": {tables([]uint32{3, 4_000_000_000}), tables([]uint32{3, 1000})},
		"several":         {tables([]uint32{1}, []uint32{2, 2}, []uint32{200}), tables([]uint32{1, 1000}, []uint32{2, 2}, []uint32{200, 1000})},
	} {
		got, err := prepare(c.in, 1000)
		if err != nil || !bytes.Equal(got, c.want) {
			t.Errorf("%s: %v\n%x\n%x", name, err, got, c.want)
		}
		again, err := prepare(got, 1000)
		if err != nil || !bytes.Equal(again, got) {
			t.Errorf("%s: prepared twice: %v", name, err)
		}
	}
}

func TestPrepareRefusesWhatItCannotRead(t *testing.T) {
	whole := tables([]uint32{3, 7})
	for n := range whole {
		// A cut between two sections is another whole module; any other is an error.
		if got, err := prepare(whole[:n], 1000); err == nil && !bytes.Equal(got, whole[:n]) {
			t.Errorf("cut at %d: %x", n, got)
		} else if err != nil && abi.CodeOf(err) != abi.CodeInternal {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
}

func FuzzPrepare(f *testing.F) {
	f.Add(tables([]uint32{1}, []uint32{2, 2}))
	f.Add(w.Header())
	f.Fuzz(func(t *testing.T, module []byte) {
		got, err := prepare(module, 1000)
		if err != nil {
			return
		}
		if again, err := prepare(got, 1000); err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%v\n%x\n%x", err, got, again)
		}
	})
}

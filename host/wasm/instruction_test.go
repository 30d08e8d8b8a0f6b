package wasm_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ecotone-dev/ecotone/host/wasm"
)

// Going through a body again finds the instructions that reading it found: as many, one after
// the other, to the end.
func TestInstructions(t *testing.T) {
	modules := [][]byte{everything()}
	files, _ := filepath.Glob(filepath.Join(suite(t, "spectest", "v2", "testdata"), "*.wasm"))
	for _, name := range files {
		if module, err := os.ReadFile(name); err == nil {
			modules = append(modules, module)
		}
	}
	checked := 0
	for _, module := range modules {
		m, problems := wasm.Read(module, generous())
		if len(problems) > 0 {
			continue
		}
		var n uint64
		for i, f := range m.Functions {
			at := f.Code.Start
			for in := range wasm.Instructions(module, f.Code) {
				if in.At.Start != at || in.At.Len() < 1 {
					t.Fatalf("function %d: an instruction at %d, expected at %d", i, in.At.Start, at)
				}
				at = in.At.End
				n++
			}
			if at != f.Code.End {
				t.Fatalf("function %d: ended at %d of %d", i, at, f.Code.End)
			}
		}
		if n != m.Uses.Instructions {
			t.Fatalf("%d instructions, read as %d", n, m.Uses.Instructions)
		}
		checked++
	}
	if checked < 1000 {
		t.Errorf("only %d modules", checked)
	}
}

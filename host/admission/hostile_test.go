package admission_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/admission"
	"github.com/ecotone-dev/ecotone/host/wasm"
	"github.com/ecotone-dev/ecotone/testdata/hostile"
)

var update = flag.Bool("update", false, "write golden files")

func uploadLimits() abi.Limits { return admission.UploadLimits(abi.DefaultLimits()) }

// inspect inspects within the bounds that hold for every upload: a second, and memory in
// proportion to the module.
func inspect(t *testing.T, name string, module []byte) *admission.Report {
	t.Helper()
	const fixed = 2 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	r := admission.Inspect(module, uploadLimits())
	took := time.Since(begun)
	runtime.ReadMemStats(&after)
	if took > time.Second {
		t.Errorf("%s: took %v", name, took)
	}
	if used, allowed := after.TotalAlloc-before.TotalAlloc, uint64((wasm.MaxExpansion+4)*len(module)+fixed); used > allowed {
		t.Errorf("%s: %d bytes allocated for %d", name, used, len(module))
	}
	return r
}

// The rows of the upload stage are refused for the right reason, with an offset (X4, X8, X10,
// X57, S2); those of later stages are admitted, since nothing can be said of them by reading.
func TestHostile(t *testing.T) {
	var golden strings.Builder
	for _, m := range hostile.Modules() {
		module := m.Bytes()
		r := inspect(t, m.Name, module)
		if m.Stage != hostile.Upload {
			if !r.Accepted {
				t.Errorf("%s: refused: %v", m.Name, r.Err())
			}
			continue
		}
		if r.Accepted {
			t.Errorf("%s: accepted", m.Name)
			continue
		}
		if !slices.ContainsFunc(r.Problems, func(p admission.Problem) bool { return p.Code == m.Want }) {
			t.Errorf("%s: wanted %s, got %v", m.Name, m.Want, r.Problems)
		}
		if e := r.Err(); e.Code != abi.CodeModuleRefused || e.Message == "" {
			t.Errorf("%s: %v", m.Name, e)
		}
		fmt.Fprintf(&golden, "%s\n", m.Name)
		for _, p := range r.Problems {
			if p.Offset < 0 || p.Offset > len(module) || p.Message == "" {
				t.Errorf("%s: %+v", m.Name, p)
			}
			if _, known := p.Code.Info(); !known {
				t.Errorf("%s: code %s is not in the catalogue", m.Name, p.Code)
			}
			fmt.Fprintf(&golden, "  %s %d %s%s: %s\n", p.Code, p.Offset, p.Section, p.Pointer, p.Message)
		}
		presentable(t, m.Name, r)
	}
	compareGolden(t, "hostile.golden", golden.String())
}

// presentable checks that nothing of a module reaches a terminal or a log as it is, and that
// the report survives JSON.
func presentable(t *testing.T, name string, r *admission.Report) {
	t.Helper()
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, c := range text.String() {
		if c != '\n' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c) || c == unicode.ReplacementChar) {
			t.Errorf("%s: %q in the text", name, c)
			break
		}
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	var back admission.Report
	if err := abi.DecodeStrict(raw, &back); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if !slices.Equal(back.Problems, r.Problems) || back.Digest != r.Digest {
		t.Errorf("%s: the report changed on its way through JSON", name)
	}
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), -update writes it:\n%s", name, diff)
	}
}

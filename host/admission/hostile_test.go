package admission_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
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
// proportion to the module. Both are measured on the whole process, so the best of a few
// inspections counts.
func inspect(t *testing.T, name string, module []byte) *admission.Report {
	t.Helper()
	const fixed = 2 << 20
	var r *admission.Report
	took, used := time.Hour, uint64(math.MaxUint64)
	allowed := uint64((wasm.MaxExpansion+4)*len(module) + fixed)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		r = admission.Inspect(module, uploadLimits())
		took = min(took, time.Since(begun))
		runtime.ReadMemStats(&after)
		used = min(used, after.TotalAlloc-before.TotalAlloc)
		if took <= time.Second && used <= allowed {
			return r
		}
	}
	t.Errorf("%s: took %v and %d bytes for %d", name, took, used, len(module))
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
			message := p.Message
			if strings.HasPrefix(message, "manifest: ") {
				message = "manifest" // its words are the contract's, and tested there
			}
			fmt.Fprintf(&golden, "  %s %d %s%s: %s\n", p.Code, p.Offset, p.Section, p.Pointer, message)
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

// Every text in the folder has its module and its row, and every row has a name of its own and
// a capability that can be named.
func TestTableAndFolder(t *testing.T) {
	folder := filepath.Join("..", "..", "testdata", "hostile")
	var texts []string
	for _, pattern := range []string{"*.wat", "feat/*.wat"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, found...)
	}
	rows := map[string]bool{}
	for _, m := range hostile.Modules() {
		if rows[m.Name] {
			t.Errorf("%s is there twice", m.Name)
		}
		rows[m.Name] = true
		if _, err := abi.ParseCapabilityRef(string(m.Ref())); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		if (m.Stage == hostile.Invoke) != (len(m.Calls) > 0) || (m.Stage == hostile.Invoke) != (m.Want == "") {
			t.Errorf("%s: a row that asks for nothing", m.Name)
		}
	}
	for _, text := range texts {
		name, err := filepath.Rel(folder, strings.TrimSuffix(text, ".wat"))
		if err != nil {
			t.Fatal(err)
		}
		if name = filepath.ToSlash(name); !rows[name] {
			t.Errorf("%s has no row", name)
		}
		if _, err := os.Stat(filepath.Join(folder, name+".wasm")); err != nil {
			t.Error(err)
		}
	}
	if len(texts) < 100 {
		t.Errorf("only %d texts", len(texts))
	}
}

// The modules are what their texts say, where there is an assembler to ask.
func TestAssembled(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, NOT PASSED: an assembler that runs in Node takes a second for each module")
	}
	cmd := exec.Command("go", "run", "./gen", "-check", "-dir", ".")
	cmd.Dir = filepath.Join("..", "..", "testdata", "hostile")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if bytes.Contains(out, []byte("SKIPPED")) {
		t.Skipf("SKIPPED, NOT PASSED: %s", out)
	}
}

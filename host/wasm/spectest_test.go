package wasm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// engineDir is where the engine's source lies, with the suites it was tested by; "" when only
// a vendored copy is there.
var engineDir = sync.OnceValue(func() string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
})

func suite(t testing.TB, parts ...string) string {
	t.Helper()
	dir := filepath.Join(append([]string{engineDir(), "internal", "integration_test"}, parts...)...)
	if _, err := os.Stat(dir); engineDir() == "" || err != nil {
		t.Skipf("SKIPPED, NOT PASSED: the engine's test suites are not on this machine (%s)", dir)
	}
	return dir
}

// engine says whether the engine, configured as the product configures it, takes a module.
type engine struct {
	ctx context.Context
	rt  wazero.Runtime
}

func newEngine(t testing.TB) engine {
	ctx := context.Background()
	e := engine{ctx, wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))}
	t.Cleanup(func() { _ = e.rt.Close(ctx) })
	return e
}

// A panic is a refusal: the engine's validator runs past its own tables on some of the indices
// that the reader refuses.
func (e engine) takes(module []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	c, err := e.rt.CompileModule(e.ctx, module)
	if err != nil {
		return err
	}
	return c.Close(e.ctx)
}

// generous are limits under which the suite's own modules fit.
func generous() abi.Limits {
	l := abi.DefaultLimits()
	l[abi.LimitMemoryBytes] = wasm.MaxPages * wasm.PageBytes
	l[abi.LimitTableEntries] = 1 << 40
	l[abi.LimitNameBytes] = 1 << 20
	l[abi.LimitBrTable] = 1 << 20
	l[abi.LimitImports], l[abi.LimitExports], l[abi.LimitTables] = 1000, 1000, 1000
	return l
}

type command struct {
	Type     string `json:"type"`
	Line     int    `json:"line"`
	Filename string `json:"filename"`
	Text     string `json:"text"`
	Module   string `json:"module_type"`
}

// The specification's suite: everything valid is accepted, everything malformed that the
// engine refuses is refused, every refusal has an offset within the module.
func TestSpecificationSuite(t *testing.T) {
	dir := suite(t, "spectest", "v2", "testdata")
	scripts, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts in %s: %v", dir, err)
	}
	e := newEngine(t)
	var valid, malformed, caught, invalid, found int
	for _, script := range scripts {
		raw, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct{ Commands []command }
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		for _, cmd := range doc.Commands {
			if !strings.HasSuffix(cmd.Filename, ".wasm") {
				continue
			}
			module, err := os.ReadFile(filepath.Join(dir, cmd.Filename))
			if err != nil {
				t.Fatal(err)
			}
			_, problems := wasm.Read(module, generous())
			for _, p := range problems {
				if p.Offset < 0 || p.Offset > len(module) || p.Message == "" {
					t.Errorf("%s: %v", cmd.Filename, p)
				}
				if _, ok := p.Code.Info(); !ok {
					t.Errorf("%s: code %s is not in the catalogue", cmd.Filename, p.Code)
				}
			}
			switch cmd.Type {
			case "module", "assert_unlinkable", "assert_uninstantiable", "assert_trap", "assert_exhaustion":
				valid++
				if len(problems) > 0 {
					t.Errorf("%s:%d: valid, refused: %v", cmd.Filename, cmd.Line, problems[0])
				}
			case "assert_malformed":
				malformed++
				if len(problems) > 0 {
					caught++
				} else if e.takes(module) != nil {
					t.Errorf("%s:%d: malformed (%s), accepted", cmd.Filename, cmd.Line, cmd.Text)
				}
			case "assert_invalid":
				invalid++
				if len(problems) > 0 {
					found++
				}
				// Indices are the reader's to check, types are the validator's.
				if strings.HasPrefix(cmd.Text, "unknown ") && len(problems) == 0 && e.takes(module) != nil {
					t.Errorf("%s:%d: %s, accepted", cmd.Filename, cmd.Line, cmd.Text) // S2
				}
			}
		}
	}
	t.Logf("%d valid; %d of %d malformed and %d of %d invalid found without types", valid, caught, malformed, found, invalid)
	if valid < 1000 || malformed < 100 || invalid < 1000 {
		t.Errorf("the suite shrank: %d, %d, %d", valid, malformed, invalid)
	}
}

// Modules that once broke the engine: whatever they are, reading them ends with an answer.
func TestFuzzCases(t *testing.T) {
	dir := suite(t, "fuzzcases", "testdata")
	files, _ := filepath.Glob(filepath.Join(dir, "*.wasm"))
	if len(files) == 0 {
		t.Fatal("no cases")
	}
	e := newEngine(t)
	for _, f := range files {
		module, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, problems := wasm.Read(module, generous()); len(problems) > 0 && e.takes(module) == nil {
			t.Errorf("%s: the engine takes it, the reader does not: %v", filepath.Base(f), problems[0])
		}
	}
}

package meter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/ecotone-dev/ecotone/host/meter"
)

type command struct {
	Type     string `json:"type"`
	Line     int    `json:"line"`
	Filename string `json:"filename"`
	Name     string `json:"name"`
	As       string `json:"as"`
	Action   struct {
		Type   string  `json:"type"`
		Module string  `json:"module"`
		Field  string  `json:"field"`
		Args   []value `json:"args"`
	} `json:"action"`
	Expected []value `json:"expected"`
	Text     string  `json:"text"`
}

type value struct {
	Type  string          `json:"type"`
	Lane  string          `json:"lane_type"`
	Value json.RawMessage `json:"value"`
}

// bits are the words an argument is passed in.
func (v value) bits(t *testing.T) []uint64 {
	t.Helper()
	number := func(text string, width int) uint64 {
		switch text {
		case "nan:canonical", "nan:arithmetic":
			if width == 32 {
				return 0x7fc00000
			}
			return 0x7ff8000000000000
		case "null":
			return 0
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if v.Type == "v128" {
		var lanes []string
		if err := json.Unmarshal(v.Value, &lanes); err != nil {
			t.Fatal(err)
		}
		width := 128 / len(lanes)
		var words [2]uint64
		for i, lane := range lanes {
			at := i * width
			words[at/64] |= number(lane, width) & (1<<(width-1)<<1 - 1) << (at % 64)
		}
		return words[:]
	}
	var text string
	if err := json.Unmarshal(v.Value, &text); err != nil {
		t.Fatal(err)
	}
	n := number(text, 64)
	switch v.Type {
	case "i32", "f32":
		n &= 1<<32 - 1
	case "externref":
		if text != "null" {
			n++ // 0 is null to the engine
		}
	}
	return []uint64{n}
}

// world runs a script with every module passed through prepare, and writes down what happened.
type world struct {
	rt      wazero.Runtime
	modules map[string]api.Module
	all     []api.Module
	last    api.Module
	lines   []string
	returns int
	traps   int
}

func play(t *testing.T, dir string, commands []command, prepare func([]byte) []byte, k *tank) *world {
	t.Helper()
	ctx := context.Background()
	w := &world{rt: wazero.NewRuntimeWithConfig(ctx, config()), modules: map[string]api.Module{}}
	defer func() { _ = w.rt.Close(ctx) }()
	k.link(t, ctx, w.rt)
	spectest, err := os.ReadFile(filepath.Join(dir, "..", "..", "testdata", "spectest.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.rt.InstantiateWithConfig(ctx, spectest, wazero.NewModuleConfig()); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(commands); i++ {
		c := &commands[i]
		outcome := ""
		switch c.Type {
		case "module", "assert_unlinkable", "assert_uninstantiable":
			name := ""
			if c.Type == "module" && i+1 < len(commands) && commands[i+1].Type == "register" {
				i++
				name = commands[i].As
			}
			module, err := os.ReadFile(filepath.Join(dir, c.Filename))
			if err != nil {
				t.Fatal(err)
			}
			m, err := w.rt.InstantiateWithConfig(ctx, prepare(module), wazero.NewModuleConfig().WithName(name).WithStartFunctions())
			if outcome = kind(err); err == nil {
				outcome = "instantiated"
			} else if strings.HasPrefix(outcome, "import func") || strings.HasPrefix(outcome, "start ") || strings.HasPrefix(outcome, "module[") {
				// The text has indices in it.
				outcome = "refused"
			}
			if c.Type == "module" {
				if err != nil {
					t.Fatalf("%s: %v", c.Filename, err)
				}
				w.last, w.all = m, append(w.all, m)
				if c.Name != "" {
					w.modules[c.Name] = m
				}
			}
		case "assert_return", "action", "assert_trap", "assert_exhaustion":
			outcome = w.act(t, ctx, c)
		default: // malformed and invalid modules are not rewritten
			continue
		}
		w.lines = append(w.lines, fmt.Sprintf("%d %s: %s", c.Line, c.Type, outcome))
	}
	return w
}

func (w *world) act(t *testing.T, ctx context.Context, c *command) string {
	t.Helper()
	m := w.last
	if c.Action.Module != "" {
		m = w.modules[c.Action.Module]
	}
	if c.Action.Type == "get" {
		return fmt.Sprint(m.ExportedGlobal(c.Action.Field).Get())
	}
	// What was unwound gave no depth back.
	for _, m := range w.all {
		if depth, ok := m.ExportedGlobal(meter.ExportDepth).(api.MutableGlobal); ok {
			depth.Set(stackBytes / 2)
		}
	}
	var args []uint64
	for _, a := range c.Action.Args {
		args = append(args, a.bits(t)...)
	}
	f := m.ExportedFunction(c.Action.Field)
	results, err := f.Call(ctx, args...)
	switch c.Type {
	case "assert_return":
		w.returns++
		if err != nil {
			t.Errorf("line %d: %v", c.Line, err)
		}
	case "assert_trap":
		w.traps++
		if err == nil {
			t.Errorf("line %d: no trap", c.Line)
		}
	}
	if err != nil {
		return kind(err)
	}
	// What returned gave all of it back.
	for _, m := range w.all {
		if m.ExportedGlobal(meter.ExportDepth) != nil && depthOf(m) != stackBytes/2 {
			t.Errorf("line %d: depth %d is left of %d", c.Line, depthOf(m), stackBytes/2)
		}
	}
	for i, rt := range f.Definition().ResultTypes() {
		if rt == api.ValueType(0x70) && i < len(results) && results[i] != 0 {
			results[i] = 1 // a reference to a function is an address
		}
	}
	return fmt.Sprint(results)
}

// The core specification's suite: every module answers and traps rewritten as it does as it is.
func TestSpecificationSuite(t *testing.T) {
	dir := suite(t, "internal", "integration_test", "spectest", "v2", "testdata")
	scripts, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts in %s: %v", dir, err)
	}
	modules, returns, traps := 0, 0, 0
	for _, script := range scripts {
		name := strings.TrimSuffix(filepath.Base(script), ".json")
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			var doc struct{ Commands []command }
			if err := json.Unmarshal(raw, &doc); err != nil {
				t.Fatal(err)
			}
			plain := play(t, dir, doc.Commands, func(m []byte) []byte { return m }, endless())
			metered := play(t, dir, doc.Commands, func(m []byte) []byte { modules++; return rewrite(t, m).Module }, endless())
			if len(plain.lines) != len(metered.lines) {
				t.Fatalf("%d and %d outcomes", len(plain.lines), len(metered.lines))
			}
			for i := range plain.lines {
				if plain.lines[i] != metered.lines[i] {
					t.Errorf("plain %s\nmetered %s", plain.lines[i], metered.lines[i])
				}
			}
			returns, traps = returns+metered.returns, traps+metered.traps
		})
	}
	t.Logf("%d modules, %d answers, %d traps", modules, returns, traps)
	if modules < 1000 || returns < 40_000 || traps < 2_000 {
		t.Error("the suite shrank")
	}
}

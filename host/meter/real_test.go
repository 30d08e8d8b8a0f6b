package meter_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/ecotone-dev/ecotone/host/meter"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// maxReal keeps the test within seconds: larger modules are compiled twice for nothing new.
const maxReal = 1 << 20

// realModules are modules of other toolchains that are on this machine.
func realModules(t *testing.T) map[string][]byte {
	t.Helper()
	var files []string
	for _, pattern := range []string{
		filepath.Join(suite(t, "imports", "wasi_snapshot_preview1", "testdata"), "*", "*.wasm"),
		filepath.Join(suite(t, "imports", "wasi_snapshot_preview1", "testdata"), "*.wasm"),
		filepath.Join(suite(t, "internal", "integration_test", "fuzzcases", "testdata"), "*.wasm"),
	} {
		found, _ := filepath.Glob(pattern)
		files = append(files, found...)
	}
	// Not a dependency: only what may lie in the module cache beside the engine.
	plugins, _ := filepath.Glob(filepath.Join(engineDir(), "..", "..", "extism", "go-sdk@*", "wasm", "*.wasm"))
	if len(plugins) == 0 {
		t.Log("SKIPPED, NOT PASSED: no Extism plug-ins are on this machine")
	}
	out := map[string][]byte{}
	for _, f := range append(files, plugins...) {
		if b, err := os.ReadFile(f); err == nil && len(b) <= maxReal {
			out[filepath.Base(filepath.Dir(f))+"/"+filepath.Base(f)] = b
		}
	}
	return out
}

// runAll calls every exported function with ones, and says what each answered and what it
// left in memory.
func runAll(t *testing.T, module []byte, k *tank) (lines []string, err error) {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, config().WithMemoryLimitPages(memoryPages))
	defer func() { _ = rt.Close(ctx) }()
	k.link(t, ctx, rt)
	compiled, err := rt.CompileModule(ctx, module)
	if err != nil {
		return nil, err
	}
	stub(t, ctx, rt, compiled)
	m, err := rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		// The text names the start function by an index.
		text := kind(err)
		return []string{text[strings.LastIndex(text, ": ")+1:]}, nil
	}
	var names []string
	parsed, _ := wasm.Read(module, generous())
	for _, e := range parsed.Exports {
		names = append(names, e.Name)
	}
	for _, name := range names {
		f := m.ExportedFunction(name)
		if f == nil {
			continue
		}
		if depth, ok := m.ExportedGlobal(meter.ExportDepth).(api.MutableGlobal); ok {
			depth.Set(stackBytes / 2)
		}
		var args []uint64
		for _, p := range f.Definition().ParamTypes() {
			args = append(args, 1)
			if p == 0x7b {
				args = append(args, 1)
			}
		}
		results, err := f.Call(ctx, args...)
		line := name + " " + kind(err)
		if err == nil {
			line += fmt.Sprint(results)
		}
		if mem := m.ExportedMemory("memory"); mem != nil && mem.Size() > 0 {
			all, _ := mem.Read(0, mem.Size())
			line += fmt.Sprintf(" %08x", crc32.ChecksumIEEE(all))
		}
		lines = append(lines, line)
		if strings.Contains(line, errExhausted.Error()) {
			return lines, errExhausted
		}
	}
	return lines, nil
}

// Real modules of several toolchains, and those that once broke the engine, validate when they
// are rewritten and do the same.
func TestRealModules(t *testing.T) {
	ran, same := 0, 0
	for name, module := range realModules(t) {
		parsed, problems := wasm.Read(module, generous())
		if len(problems) > 0 {
			continue
		}
		if !validates(module) {
			continue
		}
		ran++
		var exports []string
		for _, e := range parsed.Exports {
			exports = append(exports, e.Name)
		}
		res, err := meter.Rewrite(module, parsed, meter.Options{Exports: exports, StackBytes: stackBytes, MaxMemoryPages: memoryPages, Limits: generous()})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		metered, err := runAll(t, res.Module, &tank{slice: 1 << 20, budget: 1 << 28})
		if err == errExhausted {
			continue // plain, it would not end
		}
		if err != nil {
			t.Errorf("%s does not validate when it is rewritten: %v", name, err)
			continue
		}
		plain, err := runAll(t, module, endless())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if fmt.Sprint(plain) != fmt.Sprint(metered) {
			t.Errorf("%s\nplain   %.600v\nmetered %.600v", name, plain, metered)
			continue
		}
		same++
	}
	t.Logf("%d modules, %d ran to the same end", ran, same)
	if ran < 20 || same < 15 {
		t.Error("too few modules were compared")
	}
}

// validates reports whether the engine takes a module: what the confined child answers before
// anything is rewritten.
func validates(module []byte) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(memoryPages))
	defer func() { _ = rt.Close(ctx) }()
	_, err := rt.CompileModule(ctx, module)
	return err == nil
}

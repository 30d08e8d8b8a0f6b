package meter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/ecotone-dev/ecotone/host/memory"
	"github.com/ecotone-dev/ecotone/host/meter"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// restored is a metered instance that is put back to what it was right after it was made, the way
// a pool does it: memory over a frozen image, and mutable globals.
type restored struct {
	module  api.Module
	depth   api.MutableGlobal
	region  *memory.Region
	image   *memory.Image
	globals []api.MutableGlobal
	values  []uint64
}

func freeze(t *testing.T, ctx context.Context, rt wazero.Runtime, compiled wazero.CompiledModule, res *meter.Result) *restored {
	t.Helper()
	r := &restored{}
	var err error
	if r.region, err = memory.Reserve(memoryPages * wasm.PageBytes); err != nil {
		t.Fatal(err)
	}
	own := experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory { return r.region }))
	if r.module, err = rt.InstantiateModule(own, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions()); err != nil {
		t.Fatal(err)
	}
	r.depth = r.module.ExportedGlobal(meter.ExportDepth).(api.MutableGlobal)
	for _, g := range res.Globals {
		global := r.module.ExportedGlobal(g.Name).(api.MutableGlobal)
		r.globals, r.values = append(r.globals, global), append(r.values, global.Get())
	}
	if r.region.Size() > 0 {
		if r.image, err = r.region.Capture(); err != nil {
			t.Fatal(err)
		}
		if err := r.region.Map(r.image); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// putBack reports whether the instance can be used again: one that grew cannot.
func (r *restored) putBack(t *testing.T, start int64) bool {
	t.Helper()
	if r.image == nil && r.region.Size() > 0 || r.image != nil && r.region.Size() != r.image.Size() {
		return false
	}
	if r.image != nil {
		if _, err := r.region.Restore(); err != nil {
			t.Fatal(err)
		}
		if !r.region.Pristine() {
			t.Fatal("the memory is not its image")
		}
	}
	for i, g := range r.globals {
		g.Set(r.values[i])
	}
	r.depth.Set(uint64(start))
	return true
}

func (r *restored) close(t *testing.T, ctx context.Context) {
	t.Helper()
	if err := r.module.Close(ctx); err != nil {
		t.Error(err)
	}
	if r.image != nil {
		if err := r.image.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := r.region.Close(); err != nil {
		t.Error(err)
	}
}

// twin is a module of the suite in both forms: plain, of which each action gets a new instance, and
// metered, of which all get the same one, put back in between.
type twin struct {
	plain, metered wazero.CompiledModule
	res            *meter.Result
	kept           *restored
	reused         int
}

// alone reports whether a module's instances are the sum of what they hold themselves.
func alone(parsed *wasm.Module) bool {
	for i := range parsed.Imports {
		if im := &parsed.Imports[i]; im.Module != "spectest" || im.Kind == wasm.KindMemory || im.Kind == wasm.KindTable {
			return false
		}
	}
	return true
}

// outcome is what a call answers, and what it leaves in memory.
func outcome(ctx context.Context, m api.Module, c *command, args []uint64) (string, []byte) {
	f := m.ExportedFunction(c.Action.Field)
	results, err := f.Call(ctx, args...)
	text := kind(err)
	if err == nil {
		for i, rt := range f.Definition().ResultTypes() {
			if rt == api.ValueType(0x70) && results[i] != 0 {
				results[i] = 1
			}
		}
		text = fmt.Sprint(results)
	}
	left := m.ExportedMemory("memory")
	if left == nil {
		return text, nil
	}
	b, _ := left.Read(0, left.Size())
	return text, b
}

func (w *twin) act(t *testing.T, ctx context.Context, rt wazero.Runtime, c *command) {
	t.Helper()
	var args []uint64
	for _, a := range c.Action.Args {
		args = append(args, a.bits(t)...)
	}
	fresh, err := rt.InstantiateModule(ctx, w.plain, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fresh.Close(ctx) }()
	want, wantBytes := outcome(ctx, fresh, c, args)
	if w.kept == nil {
		w.kept = freeze(t, ctx, rt, w.metered, w.res)
	} else {
		w.reused++
	}
	w.kept.depth.Set(uint64(stackBytes / 2))
	got, gotBytes := outcome(ctx, w.kept.module, c, args)
	if got != want || !bytes.Equal(gotBytes, wantBytes) {
		t.Errorf("line %d %s: a new plain instance %s, a metered one put back %s (memory equal: %v)",
			c.Line, c.Action.Field, want, got, bytes.Equal(gotBytes, wantBytes))
	}
	if !w.kept.putBack(t, w.res.StartDepth) {
		w.kept.close(t, ctx)
		w.kept = nil
	}
}

// S12, and the third promise: on the core specification's suite, an instance that is metered and put
// back after every call, traps included, answers like a new plain instance for each call, and leaves
// the same memory.
func TestSpecificationSuiteRestored(t *testing.T) {
	if !memory.Supported() {
		t.Skip("SKIPPED, NOT PASSED: no images on this platform")
	}
	dir := suite(t, "internal", "integration_test", "spectest", "v2", "testdata")
	scripts, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts in %s: %v", dir, err)
	}
	modules, reused, skipped := 0, 0, map[string]int{}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".json"), func(t *testing.T) {
			raw, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			var doc struct{ Commands []command }
			if err := json.Unmarshal(raw, &doc); err != nil {
				t.Fatal(err)
			}
			m, r := playRestored(t, dir, doc.Commands, skipped)
			modules, reused = modules+m, reused+r
		})
	}
	t.Logf("%d modules put back %d times; not put back: %v", modules, reused, skipped)
	if modules < 300 || reused < 30_000 {
		t.Error("the suite shrank")
	}
}

func playRestored(t *testing.T, dir string, commands []command, skipped map[string]int) (modules, reused int) {
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, config().WithMemoryLimitPages(memoryPages))
	defer func() { _ = rt.Close(ctx) }()
	endless().link(t, ctx, rt)
	spectest, err := os.ReadFile(filepath.Join(dir, "..", "..", "testdata", "spectest.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.InstantiateWithConfig(ctx, spectest, wazero.NewModuleConfig()); err != nil {
		t.Fatal(err)
	}
	var last *twin
	named, all := map[string]*twin{}, []*twin(nil)
	for i := range commands {
		c := &commands[i]
		switch c.Type {
		case "module":
			module, err := os.ReadFile(filepath.Join(dir, c.Filename))
			if err != nil {
				t.Fatal(err)
			}
			last = makeTwin(t, ctx, rt, module, skipped)
			if last != nil {
				all = append(all, last)
			}
			if c.Name != "" {
				named[c.Name] = last
			}
		case "assert_return", "action", "assert_trap":
			w := last
			if c.Action.Module != "" {
				w = named[c.Action.Module]
			}
			if w != nil && c.Action.Type == "invoke" {
				w.act(t, ctx, rt, c)
			}
		}
	}
	for _, w := range all {
		modules, reused = modules+1, reused+w.reused
		if w.kept != nil {
			w.kept.close(t, ctx)
		}
	}
	return modules, reused
}

// makeTwin is nil for a module that a pool would not keep, or that is not alone.
func makeTwin(t *testing.T, ctx context.Context, rt wazero.Runtime, module []byte, skipped map[string]int) *twin {
	parsed, problems := wasm.Read(module, generous())
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	if !alone(parsed) {
		skipped["not alone"]++
		return nil
	}
	res := rewrite(t, module, func(o *meter.Options) { o.ExportGlobals = true })
	if !res.Restorable {
		skipped[res.Reasons[0].What]++
		return nil
	}
	w := &twin{res: res}
	var err error
	if w.plain, err = rt.CompileModule(ctx, module); err != nil {
		skipped["beyond the memory limit"]++
		return nil
	}
	if w.metered, err = rt.CompileModule(ctx, res.Module); err != nil {
		t.Fatal(err)
	}
	return w
}

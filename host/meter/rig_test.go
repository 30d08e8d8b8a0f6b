package meter_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/meter"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

var (
	errExhausted = errors.New("fuel exhausted")
	errOverflow  = errors.New("stack overflow") // in the engine's words
)

// tank is the host's side: it hands out fuel a slice at a time, up to a budget.
type tank struct {
	slice, budget int64
	granted       int64
	refuels       int
	overflows     int
	lowest        int64 // the deepest debt that was seen
	onRefuel      func()
}

func fuelOf(m api.Module) api.MutableGlobal {
	return m.ExportedGlobal(meter.ExportFuel).(api.MutableGlobal)
}

func depthOf(m api.Module) int64 { return int64(m.ExportedGlobal(meter.ExportDepth).Get()) }

func (k *tank) refuel(_ context.Context, m api.Module) {
	g := fuelOf(m)
	left := int64(g.Get())
	k.refuels++
	k.lowest = min(k.lowest, left)
	if k.onRefuel != nil {
		k.onRefuel()
	}
	if k.granted >= k.budget {
		panic(errExhausted)
	}
	more := min(k.slice, k.budget-k.granted)
	k.granted += more
	g.Set(uint64(left + more))
}

func (k *tank) overflow(context.Context, api.Module) {
	k.overflows++
	panic(errOverflow)
}

// used is the fuel an instance took.
func (k *tank) used(m api.Module) int64 { return k.granted - int64(fuelOf(m).Get()) }

func (k *tank) link(t testing.TB, ctx context.Context, rt wazero.Runtime) {
	t.Helper()
	_, err := rt.NewHostModuleBuilder(meter.ImportModule).
		NewFunctionBuilder().WithFunc(k.refuel).Export(meter.ImportRefuel).
		NewFunctionBuilder().WithFunc(k.overflow).Export(meter.ImportOverflow).
		Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
}

func endless() *tank { return &tank{slice: 1 << 20, budget: 1 << 62} }

// config is the engine as it runs metered modules: no context checks.
func config() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2)
}

// generous are limits under which the suite's own modules fit.
func generous() abi.Limits {
	l := abi.DefaultLimits()
	l[abi.LimitModuleBytes] = 32 << 20
	l[abi.LimitMemoryBytes] = wasm.MaxPages * wasm.PageBytes
	l[abi.LimitTableEntries] = 1 << 40
	l[abi.LimitNameBytes] = 1 << 20
	l[abi.LimitBrTable] = 1 << 20
	l[abi.LimitImports], l[abi.LimitExports], l[abi.LimitTables] = 1000, 1000, 1000
	return l
}

const stackBytes = 16 << 20

// rewrite meters a module and keeps every export.
func rewrite(t testing.TB, module []byte, change ...func(*meter.Options)) *meter.Result {
	t.Helper()
	parsed, problems := wasm.Read(module, generous())
	if len(problems) > 0 {
		t.Fatalf("the reader refuses it: %v", problems[0])
	}
	opt := meter.Options{StackBytes: stackBytes, Limits: generous()}
	for _, e := range parsed.Exports {
		opt.Exports = append(opt.Exports, e.Name)
	}
	for _, c := range change {
		c(&opt)
	}
	res, err := meter.Rewrite(module, parsed, opt)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// memoryPages is what the engine gives a module that start makes an instance of.
const memoryPages = 256

// start instantiates a metered module, with stubs that answer 0 for what it imports.
func start(t testing.TB, module []byte, k *tank) api.Module {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, config().WithMemoryLimitPages(memoryPages))
	t.Cleanup(func() { _ = rt.Close(ctx) })
	k.link(t, ctx, rt)
	compiled, err := rt.CompileModule(ctx, module)
	if err != nil {
		t.Fatal(err)
	}
	stub(t, ctx, rt, compiled)
	m, err := rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// stub makes host functions that answer 0 for everything a module imports besides the meter.
func stub(t testing.TB, ctx context.Context, rt wazero.Runtime, c wazero.CompiledModule) {
	t.Helper()
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range c.ImportedFunctions() {
		module, name, _ := f.Import()
		if module == meter.ImportModule || rt.Module(module) != nil {
			continue
		}
		if builders[module] == nil {
			builders[module] = rt.NewHostModuleBuilder(module)
		}
		builders[module].NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
			clear(stack)
		}), f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	for _, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// kind is what an error of the engine says, without its trace.
func kind(err error) string {
	if err == nil {
		return ""
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	first = strings.TrimPrefix(first, "wasm error: ")
	return strings.TrimSuffix(first, " (recovered by wazero)")
}

var engineDir = sync.OnceValue(func() string { return moduleDir("github.com/tetratelabs/wazero") })

func moduleDir(path string) string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func suite(t testing.TB, parts ...string) string {
	t.Helper()
	dir := filepath.Join(append([]string{engineDir()}, parts...)...)
	if _, err := os.Stat(dir); engineDir() == "" || err != nil {
		t.Skipf("SKIPPED, NOT PASSED: the engine's test suites are not on this machine (%s)", dir)
	}
	return dir
}

package meter_test

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// goKernels is the Go guest under testdata, built once.
var goKernels = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "kernels")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "kernels.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, ".")
	build.Dir = filepath.Join("testdata", "kernels")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		return text, err
	}
	return os.ReadFile(out)
})

func kernels(t testing.TB) []byte {
	t.Helper()
	module, err := goKernels()
	if err != nil {
		t.Fatalf("the guest does not build: %v: %s", err, module)
	}
	return module
}

// handmade has kernels of a few instructions, where metering has nothing to hide behind.
func handmade() []byte {
	b := w.New()
	p := w.Types(w.I32)
	b.ExportFunc("loop", b.Func(p, p, w.Types(w.I32),
		w.Loop(
			w.LocalGet(1), w.LocalGet(0), w.Op(w.OpI32Add), w.LocalSet(1),
			w.LocalGet(0), w.I32Const(1), w.Op(w.OpI32Sub), w.Op(0x22, 0), w.BrIf(0),
		),
		w.LocalGet(1)))
	fib := uint32(1)
	b.ExportFunc("fib", b.Func(p, p, nil,
		w.LocalGet(0), w.I32Const(2), w.Op(0x48), w.If(w.LocalGet(0), w.Op(w.OpReturn)),
		w.LocalGet(0), w.I32Const(1), w.Op(w.OpI32Sub), w.Call(fib),
		w.LocalGet(0), w.I32Const(2), w.Op(w.OpI32Sub), w.Call(fib),
		w.Op(w.OpI32Add)))
	// Sums a memory of 64 KiB, as often as asked.
	b.ExportFunc("sum", b.Func(p, p, w.Types(w.I32, w.I32),
		w.Loop(
			w.I32Const(65532), w.LocalSet(1),
			w.Loop(
				w.LocalGet(2), w.LocalGet(1), w.Op(0x28, 2, 0), w.Op(w.OpI32Add), w.LocalSet(2),
				w.LocalGet(1), w.I32Const(4), w.Op(w.OpI32Sub), w.Op(0x22, 1), w.BrIf(0),
			),
			w.LocalGet(0), w.I32Const(1), w.Op(w.OpI32Sub), w.Op(0x22, 0), w.BrIf(0),
		),
		w.LocalGet(2)))
	// Adds up the numbers to 50 with a frame for each, as often as asked: of these calls only one
	// in 51 calls nobody.
	deep := uint32(3)
	b.Func(p, p, nil,
		w.LocalGet(0), w.Op(0x45), w.If(w.I32Const(0), w.Op(w.OpReturn)),
		w.LocalGet(0), w.LocalGet(0), w.I32Const(1), w.Op(w.OpI32Sub), w.Call(deep), w.Op(w.OpI32Add))
	b.ExportFunc("deep", b.Func(p, p, w.Types(w.I32),
		w.Loop(
			w.I32Const(50), w.Call(deep), w.LocalGet(1), w.Op(w.OpI32Add), w.LocalSet(1),
			w.LocalGet(0), w.I32Const(1), w.Op(w.OpI32Sub), w.LocalTee(0), w.BrIf(0),
		),
		w.LocalGet(1)))
	return b.Memory(1).ExportMemory().Bytes()
}

var kernelRows = []struct {
	export   string
	arg      uint64
	inGo     bool
	required bool // a kernel of the goal: the rest is there to know
}{
	{"loop", 200_000, false, true},
	{"fib", 24, false, true},
	{"sha256", 10, true, true},
	{"sort", 5_000, true, true},
	{"json", 15, true, true},
	{"sum", 40, false, false},
	{"deep", 2_000, false, false},
}

// callee instantiates a module under a configuration and finds its kernels.
func callee(t testing.TB, module []byte, c wazero.RuntimeConfig, k *tank) api.Module {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, c)
	t.Cleanup(func() { _ = rt.Close(ctx) })
	k.link(t, ctx, rt)
	compiled, err := rt.CompileModule(ctx, module)
	if err != nil {
		t.Fatal(err)
	}
	wasi(t, ctx, rt)
	stub(t, ctx, rt, compiled)
	m, err := rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// BenchmarkMetering runs each kernel plain, metered and under the engine's own context checks,
// in turns, and reports the ratios of the fastest rounds.
func BenchmarkMetering(b *testing.B) {
	modules := map[bool][]byte{false: handmade(), true: kernels(b)}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	slice := func() *tank { return &tank{slice: 3_000_000, budget: 1 << 62} }
	product, n := 1.0, 0
	for _, row := range kernelRows {
		b.Run(row.export, func(b *testing.B) {
			module := modules[row.inGo]
			k := slice()
			ways := []api.Module{
				callee(b, module, config(), slice()),
				callee(b, rewrite(b, module).Module, config(), k),
				callee(b, module, config().WithCloseOnContextDone(true), slice()),
			}
			best := []time.Duration{math.MaxInt64, math.MaxInt64, math.MaxInt64}
			used := int64(0)
			b.ResetTimer()
			for range b.N {
				for i, m := range ways {
					f := m.ExportedFunction(row.export)
					before := k.granted
					start := time.Now()
					if _, err := f.Call(ctx, row.arg); err != nil {
						b.Fatal(err)
					}
					best[i] = min(best[i], time.Since(start))
					if i == 1 {
						used = k.granted - before
					}
				}
			}
			ratio := float64(best[1]) / float64(best[0])
			b.ReportMetric(float64(best[0].Nanoseconds()), "plain-ns")
			b.ReportMetric(ratio, "metered/plain")
			b.ReportMetric(float64(best[2])/float64(best[0]), "checks/plain")
			b.ReportMetric(float64(best[1].Nanoseconds())/float64(max(used, 1)), "ns/unit")
			if row.required && b.N > 1 {
				product, n = product*ratio, n+1
			}
		})
	}
	if n > 0 {
		b.Logf("geometric mean of metered/plain over %d runs: %.3f", n, math.Pow(product, 1/float64(n)))
	}
}

// BenchmarkRewrite says what the pass itself costs.
func BenchmarkRewrite(b *testing.B) {
	module := kernels(b)
	b.SetBytes(int64(len(module)))
	for range b.N {
		rewrite(b, module)
	}
}

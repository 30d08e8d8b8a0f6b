package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/compile"
	"github.com/ecotone-dev/ecotone/host/engine"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// initializer is a module whose _initialize has the given body, after which its capability
// outputs the byte at 100.
func initializer(imports func(*w.Builder) [][]byte) []byte {
	b := w.New()
	output := b.Host("output")
	body := imports(b)
	b.ExportFunc("_initialize", b.Func(nil, nil, nil, body...))
	b.Capability("run", w.I32Const(100), w.I32Const(1), w.Call(output), w.Op(w.OpI32WrapI64))
	return b.Memory(1).ExportMemory().Bytes()
}

var initializers = map[string]struct {
	module []byte
	trial  abi.Code // at admission
	run    abi.Code // in an invocation, which knows better why
}{
	"sets a byte": {initializer(func(*w.Builder) [][]byte {
		return [][]byte{w.I32Const(100), w.I32Const('5'), w.Store8(0)}
	}), "", ""},
	"uses WASI": {initializer(func(b *w.Builder) [][]byte {
		random := b.WASI("random_get")
		return [][]byte{w.I32Const(0), w.I32Const(32), w.Call(random), w.Op(w.OpDrop), w.I32Const(100), w.I32Const('5'), w.Store8(0)}
	}), "", ""},
	"traps": {initializer(func(*w.Builder) [][]byte { return [][]byte{w.Op(w.OpUnreachable)} }), abi.CodeInitializeFailed, abi.CodeInitializeFailed},
	"exits": {initializer(func(b *w.Builder) [][]byte {
		exit := b.WASI("proc_exit")
		return [][]byte{w.I32Const(0), w.Call(exit)}
	}), abi.CodeInitializeFailed, abi.CodeGuestExit},
	"calls the host": {initializer(func(b *w.Builder) [][]byte {
		now := b.Host("time_now")
		return [][]byte{w.Call(now), w.Op(w.OpDrop)}
	}), abi.CodeInitializeFailed, abi.CodeInitializeFailed},
	"draws too much": {initializer(func(b *w.Builder) [][]byte {
		random := b.WASI("random_get")
		return [][]byte{w.Loop(w.I32Const(0), w.I32Const(60000), w.Call(random), w.Op(w.OpDrop), w.Br(0))}
	}), abi.CodeInitializeFailed, abi.CodeRandomLimit},
}

// The initialiser of each invocation has no authority; the capability that follows does.
func TestInitializeInARun(t *testing.T) {
	e := engine.New(engine.Fresh{})
	for name, c := range initializers {
		o := e.Run(patience(t), load(t, c.module), invocation{export: "run"}.make())
		if c.run == "" {
			if string(o.Output) != "5" {
				t.Errorf("%s: %s", name, describe(o))
			}
		} else if o.Err == nil || o.Err.Code != c.run {
			t.Errorf("%s: %s", name, describe(o))
		}
	}
	if got := e.Started(); got != int64(len(initializers)) {
		t.Errorf("%d started", got)
	}
}

func TestTrial(t *testing.T) {
	e := engine.New(engine.Fresh{})
	limits := abi.DefaultLimits()
	for name, c := range initializers {
		err := e.Trial(patience(t), load(t, c.module), &limits, time.Minute)
		if c.trial == "" && err != nil || c.trial != "" && (err == nil || err.Code != c.trial) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if e.Started() != 0 || e.Trials() != int64(len(initializers)) {
		t.Errorf("%d started, %d trials", e.Started(), e.Trials())
	}
}

// start_loop, initialize_loop: what does not end in the trial's budget is refused; a caller
// that goes away is not the module's fault.
func TestTrialOfALoop(t *testing.T) {
	loop := load(t, initializer(func(*w.Builder) [][]byte { return [][]byte{w.Loop(w.Br(0))} }))
	e := engine.New(engine.Fresh{})
	limits := abi.DefaultLimits()
	if err := e.Trial(patience(t), loop, &limits, 20*time.Millisecond); err == nil || err.Code != abi.CodeInitializeFailed {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, cancel)
	if err := e.Trial(ctx, loop, &limits, time.Minute); err == nil || err.Code != abi.CodeCanceled {
		t.Error(err)
	}
	if got := describe(e.Run(patience(t), loop, invocation{export: "run", spec: wall(20)}.make())); got != "DEADLINE_EXCEEDED" {
		t.Errorf("in a run: %s", got)
	}
}

// data_oob_negative: a segment outside memory fails before any code.
func TestSegmentOutsideMemory(t *testing.T) {
	b := w.New()
	b.Capability("run")
	image := load(t, b.Memory(1).ExportMemory().Data(-1, []byte("x")).Bytes())
	e := engine.New(engine.Fresh{})
	limits := abi.DefaultLimits()
	if err := e.Trial(patience(t), image, &limits, time.Minute); err == nil || err.Code != abi.CodeInitializeFailed {
		t.Error(err)
	}
}

// A small initial memory with a huge maximum runs; a large initial one is refused by a small
// environment and runs in a large one (PF-D19).
func TestInitialMemory(t *testing.T) {
	b := w.New()
	b.Capability("run", w.I32Const(3))
	image := load(t, b.Memory(512, 65536).ExportMemory().Bytes()) // 32 MiB
	e := engine.New(engine.Fresh{})
	for limit, want := range map[int64]abi.Code{16 << 20: abi.CodeMemoryLimit, 32 << 20: abi.CodeGuestError, 64 << 20: abi.CodeGuestError} {
		o := e.Run(patience(t), image, invocation{export: "run", spec: func(s *authority.Spec) { s.Limits[abi.LimitMemoryBytes] = limit }}.make())
		if o.Err == nil || o.Err.Code != want {
			t.Errorf("under %d: %v", limit, o.Err)
		}
	}
}

func TestImageNeedsAMemory(t *testing.T) {
	ctx := context.Background()
	for name, build := range map[string]func(b *w.Builder) *w.Builder{
		"none":         func(b *w.Builder) *w.Builder { return b },
		"not exported": func(b *w.Builder) *w.Builder { return b.Memory(1) },
		"a function":   func(b *w.Builder) *w.Builder { return b.Memory(1).ExportFunc("memory", 0) },
	} {
		b := w.New()
		b.Capability("run")
		r := wazero.NewRuntimeWithConfig(ctx, compile.RuntimeConfig())
		compiled, err := r.CompileModule(ctx, metered(t, build(b).Bytes()).Module)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := engine.NewImage(ctx, r, compiled, abi.FaceNative); abi.CodeOf(err) != abi.CodeExportMissing {
			t.Errorf("%s: %v", name, err)
		}
	}
}

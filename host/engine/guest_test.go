package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/engine"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// How each guest ends, and that the next invocation of the same module works.
func TestEndings(t *testing.T) {
	image, e := load(t, guests), engine.New(engine.Fresh{})
	small := func(s *authority.Spec) { s.Limits[abi.LimitMemoryBytes] = 4 << 16 }
	for _, c := range []struct {
		invocation
		want string
	}{
		{invocation{export: "echo", input: `{"a":[1,2]}`}, `{"a":[1,2]}`},

		// CPU and stack.
		{invocation{export: "loop", spec: wall(50)}, "DEADLINE_EXCEEDED"},                                                                       // PF-D3
		{invocation{export: "loop", spec: func(s *authority.Spec) { s.Deadline = time.Now().Add(50 * time.Millisecond) }}, "DEADLINE_EXCEEDED"}, // PF-D5
		{invocation{export: "recurse", spec: wall(60_000)}, "STACK_LIMIT"},

		// Traps.
		{invocation{export: "trap"}, "GUEST_TRAP"},
		{invocation{export: "out_of_bounds"}, "GUEST_TRAP"},
		{invocation{export: "divide"}, "GUEST_TRAP"},
		{invocation{export: "null_call"}, "GUEST_TRAP"},

		// Ends without an answer.
		{invocation{export: "silent"}, "OUTPUT_MISSING"},
		{invocation{export: "status"}, "GUEST_ERROR"},
		{invocation{export: "fail"}, "GUEST_ERROR"},
		{invocation{export: "exit_3"}, "GUEST_EXIT"},
		{invocation{export: "exit_0"}, "1"},

		// Memory: the environment's ceiling, whatever maximum the module declares.
		{invocation{export: "grow_bomb", spec: small}, "4"}, // PF-D1, PF-D19
		{invocation{export: "grow_bomb"}, "256"},
		{invocation{export: "grow_once"}, "1"},
		{invocation{export: "table_bomb"}, "1"},

		// Host calls.
		{invocation{export: "call_flood"}, "HOST_CALL_LIMIT"},
		{invocation{export: "bad_pointer"}, fmt.Sprint(int(abi.EFAULT))},
		{invocation{export: "fetch_errno", fetch: func(context.Context) (boundary.Result, error) {
			return boundary.Result{}, abi.Errorf(abi.CodeEndpointRefused, "no rule")
		}}, fmt.Sprint(int(abi.EDENIED))}, // PF-H13
		{invocation{export: "fetch_errno", fetch: func(context.Context) (boundary.Result, error) {
			return boundary.Result{}, abi.Errorf(abi.CodeResponseTooLarge, "1 GB")
		}}, fmt.Sprint(int(abi.ETOOBIG))}, // PF-D16
		{invocation{export: "fetch_errno", fetch: func(context.Context) (boundary.Result, error) { panic("a fault of the host") }}, "INTERNAL"},

		// WASI.
		{invocation{export: "sleep_hour", spec: wall(50)}, "DEADLINE_EXCEEDED"}, // PF-D6
		{invocation{export: "wasi_random_flood"}, "RANDOM_LIMIT"},
		{invocation{export: "wasi_write_flood", spec: wall(50)}, "DEADLINE_EXCEEDED"},
		{invocation{export: "prestat"}, "8"},

		// Refused before anything runs.
		{invocation{export: "absent"}, "EXPORT_MISSING"},
		{invocation{export: "_initialize"}, "EXPORT_MISSING"},
		{invocation{export: "memory"}, "EXPORT_MISSING"},
	} {
		t.Run(c.export, func(t *testing.T) {
			ctx := patience(t)
			o := e.Run(ctx, image, c.make())
			if got := describe(o); got != c.want {
				t.Errorf("%s, want %s: %v", got, c.want, o.Cause)
			}
			if ctx.Err() != nil {
				t.Fatal("hung")
			}
			if got := describe(e.Run(ctx, image, invocation{input: `"next"`}.make())); got != `"next"` {
				t.Errorf("the next invocation: %s", got)
			}
		})
	}
}

// No text of the guest's, and none of the engine's, is in what a caller is told of a trap.
func TestTrapsAreDescribedInOurWords(t *testing.T) {
	image, e := load(t, guests), engine.New(engine.Fresh{})
	for export, kind := range map[string]string{
		"trap": "unreachable", "out_of_bounds": "out of bounds memory access", "divide": "integer divide by zero", "null_call": "invalid table access",
	} {
		o := e.Run(patience(t), image, invocation{export: export}.make())
		if want := "the guest trapped: " + kind; o.Err.Message != want {
			t.Errorf("%s: %q, want %q", export, o.Err.Message, want)
		}
		if o.Err.Cause == nil || !strings.Contains(o.Err.Cause.Error(), "wasm stack trace") {
			t.Errorf("%s: the log gets %v", export, o.Err.Cause)
		}
	}
}

// What a guest leaves behind, the next one does not find.
func TestNoStateSurvives(t *testing.T) {
	image, e := load(t, guests), engine.New(engine.Fresh{})
	for export, want := range map[string]string{
		"state_global": "1", "state_memory": "0", "state_size": "2", "state_table": "1", "state_passive": "7",
	} {
		for range 3 {
			if got := describe(e.Run(patience(t), image, invocation{export: export}.make())); got != want {
				t.Errorf("%s: %s, want %s", export, got, want)
			}
		}
	}
}

// PF-F17: a guest's random bytes are the host's, not the engine's fixed ones.
func TestRandomDiffersBetweenInvocations(t *testing.T) {
	image, e := load(t, guests), engine.New(engine.Fresh{})
	seen := map[string]bool{}
	for range 8 {
		seen[describe(e.Run(patience(t), image, invocation{export: "random"}.make()))] = true
	}
	if len(seen) < 8 {
		t.Errorf("8 invocations, %d values", len(seen))
	}
}

// S7: many invocations at once, each answered with its own bytes, also when others trap.
func TestNoCrossTalk(t *testing.T) {
	image, e := load(t, guests), engine.New(engine.Fresh{})
	ctx := patience(t)
	var wg sync.WaitGroup
	for worker := range 64 {
		wg.Go(func() {
			for round := range 5 {
				canary := fmt.Sprintf(`{"worker":%d,"round":%d,"pad":"%s"}`, worker, round, strings.Repeat("x", worker*32))
				if worker%8 == 7 {
					e.Run(ctx, image, invocation{export: "trap"}.make())
				}
				if got := e.Run(ctx, image, invocation{input: canary}.make()); string(got.Output) != canary {
					t.Errorf("%s was answered with %s", canary, describe(got))
				}
			}
		})
	}
	wg.Wait()
}

// S1: a guest sits in a host call that ignores its context; the invocation is cancelled and
// others run; when the call returns the guest does not get to write, answer or call again.
func TestCancelledInAHostCall(t *testing.T) {
	victims, others, e := load(t, guests), load(t, guests), engine.New(engine.Fresh{})
	ctx := patience(t)
	for range 20 {
		entered, leave := make(chan struct{}), make(chan struct{})
		run, cancel := context.WithCancelCause(ctx)
		outcome := make(chan boundary.Outcome)
		go func() {
			outcome <- e.Run(run, victims, invocation{export: "fetch_then_answer", fetch: func(context.Context) (boundary.Result, error) {
				close(entered)
				<-leave
				return boundary.Result{Body: bytes.Repeat([]byte{0xCC}, 1<<16)}, nil
			}}.make())
		}()
		<-entered
		cancel(abi.Errorf(abi.CodeGrantRevoked, "withdrawn"))

		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				if i == 8 {
					close(leave)
				}
				if got := describe(e.Run(ctx, others, invocation{export: "state_memory"}.make())); got != "0" {
					t.Errorf("another's invocation found %s bytes", got)
				}
			})
		}
		wg.Wait()
		o := <-outcome
		if o.Err == nil || o.Err.Code != abi.CodeGrantRevoked || o.Output != nil {
			t.Fatalf("%v, %q", o.Err, o.Output)
		}
		// One call, and nothing after it: the guest did not reach its `output`.
		if o.Receipt.HostCalls != 1 {
			t.Errorf("the guest went on: %d host calls", o.Receipt.HostCalls)
		}
	}
}

// PF-D4: cancelling works in every invocation, not only the first.
func TestCancelAGuestThatLoops(t *testing.T) {
	image, e := load(t, guests), engine.New(engine.Fresh{})
	for range 10 {
		ctx, cancel := context.WithCancel(patience(t))
		time.AfterFunc(2*time.Millisecond, cancel)
		if got := describe(e.Run(ctx, image, invocation{export: "loop"}.make())); got != "CANCELED" {
			t.Fatal(got)
		}
	}
}

// A refused invocation executes no instruction: neither capability nor initialiser.
func TestRefusedRunsNothing(t *testing.T) {
	image, e := load(t, guests), engine.New(engine.Fresh{})
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		inv  invocation
		want abi.Code
	}{
		"revoked":   {context.Background(), invocation{current: func() *abi.Error { return abi.Errorf(abi.CodeGrantRevoked, "withdrawn") }}, abi.CodeGrantRevoked},
		"cancelled": {cancelled, invocation{}, abi.CodeCanceled},
		"too late":  {context.Background(), invocation{spec: func(s *authority.Spec) { s.Deadline = time.Now().Add(-time.Second) }}, abi.CodeDeadline},
		"memory":    {context.Background(), invocation{spec: func(s *authority.Spec) { s.Limits[abi.LimitMemoryBytes] = 65535 }}, abi.CodeMemoryLimit},
		"no limits": {context.Background(), invocation{spec: func(s *authority.Spec) { s.Limits = abi.Limits{} }}, abi.CodeDeadline},
		"export":    {context.Background(), invocation{export: "absent"}, abi.CodeExportMissing},
	} {
		o := e.Run(c.ctx, image, c.inv.make())
		if o.Err == nil || o.Err.Code != c.want {
			t.Errorf("%s: %v", name, o.Err)
		}
	}
	if e.Started() != 0 {
		t.Errorf("%d guests started", e.Started())
	}
	e.Run(patience(t), image, invocation{}.make())
	if e.Started() != 1 {
		t.Errorf("%d guests started", e.Started())
	}
}

// S18: an authority that goes while the guest computes releases nothing.
func TestRevokedDuringTheLastLoop(t *testing.T) {
	image, e := load(t, guests), engine.New(engine.Fresh{})
	calls := 0
	o := e.Run(patience(t), image, invocation{export: "echo", input: `1`, current: func() *abi.Error {
		if calls++; calls > 4 { // before the run, input, result_read, output
			return abi.Errorf(abi.CodeGrantRevoked, "withdrawn")
		}
		return nil
	}}.make())
	if o.Err == nil || o.Err.Code != abi.CodeGrantRevoked || o.Output != nil {
		t.Errorf("%v, %q", o.Err, o.Output)
	}
}

func TestReceiptOfARun(t *testing.T) {
	image, e := load(t, guests), engine.New(engine.Fresh{})
	o := e.Run(patience(t), image, invocation{export: "state_size"}.make())
	if o.Receipt.PeakMemory != 2<<16 || o.Receipt.HostCalls != 1 || o.Receipt.Took <= 0 {
		t.Errorf("%+v", o.Receipt)
	}
}

// PF-D20: invocations that fail, however they fail, leave nothing in the host.
func TestFailuresLeakNothing(t *testing.T) {
	b := w.New()
	b.Capability("run")
	images := map[string]*engine.Image{
		"trap": load(t, guests),
		"run":  load(t, b.Memory(1).ExportMemory().Data(65535, []byte("xx")).Bytes()), // does not instantiate
	}
	e := engine.New(engine.Fresh{})
	many := func() int64 {
		for range 1000 {
			for export, image := range images {
				if o := e.Run(context.Background(), image, invocation{export: export}.make()); o.Err == nil {
					t.Fatal(export)
				}
			}
		}
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := many()
	if grown := many() - before; grown > 4<<20 {
		t.Errorf("2,000 failures kept %d KiB", grown>>10)
	}
}

func BenchmarkEcho(b *testing.B) {
	image, e := load(b, guests), engine.New(engine.Fresh{})
	b.ReportAllocs()
	for b.Loop() {
		if o := e.Run(context.Background(), image, invocation{input: `{"a":1}`}.make()); o.Err != nil {
			b.Fatal(o.Err)
		}
	}
}

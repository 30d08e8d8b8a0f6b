package host_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/admission"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/wasm"
	"github.com/ecotone-dev/ecotone/testdata/hostile"
)

// What reading a module cannot show, trying it does: refused at upload, nothing runs.
func TestHostileProbes(t *testing.T) {
	r := newRig(t, 0)
	for _, m := range hostile.At(hostile.Probe) {
		t.Run(m.Name, func(t *testing.T) {
			report, err := r.host.Admit(patience(t), wasm.Original{Module: m.Bytes()})
			if abi.CodeOf(err) != abi.CodeModuleRefused {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(report.Problems, func(p admission.Problem) bool { return p.Code == m.Want }) {
				t.Errorf("no %s in %+v", m.Want, report.Problems)
			}
		})
	}
	if n := r.host.Started(); n != 0 {
		t.Errorf("%d guests started", n)
	}
}

// Each hostile module ends as its row says, in every step, and afterwards a decent module
// works and the host's memory is what it was. PF-D1
func TestHostileInvocations(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a compiler for each of some seventy modules")
	}
	r := newRig(t, 0)
	decent := r.admit(echo("decent"))
	before := heap()
	for _, m := range hostile.At(hostile.Invoke) {
		t.Run(m.Name, func(t *testing.T) {
			report, err := r.host.Admit(patience(t), wasm.Original{Module: m.Bytes()})
			if err != nil {
				t.Fatal(err)
			}
			digest, export := r.keep(report, m.Bytes()), report.Manifest.Provides[0].Export
			for i, step := range m.Calls {
				input := step.Input
				if input == "" {
					input = "{}"
				}
				o := r.run("acme", digest, export, input, func(s *authority.Spec) {
					s.Workspace = "w"
					switch step.Code {
					case abi.CodeDeadline:
						s.Limits[abi.LimitWall], s.Limits[abi.LimitFuel] = 500, abi.OperatorMax
					case abi.CodeStackLimit:
						s.Limits[abi.LimitWall] = 60_000
					}
				})
				switch {
				case step.Code == "" && (o.Err != nil || string(o.Output) != step.Output):
					t.Errorf("step %d: %q, %v; want %q", i, o.Output, o.Cause, step.Output)
				case step.Code != "" && (o.Err == nil || o.Err.Code != step.Code):
					t.Errorf("step %d: %q, %v; want %s", i, o.Output, o.Cause, step.Code)
				}
			}
			if o := r.run("acme", decent, "run", `"well"`); string(o.Output) != `"well"` {
				t.Errorf("afterwards: %v", o.Cause)
			}
			if err := r.host.Forget(digest); err != nil {
				t.Error(err)
			}
		})
	}
	if grown := heap() - before; grown > 64<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

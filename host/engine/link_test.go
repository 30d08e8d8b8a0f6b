package engine_test

import (
	"fmt"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/engine"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// probe is a module whose only import is one host function. Its capability calls it with
// pointers outside memory, and returns the negated errno: a linked function looks at its
// arguments and answers EFAULT, a stub denies without looking.
func probe(fn *abi.Function) []byte {
	b := w.New()
	f := b.Host(fn.Name)
	body := [][]byte{w.I64Const(0)}
	for _, p := range fn.Params {
		if p.Type == abi.I64 {
			body = append(body, w.I64Const(0))
		} else {
			body = append(body, w.I32Const(-1))
		}
	}
	const i64Sub = 0x7d
	body = append(body, w.Call(f), w.Op(i64Sub), w.Op(w.OpI32WrapI64))
	b.Capability("run", body...)
	return b.Memory(1).ExportMemory().Bytes()
}

// pointed reports whether fn takes a pointer, and so can tell that it was called.
func pointed(fn *abi.Function) bool {
	for _, p := range fn.Params {
		if p.Name == "ptr" || len(p.Name) > 4 && p.Name[len(p.Name)-4:] == "_ptr" {
			return true
		}
	}
	return false
}

// H1, H3, S9: each host function of the table, under each reach, with and without files, is
// linked or a stub exactly as the table says; the guest goes on either way; a stub is recorded.
func TestLinkSetsAreTheTable(t *testing.T) {
	e := engine.New(engine.Fresh{})
	for i := range abi.Functions() {
		fn := &abi.Functions()[i]
		t.Run(fn.Name, func(t *testing.T) {
			image := load(t, probe(fn))
			for _, reach := range abi.Reaches() {
				for _, workspace := range []string{"", "w"} {
					inv := invocation{export: "run", spec: func(s *authority.Spec) { s.Reach, s.Workspace = reach, workspace }}.make()
					linked := fn.Reach <= reach && (fn.Group != abi.GroupFiles || workspace != "")
					o := e.Run(patience(t), image, inv)
					name := fmt.Sprintf("reach %s, workspace %q", reach, workspace)
					switch {
					case !linked:
						if got, want := o.Err.Message, fmt.Sprintf("the capability returned %d", abi.EDENIED); got != want {
							t.Errorf("%s: a stub: %s", name, got)
						}
						if l := o.Receipt.Lines; len(l) != 1 || l[0].Function != fn.Name || l[0].Code.Errno() != abi.EDENIED {
							t.Errorf("%s: recorded as %+v", name, l)
						}
					case pointed(fn):
						if got, want := o.Err.Message, fmt.Sprintf("the capability returned %d", abi.EFAULT); got != want {
							t.Errorf("%s: linked: %s", name, got)
						}
					default: // input, time_now: what they answer is no errno
						if len(o.Receipt.Lines) != 0 || o.Receipt.Unlisted.Of(fn.Name) != 1 {
							t.Errorf("%s: %+v", name, o.Receipt)
						}
					}
				}
			}
		})
	}
}

// S9: one image serves a wide authority and then a narrow one; nothing of the wide is left.
func TestWarmImageStaysNarrow(t *testing.T) {
	fn, _ := abi.FunctionByName("http_fetch")
	image, e := load(t, probe(fn)), engine.New(engine.Fresh{})
	for range 20 {
		e.Run(patience(t), image, invocation{export: "run", spec: func(s *authority.Spec) { s.Reach = abi.ReachPlatform }}.make())
	}
	o := e.Run(patience(t), image, invocation{export: "run", spec: func(s *authority.Spec) { s.Reach = abi.ReachOwner }}.make())
	if l := o.Receipt.Lines; len(l) != 1 || l[0].Code != abi.CodeReachCeiling {
		t.Errorf("%+v", l)
	}
}

// H1: every WASI function of the subset links, and none that is not in it.
func TestWASISubsetLinks(t *testing.T) {
	e := engine.New(engine.Fresh{})
	for _, fn := range abi.NativeWASI() {
		b := w.New()
		b.WASI(fn.Name)
		b.Capability("run", w.I32Const(7))
		o := e.Run(patience(t), load(t, b.Memory(1).ExportMemory().Bytes()), invocation{export: "run"}.make())
		if o.Err == nil || o.Err.Message != "the capability returned 7" {
			t.Errorf("%s: %v", fn.Name, o.Err)
		}
	}
	for _, name := range []string{"path_open", "sock_accept", "fd_readdir"} {
		b := w.New()
		b.ImportFunc(abi.WASIModule, name, w.Types(w.I32), w.Types(w.I32))
		b.Capability("run", w.I32Const(7))
		o := e.Run(patience(t), load(t, b.Memory(1).ExportMemory().Bytes()), invocation{export: "run"}.make())
		if o.Err == nil || o.Err.Code != abi.CodeInitializeFailed {
			t.Errorf("%s: %v", name, o.Err)
		}
	}
}

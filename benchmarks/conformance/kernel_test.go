package conformance_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/host/extism/kernel"
)

// sdk is the folder of extism/go-sdk, as the module cache has it.
var sdk = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/extism/go-sdk").Output()
	return strings.TrimSpace(string(out)), err
})

func inSDK(t testing.TB, path ...string) []byte {
	t.Helper()
	dir, err := sdk()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(append([]string{dir}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// theirs is the kernel that the SDK runs beside every plug-in, with what the SDK's host functions do
// in place of it.
type theirs struct {
	module api.Module
	rt     *rapid.T
}

func (k *theirs) call(name string, args ...uint64) uint64 {
	out, err := k.module.ExportedFunction(name).Call(k.rt.Context(), args...)
	if err != nil {
		k.rt.Fatalf("%s%v: %v", name, args, err)
	}
	if len(out) == 0 {
		return 0
	}
	return out[0]
}

// what a plug-in that behaves can see of a memory after a call.
type seen struct {
	answer, length, input, inputLength, output, outputLength, err, room uint64
	block                                                               []byte
}

// For every sequence of calls that a plug-in can make without reaching between blocks, our memory
// answers what the SDK's kernel answers: addresses, lengths, bytes, what a freed handle says, and the
// order in which freed blocks are used again.
func TestKernelIsTheSDKs(t *testing.T) {
	code := inSDK(t, "extism-runtime.wasm")
	r := wazero.NewRuntime(t.Context())
	defer r.Close(t.Context())
	compiled, err := r.CompileModule(t.Context(), code)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		module, err := r.InstantiateModule(t.Context(), compiled, wazero.NewModuleConfig().WithName(""))
		if err != nil {
			rt.Fatal(err)
		}
		defer module.Close(t.Context())
		k, m := &theirs{module, rt}, kernel.New(512<<20)
		var held []uint64
		handle := func(rt *rapid.T) uint64 {
			if len(held) == 0 || rapid.IntRange(0, 9).Draw(rt, "any") == 0 {
				return rapid.SampledFrom([]uint64{0, 1, 64, 65, 66, 1<<20 - 4096, 1 << 30}).Draw(rt, "nothing")
			}
			return rapid.SampledFrom(held).Draw(rt, "handle")
		}
		same := func(what string, at, got, want uint64) {
			rt.Helper()
			mine := seen{got, m.Length(at), m.Input().Offset, m.Input().Length, m.Output().Offset, m.Output().Length, m.Error(), m.Room(), bytes.Clone(m.Block(at))}
			their := seen{want, k.call("length", at), k.call("input_offset"), k.call("input_length"), k.call("output_offset"), k.call("output_length"), k.call("error_get"), k.call("memory_bytes"), nil}
			if their.length > 0 {
				view, _ := module.Memory().Read(uint32(at), uint32(their.length))
				their.block = view
			}
			if !bytes.Equal(mine.block, their.block) {
				rt.Fatalf("%s: the %d bytes at %d differ", what, their.length, at)
			}
			if mine.block, their.block = nil, nil; mine.answer != their.answer || mine.length != their.length || mine.input != their.input ||
				mine.inputLength != their.inputLength || mine.output != their.output || mine.outputLength != their.outputLength || mine.err != their.err || mine.room != their.room {
				rt.Fatalf("%s at %d: here %+v, in the SDK %+v", what, at, mine, their)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"alloc": func(rt *rapid.T) {
				n := rapid.OneOf(rapid.Uint64Range(0, 300), rapid.Uint64Range(0, 70_000), rapid.Just(uint64(1<<20))).Draw(rt, "length")
				at := m.Alloc(n)
				if there := k.call("alloc", n); there != 0 {
					// The kernel leaves what was in a block that is used again; we do as well.
					if same("alloc", at, at, there); at != 0 {
						held = append(held, at)
					}
				} else if at != 0 {
					rt.Fatalf("alloc(%d) is %d here and nothing in the SDK", n, at)
				}
			},
			"free": func(rt *rapid.T) {
				at := handle(rt)
				m.Free(at)
				same("free", at, 0, k.call("free", at))
			},
			"store": func(rt *rapid.T) {
				at := handle(rt)
				n := m.Length(at)
				if n < 8 {
					return
				}
				at += rapid.Uint64Range(0, n-8).Draw(rt, "offset")
				v := rapid.Uint64().Draw(rt, "value")
				if !m.Store64(at, v) {
					rt.Fatalf("a store inside a block is refused")
				}
				k.call("store_u64", at, v)
				m.Store8(at+3, 7)
				k.call("store_u8", at+3, 7)
				one, ok := m.Load64(at)
				if theirs := k.call("load_u64", at); !ok || one != theirs || uint64(m.Load8(at+3)) != k.call("load_u8", at+3) {
					rt.Fatalf("at %d: %x here, %x in the SDK", at, one, theirs)
				}
			},
			"input_set": func(rt *rapid.T) {
				e := kernel.Extent{Offset: handle(rt), Length: rapid.Uint64Range(0, 80_000).Draw(rt, "length")}
				m.SetInput(e)
				same("input_set", e.Offset, 0, k.call("input_set", e.Offset, e.Length))
			},
			"output_set": func(rt *rapid.T) {
				e := kernel.Extent{Offset: handle(rt), Length: rapid.Uint64Range(0, 80_000).Draw(rt, "length")}
				m.SetOutput(e)
				same("output_set", e.Offset, 0, k.call("output_set", e.Offset, e.Length))
			},
			"error_set": func(rt *rapid.T) {
				at := handle(rt)
				m.SetError(at)
				same("error_set", at, 0, k.call("error_set", at))
			},
			"reset": func(rt *rapid.T) {
				if rapid.IntRange(0, 7).Draw(rt, "really") != 0 {
					return
				}
				m.Reset()
				same("reset", 0, 0, k.call("reset"))
				held = held[:0]
			},
			"": func(*rapid.T) {
				held = slices.Compact(slices.Sorted(slices.Values(held)))
				if len(held) > 0 {
					same("look", held[len(held)-1], 0, 0)
				}
			},
		})
	})
}

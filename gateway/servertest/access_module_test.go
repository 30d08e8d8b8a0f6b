package servertest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// step is one host call of a scripted capability: strings are pointer and length, integers are
// themselves.
type step struct {
	call string
	args []any
}

func do(call string, args ...any) step { return step{call, args} }

// action is a scripted capability: it makes its calls in order and answers what the last one
// answered, as a number: 0 or the errno. With register it answers the result register instead,
// when the last call succeeded. Without steps it answers 0.
type action struct {
	ref      string
	reach    abi.Reach
	steps    []step
	register bool
	shape    func(*abi.Descriptor)
}

// Where things are in a script's memory.
const (
	errnoAt  = 1024 // errno n as four bytes of JSON at 4n
	stringAt = 2048
	bufferAt = 32 << 10
)

// script is a biome of scripted capabilities. more changes the manifest before it is embedded.
func script(name string, more func(*abi.Manifest), actions ...action) []byte {
	b := wasmtest.New()
	host := map[string]uint32{"output": 0, "result_read": 0}
	for _, a := range actions {
		for _, s := range a.steps {
			host[s.call] = 0
		}
	}
	for _, fn := range slices.Sorted(maps.Keys(host)) {
		host[fn] = b.Host(fn)
	}
	at := int32(stringAt)
	place := func(s string) []byte {
		b.Data(at, []byte(s))
		code := wasmtest.Cat(wasmtest.I32Const(at), wasmtest.I32Const(int32(len(s))))
		at += int32(len(s))
		if at > bufferAt {
			panic("the script's strings do not fit")
		}
		return code
	}
	var provides []abi.Descriptor
	for i, a := range actions {
		export := fmt.Sprintf("do%d", i)
		b.ExportFunc(export, b.Func(nil, wasmtest.Types(wasmtest.I32), wasmtest.Types(wasmtest.I64), a.body(host, place)))
		d := wasmtest.Provide(a.ref, export, a.reach)
		if a.shape != nil {
			a.shape(&d)
		}
		provides = append(provides, d)
	}
	for n := range 64 {
		b.Data(errnoAt+int32(4*n), fmt.Appendf(nil, "%-4d", n))
	}
	m := wasmtest.Manifest(name, provides...)
	if more != nil {
		more(m)
	}
	return b.Memory(1).ExportMemory().Manifest(m).Bytes()
}

func (a *action) body(host map[string]uint32, place func(string) []byte) []byte {
	const i64Sub, i64LtS, i64Mul4 = 0x7d, 0x53, 2
	var code []byte
	add := func(parts ...[]byte) { code = wasmtest.Cat(code, wasmtest.Cat(parts...)) }
	for _, s := range a.steps {
		fn, _ := abi.FunctionByName(s.call)
		p := 0
		for _, arg := range s.args {
			switch v := arg.(type) {
			case string:
				add(place(v))
				p += 2
			case int:
				if fn.Params[p].Type == abi.I64 {
					add(wasmtest.I64Const(int64(v)))
				} else {
					add(wasmtest.I32Const(int32(v)))
				}
				p++
			}
		}
		if p != len(fn.Params) {
			panic(fmt.Sprintf("%s has %d parameters, %d were given", s.call, len(fn.Params), p))
		}
		add(wasmtest.Call(host[s.call]), wasmtest.LocalSet(0))
	}
	// The number: 0, or the negated result, as an index into the table of errnos.
	number := wasmtest.Cat(
		wasmtest.I64Const(0), wasmtest.LocalGet(0), wasmtest.Op(i64Sub, wasmtest.OpI32WrapI64),
		wasmtest.I32Const(0),
		wasmtest.LocalGet(0), wasmtest.I64Const(0), wasmtest.Op(i64LtS, wasmtest.OpSelect),
		wasmtest.I32Const(i64Mul4), wasmtest.Op(0x74), wasmtest.I32Const(errnoAt), wasmtest.Op(wasmtest.OpI32Add),
		wasmtest.I32Const(4), wasmtest.Call(host["output"]), wasmtest.Op(wasmtest.OpI32WrapI64),
	)
	if a.register {
		add(wasmtest.LocalGet(0), wasmtest.I64Const(0), wasmtest.Op(i64LtS),
			wasmtest.If(number, wasmtest.Op(wasmtest.OpReturn)),
			wasmtest.I32Const(bufferAt),
			wasmtest.I32Const(bufferAt), wasmtest.I32Const(0), wasmtest.I32Const(bufferAt-1), wasmtest.Call(host["result_read"]), wasmtest.Op(wasmtest.OpI32WrapI64),
			wasmtest.Call(host["output"]), wasmtest.Op(wasmtest.OpI32WrapI64))
		return code
	}
	add(number)
	return code
}

// requires is a manifest's requirement of capabilities.
func requires(refs ...abi.CapabilityRef) func(*abi.Manifest) {
	return func(m *abi.Manifest) { m.Requires.Capabilities = refs }
}

// admit uploads a module, installs it in environments and lets user:alice do everything of it
// there.
func admit(g *servertest.Gateway, biome string, module []byte, environments []string, install map[string]any) {
	g.T.Helper()
	g.Upload(module).Want(201)
	g.Install(biome, environments, install).Want(200)
	for _, ref := range refsOf(g, biome) {
		for _, e := range environments {
			g.Grant("user:alice", ref, e)
		}
	}
}

// refsOf lists what the newest upload of a biome provides.
func refsOf(g *servertest.Gateway, biome string) []string {
	g.T.Helper()
	var uploads struct {
		Items []struct {
			Manifest struct {
				Provides []struct{ Ref string } `json:"provides"`
			} `json:"manifest"`
		} `json:"items"`
	}
	g.Control("GET", "/v1/biomes/"+biome+"/versions", nil).Want(200).JSON(&uploads)
	var refs []string
	for _, p := range uploads.Items[len(uploads.Items)-1].Manifest.Provides {
		refs = append(refs, p.Ref)
	}
	return refs
}

// errno reads a script's answer.
func errno(r servertest.Response) abi.Errno {
	r.T.Helper()
	var n abi.Errno
	r.Want(200).JSON(&n)
	return n
}

// row is the audit row of the invocation that an answer is of.
func row(g *servertest.Gateway, r servertest.Response) auditRow {
	g.T.Helper()
	id := r.Header.Get("Ecotone-Invocation")
	if id == "" {
		g.T.Fatalf("an answer without an invocation: %s", r.Body)
	}
	return rowByID(g, id)
}

// auditRow is the part of a row that tests look at.
type auditRow struct {
	ID       string `json:"auditId"`
	Decision *struct {
		Subject     struct{ Kind, ID string }
		User        *struct{ Kind, ID string }
		CallerKind  string
		Origin      string `json:"callerOrigin"`
		Space       string
		Environment string
		Capability  string
		Session     string
		Parent      string `json:"parentInvocationId"`
		InputDigest string
		Verdict     string
		Code        abi.Code
		ReachCheck  string
		Reach       abi.Reach
		Digest      string
		Generation  uint64 `json:"policyGeneration"`
		Grants      []string
	} `json:"decision"`
	Ended *struct {
		Outcome string
		Code    abi.Code
		Label   abi.Classification
		Lines   []struct {
			Function string
			Target   string
			Code     abi.Code
		}
	} `json:"ended"`
	Raw json.RawMessage `json:"-"`
}

func rowByID(g *servertest.Gateway, id string) auditRow {
	g.T.Helper()
	var out auditRow
	r := g.Control("GET", "/v1/audit/"+id, nil).Want(200)
	r.JSON(&out)
	out.Raw = r.Body
	return out
}

// lineCode is the code of a host call in a row's receipt; false when the call is not there.
func (r auditRow) lineCode(function string) (abi.Code, bool) {
	if r.Ended != nil {
		for _, l := range r.Ended.Lines {
			if l.Function == function {
				return l.Code, true
			}
		}
	}
	return "", false
}

// started runs fn and returns how many guests it started.
func started(g *servertest.Gateway, fn func()) int64 {
	before := g.Server.Started()
	fn()
	return g.Server.Started() - before
}

// A script does what it says: the helper of the other tests.
func TestScript(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "script", script("script", nil,
		action{ref: "s:a.nothing@1", reach: abi.ReachOwner},
		action{ref: "s:a.absent@1", reach: abi.ReachOwner, steps: []step{do("kv_get", "nokey")}},
		action{ref: "s:a.put@1", reach: abi.ReachOwner, steps: []step{do("kv_put", "key", `{"a":1}`)}},
		action{ref: "s:a.get@1", reach: abi.ReachOwner, steps: []step{do("kv_get", "key")}, register: true},
	), []string{"project"}, nil)
	s := g.Open("user:alice", "project", nil)
	for ref, want := range map[string]abi.Errno{"s:a.nothing@1": 0, "s:a.absent@1": abi.ENOENT, "s:a.put@1": 0} {
		if got := errno(s.Invoke(ref, none)); got != want {
			t.Errorf("%s: %d, want %d", ref, got, want)
		}
	}
	if r := s.Invoke("s:a.get@1", none).Want(200); string(r.Body) != `{"a":1}` {
		t.Errorf("%s", r.Body)
	}
}

// nil2 is an empty input.
var none = map[string]any{}

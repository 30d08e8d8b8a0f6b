package extism

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// The interface has what its table has, and nothing else.
func TestEveryRowHasAHandler(t *testing.T) {
	if len(handlers) != len(abi.ExtismFunctions()) {
		t.Errorf("%d handlers, %d rows", len(handlers), len(abi.ExtismFunctions()))
	}
	for i, d := range Doors() {
		row := &abi.ExtismFunctions()[i]
		if handlers[row.Name] == nil || d.Name != row.Name || len(d.Signature.Params) != len(row.Params) || d.Price != row.Price {
			t.Errorf("row %d, %s, is the door %+v", i, row.Name, d)
		}
	}
}

// Input, output and error are where the SDK puts them and takes them from.
func TestInputAndOutput(t *testing.T) {
	r := newRig(t, "what comes in")
	at, n := r.call("input_offset"), r.call("input_length")
	if r.get(at) != "what comes in" || n != 13 || at == 0 {
		t.Fatalf("the input at %d is %q", at, r.get(at))
	}
	for i := range n {
		if byte(r.call("input_load_u8", i)) != "what comes in"[i] {
			t.Fatalf("byte %d of the input", i)
		}
	}
	if r.call("input_load_u8", n) != 0 || r.call("input_load_u64", 5) == 0 {
		t.Error("what is read at the input's end")
	}
	out := r.put("first")
	r.call("output_set", out, 5)
	r.call("store_u8", out, 'F') // what lies there at the end counts
	if o := r.end(); o.Err != nil || string(o.Output) != `"First"` {
		t.Errorf("%v, %s", o.Err, o.Output)
	}

	r = newRig(t, "")
	if r.call("input_offset") != 0 || r.call("input_length") != 0 {
		t.Error("an empty input is somewhere")
	}
	if o := r.end(); o.Err != nil || string(o.Output) != `""` {
		t.Errorf("without an output: %v, %s", o.Err, o.Output)
	}

	r = newRig(t, "")
	r.call("error_set", r.put("went wrong\n"))
	if o := r.end(); o.Err == nil || o.Err.Code != abi.CodeGuestError || *o.Guest != (boundary.GuestError{Code: errorCode, Message: `went wrong\n`}) {
		t.Errorf("with an error: %v, %+v", o.Err, o.Guest)
	}
	for _, back := range []func(*rig){func(r *rig) { r.call("error_set", 0) }, func(r *rig) { r.call("reset") }} {
		r = newRig(t, "")
		r.call("error_set", r.put("went wrong"))
		back(r)
		if o := r.end(); o.Err != nil {
			t.Errorf("an error that was taken back: %v", o.Err)
		}
	}
	r = newRig(t, "", func(s *authority.Spec) { s.Limits[abi.LimitOutputBytes] = 8 })
	r.call("output_set", r.put("more than eight"), 15)
	if o := r.end(); o.Err == nil || o.Err.Code != abi.CodeOutputLimit {
		t.Errorf("over the limit: %v", o.Err)
	}
}

func TestConfig(t *testing.T) {
	r := newRig(t, "")
	name := r.put("greeting")
	if got := r.get(r.call("config_get", name)); got != "hello" {
		t.Errorf("%q", got)
	}
	for _, absent := range []uint64{r.put("empty"), r.put("Greeting"), 0, 1 << 40} {
		if got := r.call("config_get", absent); got != 0 {
			t.Errorf("what was not set is at %d", got)
		}
	}
	if o := r.end(); o.Receipt.HostCalls != 0 || len(r.out.asked) != 0 {
		t.Errorf("configuration is asked for outside: %v", r.out.asked)
	}
}

// PF-E2: variables are keys, counted, listed and priced as a biome's are.
func TestVariables(t *testing.T) {
	r := newRig(t, "")
	if got := r.call("var_get", r.put("count")); got != 0 {
		t.Errorf("what nobody set is at %d", got)
	}
	r.call("var_set", r.put("count"), r.put("one"))
	name := r.put("count")
	if got := r.get(r.call("var_get", name)); got != "one" {
		t.Errorf("%q", got)
	}
	if r.call("length", name) != 0 {
		t.Error("a name is not given back")
	}
	r.call("var_set", r.put("count"), 0)
	r.call("var_set", r.put("count"), 0)
	if want := []string{"get extism/var/count", "put extism/var/count", "get extism/var/count", "delete extism/var/count", "delete extism/var/count"}; !slices.Equal(r.out.asked, want) {
		t.Errorf("%q", r.out.asked)
	}
	o := r.end()
	if o.Receipt.HostCalls != 5 || len(o.Receipt.Lines) != 5 || o.Receipt.Lines[0].Code != abi.CodeKeyNotFound || o.Receipt.Lines[1].Target != "extism/var/count" || !o.Receipt.Intent {
		t.Errorf("%+v", o.Receipt)
	}
	r = newRig(t, "")
	r.out.err = abi.Errorf(abi.CodeKVFull, "full")
	if r.call("var_set", r.put("a"), r.put("b")); r.inv.Over() == nil {
		t.Fatal("a value that was not kept is no failure")
	}
	r.over(abi.CodeKVFull)
}

func TestRequests(t *testing.T) {
	r := newRig(t, "")
	r.out.answer = boundary.Result{Body: []byte("the body"), Meta: []byte(`{"status":418,"headers":{"x-a":"1, 2"}}`)}
	if r.call("http_status_code") != 0 || r.call("http_headers") != 0 {
		t.Error("there is a response before there is a request")
	}
	request, body := r.put(`{"url":"https://a.example/?q=<&>","method":"put","headers":{"accept":"*/*"}}`), r.put("sent")
	if got := r.get(r.call("http_request", request, body)); got != "the body" {
		t.Errorf("%q", got)
	}
	if r.call("http_status_code") != 418 || r.get(r.call("http_headers")) != `{"x-a":"1, 2"}` || r.call("length", request) != 0 || r.call("length", body) != 0 {
		t.Error("the response is another, or what was sent is not given back")
	}
	r.out.answer.Body = nil
	if got := r.call("http_request", r.put(`{"url":"https://a.example/","method":null,"headers":null}`), 0); got != 0 {
		t.Errorf("an empty body is at %d", got)
	}
	if want := []string{"PUT https://a.example/?q=<&> accept=*/* sent", "GET https://a.example/"}; !slices.Equal(r.out.asked, want) {
		t.Errorf("%q", r.out.asked)
	}
	if o := r.end(); o.Receipt.HTTPRequests != 2 || o.Receipt.Lines[0].Target != "https://a.example/" {
		t.Errorf("%+v", o.Receipt.Lines)
	}

	for document, code := range map[string]abi.Code{
		``: abi.CodeInvalidJSON, `{`: abi.CodeInvalidJSON, `{"url":"https://a/","url":"https://b/"}`: abi.CodeInvalidJSON,
		`{"url":"https://a/","headers":{"a":1}}`: abi.CodeInvalidJSON, `{"url":["https://a/"]}`: abi.CodeInvalidJSON,
		`{"url":"https://a/","secret":"key"}`: abi.CodeUnknownField, `{"url":"/a"}`: abi.CodeURLInvalid, `{}`: abi.CodeURLInvalid,
	} {
		r := newRig(t, "")
		r.call("http_request", r.put(document), 0)
		if o := r.inv.Over(); o == nil || o.Code != code || len(r.out.asked) != 0 {
			t.Errorf("%s: %v, %v", document, o, r.out.asked)
		}
	}
	// S9: reach is the host function's, whatever was linked.
	r = newRig(t, "", func(s *authority.Spec) { s.Reach = abi.ReachOwner })
	r.call("http_request", r.put(`{"url":"https://a.example/"}`), 0)
	if r.over(abi.CodeReachCeiling); len(r.out.asked) != 0 {
		t.Errorf("%v", r.out.asked)
	}
	if lines := r.end().Receipt.Lines; len(lines) != 1 || lines[0].Function != "http_fetch" || lines[0].Code != abi.CodeReachCeiling {
		t.Errorf("%+v", lines)
	}
}

func TestLog(t *testing.T) {
	r := newRig(t, "")
	for _, name := range []string{"log_trace", "log_debug", "log_info", "log_warn", "log_error"} {
		at := r.put(name)
		if r.call(name, at); r.call("length", at) != 0 {
			t.Errorf("%s does not give the message back", name)
		}
	}
	r.call("log_info", 12345)
	if r.call("get_log_level") != 0 {
		t.Error("something is not worth logging")
	}
	o := r.end()
	var got []string
	for _, l := range o.Receipt.Logs {
		got = append(got, l.Level.String()+" "+l.Text)
	}
	if want := []string{"debug log_trace", "debug log_debug", "info log_info", "warn log_warn", "error log_error", "info "}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// hostile are arguments that name nothing, or too much.
var hostile = []uint64{0, 1, 64, 65, 76, 77, 1 << 20, 1<<20 - 1, 1<<20 - 7, 1<<32 - 1, 1 << 32, 1 << 63, math.MaxUint64 - 7, math.MaxUint64}

// Hostile handles and addresses, of every function: nothing outside is asked for in a plug-in's name that it
// did not say, and there is no fault of the host. Where it ends the plug-in, there is a code for it.
func TestHostileArguments(t *testing.T) {
	may := []abi.Code{abi.CodeGuestTrap, abi.CodeInvalidJSON, abi.CodeKeyInvalid, abi.CodeMemoryLimit}
	for i := range abi.ExtismFunctions() {
		fn := &abi.ExtismFunctions()[i]
		t.Run(fn.Name, func(t *testing.T) {
			for _, a := range hostile {
				for _, b := range hostile {
					r := newRig(t, "input")
					r.put("a block")
					args := make([]uint64, max(len(fn.Params), 1))
					for i := range args {
						args[i] = []uint64{a, b}[i]
					}
					r.call(fn.Name, args...)
					if over := r.inv.Over(); over != nil && !slices.Contains(may, over.Code) {
						t.Fatalf("%s%v: %v", fn.Name, args, over)
					}
					o := r.end()
					if o.Err != nil && o.Err.Code == abi.CodeInternal {
						t.Fatalf("%s%v: %v", fn.Name, args, o.Err)
					}
					for _, asked := range r.out.asked {
						if asked != "get "+varPrefix && asked != "put "+varPrefix && asked != "delete "+varPrefix && !strings.HasSuffix(asked, "input") {
							t.Errorf("%s%v asks for %q", fn.Name, args, asked)
						}
					}
				}
			}
		})
	}
}

// S10, S11: what the host does is paid, and runs out.
func TestWorkIsPaid(t *testing.T) {
	r := newRig(t, "", func(s *authority.Spec) { s.Limits[abi.LimitFuel] = 3_000_000 })
	for i := 0; r.inv.Over() == nil; i++ {
		if i > 100_000 {
			t.Fatal("nothing runs out")
		}
		r.call("free", r.call("alloc", 8))
	}
	r.over(abi.CodeFuelExhausted)

	r = newRig(t, "")
	before := r.inv.Over()
	for r.call("alloc", 1<<20) != 0 {
	}
	if r.inv.Over() != before {
		t.Errorf("running out of memory ends the plug-in: %v", r.inv.Over())
	}
	r = newRig(t, strings.Repeat("x", 100<<10), func(s *authority.Spec) { s.Limits[abi.LimitMemoryBytes] = 64 << 10 })
	r.call("input_length")
	r.over(abi.CodeMemoryLimit)
}

// S13: an initialiser has no input and no configuration; what it keeps is known.
func TestInitialiser(t *testing.T) {
	limits := abi.DefaultLimits()
	r := &rig{t: t, inv: boundary.NewTrial(&limits), ctx: context.Background()}
	r.inv.Enter(boundary.PhaseInitialize)
	if r.call("input_length") != 0 || r.get(r.put("kept")) != "kept" || r.call("get_log_level") != 0 {
		t.Error("an initialiser has an input, or no memory")
	}
	if asked := r.inv.Asked(); len(asked) == 0 || slices.Contains(asked, "get_log_level") {
		t.Errorf("it asked %v", asked)
	}
	r.call("config_get", 0)
	r.over(abi.CodeInitializeFailed)
	for _, name := range []string{"var_get", "http_request", "log_info"} {
		r := &rig{t: t, inv: boundary.NewTrial(&limits), ctx: context.Background()}
		r.inv.Enter(boundary.PhaseInitialize)
		at := r.put(`{"url":"https://a.example/"}`)
		r.call(name, []uint64{at, 0}[:len(byName[name].Signature.Params)]...)
		r.over(abi.CodeInitializeFailed)
	}
}

// What an initialiser made is there for the capability, and the input with it.
func TestInitialisersBlocksStay(t *testing.T) {
	r := &rig{t: t, ctx: context.Background()}
	spec := newRig(t, "").inv.Authority()
	r.inv = boundary.New(boundary.Spec{Authority: spec, Input: []byte("input")})
	r.inv.Enter(boundary.PhaseInitialize)
	at := r.put("kept")
	r.inv.Enter(boundary.PhaseRun)
	if r.get(r.call("input_offset")) != "input" || r.get(at) != "kept" {
		t.Error("something was lost")
	}
}

// FuzzCalls makes any sequence of calls with any arguments: it ends with an outcome that is no fault.
func FuzzCalls(f *testing.F) {
	f.Add([]byte{0, 0, 16, 1, 4, 77, 2, 13, 77, 4})
	f.Fuzz(func(t *testing.T, calls []byte) {
		r := newRig(t, "fuzzed", func(s *authority.Spec) { s.Limits[abi.LimitMemoryBytes] = 256 << 10 })
		r.out.answer = boundary.Result{Body: []byte("body"), Meta: []byte(`{"status":200,"headers":{}}`)}
		next := func() byte {
			if len(calls) == 0 {
				return 0
			}
			b := calls[0]
			calls = calls[1:]
			return b
		}
		for len(calls) > 0 && r.inv.Over() == nil {
			fn := &abi.ExtismFunctions()[int(next())%len(abi.ExtismFunctions())]
			args := make([]uint64, max(len(fn.Params), 1))
			for i := range args {
				if k := next(); k < 32 {
					args[i] = hostile[int(k)%len(hostile)]
				} else {
					args[i] = uint64(k) * uint64(next())
				}
			}
			r.call(fn.Name, args...)
		}
		if o := r.end(); o.Err != nil && o.Err.Code == abi.CodeInternal {
			t.Fatal(o.Err, o.Err.Cause)
		}
	})
}

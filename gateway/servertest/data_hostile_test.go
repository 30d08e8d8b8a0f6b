package servertest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
	"github.com/ecotone-dev/ecotone/testdata/hostile"
)

// Every hostile module of the invoke stage ends, over HTTP, as its row
// says; the next invocation of the same capability works; another organisation's invocations all
// succeed meanwhile, and the collector finishes; nothing of the guest's own text or of the
// host's is in the answer. Promises 3 and 5. PF-D1, PF-H4, PF-E2, PF-E4, PF-D19, H14
func TestDataHostile(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("compiles some seventy modules")
	}
	g, decent := echoing(t)
	next := neighbour(t, g)
	lowerLimits(t, g, "sandbox", map[string]int64{"wall": 120_000, "fuel": abi.OperatorMax}) // time ends what is endless, on a slow machine too
	s := g.Open("user:alice", "sandbox", map[string]any{"files": true})
	for _, m := range hostile.At(hostile.Invoke) {
		t.Run(m.Name, func(t *testing.T) {
			g.Upload(m.Bytes()).Want(201)
			g.Grant("user:alice", string(m.Ref()), "sandbox")
			defer next.meanwhile(t)()
			for _, step := range append(m.Calls, m.Calls[0]) {
				var header []string
				if step.Code == abi.CodeDeadline {
					header = []string{"Ecotone-Deadline-Ms", "400"}
				}
				input := step.Input
				if input == "" {
					input = "{}"
				}
				r := s.Invoke(string(m.Ref()), []byte(input), header...)
				if r.Header.Get("Content-Type") == "application/json" != (step.Code == "") || r.Header.Get("Set-Cookie") != "" {
					t.Errorf("headers of the guest's making: %v", r.Header)
				}
				row := g.Row(r.Header.Get("Ecotone-Invocation"))
				ended, _ := row["ended"].(map[string]any)
				if step.Code == "" {
					if r.Status != 200 || string(r.Body) != step.Output || ended["outcome"] != "completed" {
						t.Errorf("%d %.300s, want %.300s; %v", r.Status, r.Body, step.Output, ended)
					}
					continue
				}
				r.Refused(step.Code)
				wellFormed(t, r)
				for _, word := range []string{"wasm", "INJECTED", "evil", "$", "func[", "goroutine"} {
					if strings.Contains(string(r.Body), word) {
						t.Errorf("%q in %s", word, r.Body)
					}
				}
				if ended["code"] != string(step.Code) {
					t.Errorf("the row says %v", ended)
				}
			}
			decent.Invoke("test:echo.do@1", map[string]int{"n": 1}).Want(200)
		})
	}
}

// PF-H13: a refused host call is an errno to the guest; it goes on and answers what it has.
func TestDataPartialAnswer(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admitAll(t, g, scripted(w.Manifest("partial"), scripts{
		"run": {
			{"http_fetch", `{"method":"GET","url":"http://127.0.0.1:1/"}`, ""},
			{"secret_hmac", "none", "message"},
			{"file_read", "a", 0, 10},
			{"kv_get", "none"},
			{"kv_put", "k", "v"},
			{"kv_get", "k"},
		},
	}), "project", nil)
	s := g.Open("user:alice", "project", nil)
	got := errnosOf(s.Invoke("test:partial.run@1", map[string]int{}))
	want := []abi.Errno{abi.EDENIED, abi.ESECRET, abi.EDENIED, abi.ENOENT, 0, 0}
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("call %d: errno %d, want %d", i, got[i], want[i])
		}
	}
}

// H14, PF-H2: what comes back is judged by the capability's own schema, and not passed on when it
// does not satisfy it.
func TestDataOutputSchema(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	p := w.Provide("test:judged.do@1", "run", abi.ReachOwner)
	p.OutputSchema = json.RawMessage(`{"type":"object","properties":{"a":{"const":1}},"required":["a"],"additionalProperties":false}`)
	g.Upload(w.Echo(w.Manifest("judged", p))).Want(201)
	g.Grant("user:alice", "test:judged.do@1", "sandbox")
	s := g.Open("user:alice", "sandbox", nil)
	for input, good := range map[string]bool{
		`{"a":1}`: true, `{"a":2}`: false, `{"a":"canary"}`: false, `{"a":1,"b":"canary"}`: false, `["canary"]`: false, `"canary"`: false, `null`: false, `{}`: false,
	} {
		r := s.Invoke("test:judged.do@1", []byte(input))
		if good {
			r.Want(200)
			continue
		}
		if r.Refused(abi.CodeOutputInvalid); strings.Contains(string(r.Body), "canary") {
			t.Errorf("passed on: %s", r.Body)
		}
	}
}

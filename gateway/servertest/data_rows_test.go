package servertest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// What an invocation cost is in the answer and in its row: the same for the same input, failed or
// not, and nothing for what did not run.
func TestDataFuel(t *testing.T) {
	t.Parallel()
	g, s := echoing(t)
	admitAll(t, g, scripted(w.Manifest("mixed"), scripts{"fall": {{"kv_get", "k"}, {"trap"}}}), "sandbox", nil)
	seen := map[string]string{}
	for range 3 {
		for _, c := range []struct {
			ref, input string
			status     int
		}{{"test:echo.do@1", `{}`, 200}, {"test:echo.do@1", `"` + strings.Repeat("x", 20_000) + `"`, 200}, {"test:mixed.fall@1", `{}`, 502}} {
			r := s.Invoke(c.ref, []byte(c.input)).Want(c.status)
			fuel, key := r.Header.Get("Ecotone-Fuel"), c.ref+c.input
			ended := g.Row(r.Header.Get("Ecotone-Invocation"))["ended"].(map[string]any)
			if fuel == "" || fuel != fmt.Sprintf("%.0f", ended["fuel"]) {
				t.Errorf("%s: %q in the answer, %v in the row", c.ref, fuel, ended["fuel"])
			}
			if seen[key] == "" {
				seen[key] = fuel
			}
			if seen[key] != fuel {
				t.Errorf("%s: %s fuel, and %s", c.ref, fuel, seen[key])
			}
		}
	}
	if r := s.Invoke("test:nothing.do@1", map[string]int{}); r.Header.Get("Ecotone-Fuel") != "" {
		t.Error("fuel for nothing")
	}
}

// X48, PF-G1, PF-G2, PF-H8: mixed calls at once have exactly one row each, which says how it
// ended and is whole.
func TestDataOneRowPerCall(t *testing.T) {
	t.Parallel()
	g, s := echoing(t)
	admitAll(t, g, scripted(w.Manifest("mixed"), scripts{"fall": {{"trap"}}, "write": {{"kv_put", "k", "v"}}}), "sandbox", nil)
	shaped := w.Provide("test:shaped.do@1", "run", abi.ReachOwner)
	shaped.InputSchema = []byte(`{"type":"object"}`)
	g.Upload(w.Echo(w.Manifest("shaped", shaped))).Want(201)
	g.Grant("user:alice", "test:shaped.do@1", "sandbox")
	g.Upload(w.Echo(w.Manifest("ungranted", w.Provide("test:ungranted.do@1", "run", abi.ReachOwner)))).Want(201)
	classes := []struct {
		ref, input string
		header     []string
		code       abi.Code
		verdict    string
		outcome    string
	}{
		{"test:echo.do@1", `{}`, nil, "", "allow", "completed"},
		{"test:mixed.write@1", `{}`, nil, "", "allow", "completed"},
		{"test:mixed.fall@1", `{}`, nil, abi.CodeGuestTrap, "allow", "failed"},
		{"test:shaped.do@1", `[]`, nil, abi.CodeInputSchema, "deny", ""},
		{"test:echo.do@1", `{`, nil, abi.CodeInvalidJSON, "deny", ""},
		{"test:ungranted.do@1", `{}`, nil, abi.CodeMissingGrant, "deny", ""},
		{"test:nothing.do@1", `{}`, nil, abi.CodeMissingGrant, "deny", ""},
		{"test:echo.do@1", `{}`, []string{"Ecotone-Deadline-Ms", "x"}, abi.CodeInvalidRequest, "", ""},
		{"test:echo.do@1", `{}`, []string{"Authorization", "Bearer no"}, abi.CodeUnauthenticated, "", ""},
		{"test:echo.do@1", `{}`, []string{"Content-Type", "text/plain"}, abi.CodeUnsupportedMedia, "", ""},
	}
	const each = 30
	before := allRows(g)
	all := together(each*len(classes), func(i int) servertest.Response {
		c := classes[i%len(classes)]
		return s.Invoke(c.ref, []byte(c.input), c.header...)
	})
	if n := allRows(g) - before; n != len(all) {
		t.Errorf("%d calls, %d rows", len(all), n)
	}
	seen := map[string]bool{}
	for i, r := range all {
		c := classes[i%len(classes)]
		if r.Code() != c.code {
			t.Errorf("%s %s: %d %s", c.ref, c.input, r.Status, r.Body)
			continue
		}
		id := r.Header.Get("Ecotone-Invocation")
		if c.verdict == "" {
			row := rowOfRefusal(t, g, r)
			id = row["auditId"].(string)
			if row["kind"] != "refused" || row["refused"].(map[string]any)["code"] != string(c.code) {
				t.Errorf("%s: %v", c.code, row)
			}
		} else {
			row := g.Row(id)
			decision, _ := row["decision"].(map[string]any)
			ended, _ := row["ended"].(map[string]any)
			code := decision["code"]
			if c.outcome != "" {
				code = ended["code"]
			}
			if decision["verdict"] != c.verdict || fmt.Sprint(ended["outcome"]) != or(c.outcome) || fmt.Sprint(code) != or(string(c.code)) {
				t.Errorf("%s: %v", c.ref, row)
			}
		}
		if seen[id] {
			t.Errorf("two answers have the row %s", id)
		}
		seen[id] = true
	}
}

// or is how a missing member prints.
func or(s string) string {
	if s == "" {
		return "<nil>"
	}
	return s
}

// inOrg does as the operator in another organisation.
func inOrg(g *servertest.Gateway, org, method, path string, body any, header ...string) servertest.Response {
	return g.Control(method, path+"?org="+org, body, header...)
}

// S7, PF-E7, PF-E10: a client that reads its answer byte by byte, and 64 sessions of two
// organisations meanwhile: every answer is exactly its own, and nobody waits for the slow one.
func TestDataSlowReader(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Control("POST", "/v1/orgs", map[string]string{"id": "other"}).Want(201)
	module := bigEcho("echo")
	for _, org := range []string{"default", "other"} {
		inOrg(g, org, "POST", "/v1/biomes", module, "Content-Type", "application/wasm").Want(201)
	}
	var sessions []*servertest.Session
	for i := range 64 {
		org, subject := []string{"default", "other"}[i%2], fmt.Sprintf("user:u%d", i)
		inOrg(g, org, "POST", "/v1/grants", map[string]any{"subject": subject, "capability": "test:echo.do@1", "environment": "environment:sandbox"}).Want(201)
		sessions = append(sessions, g.Open(subject, "sandbox", map[string]any{"org": org}))
	}
	canary := func(i, size int) string {
		word := fmt.Sprintf("canary-%d-", i)
		return `"` + strings.Repeat(word, size/len(word)) + `"`
	}
	slow := canary(1000, 900<<10)
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.Invoke, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	_ = conn.SetDeadline(time.Now().Add(90 * time.Second))
	if _, err := io.WriteString(conn, request(g, sessions[0], slow)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // the answer waits in the server
	var wg sync.WaitGroup
	for i, s := range sessions {
		wg.Go(func() {
			for n := range 3 {
				want := canary(i, 1000+n*20_000)
				if r := s.Invoke("test:echo.do@1", []byte(want)); string(r.Body) != want {
					t.Errorf("session %d got %d %.60s…", i, r.Status, r.Body)
				}
			}
		})
	}
	res, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	buffer := make([]byte, 4<<10)
	for n := 0; ; n++ {
		k, err := res.Body.Read(buffer)
		got.Write(buffer[:k])
		if err != nil {
			break
		}
		if n < 50 {
			time.Sleep(10 * time.Millisecond)
		}
	}
	wg.Wait()
	if got.String() != slow {
		t.Errorf("the slow client got %d bytes of %d: %.60s…", got.Len(), len(slow), got.String())
	}
}

// bigEcho answers inputs of up to 1 MiB.
func bigEcho(name string) []byte {
	const at, size = 1 << 16, 1 << 20
	b := w.New()
	input, read, output := b.Host("input"), b.Host("result_read"), b.Host("output")
	b.Capability("run", w.Call(input), w.Op(w.OpDrop), w.I32Const(at),
		w.I32Const(at), w.I32Const(0), w.I32Const(size), w.Call(read), w.Op(w.OpI32WrapI64), w.Call(output), w.Op(w.OpI32WrapI64))
	return b.Memory(18).ExportMemory().Manifest(w.Manifest(name, w.Provide("test:"+name+".do@1", "run", abi.ReachOwner))).Bytes()
}

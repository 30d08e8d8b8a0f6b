package servertest_test

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// A call ends when its client goes away, and in the older version when it is cancelled by a notification: the
// invocation is cancelled, and proven to be.
func TestMCPCancel(t *testing.T) {
	t.Parallel()
	g, s := spinning(t, withMCP)
	lowerLimits(t, g, "sandbox", map[string]int64{"wall": 300_000}) // so that nothing else ends it
	for _, version := range mcpVersions {
		t.Run(version, func(t *testing.T) {
			c := connected(t, g.MCP, s.Token, version, nil)
			before, n := len(g.Rows("&kind=invocation")), g.Server.Started()
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "test__busy_spin__1", Arguments: map[string]any{}})
				done <- err
			}()
			newest(t, g, before, "running", func(map[string]any) bool { return g.Server.Started() > n })
			cancel()
			if err := <-done; err == nil {
				t.Error("it was answered")
			}
			row := newest(t, g, before, "ended", func(row map[string]any) bool { return row["ended"] != nil })
			if ended := row["ended"].(map[string]any); ended["code"] != "CANCELED" || row["cancel"] != "proven" {
				t.Errorf("the row says %v, %v", row["cancel"], ended)
			}
		})
	}
	t.Run("by notification alone", func(t *testing.T) {
		before, n := len(g.Rows("&kind=invocation")), g.Server.Started()
		answer := make(chan servertest.Response, 1)
		go func() { answer <- post(g, "", s.Token, older(`"x"`, "test__busy_spin__1", "{}", ""), olderVersion...) }()
		newest(t, g, before, "running", func(map[string]any) bool { return g.Server.Started() > n })
		other := g.Open("user:alice", "sandbox", nil)
		note := []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`)
		post(g, "", other.Token, note, olderVersion...).Want(202) // somebody else's id of the same name
		post(g, "", s.Token, []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"y"}}`), olderVersion...).Want(202)
		if g.Rows("&kind=invocation")[0]["ended"] != nil {
			t.Fatal("it was cancelled by somebody else")
		}
		post(g, "", s.Token, note, olderVersion...).Want(202)
		if r := <-answer; !bytes.Contains(r.Body, []byte(`CANCELED`)) {
			t.Errorf("it answers %s", r.Body)
		}
	})
}

// PF-D5: a deadline from any source wins, the shortest. Progress is told while it goes on.
func TestMCPDeadlineAndProgress(t *testing.T) {
	t.Parallel()
	g, s := spinning(t, withMCP)
	lowerLimits(t, g, "sandbox", map[string]int64{"wall": 300_000})
	var told atomic.Int64
	c := connected(t, g.MCP, s.Token, "2026-07-28", &sdk.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) { told.Add(1) },
	})
	p := &sdk.CallToolParams{Meta: sdk.Meta{"ecotone/deadlineMs": 1500}, Name: "test__busy_spin__1", Arguments: map[string]any{}}
	p.SetProgressToken("p")
	res, err := c.CallTool(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	refusedWith(t, res, abi.CodeDeadline)
	if told.Load() < 1 {
		t.Error("no progress was told")
	}
	m := connected(t, g.MCP+"/meta", s.Token, "2026-07-28", nil)
	refusedWith(t, call(t, m, "invoke", map[string]any{"ref": "test:busy.spin@1", "input": 1, "deadlineMs": 100}), abi.CodeDeadline)
}

// S6: an answer that is withheld is one constant result.
func TestMCPWithheld(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, withMCP)
	g.Upload(script("secret", nil, action{ref: "secret:a.read@1", reach: abi.ReachOwner, shape: func(d *abi.Descriptor) {
		d.OutputClassification = abi.Secret
	}}, action{ref: "secret:b.read@1", reach: abi.ReachOwner, steps: []step{do("kv_put", "k", `"v"`), do("kv_get", "k")}, shape: func(d *abi.Descriptor) {
		d.OutputClassification = abi.Secret
	}})).Want(201)
	for _, ref := range []string{"secret:a.read@1", "secret:b.read@1"} {
		g.Grant("user:alice", ref, "sandbox")
	}
	c := connected(t, g.MCP, g.Open("user:alice", "sandbox", map[string]any{"clearance": "internal"}).Token, "2026-07-28", nil)
	var first string
	for _, name := range []string{"secret__a_read__1", "secret__b_read__1"} {
		res := call(t, c, name, nil)
		d := refusedWith(t, res, abi.CodeClassificationFlow)
		if len(res.Meta) != 3 { // the invocation, the denial, the server
			t.Errorf("_meta says %v", res.Meta)
		}
		got := strings.ReplaceAll(textOf(t, res), d.AuditID, "ID")
		if first == "" {
			first = got
		}
		if got != first {
			t.Errorf("one world says %s, another %s", first, got)
		}
	}
}

// PF-H7: while the store is broken, or the catalogue, the face says so; it goes on, and is whole afterwards.
func TestMCPOutage(t *testing.T) {
	t.Parallel()
	g, d := onDisk(t, withMCP)
	g.Upload(w.Echo(w.Manifest("echo", w.Provide("test:echo.do@1", "run", abi.ReachOwner)))).Want(201)
	g.Grant("user:alice", "test:echo.do@1", "sandbox")
	s := g.Open("user:alice", "sandbox", nil)
	c := connected(t, g.MCP, s.Token, "2026-07-28", nil)
	m := connected(t, g.MCP+"/meta", s.Token, "2026-07-28", nil)
	works := func() {
		t.Helper()
		if res := call(t, c, "test__echo_do__1", map[string]int{"n": 1}); res.IsError {
			t.Errorf("it is refused: %s", textOf(t, res))
		}
		if names := toolNames(mcpTools(t, c)); len(names) != 1 {
			t.Errorf("the tools are %v", names)
		}
	}
	works()
	g.Catalogue.Stop()
	refusedWith(t, call(t, c, "test__echo_do__1", map[string]int{"n": 1}), abi.CodeUnclassified) // sandbox is a boundary
	if names := toolNames(mcpTools(t, c)); len(names) != 0 {
		t.Errorf("what would be denied is listed: %v", names)
	}
	if h := searched(t, m, map[string]any{"query": "echo"}); len(h.Hits) != 0 {
		t.Errorf("what would be denied is found: %v", h.refs())
	}
	g.Catalogue.Start()
	works()
	d.gone.Store(true)
	for range 3 { // whatever becomes of each, it is answered, and says what is the matter where something is
		for path, body := range map[string][]byte{"": older("1", "test__echo_do__1", "{}", ""), "/meta": []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)} {
			if r := post(g, path, s.Token, body, olderVersion...); r.Status != 200 && r.Status != 503 {
				t.Errorf("%s: %d %s", path, r.Status, r.Body)
			}
		}
	}
	d.gone.Store(false)
	soon(t, "it works again", func() bool {
		return post(g, "", s.Token, older("1", "test__echo_do__1", "{}", ""), olderVersion...).Status == 200
	})
	works()
}

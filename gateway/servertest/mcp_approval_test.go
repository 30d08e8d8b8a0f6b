package servertest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ecotone-dev/ecotone/abi"
)

// The walk of an agent, with the newer version's questions within a request: a client that knows an address and
// a token lists, calls, is denied with a reason that it can act on, asks for an approval, and its call succeeds,
// once, after an approver has approved it on the control plane. What its user says approves nothing.
func TestMCPApproval(t *testing.T) {
	t.Parallel()
	a := newAsking(t, withMCP)
	s := a.g.Open("user:bob", "project", nil)
	var asked []string
	approve := func(id string) { a.decide(a.approver, id, "approve").Want(200) }
	answers := []func(string) string{
		func(string) string { return "accept" }, // said too early: the call still waits
		func(id string) string { approve(id); return "accept" },
	}
	c := connected(t, a.g.MCP, s.Token, "2026-07-28", &sdk.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			asked = append(asked, r.Params.Message)
			if a.hits.Load() != 0 && len(asked) < 3 {
				t.Error("it ran before it was approved")
			}
			id := r.Params.Message[strings.LastIndex(r.Params.Message, "approve it: ")+len("approve it: "):][:26]
			action := answers[0](id)
			answers = answers[1:]
			return &sdk.ElicitResult{Action: action}, nil
		},
	})
	if all := mcpTools(t, c); len(all) != 0 {
		t.Fatalf("%v may be invoked", toolNames(all))
	}
	d := refusedWith(t, call(t, c, "ask__page_post__1", nil), abi.CodeMissingGrant)
	act := d.Suggestions[0]
	a.g.Grant(act.Subject, act.Capability, strings.TrimPrefix(act.Environment, "environment:"))
	if names := toolNames(mcpTools(t, c)); len(names) != 1 || names[0] != "ask__page_post__1" {
		t.Fatalf("the tools are %v", names)
	}
	res := call(t, c, "ask__page_post__1", nil)
	if text := textOf(t, res); res.IsError || text != `"from the origin"` {
		t.Fatalf("after the approval: %s", text)
	}
	if len(asked) != 2 || a.hits.Load() != 1 {
		t.Errorf("asked %d times, and run %d times", len(asked), a.hits.Load())
	}
	// The approval is used up: the same call again needs another.
	answers = []func(string) string{func(string) string { return "decline" }}
	refusedWith(t, call(t, c, "ask__page_post__1", nil), abi.CodeApprovalRequired)
	if a.hits.Load() != 1 {
		t.Error("one approval was used twice")
	}
	// PF-A22: what decides about approvals is not to be had with the session's token, here or elsewhere.
	for _, path := range []string{"/v1/approvals", "/v1/grants", "/v1/approve-grants"} {
		a.g.Do("GET", a.g.Admin+path, s.Token, nil).Refused(abi.CodeForbidden)
	}
}

// A client that cannot be asked, in either version, is told, and makes the same call again: while nobody decides
// it is told the same, once approved it has the answer, and after that it needs another approval. What somebody
// else, or another input, calls is another call.
func TestMCPApprovalByTheSameCall(t *testing.T) {
	t.Parallel()
	a := newAsking(t, withMCP)
	for _, shape := range []string{"", "/meta"} {
		for _, version := range mcpVersions {
			t.Run(version+shape, func(t *testing.T) {
				hits := a.hits.Load()
				s := a.g.Open("user:alice", "project", nil)
				c := connected(t, a.g.MCP+shape, s.Token, version, nil)
				again := func(c *sdk.ClientSession, input any) *sdk.CallToolResult {
					if shape == "" {
						return call(t, c, "ask__page_post__1", input)
					}
					return call(t, c, "invoke", map[string]any{"ref": "ask:page.post@1", "input": input})
				}
				input := map[string]any{"b": 2, "a": 1}
				first := again(c, input)
				refusedWith(t, first, abi.CodeApprovalRequired)
				id, _ := first.Meta["ecotone/invocation"].(string)
				if got := again(c, input).Meta["ecotone/invocation"]; got != id {
					t.Errorf("%v waits beside %s", got, id)
				}
				if got := again(c, map[string]any{"a": 1, "b": 3}).Meta["ecotone/invocation"]; got == id {
					t.Error("another input is the same call")
				}
				other := connected(t, a.g.MCP+shape, a.g.Open("user:alice", "project", nil).Token, version, nil)
				if got := again(other, input).Meta["ecotone/invocation"]; got == id {
					t.Error("another session's call is the same")
				}
				a.decide(a.approver, id, "approve").Want(200)
				if res := again(c, input); res.IsError || textOf(t, res) != `"from the origin"` || res.Meta["ecotone/invocation"] != id {
					t.Fatalf("after the approval: %s", textOf(t, res))
				}
				if got := a.hits.Load() - hits; got != 1 {
					t.Errorf("it ran %d times", got)
				}
				next := again(c, input)
				refusedWith(t, next, abi.CodeApprovalRequired)
				if next.Meta["ecotone/invocation"] == id {
					t.Error("an approval is used twice")
				}
				a.decide(a.approver, next.Meta["ecotone/invocation"].(string), "reject").Want(200)
				refusedWith(t, again(c, input), abi.CodeApprovalRejected)
			})
		}
	}
}

// S17: the state that a client carries is of one caller, one capability and one input, and nobody else's.
func TestMCPStateIsBound(t *testing.T) {
	t.Parallel()
	a := newAsking(t, withMCP)
	asking := &sdk.ClientOptions{
		MultiRoundTrip:     &sdk.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) { return nil, nil },
	}
	c := connected(t, a.g.MCP, a.g.Open("user:alice", "project", nil).Token, "2026-07-28", asking)
	other := connected(t, a.g.MCP, a.g.Open("user:alice", "project", nil).Token, "2026-07-28", asking)
	params := func(input any, state string) *sdk.CallToolParams {
		return &sdk.CallToolParams{Name: "ask__page_post__1", Arguments: input, RequestState: state}
	}
	first, err := c.CallTool(t.Context(), params(map[string]int{"n": 1}, ""))
	if err != nil || !first.NeedsInput() || first.RequestState == "" {
		t.Fatalf("%+v %v", first, err)
	}
	id := first.Meta["ecotone/invocation"].(string)
	a.decide(a.approver, id, "approve").Want(200)
	state := first.RequestState
	for name, try := range map[string]func() (*sdk.CallToolResult, error){
		"another input": func() (*sdk.CallToolResult, error) {
			return c.CallTool(t.Context(), params(map[string]int{"n": 2}, state))
		},
		"another caller": func() (*sdk.CallToolResult, error) {
			return other.CallTool(t.Context(), params(map[string]int{"n": 1}, state))
		},
		"another tag": func() (*sdk.CallToolResult, error) {
			return c.CallTool(t.Context(), params(map[string]int{"n": 1}, state[:len(state)-2]+"AA"))
		},
		"another id": func() (*sdk.CallToolResult, error) {
			return c.CallTool(t.Context(), params(map[string]int{"n": 1}, "01J00000000000000000000000"+state[26:]))
		},
		"another capability": func() (*sdk.CallToolResult, error) {
			p := params(map[string]int{"n": 1}, state)
			p.Name = "ask__page_other__1"
			return c.CallTool(t.Context(), p)
		},
	} {
		if res, err := try(); err == nil || !strings.Contains(err.Error(), "requestState") {
			t.Errorf("with %s: %+v, %v", name, res, err)
		}
	}
	for range 2 { // an answer that was lost can be had again
		res, err := c.CallTool(t.Context(), params(map[string]int{"n": 1}, state))
		if err != nil || res.IsError || textOf(t, res) != `"from the origin"` {
			t.Fatalf("%+v %v", res, err)
		}
	}
	if a.hits.Load() != 1 {
		t.Errorf("it ran %d times", a.hits.Load())
	}
	// Whose session is closed has nothing any more.
	a.g.Control("DELETE", "/v1/sessions/"+a.g.Row(id)["decision"].(map[string]any)["session"].(string), nil).Want(http.StatusOK)
	if res, err := c.CallTool(t.Context(), params(map[string]int{"n": 1}, state)); err == nil {
		t.Errorf("a closed session has %+v", res)
	}
}

package servertest_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// A client that knows only an address and a token lists what it may invoke, calls it, and is denied with a
// reason that it can act on; what it is denied it may do once that is done. In both versions of the protocol.
func TestMCPDirect(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, withMCP)
	g.Upload(script("kb", nil,
		action{ref: "kb:page.read@1", reach: abi.ReachOwner, shape: closedInput},
		action{ref: "kb:page.write@1", reach: abi.ReachOwner, shape: func(d *abi.Descriptor) {
			closedInput(d)
			d.SideEffects, d.RiskTier = "writes a page", abi.RiskHigh
		}},
	)).Want(201)
	g.Install("kb", []string{"project"}, nil).Want(200)
	g.Grant("user:alice", "kb:page.read@1", "project")
	s := g.Open("user:alice", "project", nil)
	for _, version := range mcpVersions {
		t.Run(version, func(t *testing.T) {
			c := connected(t, g.MCP, s.Token, version, nil)
			if got := c.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("%s is spoken", got)
			}
			all := mcpTools(t, c)
			if names := toolNames(all); !slices.Equal(names, []string{"kb__page_read__1"}) {
				t.Fatalf("the tools are %v", names)
			}
			checkTool(t, all[0])
			res := call(t, c, "kb__page_read__1", map[string]int{"n": 1})
			if text := textOf(t, res); res.IsError || strings.TrimSpace(text) != "0" {
				t.Errorf("it answers %q", text)
			}
			if newer := version == "2026-07-28"; newer != (res.StructuredContent != nil) { // the older one has objects only
				t.Errorf("structured: %v", res.StructuredContent)
			}
			id, _ := res.Meta["ecotone/invocation"].(string)
			if res.Meta["ecotone/classification"] != "public" || rowByID(g, id).Decision.Verdict != "allow" {
				t.Errorf("_meta is %v", res.Meta)
			}

			for _, said := range []string{ // H21: what was asked of what, by whom, by which right, under which version, and what it cost
				"callerOrigin", "subject", "capability", "inputDigest", "digest", "grants", "checks", "outcome", "outputBytes", "durationMs", "fuel", "peakMemory", "hostCalls",
			} {
				if raw := rowByID(g, id).Raw; !bytes.Contains(raw, []byte(`"`+said+`"`)) {
					t.Errorf("the row has no %s: %s", said, raw)
				}
			}
			// H15: the model chose, and is told where it was wrong.
			if d := refusedWith(t, call(t, c, "kb__page_read__1", map[string]string{"n": "one"}), abi.CodeInputSchema); d.Pointer != "/n" {
				t.Errorf("it is at %q", d.Pointer)
			}

			d := refusedWith(t, call(t, c, "kb__page_write__1", map[string]int{"n": 1}), abi.CodeMissingGrant)
			if len(d.Reasons) == 0 || len(d.Suggestions) == 0 || d.Suggestions[0].Kind != "request-grant" || d.AuditID == "" {
				t.Fatalf("nobody can act on %+v", d)
			}
			act := d.Suggestions[0]
			grant := g.Grant(act.Subject, act.Capability, strings.TrimPrefix(act.Environment, "environment:"))
			if res := call(t, c, "kb__page_write__1", map[string]int{"n": 1}); res.IsError {
				t.Errorf("it is still denied: %s", textOf(t, res))
			}
			g.Control("DELETE", "/v1/grants/"+grant, nil).Want(200)
		})
	}
}

func checkTool(t *testing.T, tool *sdk.Tool) {
	t.Helper()
	for _, text := range []string{tool.Title, tool.Description, tool.Annotations.Title} {
		if !strings.HasPrefix(text, "[untrusted text from biome kb ") {
			t.Errorf("it is not marked: %q", text)
		}
	}
	a := tool.Annotations
	if !a.ReadOnlyHint || a.DestructiveHint == nil || *a.DestructiveHint || a.OpenWorldHint == nil || *a.OpenWorldHint {
		t.Errorf("the annotations are %+v", a)
	}
	raw, _ := json.Marshal(tool.InputSchema)
	var schema struct {
		Type       string
		Properties map[string]any
	}
	if json.Unmarshal(raw, &schema) != nil || schema.Type != "object" || schema.Properties["n"] == nil {
		t.Errorf("the input schema is %s", raw)
	}
}

// S19: without a listener of its own the face is there in development only, beside the control plane, under the
// same guard: a request through a proxy is refused.
func TestMCPInDevelopment(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, servertest.Dev)
	if g.MCP != g.Admin+"/mcp" {
		t.Fatalf("it is at %q", g.MCP)
	}
	g.Upload(wasmtest.Echo(wasmtest.Manifest("echo", wasmtest.Provide("test:echo.do@1", "run", abi.ReachOwner)))).Want(201)
	c := connected(t, g.MCP, g.Dev, "2026-07-28", nil)
	if names := toolNames(mcpTools(t, c)); !slices.Equal(names, []string{"test__echo_do__1"}) {
		t.Errorf("the tools are %v", names)
	}
	body := older("1", "test__echo_do__1", `{"n":1}`, "")
	post(g, "", g.Dev, body, append([]string{"X-Forwarded-For", "10.0.0.1"}, olderVersion...)...).Refused(abi.CodeForwardedRefused)
	post(g, "", g.Dev, body, append([]string{"Origin", "http://evil.example"}, olderVersion...)...).Refused(abi.CodeOriginRefused)
	post(g, "", "", body).Refused(abi.CodeUnauthenticated)
	g.Control("GET", "/v1/biomes", nil).Want(200) // the control plane is where it was

	plain := servertest.Start(t)
	if plain.MCP != "" {
		t.Errorf("it is at %q", plain.MCP)
	}
	plain.Do("POST", plain.Admin+"/mcp", plain.Operator, body).Refused(abi.CodeNotFound)
}

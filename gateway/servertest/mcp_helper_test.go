package servertest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/problem"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// The versions of the protocol that are spoken.
var mcpVersions = []string{"2026-07-28", "2025-11-25"}

// withMCP gives a gateway the face for agents, on a listener of its own.
func withMCP(o *server.Options) { o.MCPListen = "127.0.0.1:0" }

// bearing sends a session's token with each request.
type bearing struct{ token string }

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// connected is the protocol's own client, of a session's.
func connected(t *testing.T, endpoint, token, version string, options *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, options)
	s, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: endpoint, HTTPClient: &http.Client{Transport: bearing{token}}, DisableStandaloneSSE: true, MaxRetries: -1,
	}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("the client does not connect: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// mcpTools lists all pages.
func mcpTools(t *testing.T, s *sdk.ClientSession) []*sdk.Tool {
	t.Helper()
	var out []*sdk.Tool
	for tool, err := range s.Tools(context.Background(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, tool)
	}
	return out
}

func toolNames(all []*sdk.Tool) []string {
	out := []string{}
	for _, t := range all {
		out = append(out, t.Name)
	}
	return out
}

// call calls a tool and fails the test on a fault of the protocol.
func call(t *testing.T, s *sdk.ClientSession, name string, arguments any) *sdk.CallToolResult {
	t.Helper()
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return res
}

func textOf(t *testing.T, res *sdk.CallToolResult) string {
	t.Helper()
	if len(res.Content) != 1 {
		t.Fatalf("%d pieces of content", len(res.Content))
	}
	text, ok := res.Content[0].(*sdk.TextContent)
	if !ok {
		t.Fatalf("the content is %T", res.Content[0])
	}
	return text.Text
}

// denialOf is the denial that a result is, which it says as text and in _meta.
func denialOf(t *testing.T, res *sdk.CallToolResult) problem.Document {
	t.Helper()
	if !res.IsError {
		t.Fatalf("it is no refusal: %s", textOf(t, res))
	}
	var said, meta problem.Document
	if err := json.Unmarshal([]byte(textOf(t, res)), &said); err != nil {
		t.Fatalf("%v in %s", err, textOf(t, res))
	}
	raw, err := json.Marshal(res.Meta["ecotone/denial"])
	if err == nil {
		err = json.Unmarshal(raw, &meta)
	}
	if err != nil || meta.Code != said.Code || meta.AuditID != said.AuditID {
		t.Errorf("_meta says %s, the text %s", raw, textOf(t, res))
	}
	return said
}

func refusedWith(t *testing.T, res *sdk.CallToolResult, code abi.Code) problem.Document {
	t.Helper()
	d := denialOf(t, res)
	if d.Code != code {
		t.Fatalf("%s where %s was expected: %s", d.Code, code, textOf(t, res))
	}
	return d
}

// saidBy decodes the structured content.
func saidBy(t *testing.T, res *sdk.CallToolResult, v any) {
	t.Helper()
	if res.IsError {
		t.Fatalf("refused: %s", textOf(t, res))
	}
	raw, err := json.Marshal(res.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
}

// post sends a body to the face as it is.
func post(g *servertest.Gateway, path, token string, body []byte, header ...string) servertest.Response {
	g.T.Helper()
	return g.Do("POST", g.MCP+path, token, body, append([]string{"Accept", "application/json, text/event-stream"}, header...)...)
}

package servertest_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ecotone-dev/ecotone/abi"
)

// The command line as a server on standard input and output: what the server says, in both versions and both
// shapes, an approval within one request included, and one refusal for a token that is none.
func TestMCPOverStdio(t *testing.T) {
	t.Parallel()
	a := newAsking(t, withMCP)
	path := filepath.Join(t.TempDir(), "ecotone")
	if out, err := exec.Command("go", "build", "-o", path, "../../cmd/ecotone").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	start := func(token, version string, options *sdk.ClientOptions, args ...string) (*sdk.ClientSession, error) {
		cmd := exec.CommandContext(t.Context(), path, append([]string{"mcp"}, args...)...)
		cmd.Env = []string{"ECOTONE_MCP=" + a.g.MCP, "ECOTONE_TOKEN=" + token}
		c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, options)
		return c.Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	}
	s := a.g.Open("user:alice", "project", nil)
	for _, version := range mcpVersions {
		c, err := start(s.Token, version, &sdk.ClientOptions{
			ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				id := r.Params.Message[strings.LastIndex(r.Params.Message, "approve it: ")+len("approve it: "):][:26]
				a.decide(a.approver, id, "approve").Want(200)
				return &sdk.ElicitResult{Action: "accept"}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if names := toolNames(mcpTools(t, c)); len(names) != 1 || names[0] != "ask__page_post__1" {
			t.Errorf("%s: the tools are %v", version, names)
		}
		res := call(t, c, "ask__page_post__1", nil)
		if version == "2025-11-25" {
			refusedWith(t, res, abi.CodeApprovalRequired)
			a.decide(a.approver, res.Meta["ecotone/invocation"].(string), "approve").Want(200)
			res = call(t, c, "ask__page_post__1", nil)
		}
		if res.IsError || textOf(t, res) != `"from the origin"` {
			t.Errorf("%s: %s", version, textOf(t, res))
		}
		refusedWith(t, call(t, c, "ask__page_none__1", nil), abi.CodeMissingGrant)
		if err := c.Close(); err != nil {
			t.Errorf("%s: %v", version, err)
		}
		m, err := start(s.Token, version, nil, "--meta")
		if err != nil {
			t.Fatal(err)
		}
		if names := toolNames(mcpTools(t, m)); len(names) != 6 {
			t.Errorf("%s: the tools are %v", version, names)
		}
		if err := m.Close(); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
	if a.hits.Load() != 2 {
		t.Errorf("it ran %d times", a.hits.Load())
	}
	if _, err := start("eco_s_none", "2025-11-25", nil); err == nil || !strings.Contains(err.Error(), string(abi.CodeUnauthenticated)) {
		t.Errorf("a token that is none: %v", err)
	}
}

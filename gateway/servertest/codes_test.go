package servertest_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/host/files"
)

// Codes that no other test of a whole server reaches. TestMain fails when a code of the catalogue is
// left (X47).

// linesOf are the codes of the calls to a host function in an invocation's receipt, in order.
func linesOf(g *servertest.Gateway, r servertest.Response, function string) []abi.Code {
	g.T.Helper()
	var out []abi.Code
	if e := row(g, r).Ended; e != nil {
		for _, l := range e.Lines {
			if l.Function == function {
				out = append(out, l.Code)
			}
		}
	}
	return out
}

// M1 to M7: each way in which a file operation is refused has a code of its own in the receipt.
func TestCodesOfFiles(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	create, mkdir := do("file_create", "a", "aa aa"), do("file_create", "d/e", "1")
	cases := []struct {
		name  string
		steps []step
		want  abi.Code
	}{
		{"outside", []step{do("file_read", "../a", 0, 10)}, abi.CodePathInvalid},
		{"unread", []step{create, do("file_copy", "a", "b"), do("file_write", "b", "x")}, abi.CodeReadRequired},
		{"full", []step{mkdir, do("file_remove", "d")}, abi.CodeDirectoryNotEmpty},
		{"directory", []step{mkdir, do("file_copy", "d", "c")}, abi.CodeNotRegular},
		{"nowhere", []step{create, do("file_edit", "a", "zz", "b", 0)}, abi.CodeEditNoMatch},
		{"twice", []step{create, do("file_edit", "a", "aa", "b", 0)}, abi.CodeEditAmbiguous},
		{"nothing", []step{create, do("file_edit", "a", "", "b", 0)}, abi.CodeEditEmpty},
		{"same", []step{create, do("file_edit", "a", "aa aa", "aa aa", 0)}, abi.CodeEditIdentical},
		{"pattern", []step{do("file_grep", "(", "**", 10)}, abi.CodePatternInvalid},
	}
	var actions []action
	for _, c := range cases {
		actions = append(actions, action{ref: "codes:" + c.name + ".do@1", reach: abi.ReachOwner, steps: c.steps})
	}
	admit(g, "codes", script("codes", nil, actions...), []string{"project"}, nil)
	for i, c := range cases {
		s := g.Open("user:alice", "project", map[string]any{"files": true})
		r := s.Invoke(actions[i].ref, none)
		if got, want := errno(r), c.want.Errno(); got != want {
			t.Errorf("%s: errno %d, not %d", c.name, got, want)
		}
		last := c.steps[len(c.steps)-1].call
		if got := linesOf(g, r, last); len(got) == 0 || got[len(got)-1] != c.want {
			t.Errorf("%s: the receipt says %q of %s", c.name, got, last)
		}
	}
}

// M7: what was removed behind the gateway's back is not "changed".
func TestCodeDeletedSinceRead(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "gone", script("gone", nil,
		action{ref: "gone:a.make@1", reach: abi.ReachOwner, steps: []step{do("file_create", "a", "aa")}},
		action{ref: "gone:a.edit@1", reach: abi.ReachOwner, steps: []step{do("file_edit", "a", "aa", "b", 0)}},
	), []string{"project"}, nil)
	s := g.Open("user:alice", "project", map[string]any{"files": true})
	if got := errno(s.Invoke("gone:a.make@1", none)); got != 0 {
		t.Fatalf("errno %d", got)
	}
	if err := os.Remove(filepath.Join(g.Dir, "workspaces", s.Workspace, "a")); err != nil {
		t.Fatal(err)
	}
	r := s.Invoke("gone:a.edit@1", none)
	if got := linesOf(g, r, "file_edit"); errno(r) != abi.EDELETED || !slices.Equal(got, []abi.Code{abi.CodeDeletedSinceRead}) {
		t.Errorf("%s, %q", r.Body, got)
	}
}

// forgetful is a ledger that can be made unable to answer.
type forgetful struct {
	files.Ledger
	broken atomic.Bool
}

func (l *forgetful) Lookup(r files.Reader, path string) (string, files.Outcome) {
	if l.broken.Load() {
		return "", files.Unavailable
	}
	return l.Ledger.Lookup(r, path)
}

// M10: a ledger that cannot answer is not one that says "never read": nothing is written, and it is
// written again once the ledger answers.
func TestCodeLedgerUnavailable(t *testing.T) {
	t.Parallel()
	ledger := &forgetful{}
	g := servertest.Start(t, func(o *server.Options) {
		o.Ledger = func(l files.Ledger) files.Ledger { ledger.Ledger = l; return ledger }
	})
	admit(g, "led", script("led", nil,
		action{ref: "led:a.make@1", reach: abi.ReachOwner, steps: []step{do("file_create", "a", "1")}},
		action{ref: "led:a.write@1", reach: abi.ReachOwner, steps: []step{do("file_write", "a", "2")}},
	), []string{"project"}, nil)
	s := g.Open("user:alice", "project", map[string]any{"files": true})
	path := filepath.Join(g.Dir, "workspaces", s.Workspace, "a")
	holds := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("the file is %q, %v", got, err)
		}
	}
	if got := errno(s.Invoke("led:a.make@1", none)); got != 0 {
		t.Fatalf("errno %d", got)
	}
	ledger.broken.Store(true)
	r := s.Invoke("led:a.write@1", none)
	if got := linesOf(g, r, "file_write"); errno(r) != abi.EUNAVAIL || !slices.Equal(got, []abi.Code{abi.CodeLedgerUnavailable}) {
		t.Errorf("%s, %q", r.Body, got)
	}
	holds("1")
	ledger.broken.Store(false)
	if got := errno(s.Invoke("led:a.write@1", none)); got != 0 {
		t.Errorf("afterwards: errno %d", got)
	}
	holds("2")
}

// M58: a store that fails under a host call is an error inside, which the guest is told nothing of.
func TestCodeInternal(t *testing.T) {
	t.Parallel()
	g, disk := onDisk(t)
	admit(g, "inside", script("inside", nil, action{ref: "inside:k.get@1", reach: abi.ReachOwner, steps: []step{do("kv_get", "k")}}), []string{"project"}, nil)
	s := g.Open("user:alice", "project", nil)
	values := "kv-meta"
	disk.only.Store(&values)
	r := s.Invoke("inside:k.get@1", none)
	if got := linesOf(g, r, "kv_get"); errno(r) != abi.EINTERNAL || !slices.Equal(got, []abi.Code{abi.CodeInternal}) {
		t.Errorf("%s, %q", r.Body, got)
	}
	disk.only.Store(nil)
	if got := errno(s.Invoke("inside:k.get@1", none)); got != abi.ENOENT {
		t.Errorf("afterwards: errno %d", got)
	}
}

// M59, S15, S16: each way in which a request is refused or fails has a code of its own in the receipt.
func TestCodesOfRequests(t *testing.T) {
	t.Parallel()
	const value = "a-secret-that-comes-back-0001"
	var hits atomic.Int64
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		_, _ = w.Write([]byte(r.Header.Get("Authorization")))
	}))
	defer origin.Close()
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + nobody.Addr().String()
	if err := nobody.Close(); err != nil {
		t.Fatal(err)
	}
	g := servertest.Start(t, func(o *server.Options) { o.EgressLoopback = true })
	endpoint(g, "origin", origin.URL, nil)
	endpoint(g, "closed", closed, nil)
	putSecret(g, "token", value)
	g.Control("PUT", "/v1/environments/app", map[string]any{"limits": map[string]int64{"httpBytes": 1024}}, "If-Match",
		g.Control("GET", "/v1/environments/app", nil).Want(200).Header.Get("ETag")).Want(200)
	fetch := func(doc, body string) []step { return []step{do("http_fetch", doc, body)} }
	get := func(url, more string) []step { return fetch(`{"method":"GET","url":"`+url+`"`+more+`}`, "") }
	cases := []struct {
		name  string
		steps []step
		want  abi.Code
		ends  bool // the invocation, too
	}{
		{"fine", get(origin.URL+"/", ""), "", false},
		{"url", get("/relative", ""), abi.CodeURLInvalid, false},
		{"header", get(origin.URL+"/", `,"headers":{"Host":"evil.test"}`), abi.CodeHeaderRefused, false},
		{"large", fetch(`{"method":"POST","url":"`+origin.URL+`/"}`, strings.Repeat("x", 1025)), abi.CodeRequestTooLarge, false},
		{"closed", get(closed+"/", ""), abi.CodeUpstreamFailed, false},
		{"echo", get(origin.URL+"/", `,"secret":"token"`), abi.CodeSecretEchoed, true},
	}
	var actions []action
	for _, c := range cases {
		actions = append(actions, action{ref: "req:" + c.name + ".do@1", reach: abi.ReachIntegration, steps: c.steps})
	}
	admit(g, "req", script("req", func(m *abi.Manifest) {
		m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}, {Name: "closed", Why: "test"}}
		m.Requires.Secrets = []abi.Need{{Name: "token", Why: "test"}}
	}, actions...), []string{"app"}, map[string]any{"endpoints": []string{"origin", "closed"}, "secrets": []string{"token"}})
	s := g.Open("user:alice", "app", nil)
	for i, c := range cases {
		r := s.Invoke(actions[i].ref, none)
		if c.ends {
			r.Refused(c.want)
		} else if got := errno(r); c.want != "" && got != c.want.Errno() || c.want == "" && got != 0 {
			t.Errorf("%s: errno %d", c.name, got)
		}
		if got := linesOf(g, r, "http_fetch"); !slices.Equal(got, []abi.Code{c.want}) {
			t.Errorf("%s: the receipt says %q", c.name, got)
		}
		if strings.Contains(string(r.Body), value) {
			t.Errorf("%s: the secret is in the answer", c.name)
		}
	}
	if hits.Load() != 2 {
		t.Errorf("the origin saw %d requests, not two", hits.Load())
	}
}

// S4, X32: a chain of capabilities ends at the depth limit, and never comes back to itself.
func TestCodesOfChains(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Control("PUT", "/v1/environments/app", map[string]any{"limits": map[string]int64{"childDepth": 1}}, "If-Match",
		g.Control("GET", "/v1/environments/app", nil).Want(200).Header.Get("ETag")).Want(200)
	calls := func(ref string) []step { return []step{do("capability_invoke", ref, "{}")} }
	refs := []abi.CapabilityRef{"chain:one.do@1", "chain:two.do@1", "chain:three.do@1"}
	module := script("chain", requires(refs...),
		action{ref: "chain:one.do@1", reach: abi.ReachOwner, steps: calls("chain:two.do@1")},
		action{ref: "chain:two.do@1", reach: abi.ReachOwner, steps: calls("chain:three.do@1")},
		action{ref: "chain:three.do@1", reach: abi.ReachOwner, steps: calls("chain:one.do@1")},
	)
	admit(g, "chain", module, []string{"app", "project"}, map[string]any{"calls": refs})
	for environment, want := range map[string][]abi.Code{
		"app":     {"", abi.CodeChildDepth},     // two is reached, three is one too deep
		"project": {"", "", abi.CodeChildCycle}, // three would call one again
	} {
		r := g.Open("user:alice", environment, nil).Invoke("chain:one.do@1", none).Want(200)
		id := r.Header.Get("Ecotone-Invocation")
		for depth, code := range want {
			at := rowByID(g, id)
			got, made := at.lineCode("capability_invoke")
			if !made || got != code {
				t.Errorf("%s, depth %d: the receipt says %q, not %q", environment, depth, got, code)
			}
			var page struct{ Items []auditRow }
			g.Control("GET", "/v1/audit?parent="+id, nil).Want(200).JSON(&page)
			if last := depth == len(want)-1; last != (len(page.Items) == 0) {
				t.Fatalf("%s, depth %d: %d children", environment, depth, len(page.Items))
			} else if !last {
				id = page.Items[0].ID
			}
		}
	}
}

// A disabled biome is not invoked, however much was granted, and is again once it is enabled.
func TestCodeBiomeDisabled(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "off", script("off", nil, action{ref: "off:a.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	s := g.Open("user:alice", "project", nil)
	g.Control("POST", "/v1/biomes/off/disable", nil, "If-Match", g.Control("GET", "/v1/biomes/off", nil).Want(200).Header.Get("ETag")).Want(200)
	if n := started(g, func() { s.Invoke("off:a.do@1", none).Refused(abi.CodeBiomeDisabled) }); n != 0 {
		t.Errorf("%d guests were started", n)
	}
	g.Control("POST", "/v1/biomes/off/enable", nil, "If-Match", g.Control("GET", "/v1/biomes/off", nil).Want(200).Header.Get("ETag")).Want(200)
	s.Invoke("off:a.do@1", none).Want(200)
}

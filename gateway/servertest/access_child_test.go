package servertest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// childrenOf are the rows of the invocations that an invocation made.
func childrenOf(g *servertest.Gateway, parent servertest.Response) []auditRow {
	g.T.Helper()
	var page struct{ Items []auditRow }
	g.Control("GET", "/v1/audit?limit=100&kind=invocation&parent="+parent.Header.Get("Ecotone-Invocation"), nil).Want(200).JSON(&page)
	return page.Items
}

// X32: a child has its parent's context, an id of its own and its parent's named; a denial in
// the chain is found from the parent.
func TestChildLineage(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "callee", script("callee", nil, action{ref: "callee:a.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	admit(g, "caller", script("caller", requires("callee:a.do@1"),
		action{ref: "caller:a.do@1", reach: abi.ReachOwner, steps: []step{do("capability_invoke", "callee:a.do@1", "{}")}},
	), []string{"project"}, map[string]any{"calls": []string{"callee:a.do@1"}})
	s := g.Open("user:alice", "project", nil)
	r := s.Invoke("caller:a.do@1", none).Want(200)
	parent, children := row(g, r), childrenOf(g, r)
	if len(children) != 1 {
		t.Fatalf("%d children", len(children))
	}
	p, c := parent.Decision, children[0].Decision
	if c.Parent != parent.ID || children[0].ID == parent.ID || c.Environment != p.Environment || c.Space != p.Space || c.Subject != p.Subject ||
		c.Session != p.Session || c.Origin != "capability" || c.CallerKind != "biome" {
		t.Errorf("parent %+v\nchild %+v", p, c)
	}
	revokeAll(g, "user:alice", "callee:a.do@1")
	r = s.Invoke("caller:a.do@1", none)
	if errno(r) != abi.ECHILD {
		t.Errorf("%s", r.Body)
	}
	children = childrenOf(g, r)
	if len(children) != 1 || children[0].Decision.Verdict != "deny" || children[0].Decision.Code != abi.CodeMissingGrant || children[0].Decision.Parent != r.Header.Get("Ecotone-Invocation") {
		t.Errorf("%+v", children)
	}
}

// S4, PF-A15: a child needs all of: the install grant's calls, a grant of the calling biome, a
// grant of the subject, and a reach within the caller's and the environment's. Each is dropped
// in turn.
func TestChildNeedsEverything(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Upload(script("callee", nil,
		action{ref: "callee:owner.do@1", reach: abi.ReachOwner},
		action{ref: "callee:integration.do@1", reach: abi.ReachIntegration},
		action{ref: "callee:platform.do@1", reach: abi.ReachPlatform},
	)).Want(201)
	g.Install("callee", []string{"project"}, nil).Want(200)
	callees := refsOf(g, "callee")
	var calls []abi.CapabilityRef
	var actions []action
	for _, ref := range callees {
		calls = append(calls, abi.CapabilityRef(ref))
		g.Grant("user:alice", ref, "project")
		for _, reach := range []abi.Reach{abi.ReachOwner, abi.ReachIntegration} {
			actions = append(actions, action{ref: reach.String() + strings.Replace(ref, "callee", "", 1), reach: reach, steps: []step{do("capability_invoke", ref, "{}")}})
		}
	}
	admit(g, "caller", script("caller", requires(calls...), actions...), []string{"project"}, map[string]any{"calls": callees})
	s := g.Open("user:alice", "project", nil)
	for _, c := range []struct {
		name  string
		ref   string // caller's reach and callee's reach
		drop  func()
		want  abi.Code // of the child's denial; "" when it is not even a decision
		errno abi.Errno
	}{
		{"nothing is dropped", "owner:owner.do@1", nil, "", 0},
		{"the caller's reach", "owner:integration.do@1", nil, abi.CodeReachCeiling, abi.ECHILD},
		{"enough reach", "integration:integration.do@1", nil, "", 0},
		{"the environment's reach", "integration:platform.do@1", nil, abi.CodeReachCeiling, abi.ECHILD},
		{"the subject's grant", "owner:owner.do@1", func() { revokeAll(g, "user:alice", "callee:owner.do@1") }, abi.CodeMissingGrant, abi.ECHILD},
		{"it is back", "owner:owner.do@1", func() { g.Grant("user:alice", "callee:owner.do@1", "project") }, "", 0},
		{"the biome's grant", "owner:owner.do@1", func() { revokeAll(g, "biome:caller", "callee:owner.do@1") }, abi.CodeMissingGrant, abi.ECHILD},
		{"it is back", "owner:owner.do@1", func() { g.Grant("biome:caller", "callee:owner.do@1", "project") }, "", 0},
		{"the install's calls", "owner:owner.do@1", func() { g.Install("caller", []string{"project"}, nil).Want(200) }, "", abi.EDENIED},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.drop != nil {
				c.drop()
			}
			var r servertest.Response
			n := started(g, func() { r = s.Invoke(c.ref, none) })
			if got := errno(r); got != c.errno {
				t.Errorf("errno %d, not %d: %s", got, c.errno, row(g, r).Raw)
			}
			want := int64(1)
			if c.errno == 0 {
				want = 2
			}
			if n != want {
				t.Errorf("%d guests were started", n)
			}
			if children := childrenOf(g, r); c.want != "" && (len(children) != 1 || children[0].Decision.Code != c.want) {
				t.Errorf("children: %+v", children)
			}
		})
	}
}

// revokeAll revokes every grant of a subject for a capability.
func revokeAll(g *servertest.Gateway, subject, ref string) {
	g.T.Helper()
	var grants struct {
		Items []struct {
			ID      string
			Revoked any
		} `json:"items"`
	}
	g.Control("GET", "/v1/grants?subject="+subject+"&capability="+ref, nil).Want(200).JSON(&grants)
	if len(grants.Items) == 0 {
		g.T.Fatal("there is no such grant")
	}
	for _, i := range grants.Items {
		g.Control("DELETE", "/v1/grants/"+i.ID, nil).Want(200)
	}
}

// S4: what the user loses while the biome runs, the biome loses.
func TestRightRemovedMidSession(t *testing.T) {
	t.Parallel()
	var onRequest atomic.Pointer[func()]
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		(*onRequest.Load())()
		_, _ = w.Write([]byte(`"ok"`))
	}))
	defer origin.Close()
	g := servertest.Start(t, func(o *server.Options) { o.EgressLoopback = true })
	endpoint(g, "origin", origin.URL, nil)
	g.Upload(script("callee", nil, action{ref: "callee:a.do@1", reach: abi.ReachOwner})).Want(201)
	g.Install("callee", []string{"project"}, nil).Want(200)
	g.Upload(script("slow", func(m *abi.Manifest) {
		m.Requires.Capabilities = []abi.CapabilityRef{"callee:a.do@1"}
		m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}}
	}, action{ref: "slow:a.do@1", reach: abi.ReachIntegration, steps: []step{
		do("http_fetch", `{"method":"GET","url":"`+origin.URL+`/"}`, ""),
		do("capability_invoke", "callee:a.do@1", "{}"),
	}})).Want(201)
	g.Install("slow", []string{"project"}, map[string]any{"calls": []string{"callee:a.do@1"}, "endpoints": []string{"origin"}}).Want(200)
	g.Grant("user:alice", "slow:a.do@1", "project")
	g.Grant("user:alice", "callee:a.do@1", "project")
	s := g.Open("user:alice", "project", nil)

	calm := func() {}
	onRequest.Store(&calm)
	if r := s.Invoke("slow:a.do@1", none); errno(r) != 0 {
		t.Fatalf("%s", row(g, r).Raw)
	}
	revoke := func() { revokeAll(g, "user:alice", "callee:a.do@1") }
	onRequest.Store(&revoke)
	r := s.Invoke("slow:a.do@1", none)
	if got := errno(r); got != abi.ECHILD {
		t.Errorf("errno %d", got)
	}
	if c := childrenOf(g, r); len(c) != 1 || c[0].Decision.Code != abi.CodeMissingGrant {
		t.Errorf("%+v", c)
	}
	// The right to the running capability itself ends the run.
	revoke = func() { revokeAll(g, "user:alice", "slow:a.do@1") }
	onRequest.Store(&revoke)
	s.Invoke("slow:a.do@1", none).Refused(abi.CodeGrantRevoked)
}

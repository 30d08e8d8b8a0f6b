package servertest_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// grantWith gives user:alice a grant with obligations.
func grantWith(g *servertest.Gateway, ref, environment string, obligations ...map[string]any) servertest.Response {
	g.T.Helper()
	in := map[string]any{"subject": "user:alice", "capability": ref, "environment": "environment:" + environment}
	if len(obligations) > 0 {
		in["obligations"] = obligations
	}
	return g.Control("POST", "/v1/grants", in)
}

// oblige revokes what user:alice holds and grants it again with obligations.
func oblige(g *servertest.Gateway, ref string, obligations ...map[string]any) {
	g.T.Helper()
	revokeAll(g, "user:alice", ref)
	grantWith(g, ref, "project", obligations...).Want(201)
}

// X44: each kind of the closed set is enforced or refused when it is written, on a grant and on an install grant.
func TestObligationsAreEnforcedOrRefused(t *testing.T) {
	g := servertest.Start(t)
	admit(g, "echo", script("echo", nil, action{ref: "echo:a.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	revokeAll(g, "user:alice", "echo:a.do@1")
	for kind, code := range map[string]abi.Code{
		"require-runner-kind": abi.CodeUnsupportedRule, "max-cost-usd": abi.CodeUnsupportedRule,
		"data-residency": abi.CodeUnsupportedRule, "be-nice": abi.CodeInvalidRequest, "": abi.CodeInvalidRequest,
	} {
		grantWith(g, "echo:a.do@1", "project", map[string]any{"kind": kind}).Refused(code)
		g.Install("echo", []string{"project"}, map[string]any{"obligations": []map[string]any{{"kind": kind}}}).Refused(code)
	}
	grantWith(g, "echo:a.do@1", "project", map[string]any{"kind": "audit", "unknown": 1}).Refused(abi.CodeUnknownField)
	// What was asked for is shown with the grant.
	grantWith(g, "echo:a.do@1", "project", map[string]any{"kind": "audit"}, map[string]any{"kind": "redact-secrets"}).Want(201)
	var page struct {
		Items []struct {
			Obligations []struct{ Kind string }
			Revoked     any
		}
	}
	g.Control("GET", "/v1/grants?subject=user:alice", nil).Want(200).JSON(&page)
	shown := 0
	for _, item := range page.Items {
		shown += len(item.Obligations)
	}
	if shown != 2 {
		t.Errorf("%d obligations are shown, want 2: %+v", shown, page.Items)
	}
	g.Open("user:alice", "project", nil).Invoke("echo:a.do@1", []byte("{}")).Want(200)
}

// X44: max-duration-seconds ends an invocation, of the grant's capability and of what it calls.
func TestMaxDuration(t *testing.T) {
	g := servertest.Start(t)
	admit(g, "spin", spinner("spin"), []string{"project"}, nil)
	admit(g, "outer", script("outer", requires("spin:a.loop@1"),
		action{ref: "outer:a.call@1", reach: abi.ReachOwner, steps: []step{do("capability_invoke", "spin:a.loop@1", "{}")}}),
		[]string{"project"}, map[string]any{"calls": []string{"spin:a.loop@1"}})
	// Time that would outlast the test is what the environment gives; the obligation gives one second.
	lowerLimits(t, g, "project", map[string]int64{"wall": 600_000, "fuel": abi.OperatorMax})
	second := map[string]any{"kind": "max-duration-seconds", "seconds": 1}
	oblige(g, "spin:a.loop@1", second)
	alice := g.Open("user:alice", "project", nil)
	alice.Invoke("spin:a.loop@1", []byte("{}")).Refused(abi.CodeDeadline)
	// On the outer one only: its child has no more time than it has.
	oblige(g, "spin:a.loop@1")
	oblige(g, "outer:a.call@1", second)
	r := alice.Invoke("outer:a.call@1", []byte("{}"))
	for _, child := range childrenOf(g, r) {
		if child.Ended == nil || child.Ended.Code != abi.CodeDeadline {
			t.Errorf("the child ended with %+v", child.Ended)
		}
	}
	if n := len(childrenOf(g, r)); n != 1 {
		t.Errorf("%d children", n)
	}
	// On the install grant: for everyone.
	oblige(g, "outer:a.call@1")
	g.Install("spin", []string{"project"}, map[string]any{"obligations": []map[string]any{second}}).Want(200)
	alice.Invoke("spin:a.loop@1", []byte("{}")).Refused(abi.CodeDeadline)
}

// spinner is a biome whose capability never ends.
func spinner(name string) []byte {
	b := wasmtest.New().Memory(1).ExportMemory()
	b.Capability("loop", wasmtest.Loop(wasmtest.Br(0)), wasmtest.I32Const(0))
	return b.Manifest(wasmtest.Manifest(name, wasmtest.Provide(name+":a.loop@1", "loop", abi.ReachOwner))).Bytes()
}

// X25: restrict-output-classification is a clearance: what is above it is withheld by the constant document, on
// a grant and on an install grant; what is not passes.
func TestRestrictedOutput(t *testing.T) {
	g := servertest.Start(t)
	admit(g, "labelled", script("labelled", nil,
		action{ref: "labelled:a.low@1", reach: abi.ReachOwner, shape: func(d *abi.Descriptor) { d.OutputClassification = abi.Internal }},
		action{ref: "labelled:b.high@1", reach: abi.ReachOwner, shape: func(d *abi.Descriptor) { d.OutputClassification = abi.Secret }}),
		[]string{"project"}, nil)
	alice := g.Open("user:alice", "project", nil)
	alice.Invoke("labelled:a.low@1", []byte("{}")).Want(200)
	cap := map[string]any{"kind": "restrict-output-classification", "classification": "internal"}
	oblige(g, "labelled:a.low@1", cap)
	oblige(g, "labelled:b.high@1", cap)
	alice.Invoke("labelled:a.low@1", []byte("{}")).Want(200)
	r := alice.Invoke("labelled:b.high@1", []byte("{}")).Refused(abi.CodeClassificationFlow)
	if r.Header.Get("Ecotone-Classification") != "" || r.Header.Get("Ecotone-Fuel") != "" {
		t.Error("a withheld answer says something of itself")
	}
	oblige(g, "labelled:b.high@1")
	alice.Invoke("labelled:b.high@1", []byte("{}")).Want(200)
	g.Install("labelled", []string{"project"}, map[string]any{"obligations": []map[string]any{cap}}).Want(200)
	g.Open("user:alice", "project", nil).Invoke("labelled:b.high@1", []byte("{}")).Refused(abi.CodeClassificationFlow)
}

// X45: egress-allowlist narrows what the endpoints admit, with what is blocked taken out of it.
func TestEgressAllowlist(t *testing.T) {
	var hits atomic.Int64
	origin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer origin.Close()
	g := servertest.Start(t, func(o *server.Options) { o.EgressLoopback = true })
	endpoint(g, "origin", origin.URL, nil)
	fetch := func(path string) []step {
		return []step{do("http_fetch", `{"method":"GET","url":"`+origin.URL+path+`"}`, "")}
	}
	admit(g, "fetcher", script("fetcher", func(m *abi.Manifest) { m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}} },
		action{ref: "fetcher:a.in@1", reach: abi.ReachIntegration, steps: fetch("/v1/pages")},
		action{ref: "fetcher:b.out@1", reach: abi.ReachIntegration, steps: fetch("/v2/pages")},
		action{ref: "fetcher:c.blocked@1", reach: abi.ReachIntegration, steps: fetch("/v1/admin/x")},
	), []string{"project"}, map[string]any{"endpoints": []string{"origin"}})
	list := map[string]any{"kind": "egress-allowlist", "allow": []string{origin.URL + "/v1/**"}, "block": []string{origin.URL + "/v1/admin/**"}}
	for ref, lines := range map[string]abi.Code{"fetcher:a.in@1": "", "fetcher:b.out@1": abi.CodeEndpointRefused, "fetcher:c.blocked@1": abi.CodeEndpointRefused} {
		alice := g.Open("user:alice", "project", nil)
		before := hits.Load()
		alice.Invoke(ref, []byte("{}")).Want(200)
		if hits.Load() != before+1 {
			t.Fatalf("%s: without an obligation the endpoint does not admit it", ref)
		}
		oblige(g, ref, list)
		before = hits.Load()
		r := alice.Invoke(ref, []byte("{}")).Want(200)
		got := row(g, r).Ended.Lines
		if len(got) != 1 || got[0].Code != lines || (hits.Load() != before) != (lines == "") {
			t.Errorf("%s: %+v, %d requests left", ref, got, hits.Load()-before)
		}
	}
	grantWith(g, "fetcher:a.in@1", "org", map[string]any{"kind": "egress-allowlist", "allow": []string{"*"}}).Refused(abi.CodeUnsupportedRule)
}

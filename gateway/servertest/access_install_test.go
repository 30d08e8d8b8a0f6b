package servertest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// X26: the install grant's environments are asked before anything is dispatched.
func TestInstallAdmitsEnvironments(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Upload(script("only", nil, action{ref: "only:a.do@1", reach: abi.ReachOwner})).Want(201)
	g.Install("only", []string{"project"}, nil).Want(200)
	g.Grant("user:alice", "only:a.do@1", "project")
	g.Grant("user:alice", "only:a.do@1", "session")
	s := g.Open("user:alice", "session", nil)
	if n := started(g, func() {
		r := s.Invoke("only:a.do@1", none).Refused(abi.CodeEnvironmentNotGranted)
		var p struct{ AuditID string }
		r.JSON(&p)
		if rowByID(g, p.AuditID).Decision.Code != abi.CodeEnvironmentNotGranted {
			t.Error("the audit id does not find the denial")
		}
	}); n != 0 {
		t.Error("a guest was started")
	}
	g.Open("user:alice", "project", nil).Invoke("only:a.do@1", none).Want(200)
}

// PF-A16: of two biomes that provide the same capability the first stays, and keeps working.
func TestCollisionsAreRefused(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "first", script("first", nil, action{ref: "same:a.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	g.Upload(script("second", nil, action{ref: "same:a.do@1", reach: abi.ReachOwner})).Refused(abi.CodeCapabilityTaken)
	g.Control("GET", "/v1/biomes/second", nil).Refused(abi.CodeNotFound)
	r := g.Open("user:alice", "project", nil).Invoke("same:a.do@1", none).Want(200)
	var first struct{ Digest string }
	g.Control("GET", "/v1/biomes/first", nil).Want(200).JSON(&first)
	if row(g, r).Decision.Digest != first.Digest {
		t.Error("another biome answered")
	}
}

// PF-A2, PF-A21: what an install answers is what GET shows is what holds; the same install is
// the same policy.
func TestInstallEchoesWhatHolds(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Upload(script("callee", nil, action{ref: "callee:a.do@1", reach: abi.ReachOwner})).Want(201)
	g.Install("callee", []string{"project"}, nil).Want(200)
	g.Upload(script("caller", requires("callee:a.do@1"),
		action{ref: "caller:a.do@1", reach: abi.ReachOwner, steps: []step{do("capability_invoke", "callee:a.do@1", "{}")}})).Want(201)
	put := g.Install("caller", []string{"project"}, map[string]any{"calls": []string{"callee:a.do@1"}}).Want(200)
	get := g.Control("GET", "/v1/installs/caller", nil).Want(200)
	if string(put.Body) != string(get.Body) || put.Header.Get("ETag") != get.Header.Get("ETag") {
		t.Errorf("PUT %s\nGET %s", put.Body, get.Body)
	}
	var held struct{ Grants, Calls []string }
	get.JSON(&held)
	var grants struct {
		Items []struct{ ID, Subject string }
	}
	g.Control("GET", "/v1/grants?subject=biome:caller", nil).Want(200).JSON(&grants)
	if len(held.Grants) != 1 || len(grants.Items) != 1 || grants.Items[0].ID != held.Grants[0] || !slices.Equal(held.Calls, []string{"callee:a.do@1"}) {
		t.Errorf("%+v, %+v", held, grants)
	}
	// What the manifest does not ask for cannot be kept for it.
	var b struct{ Digest string }
	get.JSON(&b)
	g.Control("PUT", "/v1/installs/caller", map[string]any{"digest": b.Digest, "environments": []string{"environment:project"}, "calls": []string{"other:a.do@1"}},
		"If-Match", get.Header.Get("ETag")).Refused(abi.CodeInvalidRequest)
	if after := g.Control("GET", "/v1/installs/caller", nil).Want(200); string(after.Body) != string(get.Body) {
		t.Error("a refused install changed what holds")
	}
	// The same request again makes the same policy, save what says when it was made.
	again := g.Install("caller", []string{"project"}, map[string]any{"calls": []string{"callee:a.do@1"}}).Want(200)
	same := func(r servertest.Response) string {
		var m map[string]any
		r.JSON(&m)
		for _, k := range []string{"id", "grants", "revision", "createdAt"} {
			delete(m, k)
		}
		raw, _ := json.Marshal(m)
		return string(raw)
	}
	if same(put) != same(again) {
		t.Errorf("%s\n%s", put.Body, again.Body)
	}
}

// X4, X8, X10: what a manifest may not say is refused at upload, with the place, and no guest
// code runs, not even an initialiser's.
func TestUploadsThatReachTooFar(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	edit := func(from, to string) []byte {
		raw := wasmtest.MustJSON(wasmtest.Manifest("edited", wasmtest.Provide("edited:a.do@1", "do", abi.ReachOwner)))
		out := strings.Replace(string(raw), from, to, 1)
		if out == string(raw) {
			t.Fatalf("%s is not in %s", from, raw)
		}
		return wasmtest.New().Memory(1).ExportMemory().Manifest(out).Bytes()
	}
	environments := g.Control("GET", "/v1/environments", nil).Want(200).Body
	before := g.Server.Started()
	for _, c := range []struct {
		name, at string
		module   []byte
		code     abi.Code
	}{
		{"an environment", "/environments", edit(`{"name"`, `{"environments":["mine"],"name"`), abi.CodeUnknownField},
		{"an environment in a capability", "/provides/0/environment", edit(`"export"`, `"environment":"environment:org","export"`), abi.CodeUnknownField},
		{"a reach that is none", "/provides/0/reach", edit(`"reach":"owner"`, `"reach":"global"`), abi.CodeManifestInvalid},
		{"no reach", "/provides/0/reach", edit(`,"reach":"owner"`, ``), abi.CodeManifestInvalid},
		{"a classification that is none", "/provides/0/outputClassification", edit(`"outputClassification":"public"`, `"outputClassification":"open"`), abi.CodeManifestInvalid},
		{"a host function above the reach", "", script("liar", nil, action{ref: "liar:a.do@1", reach: abi.ReachOwner, steps: []step{do("http_fetch", "{}", "")}}), abi.CodeImportAboveReach},
		{"a platform function in an integration", "", script("liar", nil, action{ref: "liar:a.do@1", reach: abi.ReachIntegration, steps: []step{do("audit_query", "{}")}}), abi.CodeImportAboveReach},
	} {
		r := g.Upload(c.module)
		if r.Status != 422 || !strings.Contains(string(r.Body), `"`+string(c.code)+`"`) || !strings.Contains(string(r.Body), c.at) {
			t.Errorf("%s: %d %s", c.name, r.Status, r.Body)
		}
	}
	for _, r := range abi.Reaches() {
		g.Upload(script("ok-"+r.String(), nil, action{ref: "ok:" + r.String() + ".do@1", reach: r})).Want(201)
	}
	if g.Server.Started() != before {
		t.Error("an upload started a guest")
	}
	if after := g.Control("GET", "/v1/environments", nil).Want(200).Body; string(after) != string(environments) {
		t.Error("an upload changed the environments")
	}
}

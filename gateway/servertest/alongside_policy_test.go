package servertest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// versions uploads versions of a biome and answers their digests, in the order given. Each provides
// what its actions say; the last is the newest.
func versions(g *servertest.Gateway, name string, more func(*abi.Manifest), all ...[]action) []string {
	g.T.Helper()
	var out []string
	for _, actions := range all {
		var up struct{ Biome struct{ Digest string } }
		g.Upload(script(name, more, actions...)).Want(201).JSON(&up)
		out = append(out, up.Biome.Digest)
	}
	return out
}

// installDigest admits one digest, under the version there is.
func installDigest(g *servertest.Gateway, biome, digest string, environments []string, more map[string]any) servertest.Response {
	g.T.Helper()
	in := map[string]any{"digest": digest}
	for k, v := range more {
		in[k] = v
	}
	return g.Install(biome, environments, in)
}

// served is the digest that an invocation ran.
func served(g *servertest.Gateway, s *servertest.Session, ref string) string {
	g.T.Helper()
	return row(g, s.Invoke(ref, none).Want(200)).Decision.Digest
}

// X61: two majors in two versions live side by side: the newest install grant that provides a ref
// serves it, and what it does not provide the one beside it does, under its own terms. Each is taken away by
// itself; what both keep to call outlives either; disabling ends both.
func TestTwoDigestsSideBySide(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "callee", script("callee", nil, action{ref: "callee:a.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	const one, two, both = "side:a.do@1", "side:a.do@2", "side:b.do@1"
	relay := action{ref: both, reach: abi.ReachOwner, steps: []step{do("capability_invoke", "callee:a.do@1", "{}")}}
	v := versions(g, "side", requires("callee:a.do@1"),
		[]action{{ref: one, reach: abi.ReachOwner}, relay},
		[]action{{ref: two, reach: abi.ReachOwner}, relay})
	calls := map[string]any{"calls": []string{"callee:a.do@1"}}
	installDigest(g, "side", v[0], []string{"project", "sandbox"}, calls).Want(200)
	for _, ref := range []string{one, two, both} {
		g.Grant("user:alice", ref, "project")
		g.Grant("user:alice", ref, "sandbox")
	}
	s, trial := g.Open("user:alice", "project", nil), g.Open("user:alice", "sandbox", nil)
	s.Invoke(two, none).Refused(abi.CodeMissingGrant)
	if got := served(g, s, both); got != v[0] {
		t.Errorf("before: %s", got)
	}
	installDigest(g, "side", v[1], []string{"project"}, map[string]any{"alongside": true, "calls": calls["calls"]}).Want(200)
	hold := func(s *servertest.Session, want map[string]string) {
		t.Helper()
		for ref, digest := range want {
			if got := served(g, s, ref); got != digest {
				t.Errorf("%s is served by %s, not %s", ref, got, digest)
			}
		}
	}
	beside := map[string]string{one: v[0], two: v[1], both: v[1]}
	hold(s, beside)
	// In sandbox the upload is tried, and what it left out as it was installed there.
	hold(trial, map[string]string{one: v[0], two: v[1], both: v[1]})
	if got := errno(s.Invoke(both, none)); got != 0 {
		t.Errorf("the newer version may not call: errno %d", got)
	}
	standing := func() []string {
		var list struct{ Items []grant.Install }
		g.Control("GET", "/v1/installs", nil).Want(200).JSON(&list)
		var out []string
		for _, i := range list.Items {
			if i.Biome == "side" {
				out = append(out, i.Digest)
			}
		}
		return out
	}
	if got := standing(); len(got) != 2 || !slices.Contains(got, v[0]) || !slices.Contains(got, v[1]) {
		t.Errorf("there stand %q", got)
	}
	for _, d := range v {
		var i grant.Install
		g.Control("GET", "/v1/installs/side?digest="+d, nil).Want(200).JSON(&i)
		if i.Digest != d || i.Alongside != (d == v[1]) {
			t.Errorf("%s: %+v", d, i)
		}
	}
	g.Stop()
	g = servertest.Start(t, servertest.In(g.Dir))
	s.G, trial.G = g, g
	hold(s, beside)

	// The older one is taken away: its own capability goes, and what the newer one calls does not.
	tag := g.Control("GET", "/v1/installs/side?digest="+v[0], nil).Header.Get("ETag")
	g.Control("DELETE", "/v1/installs/side?digest="+v[0], nil, "If-Match", tag).Want(200)
	g.Control("DELETE", "/v1/installs/side?digest="+v[0], nil, "If-Match", tag).Refused(abi.CodeNotFound)
	s.Invoke(one, none).Refused(abi.CodeMissingGrant)
	hold(s, map[string]string{two: v[1], both: v[1]})
	if got := errno(s.Invoke(both, none)); got != 0 {
		t.Errorf("with the older version went a right of the newer one: errno %d", got)
	}
	// The same digest again, beside itself, replaces itself; one that is not beside replaces all.
	installDigest(g, "side", v[0], []string{"project"}, map[string]any{"alongside": true}).Want(200)
	installDigest(g, "side", v[0], []string{"project"}, map[string]any{"alongside": true}).Want(200)
	hold(s, map[string]string{one: v[0], two: v[1], both: v[0]})
	if got := standing(); len(got) != 2 {
		t.Errorf("there stand %q", got)
	}
	if got := errno(s.Invoke(both, none)); got == 0 {
		t.Error("a version calls what was kept for the other one")
	}
	installDigest(g, "side", v[1], []string{"project"}, nil).Want(200)
	if got := standing(); !slices.Equal(got, v[1:]) {
		t.Errorf("there stand %q", got)
	}
	s.Invoke(one, none).Refused(abi.CodeMissingGrant)
	if got := errno(s.Invoke(both, none)); got == 0 {
		t.Error("the right to call outlived what kept it")
	}

	installDigest(g, "side", v[0], []string{"project"}, map[string]any{"alongside": true}).Want(200)
	g.Control("POST", "/v1/biomes/side/disable", nil, "If-Match", g.Control("GET", "/v1/biomes/side", nil).Header.Get("ETag")).Want(200)
	for _, ref := range []string{one, two} {
		s.Invoke(ref, none).Refused(abi.CodeBiomeDisabled)
	}
	// Uninstalling names nothing: all go.
	g.Control("POST", "/v1/biomes/side/enable", nil, "If-Match", g.Control("GET", "/v1/biomes/side", nil).Header.Get("ETag")).Want(200)
	g.Control("DELETE", "/v1/installs/side", nil, "If-Match", g.Control("GET", "/v1/installs/side", nil).Header.Get("ETag")).Want(200)
	if got := standing(); len(got) != 0 {
		t.Errorf("there stand %q", got)
	}
	g.Control("GET", "/v1/installs/side", nil).Refused(abi.CodeNotFound)
}

// X62: rolling back installs what was installed before, as a new install grant and with an event of its
// own, with what it kept as far as that is still there; twice is back where it began. Beside another version, only
// the newest is rolled back.
func TestRollback(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "callee", script("callee", nil, action{ref: "callee:a.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	endpoint(g, "api", "http://127.0.0.1:1", map[string]any{"loopback": false, "rule": map[string]any{"scheme": "https", "host": "a.example", "methods": []string{"GET"}, "path": "/"}})
	endpoint(g, "old", "http://127.0.0.1:1", map[string]any{"loopback": false, "rule": map[string]any{"scheme": "https", "host": "b.example", "methods": []string{"GET"}, "path": "/"}})
	g.Control("POST", "/v1/orgs/default/environments", map[string]any{"slug": "strict", "base": "environment:project"}).Want(201)
	const ref, later = "back:a.do@1", "back:a.do@2"
	v := versions(g, "back", func(m *abi.Manifest) {
		m.Requires.Capabilities = []abi.CapabilityRef{"callee:a.do@1"}
		m.Requires.Endpoints = []abi.Need{{Name: "api", Why: "test"}, {Name: "old", Why: "test"}}
	}, []action{{ref: ref, reach: abi.ReachIntegration}}, []action{{ref: ref, reach: abi.ReachOwner}}, []action{{ref: later, reach: abi.ReachOwner}})
	rollback := func() servertest.Response {
		return g.Control("POST", "/v1/biomes/back/rollback", nil, "If-Match", g.Control("GET", "/v1/installs/back", nil).Header.Get("ETag"))
	}
	g.Control("POST", "/v1/biomes/back/rollback", nil, "If-Match", `"1"`).Refused(abi.CodeConflict) // nothing is installed
	g.Control("POST", "/v1/biomes/nothing/rollback", nil, "If-Match", `"1"`).Refused(abi.CodeNotFound)
	installDigest(g, "back", v[0], []string{"project", "strict", "app"}, map[string]any{
		"calls": []string{"callee:a.do@1"}, "endpoints": []string{"api", "old"}, "obligations": []map[string]any{{"kind": "audit"}},
	}).Want(200)
	g.Grant("user:alice", ref, "project")
	s := g.Open("user:alice", "project", nil)
	rollback().Refused(abi.CodeConflict) // nothing was before
	installDigest(g, "back", v[1], []string{"project"}, nil).Want(200)
	g.Control("POST", "/v1/biomes/back/rollback", nil).Refused(abi.CodePreconditionNeeded)
	g.Control("POST", "/v1/biomes/back/rollback", nil, "If-Match", `"1"`).Refused(abi.CodePreconditionFailed)
	if got := served(g, s, ref); got != v[1] {
		t.Errorf("%s is served", got)
	}
	// Two of the things that were kept go.
	g.Control("DELETE", "/v1/endpoints/old", nil, "If-Match", `"1"`).Want(204)
	g.Control("DELETE", "/v1/orgs/default/environments/strict", nil, "If-Match", `"1"`)
	var i grant.Install
	r := rollback().Want(200)
	r.JSON(&i)
	if i.Digest != v[0] || i.Revision != 3 || r.Header.Get("ETag") != `"3"` || len(i.Obligations) != 1 || i.Permissions == "" || i.Alongside || len(i.Grants) != 2 ||
		!slices.Equal(i.Environments, []abi.EnvironmentRef{"environment:project", "environment:app"}) ||
		!slices.Equal(i.Calls, []abi.CapabilityRef{"callee:a.do@1"}) || !slices.Equal(i.Endpoints, []string{"api"}) {
		t.Errorf("%s", r.Body)
	}
	if got := served(g, s, ref); got != v[0] {
		t.Errorf("after rolling back %s is served", got)
	}
	events := 0
	for _, r := range g.Rows("&kind=admin") {
		if a, _ := r["admin"].(map[string]any); a["operation"] == "biome.rolled-back" && a["code"] == nil {
			if events++; !strings.HasSuffix(a["object"].(string), "@"+v[0]) {
				t.Errorf("the event names %v", a["object"])
			}
		}
	}
	if events != 1 {
		t.Errorf("%d events", events)
	}
	rollback().Want(200).JSON(&i)
	if got := served(g, s, ref); got != v[1] || i.Digest != v[1] || i.Revision != 4 {
		t.Errorf("rolled back twice, %s is served", got)
	}
	// Beside another version: that one stays.
	installDigest(g, "back", v[2], []string{"project"}, map[string]any{"alongside": true}).Want(200)
	g.Grant("user:alice", later, "project")
	if a, b := served(g, s, ref), served(g, s, later); a != v[1] || b != v[2] {
		t.Errorf("beside: %s and %s", a, b)
	}
	installDigest(g, "back", v[0], []string{"project"}, map[string]any{"alongside": true}).Want(200)
	if a, b := served(g, s, ref), served(g, s, later); a != v[0] || b != v[2] {
		t.Errorf("three beside: %s and %s", a, b)
	}
	rollback().Want(200).JSON(&i) // the newest is v[0]; before it there was v[2], which stands
	if a, b := served(g, s, ref), served(g, s, later); a != v[1] || b != v[2] || i.Digest != v[2] || !i.Alongside {
		t.Errorf("rolled back beside: %s and %s: %+v", a, b, i)
	}
	g.Stop()
	g = servertest.Start(t, servertest.In(g.Dir))
	s.G = g
	if a, b := served(g, s, ref), served(g, s, later); a != v[1] || b != v[2] {
		t.Errorf("after a restart: %s and %s", a, b)
	}
}

// X62: of an archived biome nothing new is uploaded or installed; what is installed goes on, and can
// still be disabled and uninstalled. Nothing brings it back.
func TestArchive(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	v := versions(g, "past", nil, []action{{ref: "past:a.do@1", reach: abi.ReachOwner}}, []action{{ref: "past:a.do@1", reach: abi.ReachOwner, steps: []step{do("kv_get", "k")}}})
	installDigest(g, "past", v[1], []string{"project"}, nil).Want(200)
	installDigest(g, "past", v[0], []string{"project"}, nil).Want(200)
	g.Grant("user:alice", "past:a.do@1", "project")
	g.Grant("user:alice", "past:a.do@1", "app")
	s := g.Open("user:alice", "project", nil)
	tag := g.Control("GET", "/v1/biomes/past", nil).Header.Get("ETag")
	g.Control("POST", "/v1/biomes/past/archive", nil).Refused(abi.CodePreconditionNeeded)
	archive := g.Control("POST", "/v1/biomes/past/archive", nil, "If-Match", tag).Want(200)
	for range 2 {
		var b struct {
			Stage    string
			Archived bool
		}
		r := g.Control("GET", "/v1/biomes/past", nil).Want(200)
		if r.JSON(&b); b.Stage != "archived" || !b.Archived || r.Header.Get("ETag") != archive.Header.Get("ETag") {
			t.Errorf("%s", r.Body)
		}
		if got := served(g, s, "past:a.do@1"); got != v[0] {
			t.Errorf("%s is served", got)
		}
		refused := g.Upload(script("past", nil, action{ref: "past:a.do@3", reach: abi.ReachOwner})).Refused(abi.CodeConflict)
		if !strings.Contains(string(refused.Body), "archived") {
			t.Errorf("%s", refused.Body)
		}
		installDigest(g, "past", v[1], []string{"project"}, nil).Refused(abi.CodeConflict)
		installDigest(g, "past", v[1], []string{"project"}, map[string]any{"alongside": true}).Refused(abi.CodeConflict)
		installDigest(g, "past", v[0], []string{"project", "app"}, nil).Refused(abi.CodeConflict)
		g.Control("POST", "/v1/biomes/past/rollback", nil, "If-Match", `"2"`).Refused(abi.CodeConflict)
		g.Open("user:alice", "app", nil).Invoke("past:a.do@1", none).Refused(abi.CodeEnvironmentNotGranted)
		g.Stop()
		g = servertest.Start(t, servertest.In(g.Dir))
		s.G = g
	}
	g.Control("POST", "/v1/biomes/past/archive", nil, "If-Match", archive.Header.Get("ETag")).Want(200) // it is already
	disabled := g.Control("POST", "/v1/biomes/past/disable", nil, "If-Match", archive.Header.Get("ETag")).Want(200)
	s.Invoke("past:a.do@1", none).Refused(abi.CodeBiomeDisabled)
	g.Control("POST", "/v1/biomes/past/enable", nil, "If-Match", disabled.Header.Get("ETag")).Want(200)
	g.Control("DELETE", "/v1/installs/past", nil, "If-Match", `"2"`).Want(200)
	s.Invoke("past:a.do@1", none).Refused(abi.CodeEnvironmentNotGranted)
	installDigest(g, "past", v[0], []string{"project"}, nil).Refused(abi.CodeConflict)
}

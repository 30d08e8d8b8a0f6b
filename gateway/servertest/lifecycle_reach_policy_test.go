package servertest_test

import (
	"fmt"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// X61, X62, S18: what takes a version or a capability away reaches an invocation that waits, before the change is
// answered: a newer version that takes over, rolling back, uninstalling, retiring. What takes nothing away does
// not: an upload, another version beside it that provides something else, deprecating, asking for a promotion,
// archiving, and the end of another capability.
func TestLifecycleReachesWhatRuns(t *testing.T) {
	t.Parallel()
	s := newStuck(t)
	g := s.g
	const get, gone = "test:reach.get@1", "test:reach.gone@1"
	upload := func(all scripts) string {
		m := w.Manifest("reach")
		m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}}
		var up struct{ Biome struct{ Digest string } }
		g.Upload(scripted(m, all)).Want(201).JSON(&up)
		return up.Biome.Digest
	}
	var e struct {
		Rule struct {
			Host string
			Port int
		}
	}
	g.Control("GET", "/v1/endpoints/origin", nil).Want(200).JSON(&e)
	fetch := fetching(fmt.Sprintf("http://%s:%d/", e.Rule.Host, e.Rule.Port))
	v1 := upload(scripts{"get": {fetch}, "gone": {fetch}})
	v2 := upload(scripts{"get": {fetch, fetch}, "gone": {fetch}})
	v3 := upload(scripts{"else": {fetch}})
	keeps := map[string]any{"endpoints": []string{"origin"}}
	beside := map[string]any{"endpoints": []string{"origin"}, "alongside": true}
	install := func(digest string, more map[string]any) {
		t.Helper()
		installDigest(g, "reach", digest, []string{"project"}, more).Want(200)
	}
	do := func(method, path, under string) servertest.Response {
		t.Helper()
		return g.Control(method, path, nil, "If-Match", g.Control("GET", under, nil).Want(200).Header.Get("ETag")).Want(200)
	}
	install(v1, keeps)
	g.Grant("user:alice", get, "project")
	g.Grant("user:alice", gone, "project")
	alice := g.Open("user:alice", "project", nil)

	for _, c := range []struct {
		name   string
		revoke func()
	}{
		{"a newer version beside it", func() { install(v2, beside) }},
		{"rolling back", func() { do("POST", "/v1/biomes/reach/rollback", "/v1/installs/reach") }},
		{"a newer version in its place", func() { install(v2, keeps) }},
		{"uninstalling its version", func() {
			install(v3, beside)
			do("DELETE", "/v1/installs/reach?digest="+v2, "/v1/installs/reach?digest="+v2)
			install(v1, beside)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			done := s.wait(alice, get)
			c.revoke()
			s.revoked(t, done)
		})
	}

	lasts, ends := s.wait(alice, get), s.wait(alice, gone)
	upload(scripts{"get": {fetch}, "other": {fetch}})
	install(v3, beside)
	end(g, get, "deprecated", gone).Want(200)
	g.Control("POST", "/v1/biomes/reach/promote", map[string]any{"digest": v2, "environments": []string{"environment:project"}, "endpoints": []string{"origin"}}).Want(202)
	do("POST", "/v1/biomes/reach/archive", "/v1/biomes/reach")
	select {
	case r := <-ends:
		t.Fatalf("it ended: %d %s", r.Status, r.Body)
	default:
	}
	end(g, gone, "retired", "").Want(200)
	s.revoked(t, ends)
	s.free()
	if r := (<-lasts).Want(200); row(g, r).Decision.Digest != v1 {
		t.Errorf("%s", row(g, r).Raw)
	}
}

package servertest_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// endpoint makes an endpoint rule for everything of a loopback origin.
func endpoint(g *servertest.Gateway, name, url string, more map[string]any) {
	g.T.Helper()
	host, port, found := strings.Cut(strings.TrimPrefix(url, "http://"), ":")
	if !found {
		g.T.Fatalf("%s has no port", url)
	}
	in := map[string]any{
		"rule":     map[string]any{"scheme": "http", "host": host, "port": json.Number(port), "methods": []string{"GET", "POST"}, "path": "/**"},
		"loopback": true, "clearance": "regulated", "label": "public",
	}
	for k, v := range more {
		in[k] = v
	}
	g.Control("PUT", "/v1/endpoints/"+name, in, "If-None-Match", "*").Want(200)
}

// X39 in part, PF-B7: a grant's globs are of the one language that is enforced; a file or key
// outside them is refused to the guest and its bytes do not move.
func TestGrantGlobs(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Upload(script("globs", nil,
		action{ref: "globs:inside.put@1", reach: abi.ReachOwner, steps: []step{do("file_create", "reports/a.txt", `"inside"`)}},
		action{ref: "globs:outside.put@1", reach: abi.ReachOwner, steps: []step{do("file_create", "x.txt", `"outside"`)}},
		action{ref: "globs:inside.read@1", reach: abi.ReachOwner, steps: []step{do("file_read", "reports/a.txt", 0, 100)}, register: true},
		action{ref: "globs:outside.read@1", reach: abi.ReachOwner, steps: []step{do("file_read", "x.txt", 0, 100)}, register: true},
		action{ref: "globs:dotted.read@1", reach: abi.ReachOwner, steps: []step{do("file_read", "reports/../x.txt", 0, 100)}, register: true},
		action{ref: "globs:encoded.read@1", reach: abi.ReachOwner, steps: []step{do("file_read", "reports/%2e%2e/x.txt", 0, 100)}, register: true},
		action{ref: "globs:inside.kv@1", reach: abi.ReachOwner, steps: []step{do("kv_put", "reports/k", "1")}},
		action{ref: "globs:outside.kv@1", reach: abi.ReachOwner, steps: []step{do("kv_put", "other", "1")}},
	)).Want(201)
	g.Install("globs", []string{"project"}, nil).Want(200)
	for _, bad := range []string{"/a", "../a", "a/../b", "[", "{a/b,c}", `a\*`, "", "a//b"} {
		r := g.Control("POST", "/v1/grants", map[string]any{
			"subject": "user:alice", "capability": "globs:inside.read@1", "environment": "environment:project", "globs": []string{bad},
		}).Refused(abi.CodeUnsupportedRule)
		if !strings.Contains(string(r.Body), `"hint"`) {
			t.Errorf("%q is refused without a hint: %s", bad, r.Body)
		}
	}
	g.Control("POST", "/v1/grants", map[string]any{
		"subject": "user:alice", "capability": "globs:inside.read@1", "environment": "environment:project", "globs": []string{},
	}).Refused(abi.CodeUnsupportedRule)
	for _, ref := range refsOf(g, "globs") {
		g.Grant("user:alice", ref, "project", "reports/**")
		g.Grant("user:owner", ref, "project")
	}
	// The owner's session makes the file outside; alice's has a workspace of her own, with hers.
	s := g.Open("user:alice", "project", map[string]any{"files": true})
	for _, c := range []struct {
		ref  string
		want abi.Errno
	}{
		{"globs:inside.put@1", 0},
		{"globs:outside.put@1", abi.EDENIED},
		{"globs:outside.read@1", abi.EDENIED},
		{"globs:dotted.read@1", abi.EDENIED},
		{"globs:encoded.read@1", abi.ENOENT}, // a percent sign is a percent sign
		{"globs:inside.kv@1", 0},
		{"globs:outside.kv@1", abi.EDENIED},
	} {
		r := s.Invoke(c.ref, none)
		if got := errno(r); got != c.want {
			t.Errorf("%s: errno %d, not %d", c.ref, got, c.want)
		}
		if c.want != abi.EDENIED {
			continue
		}
		var lines []string
		for _, l := range row(g, r).Ended.Lines {
			lines = append(lines, string(l.Code))
		}
		if !slices.Contains(lines, string(abi.CodeResourceNotInGlob)) {
			t.Errorf("%s: the receipt says %q", c.ref, lines)
		}
	}
	if r := s.Invoke("globs:inside.read@1", none).Want(200); string(r.Body) != `"inside"` {
		t.Errorf("%s", r.Body)
	}
	owner := g.Open("user:owner", "project", map[string]any{"files": true})
	if errno(owner.Invoke("globs:outside.put@1", none)) != 0 {
		t.Error("a grant without globs is for everything")
	}
}

// PF-A1: what is empty, absent or null keeps nothing: four installs of one fetcher are refused
// alike, and the origin sees nobody.
func TestEmptyKeepsNothing(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	origin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer origin.Close()
	g := servertest.Start(t, func(o *server.Options) { o.EgressLoopback = true })
	endpoint(g, "origin", origin.URL, nil)
	g.Upload(script("fetcher", func(m *abi.Manifest) { m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}} },
		action{ref: "f:page.get@1", reach: abi.ReachIntegration, steps: []step{do("http_fetch", `{"method":"GET","url":"`+origin.URL+`/"}`, "")}},
	)).Want(201)
	g.Install("fetcher", []string{"project"}, nil).Want(200)
	g.Grant("user:alice", "f:page.get@1", "project")
	s := g.Open("user:alice", "project", nil)
	for name, more := range map[string]map[string]any{"absent": nil, "empty": {"endpoints": []string{}}, "everything empty": {"endpoints": []string{}, "secrets": []string{}, "calls": []string{}}} {
		g.Install("fetcher", []string{"project"}, more).Want(200)
		r := s.Invoke("f:page.get@1", none)
		if errno(r) != abi.EDENIED {
			t.Errorf("%s: %s", name, r.Body)
		}
		if code, _ := row(g, r).lineCode("http_fetch"); code != abi.CodeEndpointRefused {
			t.Errorf("%s: the receipt says %s", name, code)
		}
	}
	var i struct{ Digest string }
	was := g.Control("GET", "/v1/installs/fetcher", nil).Want(200)
	was.JSON(&i)
	g.Control("PUT", "/v1/installs/fetcher", []byte(`{"digest":"`+i.Digest+`","environments":["environment:project"],"endpoints":null}`), "If-Match", was.Header.Get("ETag")).
		Refused(abi.CodeInvalidJSON)
	if hits.Load() != 0 {
		t.Errorf("the origin was called %d times", hits.Load())
	}
	g.Install("fetcher", []string{"project"}, map[string]any{"endpoints": []string{"origin"}}).Want(200)
	if errno(s.Invoke("f:page.get@1", none)) != 0 || hits.Load() != 1 {
		t.Error("with the endpoint the same call does not work")
	}
}

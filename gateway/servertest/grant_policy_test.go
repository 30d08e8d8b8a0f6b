package servertest_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// giving is the body of a grant in project.
func giving(subject, ref string, more map[string]any) map[string]any {
	in := map[string]any{"subject": subject, "capability": ref, "environment": "environment:project"}
	for k, v := range more {
		in[k] = v
	}
	return in
}

// X39: a grant's URLs hold its requests, and those of what it calls, to a part of what the install grant
// kept; they never admit what that did not keep. A name that a link or an encoding leads out of a grant's
// globs is refused like any other outside them.
func TestGrantURLs(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	origin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer origin.Close()
	g := servertest.Start(t, func(o *server.Options) { o.EgressLoopback = true })
	endpoint(g, "origin", origin.URL, map[string]any{"rule": ruleFor(origin.URL, "/kept/**")})
	fetch := func(path string) []step {
		return []step{do("http_fetch", `{"method":"GET","url":"`+origin.URL+path+`"}`, "")}
	}
	actions := map[string]string{
		"named": "/kept/a/1", "beside": "/kept/b", "unkept": "/other/1", "dots": "/kept/a/../b", "encoded": "/kept/a/%2e%2e/b",
	}
	var all []action
	for name, path := range actions {
		all = append(all, action{ref: "urls:" + name + ".get@1", reach: abi.ReachIntegration, steps: fetch(path)})
	}
	all = append(all, action{ref: "urls:child.call@1", reach: abi.ReachIntegration, steps: []step{do("capability_invoke", "urls:beside.get@1", "{}")}, register: true})
	g.Upload(script("urls", func(m *abi.Manifest) {
		m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}}
		m.Requires.Capabilities = []abi.CapabilityRef{"urls:beside.get@1"}
	}, all...)).Want(201)
	g.Install("urls", []string{"project"}, map[string]any{"endpoints": []string{"origin"}, "calls": []string{"urls:beside.get@1"}}).Want(200)

	for _, bad := range []any{[]string{}, []string{origin.URL}, []string{"/kept/**"}, []string{"ftp://a.example/**"}, []string{"https://*/**"}, []string{"https://a.example/../x"}} {
		g.Control("POST", "/v1/grants", giving("user:alice", "urls:named.get@1", map[string]any{"urls": bad})).Refused(abi.CodeUnsupportedRule)
	}
	urls := map[string]any{"urls": []string{origin.URL + "/kept/a/**", origin.URL + "/other/**"}}
	for name := range actions {
		g.Control("POST", "/v1/grants", giving("user:alice", "urls:"+name+".get@1", urls)).Want(201)
	}
	s := g.Open("user:alice", "project", nil)
	for name, want := range map[string]abi.Code{
		"named": "", "beside": abi.CodeEndpointRefused, "unkept": abi.CodeEndpointRefused, "dots": abi.CodeURLInvalid, "encoded": abi.CodeURLInvalid,
	} {
		r := s.Invoke("urls:"+name+".get@1", none)
		if code, made := row(g, r).lineCode("http_fetch"); !made || code != want {
			t.Errorf("%s: the receipt says %q, not %q", name, code, want)
		}
	}
	if hits.Load() != 1 {
		t.Errorf("the origin saw %d requests", hits.Load())
	}
	// Who holds the callee without restriction still has what the caller's grant has, and no more.
	g.Grant("user:bob", "urls:beside.get@1", "project")
	g.Control("POST", "/v1/grants", giving("user:bob", "urls:child.call@1", urls)).Want(201)
	bob := g.Open("user:bob", "project", nil)
	if r := bob.Invoke("urls:beside.get@1", none); errno(r) != 0 || hits.Load() != 2 {
		t.Errorf("by itself: %s", r.Body)
	}
	children := childrenOf(g, bob.Invoke("urls:child.call@1", none).Want(200))
	if len(children) != 1 || hits.Load() != 2 {
		t.Fatalf("%d children, %d requests", len(children), hits.Load())
	}
	if code, made := rowByID(g, children[0].ID).lineCode("http_fetch"); !made || code != abi.CodeEndpointRefused {
		t.Errorf("the child's receipt says %q", code)
	}
}

// X39: what a link leads to is not what a glob names.
func TestGrantGlobsAndLinks(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Upload(script("links", nil,
		action{ref: "links:a.put@1", reach: abi.ReachOwner, steps: []step{do("file_create", "reports/a.txt", `"a"`)}},
		action{ref: "links:file.read@1", reach: abi.ReachOwner, steps: []step{do("file_read", "reports/link", 0, 100)}, register: true},
		action{ref: "links:through.read@1", reach: abi.ReachOwner, steps: []step{do("file_read", "reports/dir/x.txt", 0, 100)}, register: true},
	)).Want(201)
	g.Install("links", []string{"project"}, nil).Want(200)
	for _, ref := range refsOf(g, "links") {
		g.Grant("user:alice", ref, "project", "reports/**")
	}
	s := g.Open("user:alice", "project", map[string]any{"files": true})
	if got := errno(s.Invoke("links:a.put@1", none)); got != 0 {
		t.Fatalf("errno %d", got)
	}
	room := filepath.Join(g.Dir, "workspaces", s.Workspace)
	if err := os.Mkdir(filepath.Join(room, "secret"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(room, "secret", "x.txt"), []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": "../secret/x.txt", "dir": "../secret"} {
		if err := os.Symlink(to, filepath.Join(room, "reports", name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, ref := range []string{"links:file.read@1", "links:through.read@1"} {
		r := s.Invoke(ref, none)
		if errno(r) == 0 || strings.Contains(string(r.Body), "canary") {
			t.Errorf("%s: %s", ref, r.Body)
		}
		if code, made := row(g, r).lineCode("file_read"); !made || code == "" {
			t.Errorf("%s: the receipt says %q", ref, code)
		}
	}
}

// X70: owning what lies around a space, or administering it, gives nothing in it. In a user's space, and in
// what lies in one, a grant holds that names it; what is granted elsewhere does not reach in, whoever
// holds it, and the suggestion says what to name.
func TestGrantSpaces(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Control("POST", "/v1/spaces", map[string]string{"id": "alices", "kind": "user"}).Want(201)
	g.Control("POST", "/v1/spaces", map[string]string{"id": "alices-talk", "kind": "session", "parent": "alices"}).Want(201)
	g.Control("POST", "/v1/spaces", map[string]string{"id": "shared", "kind": "project", "parent": "default"}).Want(201)
	admit(g, "callee", script("callee", nil, action{ref: "callee:a.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	admit(g, "own", script("own", requires("callee:a.do@1"),
		action{ref: "own:a.do@1", reach: abi.ReachOwner},
		action{ref: "own:child.call@1", reach: abi.ReachOwner, steps: []step{do("capability_invoke", "callee:a.do@1", "{}")}},
	), []string{"project"}, map[string]any{"calls": []string{"callee:a.do@1"}})
	g.Grant("user:operator", "own:a.do@1", "project") // as an administrator would give themselves everything
	in := func(subject, space string) *servertest.Session {
		return g.Open(subject, "project", map[string]any{"space": space})
	}
	for _, subject := range []string{"user:alice", "user:operator"} {
		for space, ok := range map[string]bool{"default": true, "shared": true, "alices": false, "alices-talk": false} {
			r := in(subject, space).Invoke("own:a.do@1", none)
			if ok {
				r.Want(200)
				continue
			}
			r.Refused(abi.CodeMissingGrant)
			var p struct {
				Suggestions []struct{ Kind, Space string }
			}
			r.JSON(&p)
			if len(p.Suggestions) != 1 || p.Suggestions[0].Kind != "request-grant" || p.Suggestions[0].Space != space {
				t.Errorf("%s in %s: %s", subject, space, r.Body)
			}
		}
	}
	for name, bad := range map[string]struct {
		spaces []string
		code   abi.Code
	}{
		"empty": {[]string{}, abi.CodeUnsupportedRule}, "unknown": {[]string{"nowhere"}, abi.CodeNotFound}, "twice": {[]string{"alices", "alices"}, abi.CodeInvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			g.Control("POST", "/v1/grants", giving("user:alice", "own:a.do@1", map[string]any{"spaces": bad.spaces})).Refused(bad.code)
		})
	}
	name := func(ref string, spaces ...string) {
		t.Helper()
		revokeAll(g, "user:alice", ref)
		g.Control("POST", "/v1/grants", giving("user:alice", ref, map[string]any{"spaces": spaces})).Want(201)
	}
	for _, ref := range []string{"own:a.do@1", "own:child.call@1", "callee:a.do@1"} {
		name(ref, "alices", "shared")
	}
	in("user:alice", "alices").Invoke("own:a.do@1", none).Want(200)
	in("user:alice", "shared").Invoke("own:a.do@1", none).Want(200)
	in("user:alice", "alices-talk").Invoke("own:a.do@1", none).Refused(abi.CodeMissingGrant)
	in("user:alice", "default").Invoke("own:a.do@1", none).Refused(abi.CodeMissingGrant)
	in("user:operator", "alices").Invoke("own:a.do@1", none).Refused(abi.CodeMissingGrant)
	// What a biome calls there needs no grant of the biome's that names the space, and one of the subject's.
	if got := errno(in("user:alice", "alices").Invoke("own:child.call@1", none)); got != 0 {
		t.Errorf("errno %d", got)
	}
	name("callee:a.do@1", "shared")
	if got := errno(in("user:alice", "alices").Invoke("own:child.call@1", none)); got != abi.ECHILD {
		t.Errorf("errno %d", got)
	}
	name("own:a.do@1", "alices-talk")
	in("user:alice", "alices-talk").Invoke("own:a.do@1", none).Want(200)
	// An agent needs the user to hold one there as well.
	bot := g.Open("agent:bot", "project", map[string]any{"user": "user:alice", "space": "alices"})
	g.Control("POST", "/v1/grants", giving("agent:bot", "own:a.do@1", map[string]any{"spaces": []string{"alices"}})).Want(201)
	bot.Invoke("own:a.do@1", none).Refused(abi.CodeSubjectNotCovered)
	name("own:a.do@1", "alices")
	bot.Invoke("own:a.do@1", none).Want(200)
}

// X34, X35: a grant is changed by one that replaces it. Under load no call finds neither of the two; the
// first call after the answer is decided by the new one; both are listed, the old one as revoked, and the
// rows of old calls name it.
func TestGrantReplaced(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "edit", script("edit", nil,
		action{ref: "edit:a.put@1", reach: abi.ReachOwner, steps: []step{do("kv_put", "reports/k", "1")}},
		action{ref: "edit:other.do@1", reach: abi.ReachOwner}), []string{"project", "org"}, nil)
	revokeAll(g, "user:alice", "edit:a.put@1")
	in := giving("user:alice", "edit:a.put@1", nil)
	give := func(in map[string]any) string {
		t.Helper()
		var out struct{ ID string }
		g.Control("POST", "/v1/grants", in).Want(201).JSON(&out)
		return out.ID
	}
	first := give(in)
	old := g.Open("user:alice", "project", nil).Invoke("edit:a.put@1", none)
	if errno(old) != 0 {
		t.Fatal("it does not work")
	}
	stop, wg := make(chan struct{}), sync.WaitGroup{}
	for range 4 {
		s := g.Open("user:alice", "project", nil)
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				// One that runs while its grant ends is ended with it; none is told that there is no grant.
				if r := s.Invoke("edit:a.put@1", none); r.Status != 200 && r.Code() != abi.CodeGrantRevoked {
					t.Errorf("during the change: %s", r.Body)
				}
			}
		})
	}
	id := first
	s := g.Open("user:alice", "project", nil)
	for i := range 12 {
		globs, want := []string{"reports/**"}, abi.Errno(0)
		if i%2 == 0 {
			globs, want = []string{"elsewhere/**"}, abi.EDENIED
		}
		id = give(giving("user:alice", "edit:a.put@1", map[string]any{"replaces": id, "globs": globs}))
		r := s.Invoke("edit:a.put@1", none)
		if got := errno(r); got != want {
			t.Errorf("the call after change %d: errno %d, not %d", i, got, want)
		}
		if grants := row(g, r).Decision.Grants; len(grants) != 1 || grants[0] != id {
			t.Errorf("the call after change %d used %q, not %s", i, grants, id)
		}
	}
	close(stop)
	wg.Wait()

	var list struct {
		Items []struct {
			ID, Replaces string
			Revoked      *struct{ Grant string }
		}
	}
	g.Control("GET", "/v1/grants?limit=100&subject=user:alice&capability=edit:a.put@1", nil).Want(200).JSON(&list)
	standing := 0
	for _, i := range list.Items {
		if i.Revoked == nil {
			standing++
		}
		if (i.Revoked == nil) != (i.ID == id) || i.Revoked != nil && i.Revoked.Grant != i.ID {
			t.Errorf("%+v", i)
		}
	}
	if standing != 1 || len(list.Items) < 14 {
		t.Errorf("%d of %d stand", standing, len(list.Items))
	}
	if grants := row(g, old).Decision.Grants; len(grants) != 1 || grants[0] != first {
		t.Errorf("the old row names %q", grants)
	}

	g.Control("POST", "/v1/grants", in).Refused(abi.CodeAlreadyExists)
	for name, c := range map[string]struct {
		change map[string]any
		code   abi.Code
	}{
		"what was replaced": {map[string]any{"replaces": first}, abi.CodeNotFound},
		"what never was":    {map[string]any{"replaces": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, abi.CodeNotFound},
		"another subject's": {map[string]any{"replaces": id, "subject": "user:bob"}, abi.CodeInvalidRequest},
		"elsewhere":         {map[string]any{"replaces": id, "environment": "environment:org"}, abi.CodeInvalidRequest},
		"something else":    {map[string]any{"replaces": id, "capability": "edit:other.do@1"}, abi.CodeInvalidRequest},
		"to nothing":        {map[string]any{"replaces": id, "globs": []string{}}, abi.CodeUnsupportedRule},
	} {
		t.Run(name, func(t *testing.T) {
			g.Control("POST", "/v1/grants", giving("user:alice", "edit:a.put@1", c.change)).Refused(c.code)
		})
	}
	if got := errno(s.Invoke("edit:a.put@1", none)); got != 0 {
		t.Errorf("after refusals: errno %d", got)
	}
	g.Stop()
	g = servertest.Start(t, servertest.In(g.Dir))
	s.G = g
	if r := s.Invoke("edit:a.put@1", none); errno(r) != 0 || row(g, r).Decision.Grants[0] != id {
		t.Errorf("after a restart: %s", r.Body)
	}
}

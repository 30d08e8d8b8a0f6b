package servertest_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// X30: a principal that may not open sessions of its own asks for an environment and a space, and gets
// them as far as an environment grant lets it ask. Otherwise the request is refused before there is
// anything to decide, and no row speaks of a decision; the row of what was let through names what
// was asked for.
func TestRequestedEnvironment(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	for _, s := range []map[string]string{
		{"id": "team", "kind": "project", "parent": "default"}, {"id": "alices", "kind": "user"},
	} {
		g.Control("POST", "/v1/spaces", s).Want(201)
	}
	own(g, "strict", "project", nil).Want(201)
	admit(g, "ask", script("ask", nil, action{ref: "ask:a.do@1", reach: abi.ReachOwner}), []string{"project", "strict"}, nil)
	author := walkers(g, "default")[session.Author]
	ask := func(more map[string]any) servertest.Response {
		in := map[string]any{"subject": "user:alice"}
		for k, v := range more {
			in[k] = v
		}
		return g.Do("POST", g.Admin+"/v1/sessions", author, in)
	}
	let := func(more map[string]any) string {
		t.Helper()
		in := map[string]any{"principal": "walker-author", "subject": "user:alice"}
		for k, v := range more {
			in[k] = v
		}
		var made struct{ ID string }
		g.Control("POST", "/v1/environment-grants", in).Want(201).JSON(&made)
		return made.ID
	}
	wanted := []map[string]any{
		{"environment": "environment:project"},
		{"environment": "environment:strict", "space": "team"},
		{"space": "team"},
		{"space": "alices"},
		{"environment": "environment:nowhere"},
		{"space": "nowhere"},
	}
	decisions := len(g.Rows("&kind=invocation"))
	for _, in := range wanted {
		ask(in).Refused(abi.CodeRequestNotGranted)
	}
	ask(nil).Refused(abi.CodeForbidden) // nothing was asked for by name
	if now := len(g.Rows("&kind=invocation")); now != decisions {
		t.Errorf("%d decisions are on record for what was refused before any", now-decisions)
	}
	if rows := g.Rows("&kind=admin"); !slices.ContainsFunc(rows, func(r map[string]any) bool {
		raw, _ := json.Marshal(r)
		return bytes.Contains(raw, []byte(abi.CodeRequestNotGranted))
	}) {
		t.Error("the refusals are not on record")
	}

	strict := let(map[string]any{"environment": "environment:strict", "spaces": []string{"team"}})
	var opened struct {
		Token string
		Of    struct{ ID, Environment, Space string }
	}
	ask(map[string]any{"environment": "environment:strict", "space": "team"}).Want(201).JSON(&opened)
	if opened.Of.Environment != "environment:strict" || opened.Of.Space != "team" {
		t.Errorf("%+v", opened.Of)
	}
	s := &servertest.Session{G: g, ID: opened.Of.ID, Token: opened.Token}
	if d := row(g, s.Invoke("ask:a.do@1", none).Want(200)).Decision; d.Environment != "environment:strict" || d.Space != "team" {
		t.Errorf("the row says %s in %s", d.Environment, d.Space)
	}
	for _, in := range []map[string]any{
		{"environment": "environment:strict"},
		{"environment": "environment:project", "space": "team"},
		{"environment": "environment:strict", "space": "team", "subject": "user:bob"},
	} {
		ask(in).Refused(abi.CodeRequestNotGranted)
	}
	// A grant that names no space is none for a user's.
	let(map[string]any{"environment": "environment:org"})
	ask(map[string]any{"environment": "environment:org"}).Want(201)
	ask(map[string]any{"space": "alices"}).Refused(abi.CodeRequestNotGranted)
	let(map[string]any{"environment": "environment:org", "spaces": []string{"alices"}})
	ask(map[string]any{"space": "alices"}).Want(201)
	g.Control("DELETE", "/v1/environment-grants/"+strict, nil).Want(200)
	ask(map[string]any{"environment": "environment:strict", "space": "team"}).Refused(abi.CodeRequestNotGranted)
}

// X31: what a session is for says where it is and what it is trusted with; the pair is the session's, and
// nothing that is sent with an invocation changes it.
func TestSessionKinds(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	for _, s := range []map[string]string{
		{"id": "team", "kind": "project", "parent": "default"},
		{"id": "crm", "kind": "app", "parent": "default"},
		{"id": "build", "kind": "biome", "parent": "default"},
		{"id": "talk", "kind": "session", "parent": "team"},
		{"id": "alices", "kind": "user"},
	} {
		g.Control("POST", "/v1/spaces", s).Want(201)
	}
	for name, c := range map[string]struct {
		org, space, asked string
		environment       string
	}{
		"project workspace":       {"default", "team", "", "project"},
		"organisation console":    {"default", "", "", "org"},
		"sandbox build":           {"default", "build", "", "sandbox"},
		"delegated app":           {"default", "crm", "", "app"},
		"delegated app in public": {"default", "crm", "public", "public"},
		"personal":                {"default", "alices", "", "org"},
		"conversation":            {"default", "talk", "", "session"},
		"the system's":            {"system", "", "", "system"},
	} {
		t.Run(name, func(t *testing.T) {
			in := map[string]string{"subject": "user:alice"}
			if c.space != "" {
				in["space"] = c.space
			}
			if c.asked != "" {
				in["environment"] = "environment:" + c.asked
			}
			var made struct{ Of struct{ ID string } }
			g.Control("POST", "/v1/sessions?org="+c.org, in).Want(201).JSON(&made)
			var s struct{ Space, Environment string }
			g.Control("GET", "/v1/sessions/"+made.Of.ID+"?org="+c.org, nil).Want(200).JSON(&s)
			space := c.space
			if space == "" {
				space = "default"
			}
			if s.Space != space || s.Environment != "environment:"+c.environment {
				t.Errorf("%+v", s)
			}
		})
	}
}

// X36: a biome that nobody admitted is callable in the sandbox, whatever is granted, until there is an
// install grant; and who opens the session there needs the right to, too.
func TestNewBiomeIsInTheSandbox(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Upload(script("fresh", nil, action{ref: "fresh:a.do@1", reach: abi.ReachOwner})).Want(201)
	for _, slug := range everywhere() {
		g.Grant("user:alice", "fresh:a.do@1", slug)
	}
	for _, slug := range everywhere() {
		s := g.Open("user:alice", slug, nil)
		if slug == "sandbox" {
			s.Invoke("fresh:a.do@1", none).Want(200)
		} else {
			s.Invoke("fresh:a.do@1", none).Refused(abi.CodeEnvironmentNotGranted)
		}
	}
	g.Install("fresh", []string{"project"}, nil).Want(200)
	g.Open("user:alice", "project", nil).Invoke("fresh:a.do@1", none).Want(200)
	g.Open("user:alice", "org", nil).Invoke("fresh:a.do@1", none).Refused(abi.CodeEnvironmentNotGranted)
}

// P1: environments are made, changed and removed by those who administer, in their own organisation, and
// by nobody else: no other role, no session, no caller without a credential.
func TestWhoMakesEnvironments(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Control("POST", "/v1/orgs", map[string]string{"id": "acme"}).Want(201)
	tokens := walkers(g, "acme")
	acme := "/v1/orgs/acme/environments"
	body := map[string]any{"slug": "e", "base": "environment:project"}
	s := g.Open("user:alice", "project", nil)
	make3 := func(at, token string) []servertest.Response {
		return []servertest.Response{
			g.Do("POST", g.Admin+at, token, body),
			g.Do("PUT", g.Admin+at+"/e", token, map[string]any{"reachCeiling": "owner"}, "If-Match", `"1"`),
			g.Do("DELETE", g.Admin+at+"/e", token, nil, "If-Match", `"2"`),
		}
	}
	for role, token := range tokens {
		if role == session.Operator || role == session.OrgAdmin {
			continue
		}
		for _, r := range make3(acme, token) {
			r.Refused(abi.CodeForbidden)
		}
	}
	for _, r := range make3(acme, s.Token) {
		r.Refused(abi.CodeForbidden)
	}
	for _, r := range make3(acme, "") {
		r.Refused(abi.CodeUnauthenticated)
	}
	for _, r := range make3(ownPath, tokens[session.OrgAdmin]) { // another organisation's
		r.Refused(abi.CodeForbidden)
	}
	for i, r := range make3(acme, tokens[session.OrgAdmin]) {
		r.Want([]int{201, 200, 204}[i])
	}
	body["slug"] = "f"
	g.Do("POST", g.Admin+acme, tokens[session.Operator], body).Want(201)
	// The built-in ones are the operator's alone.
	g.Do("PUT", g.Admin+"/v1/environments/project", tokens[session.OrgAdmin], map[string]any{"limits": map[string]int{"wall": 100}}, "If-Match", `"1"`).Refused(abi.CodeForbidden)
}

// P5: no answer of the control plane holds the value of a secret, whoever asks; what an environment is
// configured with is shown to those who administer or audit, and to nobody else.
func TestWhatReadersSee(t *testing.T) {
	t.Parallel()
	const canary = "canary-of-a-secret-0123456789"
	g := servertest.Start(t)
	own(g, "strict", "project", map[string]any{"allowedCapabilities": []string{"listed:a.do@1"}, "limits": map[string]int{"wall": 1234}}).Want(201)
	putSecret(g, "some-name", canary)
	tokens := walkers(g, "default")
	configured := []session.Role{session.Operator, session.OrgAdmin, session.Auditor}
	for role, token := range tokens {
		for _, o := range operations(g) {
			if o.Method != http.MethodGet {
				continue
			}
			for _, path := range []string{o.example(), strings.NewReplacer("{slug}", "strict").Replace(strings.Replace(o.Path, "{org}", "default", 1))} {
				if strings.Contains(path, "{") {
					continue
				}
				r := g.Do("GET", g.Admin+path, token, nil)
				if bytes.Contains(r.Body, []byte(canary)) {
					t.Errorf("%s to %s holds the secret", path, role)
				}
				if r.Status != 200 || !strings.Contains(path, "/environments") {
					continue
				}
				may := slices.Contains(configured, role)
				if shown := bytes.Contains(r.Body, []byte(`"wall"`)); shown != may {
					t.Errorf("%s to %s: limits are shown: %v: %s", path, role, shown, r.Body)
				}
				if bytes.Contains(r.Body, []byte("listed:a.do@1")) && !may {
					t.Errorf("%s to %s: %s", path, role, r.Body)
				}
				if !bytes.Contains(r.Body, []byte(`"reachCeiling"`)) {
					t.Errorf("%s to %s says nothing of what may be relied on: %s", path, role, r.Body)
				}
			}
		}
	}
	// What was done is on record by name: neither the value nor what limits were set to (P6).
	for _, r := range g.Rows("&kind=admin") {
		raw, _ := json.Marshal(r)
		if bytes.Contains(raw, []byte(canary)) || bytes.Contains(raw, []byte("1234,")) || bytes.Contains(raw, []byte("listed:a.do@1")) {
			t.Errorf("the row says %s", raw)
		}
	}
}

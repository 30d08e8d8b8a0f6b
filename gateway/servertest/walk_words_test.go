package servertest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// The closed vocabularies, each walked whole: every word with every word it can stand beside. What is
// expected is written here once more, so that a table in the code cannot agree with itself alone.

// may says which roles each operation of the control plane is for. A role that is not named is FORBIDDEN.
var may = map[string][]session.Role{}

func init() {
	operator := []session.Role{session.Operator}
	admins := append(operator, session.OrgAdmin)
	uploaders := append(slices.Clone(admins), session.Author)
	inspectors := append(slices.Clone(admins), session.Auditor)
	everyone := append(slices.Clone(inspectors), session.Author, session.Approver)
	for _, group := range []struct {
		roles      []session.Role
		operations string
	}{
		{everyone, `GET /v1/orgs; GET /v1/orgs/{org}/overrides; GET /v1/orgs/{org}/rates; GET /v1/orgs/{org}/overrides/{slug}; GET /v1/orgs/{org}/environments; GET /v1/orgs/{org}/environments/{slug};
			GET /v1/environments; GET /v1/environments/{slug}; GET /v1/spaces; GET /v1/spaces/{id}; GET /v1/biomes;
			GET /v1/biomes/{name}; GET /v1/biomes/{name}/versions; GET /v1/biomes/{name}/permissions; GET /v1/installs; GET /v1/installs/{biome}; GET /v1/grants; GET /v1/environment-grants; GET /v1/environment-grants/{id}; GET /v1/approve-grants`},
		{inspectors, `GET /v1/sessions; GET /v1/sessions/{id}; GET /v1/tokens; GET /v1/secrets; GET /v1/secrets/{name}; GET /v1/endpoints;
			GET /v1/endpoints/{name}; GET /v1/audit; GET /v1/audit/head; GET /v1/biomes/{name}/suggested-grants; GET /v1/audit/{id}`},
		{append(slices.Clone(inspectors), session.Approver), `GET /v1/approvals; GET /v1/approvals/{id}`},
		{append(slices.Clone(admins), session.Approver), `POST /v1/approvals/{id}/approve; POST /v1/approvals/{id}/reject`},
		{admins, `POST /v1/approve-grants; DELETE /v1/approve-grants/{id}`},
		{uploaders, `POST /v1/biomes`},
		{admins, `PUT /v1/orgs/{org}/overrides/{slug}; DELETE /v1/orgs/{org}/overrides/{slug}; POST /v1/orgs/{org}/environments;
			PUT /v1/orgs/{org}/environments/{slug}; DELETE /v1/orgs/{org}/environments/{slug}; PUT /v1/orgs/{org}/rates; POST /v1/spaces; POST /v1/biomes/{name}/disable; POST /v1/biomes/{name}/enable;
			PUT /v1/installs/{biome}; DELETE /v1/installs/{biome}; POST /v1/grants; DELETE /v1/grants/{id}; POST /v1/environment-grants;
			DELETE /v1/environment-grants/{id}; POST /v1/sessions; DELETE /v1/sessions/{id}; POST /v1/sessions/{id}/declassify; POST /v1/tokens; DELETE /v1/tokens/{id};
			PUT /v1/secrets/{name}; DELETE /v1/secrets/{name}; PUT /v1/endpoints/{name}; DELETE /v1/endpoints/{name}`},
		{everyone, `GET /v1/capabilities; GET /v1/capabilities/{ref}`},
		{uploaders, `POST /v1/biomes/{name}/promote`},
		{admins, `PUT /v1/capabilities/{ref}/lifecycle; POST /v1/biomes/{name}/rollback; POST /v1/biomes/{name}/archive`},
		{operator, `POST /v1/orgs; POST /v1/environments; PUT /v1/environments/{slug}; DELETE /v1/environments/{slug}`}, // P1
	} {
		for o := range strings.SplitSeq(group.operations, ";") {
			may[strings.TrimSpace(o)] = group.roles
		}
	}
}

// P1, PF-A13: five roles, and a session, by every operation of the control plane: who may not is
// FORBIDDEN before anything else of the request is looked at, and who may is not. Nobody but an
// operator is anything in another organisation.
func TestWalkRoles(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Control("POST", "/v1/orgs", map[string]string{"id": "acme"}).Want(201)
	tokens := map[string]map[session.Role]string{"default": walkers(g, "default"), "acme": walkers(g, "acme")}
	s := g.Open("user:alice", "project", nil)
	walked := 0
	for _, o := range operations(g) {
		if o.Path == "/openapi.json" {
			continue
		}
		allowed, known := may[o.String()]
		if !known {
			t.Errorf("who may %s? The table of this test does not say", o)
			continue
		}
		walked++
		var body any
		if o.String() == "POST /v1/sessions" { // who may open one is settled with what it is to be
			body = map[string]string{"subject": "user:bob"}
		}
		g.Do(o.Method, g.Admin+o.example(), s.Token, body).Refused(abi.CodeForbidden)
		for org, roles := range tokens {
			for role, token := range roles {
				r := g.Do(o.Method, g.Admin+o.example()+"?org=default", token, body)
				// An organisation's list of organisations is itself, whoever asks.
				within := org == "default" || role == session.Operator || o.String() == "GET /v1/orgs"
				if want := slices.Contains(allowed, role) && within; (r.Code() == abi.CodeForbidden) == want || r.Status == 401 {
					t.Errorf("%s as %s of %s: %d %s", o, role, org, r.Status, r.Body)
				}
			}
		}
	}
	if walked != len(may) {
		t.Errorf("%d operations were walked, the table has %d", walked, len(may))
	}
}

// walkers are tokens of the five roles in an organisation.
func walkers(g *servertest.Gateway, org string) map[session.Role]string {
	g.T.Helper()
	out := map[session.Role]string{}
	for _, role := range []session.Role{session.Operator, session.OrgAdmin, session.Author, session.Approver, session.Auditor} {
		var made struct{ Token string }
		g.Control("POST", "/v1/tokens?org="+org, map[string]string{"principal": "walker-" + string(role), "role": string(role)}).Want(201).JSON(&made)
		out[role] = made.Token
	}
	return out
}

// X69, X70, X23: seven kinds of space by what they may lie in. An organisation's space holds no user's.
func TestWalkSpaceKinds(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	within := map[string]string{ // "-" is the outermost
		"system": "", "org": "-", "user": "-", "project": "org project", "app": "org project", "biome": "org project", "session": "org project app biome user",
	}
	parents := map[string]string{"-": "", "org": "default"}
	for _, kind := range []string{"user", "project", "app", "biome", "session"} {
		in := map[string]any{"id": "in-" + kind, "kind": kind}
		if kind != "user" {
			in["parent"] = "default"
		}
		g.Control("POST", "/v1/spaces", in).Want(201)
		parents[kind] = "in-" + kind
	}
	for kind, lie := range within {
		for parent, id := range parents {
			in := map[string]any{"id": strings.ReplaceAll("new-"+kind+"-in-"+parent, "--", "-none"), "kind": kind}
			if id != "" {
				in["parent"] = id
			}
			r := g.Control("POST", "/v1/spaces", in)
			if slices.Contains(strings.Fields(lie), parent) {
				r.Want(201)
			} else {
				r.Refused(abi.CodeInvalidRequest)
			}
		}
	}
	for _, kind := range []string{"", "team", "Org", "users", "biomes"} {
		g.Control("POST", "/v1/spaces", map[string]any{"id": "odd", "kind": kind, "parent": "default"}).Refused(abi.CodeInvalidRequest)
	}
	// What lies in what gives no right: who may everything in the one space may as much in the next, by
	// grants, and nothing without (X70).
	admit(g, "own", script("own", nil, action{ref: "own:a.do@1", reach: abi.ReachOwner}), []string{"session", "org"}, nil)
	for _, in := range []string{"in-session", "in-user", "default"} {
		g.Open("user:operator", "session", map[string]any{"space": in}).Invoke("own:a.do@1", none).Refused(abi.CodeMissingGrant)
	}
}

// X33, X38, S19: four kinds of subject by what they may be: a grant's, a session's, somebody's agent.
func TestWalkSubjectKinds(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "sub", script("sub", nil, action{ref: "sub:a.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	for _, c := range []struct {
		subject       string
		granted       bool
		alone, withUs bool // a session by itself, and for user:alice
	}{
		{"user:bob", true, true, false},
		{"app:shop", true, true, false},
		{"agent:bot", true, false, true},
		{"biome:sub", true, false, false},
		{"group:all", false, false, false},
		{"principal:default/operator", false, false, false},
		{"User:bob", false, false, false},
		{"user:", false, false, false},
		{"user:*", false, false, false},
		{"*", false, false, false},
		{"bob", false, false, false},
	} {
		t.Run(c.subject, func(t *testing.T) {
			want := func(r servertest.Response, ok bool) {
				t.Helper()
				if ok {
					r.Want(201)
				} else {
					r.Refused(abi.CodeInvalidRequest)
				}
			}
			open := func(user string) servertest.Response {
				in := map[string]any{"subject": c.subject, "environment": "environment:project"}
				if user != "" {
					in["user"] = user
				}
				return g.Control("POST", "/v1/sessions", in)
			}
			want(open(""), c.alone)
			want(open("user:alice"), c.withUs)
			want(open("agent:other"), false)
			if c.alone || c.withUs { // nobody is granted anything for being there
				more := map[string]any{}
				if c.withUs {
					more["user"] = "user:alice"
				}
				s := g.Open(c.subject, "project", more)
				s.Invoke("sub:a.do@1", none).Refused(abi.CodeMissingGrant)
				g.Grant(c.subject, "sub:a.do@1", "project")
				s.Invoke("sub:a.do@1", none).Want(200)
				return
			}
			want(g.Control("POST", "/v1/grants", map[string]any{"subject": c.subject, "capability": "sub:a.do@1", "environment": "environment:project"}), c.granted)
		})
	}
}

// X16, X22, X24, S3: five labels by five, for each kind of sink: a request to an endpoint, a key of a
// space, an answer to a session. Data goes where the sink is cleared for it, and nowhere else.
func TestWalkFlows(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	origin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer origin.Close()
	g := servertest.Start(t, func(o *server.Options) { o.EgressLoopback = true })
	labels := abi.Classifications()
	var actions []action
	var needs []abi.Need
	var names []string
	for _, c := range labels {
		at := origin.URL + "/" + c.String() + "/"
		rule := ruleFor(origin.URL, "/"+c.String()+"/**")
		endpoint(g, c.String(), origin.URL, map[string]any{"rule": rule, "clearance": c.String(), "label": "public"})
		needs, names = append(needs, abi.Need{Name: c.String(), Why: "test"}), append(names, c.String())
		actions = append(actions, action{ref: "flow:" + c.String() + ".send@1", reach: abi.ReachIntegration, steps: []step{do("http_fetch", `{"method":"GET","url":"`+at+`"}`, "")}})
		g.Control("POST", "/v1/spaces", map[string]any{"id": "floor-" + c.String(), "kind": "project", "parent": "default", "floor": c.String()}).Want(201)
	}
	actions = append(actions,
		action{ref: "flow:key.put@1", reach: abi.ReachOwner, steps: []step{do("kv_put", "k", "1")}},
		action{ref: "flow:key.get@1", reach: abi.ReachOwner, steps: []step{do("kv_get", "k")}})
	admit(g, "flow", script("flow", func(m *abi.Manifest) { m.Requires.Endpoints = needs }, actions...), []string{"project"}, map[string]any{"endpoints": names})

	// Each call in a session of its own: what a session was given, it carries.
	call := func(ref string, label abi.Classification, more map[string]any) servertest.Response {
		return g.Open("user:alice", "project", more).Invoke(ref, none, "Ecotone-Classification", label.String())
	}
	sent := int64(0)
	for _, sink := range labels {
		floor := map[string]any{"space": "floor-" + sink.String()}
		for _, label := range labels {
			flows := label <= sink
			t.Run(fmt.Sprintf("%s to %s", label, sink), func(t *testing.T) {
				want := func(what string, r servertest.Response, function string) {
					t.Helper()
					code, _ := row(g, r).lineCode(function)
					if flows && (errno(r) != 0 || code != "") || !flows && (errno(r) != abi.EDENIED || code != abi.CodeClassificationFlow) {
						t.Errorf("%s: %s, the receipt says %q", what, r.Body, code)
					}
				}
				want("an endpoint", call("flow:"+sink.String()+".send@1", label, nil), "http_fetch")
				if flows {
					sent++
				}
				if got := hits.Load(); got != sent {
					t.Errorf("the origin saw %d requests, not %d", got, sent)
				}
				want("a key", call("flow:key.put@1", label, floor), "kv_put")
				r := call("flow:key.get@1", abi.Public, map[string]any{"clearance": sink.String()})
				if errno(r) != abi.ENOENT {
					t.Errorf("the organisation's own space has the key: %s", r.Body)
				}
				// An answer above what its session is cleared for is not made: the ceiling says so first.
				if r := call("flow:key.get@1", label, map[string]any{"clearance": sink.String()}); flows {
					r.Want(200)
				} else {
					r.Refused(abi.CodeClassificationCeiling)
				}
			})
		}
	}
}

// ruleFor is an endpoint rule for some paths of a loopback origin.
func ruleFor(url, path string) map[string]any {
	host, port, _ := strings.Cut(strings.TrimPrefix(url, "http://"), ":")
	return map[string]any{"scheme": "http", "host": host, "port": number(port), "methods": []string{"GET"}, "path": path}
}

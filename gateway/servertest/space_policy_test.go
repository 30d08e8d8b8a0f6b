package servertest_test

import (
	"fmt"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// X69: a space has a URI, from the least to the most specific of the closed kinds. It names the space where
// one is asked for, and only that way round; a chain that is not the space's own names nothing.
func TestSpaceURIs(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	space := func(in map[string]string) servertest.Response { return g.Control("POST", "/v1/spaces", in) }
	var s struct{ ID, URI, Parent string }
	space(map[string]string{"id": "team", "kind": "project", "parent": "ecotone://orgs/default"}).Want(201).JSON(&s)
	if s.URI != "ecotone://orgs/default/projects/team" || s.Parent != "default" {
		t.Errorf("%+v", s)
	}
	space(map[string]string{"id": "talk", "kind": "session", "parent": s.URI}).Want(201)
	space(map[string]string{"id": "alices", "kind": "user"}).Want(201)
	want := map[string]string{
		"default": "ecotone://orgs/default", "team": "ecotone://orgs/default/projects/team",
		"talk": "ecotone://orgs/default/projects/team/sessions/talk", "alices": "ecotone://users/alices",
	}
	var page struct{ Items []struct{ ID, URI string } }
	g.Control("GET", "/v1/spaces", nil).Want(200).JSON(&page)
	if len(page.Items) != len(want) {
		t.Errorf("%+v", page.Items)
	}
	for _, i := range page.Items {
		g.Control("GET", "/v1/spaces/"+i.ID, nil).Want(200).JSON(&s)
		if i.URI != want[i.ID] || s.URI != i.URI {
			t.Errorf("%s: listed as %s, shown as %s", i.ID, i.URI, s.URI)
		}
		var opened struct{ Of struct{ Space string } }
		g.Control("POST", "/v1/sessions", map[string]string{"subject": "user:alice", "environment": "environment:project", "space": i.URI}).Want(201).JSON(&opened)
		if opened.Of.Space != i.ID {
			t.Errorf("a session in %s is in %s", i.URI, opened.Of.Space)
		}
	}
	g.Control("GET", "/v1/spaces/nowhere", nil).Refused(abi.CodeNotFound)
	for uri, code := range map[string]abi.Code{
		"ecotone://sessions/talk/projects/team/orgs/default":     abi.CodeInvalidRequest, // the wrong way round
		"ecotone://projects/team":                                abi.CodeInvalidRequest, // lies in something
		"ecotone://orgs/default/users/alices":                    abi.CodeInvalidRequest, // no user's space lies in an organisation's
		"ecotone://teams/team":                                   abi.CodeInvalidRequest,
		"ecotone://orgs/default/projects/":                       abi.CodeInvalidRequest,
		"ecotone://":                                             abi.CodeInvalidRequest,
		"ecotone://orgs/default/projects/nowhere":                abi.CodeNotFound,
		"ecotone://orgs/default/sessions/talk":                   abi.CodeNotFound, // it lies elsewhere
		"ecotone://orgs/default/apps/team":                       abi.CodeNotFound, // it is something else
		"ecotone://orgs/default/projects/other/sessions/talk":    abi.CodeNotFound,
		"ecotone://orgs/default/projects/team/projects/team":     abi.CodeNotFound,
		"ecotone://users/alices/sessions/talk":                   abi.CodeNotFound,
		"ecotone://orgs/acme/projects/team":                      abi.CodeNotFound,
		"ecotone://orgs/default/projects/team/sessions/talk/a/b": abi.CodeInvalidRequest,
	} {
		g.Control("POST", "/v1/sessions", map[string]string{"subject": "user:alice", "environment": "environment:project", "space": uri}).Refused(code)
		space(map[string]string{"id": "new", "kind": "session", "parent": uri}).Refused(code)
	}
}

// X69, X18: where data lives and what trust applies are two questions: one key of one space, asked for in
// two environments, is read in the one, and in the other, whose ceiling is below the space's floor, is not.
func TestOneObjectTwoEnvironments(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	own(g, "low", "project", map[string]any{"maxDataClassification": "internal"}).Want(201)
	admit(g, "two", script("two", nil,
		action{ref: "two:key.put@1", reach: abi.ReachOwner, steps: []step{do("kv_put", "k", `"here"`)}},
		action{ref: "two:key.get@1", reach: abi.ReachOwner, steps: []step{do("kv_get", "k")}, register: true},
	), []string{"project", "low"}, nil)
	g.Control("POST", "/v1/spaces", map[string]string{"id": "team", "kind": "project", "parent": "default", "floor": "public"}).Want(201)
	g.Control("POST", "/v1/spaces", map[string]string{"id": "vault", "kind": "project", "parent": "default", "floor": "confidential"}).Want(201)
	in := func(environment, space string) *servertest.Session {
		return g.Open("user:alice", environment, map[string]any{"space": space})
	}
	if got := errno(in("project", "team").Invoke("two:key.put@1", none)); got != 0 {
		t.Fatalf("errno %d", got)
	}
	for _, environment := range []string{"project", "low"} { // one object, one verdict: its label is within both
		if r := in(environment, "team").Invoke("two:key.get@1", none).Want(200); string(r.Body) != `"here"` {
			t.Errorf("in %s: %s", environment, r.Body)
		}
	}
	if got := errno(in("project", "vault").Invoke("two:key.put@1", none)); got != 0 {
		t.Fatalf("errno %d", got)
	}
	if r := in("project", "vault").Invoke("two:key.get@1", none).Want(200); string(r.Body) != `"here"` {
		t.Errorf("in project: %s", r.Body)
	}
	verdict := func(s *servertest.Session, says string, header ...string) (e explanation) {
		t.Helper()
		var p struct{ Detail string }
		if n := started(g, func() { s.Invoke("two:key.get@1", none, header...).Refused(abi.CodeClassificationCeiling).JSON(&p) }); n != 0 || p.Detail != says {
			t.Errorf("%d guests were started, and the refusal says %q", n, p.Detail)
		}
		s.Explain("two:key.get@1", none, header...).Want(200).JSON(&e)
		return e
	}
	// What refuses is named: where the data lives, and what trust applies.
	e := verdict(in("low", "vault"), "it would begin confidential by the space, and the environment takes up to internal")
	if fmt.Sprint(e.Labels) != "[{space confidential} {session public}]" || fmt.Sprint(e.Ceilings) != "[{environment internal} {space regulated} {session regulated}]" {
		t.Errorf("explained as %v under %v", e.Labels, e.Ceilings)
	}
	g.Control("POST", "/v1/spaces", map[string]string{"id": "open", "kind": "project", "parent": "default", "clearance": "internal"}).Want(201)
	verdict(in("project", "open"), "it would begin secret by the declaration, and the space takes up to internal, the session takes up to internal", "Ecotone-Classification", "secret")
	g.Control("PUT", "/v1/orgs/default/overrides/project", map[string]string{"maxDataClassification": "internal"}, "If-None-Match", "*").Want(200)
	e = verdict(in("project", "vault"), "it would begin confidential by the space, and the override takes up to internal")
	if fmt.Sprint(e.Ceilings) != "[{environment regulated} {override internal} {space regulated} {session regulated}]" {
		t.Errorf("explained under %v", e.Ceilings)
	}
}

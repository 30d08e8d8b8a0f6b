package servertest_test

import (
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// S17, PF-A14: over the real server, whose principal it is and what it is cleared for are the
// principal's, shown with each of its tokens, and fixed with the first of them.
func TestPrincipalsUserAndClearance(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	type status struct{ ID, User, Clearance string }
	issue := func(token string, in map[string]any) servertest.Response {
		return g.Do("POST", g.Admin+"/v1/tokens", token, in)
	}
	approver := map[string]any{"principal": "ann", "role": "approver", "user": "user:ann", "clearance": "secret"}
	var made struct {
		Token string
		Of    status
	}
	issue(g.Operator, approver).Want(201).JSON(&made)
	if made.Of.User != "user:ann" || made.Of.Clearance != "secret" {
		t.Errorf("%+v", made.Of)
	}
	var page struct{ Items []status }
	g.Control("GET", "/v1/tokens", nil).Want(200).JSON(&page)
	shown := map[string]status{}
	for _, s := range page.Items {
		shown[s.ID] = s
	}
	if shown[made.Of.ID] != made.Of {
		t.Errorf("listed as %+v", shown[made.Of.ID])
	}
	for name, v := range map[string]any{"user": "user:bob", "clearance": "internal", "role": "auditor"} {
		in := map[string]any{"principal": "ann", "role": "approver"}
		in[name] = v
		var p struct{ Pointer string }
		if issue(g.Operator, in).Refused(abi.CodeConflict).JSON(&p); p.Pointer != "/"+name {
			t.Errorf("%s: pointer %s", name, p.Pointer)
		}
	}
	issue(g.Operator, map[string]any{"principal": "bob", "role": "approver", "user": "agent:bot"}).Refused(abi.CodeInvalidRequest)
	issue(g.Operator, map[string]any{"principal": "bob", "role": "approver", "clearance": "top"}).Refused(abi.CodeInvalidRequest)
	admin := walkers(g, "default")["org-admin"]
	issue(admin, approver).Refused(abi.CodeForbidden)
	issue(admin, map[string]any{"principal": "ann", "role": "approver"}).Refused(abi.CodeForbidden)
	issue(admin, map[string]any{"principal": "carol", "role": "approver", "user": "user:carol"}).Want(201)
}

package servertest_test

import (
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// X62, S17, PF-I7: an author's version gets out of sandbox by somebody else's word: until then it waits, and is
// callable in sandbox only. Who uploaded it, or asks, decides nothing of it; what is approved is what was
// asked for, installed with the approver's name, across a restart; and what is rejected or changed is not.
func TestPromotion(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	token := func(name, role, user string) string {
		in := map[string]any{"principal": name, "role": role, "user": "user:" + user, "clearance": "internal"}
		var made struct{ Token string }
		g.Control("POST", "/v1/tokens", in).Want(201).JSON(&made)
		return made.Token
	}
	ann, anns, cheri, dan := token("ann", "author", "ann"), token("ann-too", "org-admin", "ann"), token("cheri", "approver", "cheri"), token("dan", "org-admin", "dan")
	as := func(token, method, path string, body any, header ...string) servertest.Response {
		t.Helper()
		return g.Do(method, g.Admin+path, token, body, header...)
	}
	upload := func(n string) string {
		var up struct{ Biome struct{ Digest string } }
		as(ann, "POST", "/v1/biomes", script("prom", nil, action{ref: "prom:a.do@1", reach: abi.ReachOwner, steps: []step{do("kv_get", n)}}), "Content-Type", "application/wasm").Want(201).JSON(&up)
		return up.Biome.Digest
	}
	digest := upload("1")
	g.Grant("user:alice", "prom:a.do@1", "project")
	g.Grant("user:alice", "prom:a.do@1", "sandbox")
	s := g.Open("user:alice", "project", nil)
	g.Open("user:alice", "sandbox", nil).Invoke("prom:a.do@1", none).Want(200)
	s.Invoke("prom:a.do@1", none).Refused(abi.CodeEnvironmentNotGranted)
	want := map[string]any{"digest": digest, "environments": []string{"environment:project"}}
	as(ann, "PUT", "/v1/installs/prom", want, "If-None-Match", "*").Refused(abi.CodeForbidden)

	var waits struct{ Status, Approval, Permissions, Digest string }
	promote := func(token string, in map[string]any) string {
		t.Helper()
		r := as(token, "POST", "/v1/biomes/prom/promote", in).Want(202)
		if r.JSON(&waits); r.Header.Get("Location") != "/v1/approvals/"+waits.Approval || waits.Status != "needs_approval" || waits.Digest != digest {
			t.Errorf("%v %s", r.Header, r.Body)
		}
		return waits.Approval
	}
	stage := func(want string) {
		t.Helper()
		var b struct{ Stage string }
		var list struct {
			Items []struct{ Digest, Stage string }
		}
		g.Control("GET", "/v1/biomes/prom", nil).Want(200).JSON(&b)
		g.Control("GET", "/v1/biomes/prom/versions", nil).Want(200).JSON(&list)
		for _, v := range list.Items {
			if v.Digest == digest && (v.Stage != want || b.Stage != want) {
				t.Errorf("the version is %s, the biome %s, not %s", v.Stage, b.Stage, want)
			}
		}
	}
	decide := func(token, id, verdict string) servertest.Response {
		t.Helper()
		return as(token, "POST", "/v1/approvals/"+id+"/"+verdict, map[string]string{"reason": "because"})
	}
	stage("sandbox-installed")
	id := promote(ann, want)
	stage("review-required")
	if waits.Permissions != permissionsOf(g, "prom", digest).Permissions {
		t.Errorf("it waits with the permissions %s", waits.Permissions)
	}
	if shown := string(g.Control("GET", "/v1/approvals/"+id, nil).Want(200).Body); !strings.Contains(shown, waits.Permissions) || !strings.Contains(shown, digest) || !strings.Contains(shown, "environment:project") {
		t.Errorf("an approver is shown %s", shown)
	}
	s.Invoke("prom:a.do@1", none).Refused(abi.CodeEnvironmentNotGranted)

	decide(ann, id, "approve").Refused(abi.CodeForbidden)
	decide(anns, id, "approve").Refused(abi.CodeForbidden) // the same user by another name
	decide(s.Token, id, "approve").Refused(abi.CodeForbidden)
	decide(cheri, id, "approve").Refused(abi.CodeNotFound) // an approver of nothing
	g.Control("POST", "/v1/approve-grants", map[string]any{"principal": "cheri", "capability": "prom:a.do@1"}).Want(201)
	decide(cheri, id, "approve").Refused(abi.CodeNotFound) // of invocations
	g.Control("POST", "/v1/approve-grants", map[string]any{"principal": "cheri", "capability": "*"}).Want(201)

	// Rejected is over.
	decide(cheri, id, "reject").Want(200)
	decide(cheri, id, "approve").Refused(abi.CodeApprovalRejected)
	stage("sandbox-installed")
	// Asked for by somebody else, it is still its uploader's.
	id = promote(dan, want)
	decide(anns, id, "approve").Refused(abi.CodeForbidden)
	decide(dan, id, "approve").Refused(abi.CodeForbidden)
	decide(cheri, id, "reject").Want(200)

	id = promote(ann, want)
	g.Stop()
	g = servertest.Start(t, servertest.In(g.Dir))
	s.G = g
	stage("review-required")
	upload("2") // not what was asked for
	if r := decide(cheri, id, "approve").Want(200); !strings.Contains(string(r.Body), `"done"`) {
		t.Errorf("%s", r.Body)
	}
	stage("org-installed")
	if got := served(g, s, "prom:a.do@1"); got != digest {
		t.Errorf("%s is served", got)
	}
	var i grant.Install
	g.Control("GET", "/v1/installs/prom", nil).Want(200).JSON(&i)
	if i.Approval != id || i.CreatedBy != "principal:default/cheri" || i.Permissions != waits.Permissions || i.Revision != 1 {
		t.Errorf("%+v", i)
	}
	events := map[string]int{}
	for _, r := range g.Rows("&kind=admin") {
		if a, _ := r["admin"].(map[string]any); a["code"] == nil {
			events[a["operation"].(string)]++
		}
	}
	if events["biome.promotion.requested"] != 3 || events["approval.approved"] != 1 || events["approval.rejected"] != 2 || events["install.created"] != 0 {
		t.Errorf("%v", events)
	}
	decide(cheri, id, "approve").Want(200) // once
	g.Control("GET", "/v1/installs/prom", nil).Want(200).JSON(&i)
	if i.Revision != 1 {
		t.Error("it was installed twice")
	}

	// What is installed in between voids what was asked for before.
	id = promote(ann, want)
	g.Install("prom", []string{"project"}, nil).Want(200)
	decide(cheri, id, "approve").Refused(abi.CodeApprovalStale)
	if got := served(g, s, "prom:a.do@1"); got == digest {
		t.Error("a void approval installed")
	}
	for name, in := range map[string]map[string]any{
		"permissions": {"digest": digest, "environments": []string{"environment:project"}, "permissions": "0"},
		"nowhere":     {"digest": digest},
		"a secret":    {"digest": digest, "environments": []string{"environment:project"}, "secrets": []string{"x"}},
	} {
		if r := as(ann, "POST", "/v1/biomes/prom/promote", in); r.Status < 400 {
			t.Errorf("%s can be asked for: %s", name, r.Body)
		}
	}
}

package servertest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// X2, X17: the built-in set is nine and closed, and a ceiling is never null.
func TestBuiltInEnvironments(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	type shown struct {
		Slug, Ref, Enforcement string
		Reach                  string  `json:"reachCeiling"`
		MaxData                *string `json:"maxDataClassification"`
		BuiltIn                bool    `json:"isBuiltIn"`
		Available              bool
	}
	list := func() []shown {
		var page struct{ Items []shown }
		g.Control("GET", "/v1/environments?builtin=true", nil).Want(200).JSON(&page)
		return page.Items
	}
	before := list()
	var slugs []string
	for _, e := range before {
		slugs = append(slugs, e.Slug)
		if e.MaxData == nil || *e.MaxData != "regulated" || !e.BuiltIn || e.Ref != "environment:"+e.Slug || e.Available != (e.Slug != "trusted-dev") {
			t.Errorf("%+v", e)
		}
	}
	if want := []string{"app", "org", "project", "public", "sandbox", "session", "store-review", "system", "trusted-dev"}; !slices.Equal(slugs, want) {
		t.Errorf("%q", slugs)
	}
	g.Control("POST", "/v1/environments", map[string]any{"slug": "tenth"}).Refused(abi.CodeBuiltInImmutable)
	for _, e := range before {
		path := "/v1/environments/" + e.Slug
		tag := g.Control("GET", path, nil).Want(200).Header.Get("ETag")
		g.Control("DELETE", path, nil).Refused(abi.CodeBuiltInImmutable)
		for _, change := range []map[string]any{
			{"slug": "other"},
			{"ref": "environment:other"},
			{"isBuiltIn": false},
			{"reachCeiling": other(e.Reach, "owner", "platform")},
			{"enforcement": other(e.Enforcement, "boundary", "refinement")},
			{"maxDataClassification": "internal"},
		} {
			g.Control("PUT", path, change, "If-Match", tag).Refused(abi.CodeBuiltInImmutable)
		}
		g.Control("PUT", path, map[string]any{"maxDataClassification": nil}, "If-Match", tag).Refused(abi.CodeInvalidRequest)
		g.Control("PUT", path, map[string]any{"allowedCapabilities": []string{}}, "If-Match", tag).Refused(abi.CodeUnsupportedRule)
	}
	if after := list(); len(after) != 9 {
		t.Errorf("%d environments", len(after))
	}
	g.Control("GET", "/v1/environments/tenth", nil).Refused(abi.CodeNotFound)
}

func other(have, a, b string) string {
	if have == a {
		return b
	}
	return a
}

// X5, X6: in trusted-dev what the manifest declares runs without grant, rate or approval (300
// calls here: more show nothing else), what it does not declare does not, and each call has
// its row.
func TestTrustedDevWaivesAndRecords(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, servertest.Dev)
	g.Upload(script("other", nil, action{ref: "other:a.do@1", reach: abi.ReachOwner})).Want(201)
	g.Upload(script("dev", requires("other:a.do@1"),
		action{ref: "dev:approval.do@1", reach: abi.ReachPlatform, shape: func(d *abi.Descriptor) { d.RequiresApproval = true }},
		action{ref: "dev:declared.call@1", reach: abi.ReachOwner, steps: []step{do("capability_invoke", "other:a.do@1", "{}")}},
		action{ref: "dev:undeclared.call@1", reach: abi.ReachOwner, steps: []step{do("capability_invoke", "dev:approval.do@1", "{}")}},
	)).Want(201)
	s := g.Open("user:alice", "trusted-dev", map[string]any{"space": "dev"})
	const calls = 300
	for range calls {
		s.Invoke("dev:approval.do@1", none).Want(200)
	}
	if got := errno(s.Invoke("dev:declared.call@1", none)); got != 0 {
		t.Errorf("declared: errno %d", got)
	}
	if got := errno(s.Invoke("dev:undeclared.call@1", none)); got != abi.EDENIED {
		t.Errorf("undeclared: errno %d", got)
	}
	s.Invoke("dev:unknown.do@1", none).Refused(abi.CodeCapabilityUnknown)
	rows, after := 0, ""
	for {
		var page struct {
			Items []auditRow
			Next  string
		}
		g.Control("GET", "/v1/audit?kind=invocation&capability=dev:approval.do@1&limit=100"+after, nil).Want(200).JSON(&page)
		for _, r := range page.Items {
			if r.Decision.Environment != "environment:trusted-dev" {
				t.Errorf("a row in %s", r.Decision.Environment)
			}
		}
		rows += len(page.Items)
		if page.Next == "" {
			break
		}
		after = "&after=" + page.Next
	}
	if rows != calls {
		t.Errorf("%d calls, %d rows", calls, rows)
	}
}

// X7: trusted-dev is not there without --dev, and with it only for spaces that are not for
// production.
func TestTrustedDevStaysAwayFromProduction(t *testing.T) {
	t.Parallel()
	in := map[string]any{"subject": "user:alice", "environment": "environment:trusted-dev"}
	servertest.Start(t).Control("POST", "/v1/sessions", in).Refused(abi.CodeEnvironmentUnusable)
	g := servertest.Start(t, servertest.Dev)
	g.Control("POST", "/v1/spaces", map[string]any{"id": "prod", "kind": "project", "parent": "default", "production": true}).Want(201)
	g.Control("POST", "/v1/spaces", map[string]any{"id": "inner", "kind": "project", "parent": "prod"}).Want(201)
	for _, space := range []string{"prod", "inner"} {
		in["space"] = space
		g.Control("POST", "/v1/sessions", in).Refused(abi.CodeEnvironmentUnusable)
	}
	in["space"] = "dev"
	g.Control("POST", "/v1/sessions", in).Want(201)
}

// X12: a capability that is new is judged by what it declares in all nine environments, and no
// environment was touched for it.
func TestCeilingsAreNotLists(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, servertest.Dev)
	before := g.Control("GET", "/v1/environments", nil).Want(200).Body
	for _, r := range abi.Reaches() {
		name := "new-" + r.String()
		admit(g, name, script(name, nil, action{ref: "new:" + r.String() + ".do@1", reach: r}), everywhere(), nil)
		for _, e := range environment.BuiltIns() {
			res := open(g, e).Invoke("new:"+r.String()+".do@1", none)
			if r.Within(e.Reach) {
				res.Want(200)
			} else {
				res.Refused(abi.CodeReachCeiling)
			}
		}
	}
	if after := g.Control("GET", "/v1/environments", nil).Want(200).Body; string(after) != string(before) {
		t.Errorf("%s\n%s", before, after)
	}
}

// X16: the five levels are ordered: what is declared is allowed exactly up to what the session
// is cleared for.
func TestClassificationsAreOrdered(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "order", script("order", nil, action{ref: "order:a.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	for i, clearance := range abi.Classifications() {
		for j, declared := range abi.Classifications() {
			s := g.Open("user:alice", "project", map[string]any{"clearance": clearance})
			r := s.Invoke("order:a.do@1", none, "Ecotone-Classification", declared.String())
			if j <= i {
				r.Want(200)
			} else {
				r.Refused(abi.CodeClassificationCeiling)
			}
		}
	}
}

// X18: an object above the ceiling is read by nobody: the guest gets an errno, which is that of
// an absent object, and no byte; the receipt tells the auditor why.
func TestObjectsAboveTheCeiling(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "read", script("read", nil,
		action{ref: "read:file.read@1", reach: abi.ReachOwner, steps: []step{do("file_read", "import.json", 0, 100)}, register: true},
		action{ref: "read:absent.read@1", reach: abi.ReachOwner, steps: []step{do("file_read", "absent.json", 0, 100)}, register: true},
		action{ref: "read:file.write@1", reach: abi.ReachOwner, steps: []step{do("file_create", "own.json", "1")}},
	), []string{"project"}, nil)
	low := g.Open("user:alice", "project", map[string]any{"files": true})
	if got := errno(low.Invoke("read:file.write@1", none)); got != 0 { // makes the workspace
		t.Fatalf("errno %d", got)
	}
	// What the operator puts there is regulated unless it was imported as something else.
	if err := os.WriteFile(filepath.Join(g.Dir, "workspaces", low.Workspace, "import.json"), []byte(`"canary"`), 0o600); err != nil {
		t.Fatal(err)
	}
	g.Control("PUT", "/v1/orgs/default/overrides/project", map[string]string{"maxDataClassification": "internal"}, "If-None-Match", "*").Want(200)
	r := low.Invoke("read:file.read@1", none)
	if errno(r) != abi.ENOENT || errno(low.Invoke("read:absent.read@1", none)) != abi.ENOENT {
		t.Errorf("%s", r.Body)
	}
	if code, _ := row(g, r).lineCode("file_read"); code != abi.CodeClassificationCeiling {
		t.Errorf("the receipt says %q", code)
	}
	if got := r.Header.Get("Ecotone-Classification"); got != "public" {
		t.Errorf("the answer is labelled %s", got)
	}
	g.Control("PUT", "/v1/orgs/default/overrides/project", map[string]string{"maxDataClassification": "regulated"}, "If-Match", `"1"`).Want(200)
	if r := low.Invoke("read:file.read@1", none).Want(200); string(r.Body) != `"canary"` || r.Header.Get("Ecotone-Classification") != "regulated" {
		t.Errorf("%s %s", r.Header.Get("Ecotone-Classification"), r.Body)
	}
}

// X19, X20, X21: an organisation's override is its own, applies to built-ins only, and never
// makes anything allowed that was not.
func TestOverridesAreOnesOwnAndTighten(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	shown := g.Control("GET", "/v1/environments/project", nil).Want(200).Body
	open := map[string]func() *servertest.Session{}
	for _, org := range []string{"default", "acme"} {
		if org != "default" {
			g.Control("POST", "/v1/orgs", map[string]string{"id": org}).Want(201)
		}
		q := "?org=" + org
		var b struct{ Biome struct{ Digest string } }
		g.Control("POST", "/v1/biomes"+q, script("tight", nil, action{ref: "tight:a.do@1", reach: abi.ReachOwner}), "Content-Type", "application/wasm").Want(201).JSON(&b)
		g.Control("PUT", "/v1/installs/tight"+q, map[string]any{"digest": b.Biome.Digest, "environments": []string{"environment:project", "environment:org"}}, "If-None-Match", "*").Want(200)
		g.Control("POST", "/v1/grants"+q, map[string]string{"subject": "user:alice", "capability": "tight:a.do@1", "environment": "environment:project"}).Want(201)
		open[org] = func() *servertest.Session {
			var out struct{ Token string }
			g.Control("POST", "/v1/sessions"+q, map[string]string{"subject": "user:alice", "environment": "environment:project"}).Want(201).JSON(&out)
			return &servertest.Session{G: g, Token: out.Token}
		}
	}
	allowed := func(org string) (out []abi.Classification) {
		for _, c := range abi.Classifications() {
			if open[org]().Invoke("tight:a.do@1", none, "Ecotone-Classification", c.String()).Status == 200 {
				out = append(out, c)
			}
		}
		return out
	}
	without, revision := allowed("acme"), 0
	for _, limit := range []string{"confidential", "public", "regulated", "internal"} {
		header := []string{"If-None-Match", "*"}
		if revision > 0 {
			header = []string{"If-Match", `"` + strconv.Itoa(revision) + `"`}
		}
		g.Control("PUT", "/v1/orgs/default/overrides/project", map[string]string{"maxDataClassification": limit}, header...).Want(200)
		revision++
		for _, c := range allowed("default") {
			if !slices.Contains(without, c) || !c.FlowsTo(classification(t, limit)) {
				t.Errorf("under %s %s is allowed", limit, c)
			}
		}
		// It grants nothing: another subject is refused as before.
		g.Open("user:bob", "project", nil).Invoke("tight:a.do@1", none).Refused(abi.CodeMissingGrant)
	}
	if got := allowed("acme"); !slices.Equal(got, without) || len(got) != 5 {
		t.Errorf("acme is allowed %v", got)
	}
	if after := g.Control("GET", "/v1/environments/project", nil).Want(200).Body; string(after) != string(shown) {
		t.Error("the built-in changed")
	}
	g.Control("PUT", "/v1/orgs/default/overrides/mine", map[string]string{"maxDataClassification": "public"}, "If-None-Match", "*").Refused(abi.CodeUnsupportedRule)
	g.Control("PUT", "/v1/orgs/default/overrides/project", none, "If-Match", fmt.Sprintf("%q", strconv.Itoa(revision))).Refused(abi.CodeInvalidRequest)
	g.Control("PUT", "/v1/orgs/nobody/overrides/project", map[string]string{"maxDataClassification": "public"}, "If-None-Match", "*").Refused(abi.CodeNotFound)
}

func classification(t *testing.T, s string) abi.Classification {
	c, err := abi.ParseClassification(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// X22, X23: floors join: a capability that declares its output public answers confidential in a
// confidential space, and a space inside may only raise the floor and lower the clearance.
func TestFloorsJoin(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Upload(script("join", nil,
		action{ref: "join:public.do@1", reach: abi.ReachOwner},
		action{ref: "join:secret.do@1", reach: abi.ReachOwner, shape: func(d *abi.Descriptor) { d.OutputClassification = abi.Secret }},
	)).Want(201)
	g.Install("join", []string{"project"}, nil).Want(200)
	g.Grant("user:alice", "join:public.do@1", "project")
	g.Grant("user:alice", "join:secret.do@1", "project")
	g.Control("POST", "/v1/spaces", map[string]any{"id": "vault", "kind": "project", "parent": "default", "floor": "confidential"}).Want(201)
	for _, c := range []struct{ space, ref, declared, want string }{
		{"default", "join:public.do@1", "", "public"},
		{"default", "join:public.do@1", "internal", "internal"},
		{"default", "join:secret.do@1", "public", "secret"},
		{"vault", "join:public.do@1", "public", "confidential"},
		{"vault", "join:public.do@1", "regulated", "regulated"},
		{"vault", "join:secret.do@1", "", "secret"},
	} {
		var header []string
		if c.declared != "" {
			header = []string{"Ecotone-Classification", c.declared}
		}
		r := g.Open("user:alice", "project", map[string]any{"space": c.space}).Invoke(c.ref, none, header...).Want(200)
		if got := r.Header.Get("Ecotone-Classification"); got != c.want {
			t.Errorf("%+v: labelled %s", c, got)
		}
	}
	for _, in := range []map[string]any{{"floor": "internal"}, {"floor": "public"}} {
		in["id"], in["kind"], in["parent"] = "lower", "project", "vault"
		g.Control("POST", "/v1/spaces", in).Refused(abi.CodeCeilingLoosened)
	}
	g.Control("POST", "/v1/spaces", map[string]any{"id": "low", "kind": "project", "parent": "default", "clearance": "internal"}).Want(201)
	g.Control("POST", "/v1/spaces", map[string]any{"id": "lower", "kind": "project", "parent": "low", "clearance": "secret"}).Refused(abi.CodeCeilingLoosened)
	g.Control("POST", "/v1/sessions", map[string]any{"subject": "user:alice", "space": "low", "clearance": "secret"}).Refused(abi.CodeCeilingLoosened)
}

// H3: one module under four set-ups has the four outcomes the set-ups say.
func TestFourSetUps(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	origin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer origin.Close()
	g := servertest.Start(t, func(o *server.Options) { o.EgressLoopback = true })
	endpoint(g, "origin", origin.URL, nil)
	fetch := action{ref: "h3:page.get@1", reach: abi.ReachIntegration, steps: []step{do("http_fetch", `{"method":"GET","url":"`+origin.URL+`/"}`, "")}}
	approval := fetch
	approval.ref, approval.shape = "h3:page.post@1", func(d *abi.Descriptor) { d.RequiresApproval = true }
	admit(g, "h3", script("h3", func(m *abi.Manifest) { m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}} }, fetch, approval),
		[]string{"project", "sandbox"}, map[string]any{"endpoints": []string{"origin"}})
	project, sandbox := g.Open("user:alice", "project", nil), g.Open("user:alice", "sandbox", nil)
	if errno(project.Invoke("h3:page.get@1", none)) != 0 || hits.Load() != 1 {
		t.Error("project with the endpoint: it does not get there")
	}
	sandbox.Invoke("h3:page.get@1", none).Refused(abi.CodeReachCeiling)
	project.Invoke("h3:page.post@1", none).Waits()
	g.Install("h3", []string{"project", "sandbox"}, nil).Want(200)
	if errno(project.Invoke("h3:page.get@1", none)) != abi.EDENIED {
		t.Error("project without the endpoint")
	}
	if hits.Load() != 1 {
		t.Errorf("the origin was called %d times", hits.Load())
	}
}

// doors is a module with one capability for each host function, declared at the reach that the
// function needs, and one that declares owner all the same.
func doors() []byte {
	sample := map[string][]any{
		"file_edit": {"door.txt", "a", "b", 0}, "file_read": {"door.txt", 0, 10}, "http_fetch": {`{"method":"GET","url":"https://origin.example/"}`, ""},
		"capability_invoke": {"nobody:has.this@1", "{}"}, "audit_query": {"{}"}, "output": {"{}"},
		"random": {bufferAt, 16}, "result_read": {bufferAt, 0, 16}, "result_meta": {bufferAt, 0, 16}, "error": {"not a code", ""},
	}
	var all []action
	for _, fn := range abi.Functions() {
		args, given := sample[fn.Name]
		for i := 0; !given && i < len(fn.Params); i++ {
			switch p := fn.Params[i]; {
			case strings.HasSuffix(p.Name, "_ptr"):
				args = append(args, "door")
				i++
			default:
				args = append(args, 1)
			}
		}
		name := strings.ReplaceAll(fn.Name, "_", "-")
		all = append(all, action{ref: "doors:" + name + ".open@1", reach: fn.Reach, steps: []step{do(fn.Name, args...)}})
		if fn.Reach != abi.ReachOwner {
			all = append(all, action{ref: "doors:" + name + ".sneak@1", reach: abi.ReachOwner, steps: []step{do(fn.Name, args...)}})
		}
	}
	return script("doors", nil, all...)
}

// X51, H1: each host function, from each environment: reached exactly where its reach is within
// the environment's; where it is not, nothing of the guest runs. A capability that declares less
// than the function needs finds a stub in every environment.
func TestEveryDoorInEveryEnvironment(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, servertest.Dev)
	admit(g, "doors", doors(), everywhere(), nil)
	for _, e := range environment.BuiltIns() {
		more := map[string]any{"files": true}
		if e.Waives {
			more["space"] = "dev"
		}
		s := g.Open("user:alice", e.Slug, more)
		for _, fn := range abi.Functions() {
			name := "doors:" + strings.ReplaceAll(fn.Name, "_", "-")
			if !fn.Reach.Within(e.Reach) {
				if n := started(g, func() { s.Invoke(name+".open@1", none).Refused(abi.CodeReachCeiling) }); n != 0 {
					t.Errorf("%s in %s started a guest", fn.Name, e.Slug)
				}
			} else {
				r := s.Invoke(name+".open@1", none).Want(200)
				if code, made := row(g, r).lineCode(fn.Name); !made && fn.Receipt != "" || code == abi.CodeReachCeiling {
					t.Errorf("%s in %s: made %v, %q", fn.Name, e.Slug, made, code)
				}
			}
			if fn.Reach == abi.ReachOwner {
				continue
			}
			r := s.Invoke(name+".sneak@1", none)
			if got := errno(r); got != abi.EDENIED {
				t.Errorf("%s declared owner in %s: errno %d", fn.Name, e.Slug, got)
			}
			if code, made := row(g, r).lineCode(fn.Name); !made || code != abi.CodeReachCeiling {
				t.Errorf("%s declared owner in %s: the receipt says %q", fn.Name, e.Slug, code)
			}
		}
	}
	// Whatever is not in the table is no door at all.
	for _, name := range []string{"net_fetch", "file_open", "exec", "environ", "Input", "input2"} {
		module := strings.Replace(string(script("undoor", nil, action{ref: "undoor:a.do@1", reach: abi.ReachPlatform, steps: []step{do("kv_delete", "k")}})),
			"kv_delete", (name + "_________")[:9], 1)
		if r := g.Upload([]byte(module)); r.Status != 422 || !strings.Contains(string(r.Body), string(abi.CodeImportUnknown)) {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
	}
	var list struct{ Items []json.RawMessage }
	g.Control("GET", "/v1/biomes", nil).Want(200).JSON(&list)
	if len(list.Items) != 1 {
		t.Errorf("%d biomes are there", len(list.Items))
	}
}

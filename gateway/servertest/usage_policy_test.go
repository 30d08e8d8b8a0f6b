package servertest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/gateway/usage"
)

// users is an organisation in which two biomes are uploaded, and with what they may need.
type users struct {
	*servertest.Gateway
	origin string
}

// in makes an organisation of the server with an administrator, and everything that grants could be about.
func (w *users) in(org string) *users {
	w.T.Helper()
	w.Control("POST", "/v1/orgs", map[string]string{"id": org}).Want(201)
	var admin struct{ Token string }
	w.Control("POST", "/v1/tokens?org="+org, map[string]any{"principal": "admin", "role": "org-admin"}).Want(201).JSON(&admin)
	g := *w.Gateway
	g.Operator = admin.Token
	out := &users{&g, w.origin}
	out.provide()
	return out
}

func (w *users) provide() {
	w.T.Helper()
	endpoint(w.Gateway, "origin", w.origin, nil)
	endpoint(w.Gateway, "spare", "http://127.0.0.1:9", nil)
	for _, name := range []string{"token", "signer", "spare"} {
		putSecret(w.Gateway, name, "a-value-of-"+name+"-0001")
	}
	var many []step
	for i := range 9 {
		many = append(many, do("kv_put", fmt.Sprintf("many/%d", i), "1"))
	}
	get := func(secret string) step {
		return do("http_fetch", `{"method":"GET","url":"`+w.origin+`/a"`+secret+`}`, "")
	}
	w.Upload(script("callee", nil,
		action{ref: "callee:a.do@1", reach: abi.ReachOwner, steps: []step{do("kv_put", "kept", "1")}},
		action{ref: "callee:b.do@1", reach: abi.ReachOwner},
	)).Want(201)
	w.Upload(script("used", func(m *abi.Manifest) {
		m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}, {Name: "spare", Why: "test"}}
		m.Requires.Secrets = []abi.Need{{Name: "token", Why: "test"}, {Name: "signer", Why: "test"}, {Name: "spare", Why: "test"}}
		m.Requires.Capabilities = []abi.CapabilityRef{"callee:a.do@1", "callee:b.do@1"}
	},
		action{ref: "used:a.do@1", reach: abi.ReachOwner, steps: []step{
			do("kv_put", "reports/a*b", "1"), do("kv_get", "reports/a*b"), do("file_create", "out.txt", "1"), do("file_move", "out.txt", "moved.txt"),
		}},
		action{ref: "used:b.do@1", reach: abi.ReachIntegration, steps: []step{get(`,"secret":"token"`), do("secret_hmac", "signer", "m")}},
		action{ref: "used:c.do@1", reach: abi.ReachOwner, steps: []step{do("kv_get", "absent"), do("capability_invoke", "callee:a.do@1", "{}")}},
		action{ref: "used:d.do@1", reach: abi.ReachOwner, steps: many},
		action{ref: "used:e.do@1", reach: abi.ReachOwner, steps: []step{do("kv_put", "never", "1")}},
	)).Want(201)
}

// works makes the calls, and says whether each did all that it did in development.
func (w *users) works(s *servertest.Session) bool {
	w.T.Helper()
	works := true
	for _, ref := range []string{"used:a.do@1", "used:b.do@1", "used:c.do@1", "used:d.do@1"} {
		r := s.Invoke(ref, none)
		if r.Status != 200 || errno(r) != 0 {
			works = false
			continue
		}
		for _, r := range append(childrenOf(w.Gateway, r), row(w.Gateway, r)) {
			for _, l := range r.Ended.Lines {
				if l.Code != "" && l.Code != abi.CodeKeyNotFound {
					works = false
				}
			}
		}
	}
	return works
}

// follow makes what is suggested, and ends what was made before.
func (w *users) follow(s usage.Suggested) {
	w.T.Helper()
	var page struct {
		Items []struct {
			ID      string
			Revoked any
		}
	}
	w.Control("GET", "/v1/grants?limit=500&subject=user:dev", nil).Want(200).JSON(&page)
	for _, g := range page.Items {
		if g.Revoked == nil {
			w.Control("DELETE", "/v1/grants/"+g.ID, nil).Want(200)
		}
	}
	for _, name := range []string{"used", "callee"} {
		if r := w.Control("GET", "/v1/installs/"+name, nil); r.Status == 200 {
			w.Control("DELETE", "/v1/installs/"+name, nil, "If-Match", r.Header.Get("ETag")).Want(200)
		}
	}
	for _, i := range s.Installs {
		w.Control("PUT", "/v1/installs/"+i.Biome, requestOf(i), "If-None-Match", "*").Want(200)
	}
	for _, g := range s.Grants {
		w.Control("POST", "/v1/grants", g).Want(201)
	}
}

func requestOf(i usage.Install) map[string]any {
	in := map[string]any{"digest": i.Digest, "environments": i.Environments}
	if i.Calls != nil {
		in["calls"] = i.Calls
	}
	if i.Endpoints != nil {
		in["endpoints"] = i.Endpoints
	}
	if i.Secrets != nil {
		in["secrets"] = i.Secrets
	}
	return in
}

// without lists the suggestion without each one thing that is in it.
func without(s usage.Suggested) map[string]usage.Suggested {
	out := map[string]usage.Suggested{}
	add := func(name string, change func(*usage.Suggested)) {
		c := s
		c.Installs, c.Grants = slices.Clone(s.Installs), slices.Clone(s.Grants)
		change(&c)
		out[name] = c
	}
	for i, in := range s.Installs {
		add("install of "+in.Biome, func(c *usage.Suggested) { c.Installs = slices.Delete(c.Installs, i, i+1) })
		for j, ref := range in.Calls {
			add("call of "+string(ref), func(c *usage.Suggested) { c.Installs[i].Calls = slices.Delete(slices.Clone(in.Calls), j, j+1) })
		}
		for j, name := range in.Endpoints {
			add("endpoint "+name, func(c *usage.Suggested) { c.Installs[i].Endpoints = slices.Delete(slices.Clone(in.Endpoints), j, j+1) })
		}
		for j, name := range in.Secrets {
			add("secret "+name, func(c *usage.Suggested) { c.Installs[i].Secrets = slices.Delete(slices.Clone(in.Secrets), j, j+1) })
		}
	}
	for i, g := range s.Grants {
		add("grant of "+string(g.Capability), func(c *usage.Suggested) { c.Grants = slices.Delete(c.Grants, i, i+1) })
		for j, glob := range g.Globs {
			add("glob "+glob+" of "+string(g.Capability), func(c *usage.Suggested) {
				c.Grants[i].Globs = slices.Delete(slices.Clone(g.Globs), j, j+1)
				if len(c.Grants[i].Globs) == 0 {
					c.Grants[i].Globs = []string{"nothing/of/it"}
				}
			})
		}
	}
	return out
}

// What a biome did in trusted-dev is suggested as the smallest set of grants: made in a new organisation, they let the same
// calls through in project, and without any one thing of them some call does not work.
func TestSuggestedGrants(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(origin.Close)
	w := &users{servertest.Start(t, servertest.Dev, func(o *server.Options) { o.EgressLoopback = true }), origin.URL}
	w.provide()
	began := time.Now().UTC().Format(time.RFC3339)
	dev := w.Open("user:dev", "trusted-dev", map[string]any{"space": "dev", "files": true})
	if !w.works(dev) {
		t.Fatal("it does not work in development")
	}
	suggest := func(query string) servertest.Response {
		return w.Control("GET", "/v1/biomes/used/suggested-grants?"+query, nil)
	}
	var got usage.Suggested
	suggest("environment=environment:project&since=" + began).Want(200).JSON(&got)
	project := []abi.EnvironmentRef{"environment:project"}
	digest := func(name string) string {
		var b struct{ Digest string }
		w.Control("GET", "/v1/biomes/"+name, nil).Want(200).JSON(&b)
		return b.Digest
	}
	grant := func(ref abi.CapabilityRef, globs ...string) usage.Grant {
		return usage.Grant{Subject: "user:dev", Capability: ref, Environment: project[0], Globs: globs}
	}
	want := usage.Suggested{
		Biome: "used", Digest: digest("used"), Environment: project[0], Invocations: 5,
		Installs: []usage.Install{
			{Biome: "callee", Digest: digest("callee"), Environments: project},
			{
				Biome: "used", Digest: digest("used"), Environments: project, Calls: []abi.CapabilityRef{"callee:a.do@1"},
				Endpoints: []string{"origin"}, Secrets: []string{"signer", "token"},
			},
		},
		Grants: []usage.Grant{
			grant("callee:a.do@1", "kept"), grant("used:a.do@1", "moved.txt", "out.txt", "reports/a[*]b"), grant("used:b.do@1"),
			grant("used:c.do@1", "absent", "kept"), grant("used:d.do@1", "many/*"),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("suggested:\n%s", diff)
	}

	fresh := w.in("fresh")
	works := func() bool { return fresh.works(fresh.Open("user:dev", "project", map[string]any{"files": true})) }
	if fresh.follow(got); !works() {
		t.Error("with everything that was suggested it does not work")
	}
	for name, less := range without(got) {
		if fresh.follow(less); works() {
			t.Errorf("it works without the %s", name)
		}
	}
	if fresh.follow(got); !works() {
		t.Error("with everything that was suggested it does not work any more")
	}

	// Nothing is suggested from what was not done, and nobody is told who may not read the audit.
	var none usage.Suggested
	suggest("environment=environment:project&since=2100-01-01T00:00:00Z").Want(200).JSON(&none)
	if len(none.Installs)+len(none.Grants)+none.Invocations != 0 {
		t.Errorf("%+v", none)
	}
	suggest("environment=environment:trusted-dev").Refused(abi.CodeInvalidRequest)
	suggest("environment=environment:nowhere").Refused(abi.CodeInvalidRequest)
	suggest("since=yesterday&environment=environment:org").Refused(abi.CodeInvalidRequest)
	w.Control("GET", "/v1/biomes/nobody/suggested-grants?environment=environment:project", nil).Refused(abi.CodeNotFound)
}

// X46: what was searched is named by where it was looked for, and not by what for.
func TestSearchesAreSuggestedByTheirGlob(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, servertest.Dev)
	g.Upload(script("seek", nil, action{ref: "seek:a.do@1", reach: abi.ReachOwner, steps: []step{
		do("file_create", "a.txt", "needle"), do("file_grep", "need.e", "*.txt", 0), do("kv_put", "k", "1"),
	}})).Want(201)
	r := g.Open("user:dev", "trusted-dev", map[string]any{"space": "dev", "files": true}).Invoke("seek:a.do@1", none).Want(200)
	for _, l := range row(g, r).Ended.Lines {
		if l.Code != "" || strings.Contains(l.Target, "need") {
			t.Errorf("%+v", l)
		}
	}
	var s usage.Suggested
	g.Control("GET", "/v1/biomes/seek/suggested-grants?environment=environment:project", nil).Want(200).JSON(&s)
	if len(s.Grants) != 1 || !slices.Equal(s.Grants[0].Globs, []string{"*.txt", "k"}) {
		t.Errorf("%+v", s)
	}
}

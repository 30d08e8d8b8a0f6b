package servertest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/host/network"
)

// token issues a principal's token.
func token(g *servertest.Gateway, principal, role string) (id, text string) {
	g.T.Helper()
	var out struct {
		Token string
		Of    struct{ ID string }
	}
	g.Control("POST", "/v1/tokens", map[string]string{"principal": principal, "role": role}).Want(201).JSON(&out)
	return out.Of.ID, out.Token
}

// S19: who may open what. A session never opens a session; a principal without the role opens
// exactly what an environment grant says; nobody else opens anything.
func TestWhoOpensSessions(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	s := g.Open("user:alice", "project", nil)
	agent := map[string]any{"subject": "agent:bot", "user": "user:alice", "environment": "environment:project"}
	inOrg := map[string]any{"subject": "agent:bot", "user": "user:alice", "environment": "environment:org"}
	_, author := token(g, "author", "author")
	_, auditor := token(g, "auditor", "auditor")
	for _, in := range []any{agent, inOrg} {
		g.Do("POST", g.Admin+"/v1/sessions", s.Token, in).Refused(abi.CodeForbidden)
		g.Do("POST", g.Admin+"/v1/sessions", author, in).Refused(abi.CodeRequestNotGranted)
		g.Do("POST", g.Admin+"/v1/sessions", "", in).Refused(abi.CodeUnauthenticated)
	}
	var made struct{ ID string }
	g.Control("POST", "/v1/environment-grants", map[string]string{"principal": "author", "subject": "agent:bot", "environment": "environment:project"}).Want(201).JSON(&made)
	// The agent may, and its user not: it never exceeds that (X38).
	g.Do("POST", g.Admin+"/v1/sessions", author, agent).Refused(abi.CodeRequestNotGranted)
	g.Control("POST", "/v1/environment-grants", map[string]string{"principal": "author", "subject": "user:alice", "environment": "environment:project"}).Want(201)
	g.Do("POST", g.Admin+"/v1/sessions", author, agent).Want(201)
	g.Do("POST", g.Admin+"/v1/sessions", author, inOrg).Refused(abi.CodeRequestNotGranted)
	g.Do("POST", g.Admin+"/v1/sessions", author, map[string]any{"subject": "user:bob", "environment": "environment:project"}).Refused(abi.CodeRequestNotGranted)
	g.Do("POST", g.Admin+"/v1/sessions", author, map[string]any{"subject": "agent:bot", "user": "user:bob", "environment": "environment:project"}).Refused(abi.CodeRequestNotGranted)
	g.Do("POST", g.Admin+"/v1/sessions", author, map[string]any{"subject": "agent:bot", "user": "user:alice"}).Refused(abi.CodeForbidden) // the default space is the organisation's
	g.Do("POST", g.Admin+"/v1/sessions", auditor, agent).Refused(abi.CodeRequestNotGranted)
	g.Control("DELETE", "/v1/environment-grants/"+made.ID, nil).Want(200)
	g.Do("POST", g.Admin+"/v1/sessions", author, agent).Refused(abi.CodeRequestNotGranted)
}

// S19: every listener answers to its own name only, and to no page of another origin.
func TestForeignHostsAndOrigins(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	s := g.Open("user:alice", "project", nil)
	for name, c := range map[string]struct{ url, token string }{
		"data": {g.Invoke + "/v1/capabilities", s.Token}, "admin": {g.Admin + "/v1/biomes", g.Operator}, "ops": {g.Ops + "/livez", ""},
	} {
		u, _ := url.Parse(c.url)
		for _, host := range []string{"evil.example", "evil.example:" + u.Port(), "127.0.0.1", "localhost.evil.example:" + u.Port(), "127.0.0.1:1"} {
			g.Do("GET", c.url, c.token, nil, "Host", host).Refused(abi.CodeHostRefused)
		}
		for _, origin := range []string{"https://evil.example", "null", "http://localhost", "http://127.0.0.1:1", "file://", "https://localhost:" + u.Port() + ".evil.example"} {
			g.Do("GET", c.url, c.token, nil, "Origin", origin).Refused(abi.CodeOriginRefused)
		}
		g.Do("GET", c.url, c.token, nil, "Sec-Fetch-Site", "cross-site").Refused(abi.CodeOriginRefused)
		for _, nonce := range []string{"guess", network.Nonce()} {
			g.Do("GET", c.url, c.token, nil, network.NonceHeader, nonce).Refused(abi.CodeHairpinRefused)
		}
		g.Do("GET", c.url, c.token, nil, "Host", "localhost:"+u.Port()).Want(200)
		if got := g.Do("GET", c.url, c.token, nil, "Origin", "http://"+u.Host); got.Status != 200 {
			t.Errorf("%s refuses its own origin: %s", name, got.Body)
		}
	}
}

// S19: a development session is not served through a proxy, --dev does not work on a directory
// that was made without it, and a development token is worth nothing without --dev.
func TestDevelopmentStaysLocal(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, servertest.Dev)
	dev := &servertest.Session{G: g, Token: g.Dev}
	g.Upload(script("local", nil, action{ref: "local:a.do@1", reach: abi.ReachOwner})).Want(201)
	dev.Invoke("local:a.do@1", none).Want(200)
	for _, header := range []string{"X-Forwarded-For", "Forwarded", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via", "CF-Connecting-IP", "True-Client-IP"} {
		dev.Invoke("local:a.do@1", none, header, "203.0.113.9").Refused(abi.CodeForwardedRefused)
		dev.Explain("local:a.do@1", none, header, "203.0.113.9").Refused(abi.CodeForwardedRefused)
		g.Do("GET", g.Invoke+"/v1/capabilities", g.Dev, nil, header, "203.0.113.9").Refused(abi.CodeForwardedRefused)
	}
	g.Stop()
	g = servertest.Start(t, servertest.In(g.Dir))
	dev.G = g
	dev.Invoke("local:a.do@1", none).Refused(abi.CodeEnvironmentUnusable)

	old := servertest.Start(t)
	old.Stop()
	s, err := server.Open(context.Background(), server.Options{
		Dir: old.Dir, Dev: true, Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", OpsListen: "127.0.0.1:0", Limits: abi.DefaultLimits(),
	})
	if err == nil {
		s.Close()
		t.Fatal("--dev opened a directory that was made without it")
	}
	if abi.CodeOf(err) != abi.CodeEnvironmentUnusable {
		t.Error(err)
	}
}

// PF-F18, PF-A14: a revoked token, a closed session and a lost role are felt by the next call.
func TestRevocationOfCredentials(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	id, text := token(g, "helper", "org-admin")
	g.Do("GET", g.Admin+"/v1/tokens", text, nil).Want(200)
	g.Control("DELETE", "/v1/tokens/"+id, nil).Want(204)
	g.Do("GET", g.Admin+"/v1/tokens", text, nil).Refused(abi.CodeUnauthenticated)
	s := g.Open("user:alice", "project", nil)
	g.Do("GET", g.Invoke+"/v1/capabilities", s.Token, nil).Want(200)
	g.Control("DELETE", "/v1/sessions/"+s.ID, nil).Want(200)
	g.Do("GET", g.Invoke+"/v1/capabilities", s.Token, nil).Refused(abi.CodeUnauthenticated)
	g.Stop()
	g = servertest.Start(t, servertest.In(g.Dir))
	g.Do("GET", g.Admin+"/v1/tokens", text, nil).Refused(abi.CodeUnauthenticated)
	g.Do("GET", g.Invoke+"/v1/capabilities", s.Token, nil).Refused(abi.CodeUnauthenticated)
}

// PF-F15: tokens are kept as hashes only: no file of the data directory but the operator's own
// has the text of one.
func TestTokensAreNotStored(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	_, text := token(g, "helper", "auditor")
	s := g.Open("user:alice", "project", nil)
	g.Stop()
	for path, data := range contents(t, g.Dir) {
		for _, tok := range []string{text, s.Token, g.Operator} {
			secretPart := tok[len("eco_p_")+26:] // what follows kind and id
			if strings.Contains(string(data), secretPart) && !strings.HasSuffix(path, "operator.token") {
				t.Errorf("%s has the text of a token", strings.TrimPrefix(path, g.Dir))
			}
		}
	}
	if strings.Contains(g.Log.String(), text) || strings.Contains(g.Log.String(), s.Token) {
		t.Error("the log has the text of a token")
	}
}

// S16: a guest does not reach the gateway, neither directly nor through something on loopback
// that sends it on, though the endpoint and the server both allow loopback.
func TestHairpin(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, func(o *server.Options) { o.EgressLoopback = true })
	var forwarded atomic.Int64
	target, _ := url.Parse(g.Admin)
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forwarded.Add(1)
		forward.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	var actions []action
	var names []abi.Need
	var keep []string
	for name, u := range map[string]string{"data": g.Invoke, "admin": g.Admin, "ops": g.Ops, "proxy": proxy.URL} {
		endpoint(g, name, u, nil)
		names, keep = append(names, abi.Need{Name: name, Why: "test"}), append(keep, name)
		actions = append(actions, action{
			ref: "pin:" + name + ".get@1", reach: abi.ReachIntegration, register: true,
			steps: []step{do("http_fetch", `{"method":"GET","url":"`+u+`/openapi.json"}`, "")},
		})
	}
	admit(g, "pin", script("pin", func(m *abi.Manifest) { m.Requires.Endpoints = names }, actions...), []string{"project"}, map[string]any{"endpoints": keep})
	s := g.Open("user:alice", "project", nil)
	for _, name := range []string{"data", "admin", "ops"} {
		r := s.Invoke("pin:"+name+".get@1", none)
		if errno(r) != abi.EDENIED {
			t.Errorf("%s: %s", name, r.Body)
		}
		if code, _ := row(g, r).lineCode("http_fetch"); code != abi.CodeAddressRefused {
			t.Errorf("%s: the receipt says %s", name, code)
		}
	}
	r := s.Invoke("pin:proxy.get@1", none).Want(200)
	if r.Code() != abi.CodeHairpinRefused || forwarded.Load() != 1 {
		t.Errorf("through the proxy: %s", r.Body)
	}
}

// counting is a resolver that knows no name and counts who asks.
type counting struct{ asked atomic.Int64 }

func (c *counting) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	c.asked.Add(1)
	return nil, &url.Error{Op: "lookup", URL: "", Err: context.Canceled}
}

// S16: a wildcard host is cleared for public data whatever is asked for, and what is refused is
// refused before its name is looked up.
func TestNamesAreNotAskedBeforeTheRule(t *testing.T) {
	t.Parallel()
	names := &counting{}
	g := servertest.Start(t, func(o *server.Options) { o.Resolver = names })
	rule := func(host string) map[string]any {
		return map[string]any{"rule": map[string]any{"scheme": "https", "host": host, "methods": []string{"GET"}, "path": "/ok/**"}, "clearance": "secret", "label": "public"}
	}
	var shown struct{ Clearance string }
	g.Control("PUT", "/v1/endpoints/wild", rule("*.wild.example"), "If-None-Match", "*").Want(200).JSON(&shown)
	if shown.Clearance != "public" {
		t.Errorf("a wildcard is cleared for %s", shown.Clearance)
	}
	g.Control("PUT", "/v1/endpoints/exact", rule("exact.example"), "If-None-Match", "*").Want(200)
	urls := map[string]string{
		"wild": "https://data.wild.example/ok/a", "path": "https://exact.example/other", "method": "https://exact.example/ok/a", "host": "https://data.exact.example/ok/a",
		"apex": "https://wild.example/ok/a", "port": "https://exact.example:8443/ok/a", "two": "https://a.b.wild.example/ok/a", "good": "https://exact.example/ok/a",
	}
	var actions []action
	for name, u := range urls {
		method := "GET"
		if name == "method" {
			method = "POST"
		}
		actions = append(actions, action{ref: "dns:" + name + ".get@1", reach: abi.ReachIntegration, steps: []step{do("http_fetch", `{"method":"`+method+`","url":"`+u+`"}`, "")}})
	}
	admit(g, "dns", script("dns", func(m *abi.Manifest) {
		m.Requires.Endpoints = []abi.Need{{Name: "wild", Why: "test"}, {Name: "exact", Why: "test"}}
	}, actions...), []string{"project"}, map[string]any{"endpoints": []string{"wild", "exact"}})
	for name := range urls {
		if name == "good" {
			continue
		}
		s := g.Open("user:alice", "project", nil)
		if got := errno(s.Invoke("dns:"+name+".get@1", none, "Ecotone-Classification", "internal")); got != abi.EDENIED {
			t.Errorf("%s: errno %d", name, got)
		}
	}
	if n := names.asked.Load(); n != 0 {
		t.Errorf("%d names were looked up", n)
	}
	s := g.Open("user:alice", "project", nil)
	if got := errno(s.Invoke("dns:good.get@1", none, "Ecotone-Classification", "internal")); got != abi.EIO || names.asked.Load() == 0 {
		t.Errorf("the allowed one: errno %d, %d names", got, names.asked.Load())
	}
}

// Organisations are apart: a principal of one finds every route closed for another one, whether
// it is there or not, and neither plane shows what belongs to another.
func TestOrganisationsAreApart(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Control("POST", "/v1/orgs", map[string]string{"id": "acme"}).Want(201)
	var out struct{ Token string }
	g.Control("POST", "/v1/tokens?org=acme", map[string]string{"principal": "admin-of-acme", "role": "org-admin"}).Want(201).JSON(&out)
	acme := out.Token
	admit(g, "mine", script("mine", nil, action{ref: "mine:a.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	s := g.Open("user:alice", "project", nil)
	id := s.Invoke("mine:a.do@1", none).Want(200).Header.Get("Ecotone-Invocation")

	for _, o := range operations(g) {
		if o.Path == "/openapi.json" || o.Path == "/v1/orgs" {
			continue
		}
		var body any
		if o.RequestBody != nil {
			body = none
		}
		answers := map[string]string{}
		for _, org := range []string{"default", "system", "nobody"} {
			path := strings.NewReplacer("{org}", org, "{name}", "mine", "{biome}", "mine", "{id}", id, "{slug}", "project").Replace(o.Path)
			if !strings.Contains(o.Path, "{org}") {
				path += "?org=" + org
			}
			r := g.Do(o.Method, g.Admin+path, acme, body)
			r.Refused(abi.CodeForbidden)
			answers[org] = auditID.ReplaceAllString(string(r.Body), "")
		}
		if answers["default"] != answers["nobody"] || answers["system"] != answers["nobody"] {
			t.Errorf("%s tells organisations apart: %v", o, answers)
		}
	}
	var orgs struct{ Items []struct{ ID string } }
	g.Do("GET", g.Admin+"/v1/orgs", acme, nil).Want(200).JSON(&orgs)
	if len(orgs.Items) != 1 || orgs.Items[0].ID != "acme" {
		t.Errorf("%+v", orgs)
	}
	for _, path := range []string{"/v1/biomes/mine", "/v1/installs/mine", "/v1/audit/" + id, "/v1/sessions/" + s.ID} {
		g.Do("GET", g.Admin+path, acme, nil).Refused(abi.CodeNotFound)
	}
	g.Do("POST", g.Admin+"/v1/sessions", acme, map[string]string{"org": "default", "subject": "user:alice"}).Refused(abi.CodeForbidden)
	g.Do("POST", g.Admin+"/v1/grants", acme, map[string]string{"org": "default", "subject": "user:eve", "capability": "mine:a.do@1", "environment": "environment:project"}).Refused(abi.CodeForbidden)

	var opened struct{ Token string }
	g.Control("POST", "/v1/sessions?org=acme", map[string]string{"subject": "user:alice", "environment": "environment:project"}).Want(201).JSON(&opened)
	other := &servertest.Session{G: g, Token: opened.Token}
	mine, unknown := other.Invoke("mine:a.do@1", none).Refused(abi.CodeMissingGrant), other.Invoke("mine:b.do@1", none).Refused(abi.CodeMissingGrant)
	if same := auditID.ReplaceAllString(strings.ReplaceAll(string(unknown.Body), "mine:b", "mine:a"), ""); same != auditID.ReplaceAllString(string(mine.Body), "") {
		t.Errorf("%s\n%s", mine.Body, unknown.Body)
	}
	g.Do("GET", g.Invoke+"/v1/invocations/"+id, s.Token, nil).Want(200)
	for _, method := range []string{"GET", "POST"} {
		path := "/v1/invocations/" + id
		if method == "POST" {
			path += ":cancel"
		}
		g.Do(method, g.Invoke+path, other.Token, nil).Refused(abi.CodeNotFound)
		g.Do(method, g.Invoke+path, g.Open("user:alice", "project", nil).Token, nil).Refused(abi.CodeNotFound) // another session of the same user
	}
}

// auditID is what differs between two answers that are the same.
var auditID = regexp.MustCompile(`,?"auditId":"[^"]*"`)

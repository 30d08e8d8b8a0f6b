package servertest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/biomes/build"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/host/network"
)

// putSecret stores a secret that goes as a bearer token to the endpoint origin, and signs.
func putSecret(g *servertest.Gateway, name, value string) {
	g.T.Helper()
	g.Control("PUT", "/v1/secrets/"+name, map[string]any{"value": value, "uses": []map[string]any{
		{"kind": "header", "header": "Authorization", "prefix": "Bearer ", "endpoint": "origin"},
		{"kind": "hmac", "prefix": "test.v1:", "label": "public"},
	}}, "If-None-Match", "*").Want(200)
}

// seen is an origin that notes who it is called by.
type seen struct {
	*httptest.Server
	mu      sync.Mutex
	headers []http.Header
}

func newSeen(t *testing.T) *seen {
	s := &seen{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.headers = append(s.headers, r.Header.Clone())
		s.mu.Unlock()
		_, _ = w.Write([]byte(`"seen"`))
	}))
	t.Cleanup(s.Close)
	return s
}

// identities are the Authorization headers that were sent, in order.
func (s *seen) identities() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []string{}
	for _, h := range s.headers {
		out = append(out, h.Get("Authorization"))
	}
	return out
}

// spellings are the forms in which a value could be hidden.
func spellings(value string) []string {
	out := []string{value, hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value)))}
	for cut := range 3 { // at each offset, without the ends that depend on the neighbours
		e := base64.StdEncoding.EncodeToString(append(make([]byte, cut), value...))
		out = append(out, e[4:len(e)-4])
	}
	return out
}

func mustNotHave(t *testing.T, where string, data []byte, values ...string) {
	t.Helper()
	for i, v := range values {
		for _, s := range spellings(v) {
			if bytes.Contains(data, []byte(s)) {
				t.Errorf("%s has canary %d", where, i)
			}
		}
	}
}

// H1, H2, M29, PF-F3, PF-F5, PF-F11, PF-F14: a module that tries every door and searches its memory, from
// every environment, finds none of three secrets, nothing of the process's environment, and no
// key; nor is any of it in what comes out, the audit, the log or the data directory. The
// origin gets the one secret that is meant for it.
func TestNothingIsThereToBeFound(t *testing.T) {
	const inEnviron = "canary-environ-0123456789abcdef"
	t.Setenv("AWS_SECRET_ACCESS_KEY", inEnviron)
	probe, err := build.Guest(t.Context(), "probe")
	if err != nil {
		t.Fatal(err)
	}
	origin := newSeen(t)
	g := servertest.Start(t, servertest.Dev, func(o *server.Options) { o.EgressLoopback = true })
	secrets := []string{"canary-secret-one-1a2b3c4d5e", "canary-secret-two-6f7a8b9c0d", "canary-secret-three-e1f2a3b4"}
	endpoint(g, "origin", origin.URL, nil)
	for i, name := range []string{"token", "two", "three"} {
		putSecret(g, name, secrets[i])
	}
	g.Upload(script("notes", nil, action{ref: "notes:note.list@1", reach: abi.ReachOwner})).Want(201)
	g.Install("notes", everywhere(), nil).Want(200)
	admit(g, "probe", probe, everywhere(), map[string]any{
		"endpoints": []string{"origin"}, "secrets": []string{"token"}, "calls": []string{"notes:note.list@1"},
	})
	master, err := os.ReadFile(filepath.Join(g.Dir, "keys", "master"))
	if err != nil {
		t.Fatal(err)
	}
	hidden := append(slices.Clone(secrets), inEnviron)
	var outputs bytes.Buffer
	for _, e := range environment.BuiltIns() {
		more := map[string]any{"files": true}
		if e.Waives {
			more["space"] = "dev"
		}
		// The search takes its time.
		tag := g.Control("GET", "/v1/environments/"+e.Slug, nil).Want(200).Header.Get("ETag")
		g.Control("PUT", "/v1/environments/"+e.Slug, map[string]any{"limits": map[string]int{"wall": 60_000}}, "If-Match", tag).Want(200)
		s := g.Open("user:alice", e.Slug, more)
		needles := hidden
		if e.Slug == environment.Org { // once is enough for what is the same everywhere
			needles = slices.Concat(hidden, []string{s.Token, g.Operator, string(master), g.Dir})
		}
		var masked []string
		for _, needle := range needles {
			masked = append(masked, mask(needle))
		}
		in := map[string]any{"masked": masked, "url": origin.URL + "/", "secret": "token"}
		r := s.Invoke("probe:"+e.Reach.String()+".dump@1", in).Want(200)
		outputs.Write(r.Body)
		var out struct {
			Args, Environ []string
			Found         []int
			WASI          map[string]int32
			Host          map[string]struct {
				Value int64
				Errno string
			}
		}
		r.JSON(&out)
		where := e.Slug + " as " + e.Reach.String()
		if len(out.Args)+len(out.Environ)+len(out.Found) != 0 {
			t.Errorf("%s: arguments %q, environment %q, found %v", where, out.Args, out.Environ, out.Found)
		}
		for name, answer := range out.WASI {
			if strings.HasPrefix(name, "fd_") && answer == 0 && name != "fd_read" {
				t.Errorf("%s: %s succeeded", where, name)
			}
		}
		for _, fn := range abi.Functions() {
			got, tried := out.Host[fn.Name]
			if within := fn.Reach.Within(e.Reach); !tried || (!within && got.Errno != "EDENIED") {
				t.Errorf("%s: %s: %+v", where, fn.Name, got)
			}
		}
	}
	if ids := origin.identities(); len(ids) == 0 || slices.ContainsFunc(ids, func(id string) bool { return id != "Bearer "+secrets[0] }) {
		t.Errorf("the origin saw %d callers with the wrong identity among them", len(ids))
	}
	for _, h := range origin.headers {
		for name := range h {
			if strings.HasPrefix(strings.ToLower(name), "ecotone-") && !strings.EqualFold(name, network.NonceHeader) {
				t.Errorf("the origin was sent %s", name)
			}
		}
	}
	mustNotHave(t, "an output", outputs.Bytes(), hidden...)
	for _, org := range []string{"default", "system"} {
		mustNotHave(t, "the audit", g.Control("GET", "/v1/audit?limit=500&org="+org, nil).Want(200).Body, hidden...)
	}
	for _, path := range []string{"/v1/secrets", "/v1/secrets/token", "/v1/installs/probe", "/v1/endpoints"} {
		mustNotHave(t, path, g.Control("GET", path, nil).Want(200).Body, hidden...)
	}
	g.Stop()
	mustNotHave(t, "the log", g.Log.Bytes(), hidden...)
	for path, data := range contents(t, g.Dir) {
		mustNotHave(t, strings.TrimPrefix(path, g.Dir), data, hidden...)
	}
}

// mask hides a needle from the search for itself, as the test guests expect it.
func mask(needle string) string {
	b := []byte(needle)
	for i := range b {
		b[i] ^= 0xa5
	}
	return hex.EncodeToString(b)
}

// H6, PF-F2, PF-F10: who a module is to an origin hangs on what was installed, not on the call.
// The same module and caller are somebody in one organisation and somebody else in another, and
// nobody where no secret was kept; a credential that a caller brings is not passed on, one that a
// guest brings is refused, and another's secret looks like none.
func TestIdentityIsTheInstalls(t *testing.T) {
	t.Parallel()
	origin := newSeen(t)
	g := servertest.Start(t, func(o *server.Options) { o.EgressLoopback = true })
	get := func(doc string) []step {
		return []step{do("http_fetch", `{"method":"GET","url":"`+origin.URL+`/"`+doc+`}`, "")}
	}
	module := script("who", func(m *abi.Manifest) {
		m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}}
		m.Requires.Secrets = []abi.Need{{Name: "token", Why: "test"}}
	},
		action{ref: "who:am.i@1", reach: abi.ReachIntegration, steps: get(`,"secret":"token"`), shape: func(d *abi.Descriptor) {
			d.InputSchema = json.RawMessage(`{"type":"object","additionalProperties":false}`)
		}},
		action{ref: "who:plain.get@1", reach: abi.ReachIntegration, steps: get(``)},
		action{ref: "who:forged.get@1", reach: abi.ReachIntegration, steps: get(`,"headers":{"Authorization":"Bearer mine"}`)},
		action{ref: "who:another.get@1", reach: abi.ReachIntegration, steps: get(`,"secret":"unkept"`)},
		action{ref: "who:absent.get@1", reach: abi.ReachIntegration, steps: get(`,"secret":"nothing"`)},
		action{ref: "who:another.sign@1", reach: abi.ReachIntegration, steps: []step{do("secret_hmac", "unkept", "m")}},
		action{ref: "who:absent.sign@1", reach: abi.ReachIntegration, steps: []step{do("secret_hmac", "nothing", "m")}},
	)
	values := map[string]string{"default": "identity-of-default-0001", "acme": "identity-of-acme-0000002"}
	sessions := map[string]*servertest.Session{}
	for _, org := range []string{"default", "acme"} {
		if org != "default" {
			g.Control("POST", "/v1/orgs", map[string]string{"id": org}).Want(201)
		}
		q := "?org=" + org
		port := json.Number(origin.URL[strings.LastIndex(origin.URL, ":")+1:])
		g.Control("PUT", "/v1/endpoints/origin"+q, map[string]any{
			"rule":     map[string]any{"scheme": "http", "host": "127.0.0.1", "port": port, "methods": []string{"GET"}, "path": "/**"},
			"loopback": true, "clearance": "regulated", "label": "public",
		}, "If-None-Match", "*").Want(200)
		for name, value := range map[string]string{"token": values[org], "unkept": "identity-of-nobody-0003"} {
			g.Control("PUT", "/v1/secrets/"+name+q, map[string]any{"value": value, "uses": []map[string]any{
				{"kind": "header", "header": "Authorization", "prefix": "Bearer ", "endpoint": "origin"}, {"kind": "hmac", "prefix": "test.v1:", "label": "public"},
			}}, "If-None-Match", "*").Want(200)
		}
		var b struct{ Biome struct{ Digest string } }
		g.Control("POST", "/v1/biomes"+q, module, "Content-Type", "application/wasm").Want(201).JSON(&b)
		g.Control("PUT", "/v1/installs/who"+q, map[string]any{
			"digest": b.Biome.Digest, "environments": []string{"environment:project"}, "endpoints": []string{"origin"}, "secrets": []string{"token"},
		}, "If-None-Match", "*").Want(200)
		for _, ref := range refsOf(g, "who") {
			g.Control("POST", "/v1/grants"+q, map[string]string{"subject": "user:alice", "capability": ref, "environment": "environment:project"}).Want(201)
		}
		var out struct{ Token string }
		g.Control("POST", "/v1/sessions"+q, map[string]string{"subject": "user:alice", "environment": "environment:project"}).Want(201).JSON(&out)
		sessions[org] = &servertest.Session{G: g, Token: out.Token}
	}
	for _, org := range []string{"default", "acme"} {
		if got := errno(sessions[org].Invoke("who:am.i@1", none)); got != 0 {
			t.Errorf("%s: errno %d", org, got)
		}
	}
	s := sessions["default"]
	s.Invoke("who:am.i@1", map[string]string{"authorization": "Bearer mine"}).Refused(abi.CodeInputSchema)
	s.Invoke("who:am.i@1", none, "Ecotone-Secret", "unkept").Refused(abi.CodeInvalidRequest)
	if got := errno(s.Invoke("who:plain.get@1", none, "Cookie", "a=b", "X-Api-Key", "mine")); got != 0 {
		t.Errorf("without a secret: errno %d", got)
	}
	if want, got := []string{"Bearer " + values["default"], "Bearer " + values["acme"], ""}, origin.identities(); !slices.Equal(got, want) {
		t.Errorf("the origin saw %q", got)
	}
	for _, h := range origin.headers {
		if h.Get("Cookie") != "" || h.Get("X-Api-Key") != "" || strings.Contains(fmt.Sprint(h), s.Token) {
			t.Errorf("the caller's credentials were passed on: %v", h)
		}
	}
	if got := errno(s.Invoke("who:forged.get@1", none)); got != abi.EINVAL {
		t.Errorf("a guest's own credential: errno %d", got)
	}
	for _, verb := range []string{"get", "sign"} {
		another, absent := s.Invoke("who:another."+verb+"@1", none), s.Invoke("who:absent."+verb+"@1", none)
		if errno(another) != abi.ESECRET || errno(absent) != abi.ESECRET {
			t.Errorf("%s: %s, %s", verb, another.Body, absent.Body)
		}
	}
	if n := len(origin.identities()); n != 3 {
		t.Errorf("the origin was called %d times", n)
	}
}

// H6: the same module and the same caller are somebody else in another environment, when that
// environment has a value of its own for the secret; the guest names one secret in both.
func TestIdentityHangsOnTheEnvironment(t *testing.T) {
	t.Parallel()
	origin := newSeen(t)
	g := servertest.Start(t, func(o *server.Options) { o.EgressLoopback = true })
	module := script("who", func(m *abi.Manifest) {
		m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}}
		m.Requires.Secrets = []abi.Need{{Name: "token", Why: "test"}}
	}, action{ref: "who:am.i@1", reach: abi.ReachIntegration, steps: []step{
		do("http_fetch", `{"method":"GET","url":"`+origin.URL+`/","secret":"token"}`, ""),
	}})
	port := json.Number(origin.URL[strings.LastIndex(origin.URL, ":")+1:])
	g.Control("PUT", "/v1/endpoints/origin", map[string]any{
		"rule":     map[string]any{"scheme": "http", "host": "127.0.0.1", "port": port, "methods": []string{"GET"}, "path": "/**"},
		"loopback": true, "clearance": "regulated", "label": "public",
	}, "If-None-Match", "*").Want(200)
	for name, value := range map[string]string{"token": "identity-anywhere-000001", "token--org": "identity-in-org-00000002"} {
		g.Control("PUT", "/v1/secrets/"+name, map[string]any{"value": value, "uses": []map[string]any{
			{"kind": "header", "header": "Authorization", "prefix": "Bearer ", "endpoint": "origin"},
		}}, "If-None-Match", "*").Want(200)
	}
	g.Upload(module).Want(201)
	g.Install("who", []string{"project", "org"}, map[string]any{"endpoints": []string{"origin"}, "secrets": []string{"token"}}).Want(200)
	for _, environment := range []string{"project", "org"} {
		g.Grant("user:alice", "who:am.i@1", environment)
		if got := errno(g.Open("user:alice", environment, nil).Invoke("who:am.i@1", none)); got != 0 {
			t.Errorf("%s: errno %d", environment, got)
		}
	}
	if want, got := []string{"Bearer identity-anywhere-000001", "Bearer identity-in-org-00000002"}, origin.identities(); !slices.Equal(got, want) {
		t.Errorf("the origin saw %q", got)
	}
}

// PF-F16: fifty writers of fifty secrets at once, and all fifty are there; of fifty writers of one,
// exactly one is first.
func TestConcurrentSecrets(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	body := func(i int) map[string]any {
		return map[string]any{"value": fmt.Sprintf("value-of-writer-%04d", i), "uses": []map[string]any{{"kind": "hmac", "prefix": "test.v1:", "label": "public"}}}
	}
	var wg sync.WaitGroup
	statuses := make([]int, 50)
	for i := range statuses {
		wg.Go(func() {
			if r := g.Control("PUT", fmt.Sprintf("/v1/secrets/name-%02d", i), body(i), "If-None-Match", "*"); r.Status != 200 {
				t.Errorf("%s", r.Body)
			}
			statuses[i] = g.Control("PUT", "/v1/secrets/one", body(i), "If-None-Match", "*").Status
		})
	}
	wg.Wait()
	var page struct{ Items []struct{ Name string } }
	g.Control("GET", "/v1/secrets?limit=500", nil).Want(200).JSON(&page)
	if len(page.Items) != 51 {
		t.Errorf("%d secrets", len(page.Items))
	}
	slices.Sort(statuses)
	if statuses[0] != 200 || slices.ContainsFunc(statuses[1:], func(s int) bool { return s != 412 }) {
		t.Errorf("%v", statuses)
	}
}

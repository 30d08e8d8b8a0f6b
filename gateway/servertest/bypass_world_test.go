package servertest_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// bypass is a gateway with things worth getting at: an origin with one path that is allowed, another
// that nothing names, secrets, another biome's key, and everything that the gateway keeps on disk.
type bypass struct {
	g         *servertest.Gateway
	origin    *httptest.Server
	elsewhere *httptest.Server
	allowed   atomic.Int64 // requests that the rule names
	refused   atomic.Int64 // all others
	outside   string       // a directory that a link in the workspace points to
	sessions  map[string]*servertest.Session
	targets   []string // biomes of the calls' own capabilities
}

// canaries that no answer may hold.
const (
	bypassSecret = "a-secret-nobody-may-see-0001"
	bypassKey    = "a-value-of-another-biome-0002"
)

func newBypass(t *testing.T) *bypass {
	w := &bypass{sessions: map[string]*servertest.Session{}, outside: t.TempDir()}
	w.origin = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/allowed/") {
			w.refused.Add(1)
			return
		}
		w.allowed.Add(1)
		if r.URL.Path == "/allowed/redirect" {
			http.Redirect(rw, r, "/other", http.StatusFound)
		}
	}))
	t.Cleanup(w.origin.Close)
	w.elsewhere = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { w.refused.Add(1) }))
	t.Cleanup(w.elsewhere.Close)
	w.g = servertest.Start(t, withMCP, func(o *server.Options) { o.EgressLoopback = true })
	g := w.g
	host, port, _ := strings.Cut(strings.TrimPrefix(w.origin.URL, "http://"), ":")
	endpoint(g, "origin", w.origin.URL, map[string]any{"rule": map[string]any{
		"scheme": "http", "host": host, "port": number(port), "methods": []string{"GET"}, "path": "/allowed/**",
	}})
	putSecret(g, "kept", bypassSecret)
	putSecret(g, "unkept", bypassSecret)
	g.Control("PUT", "/v1/environments/sandbox", map[string]any{"limits": map[string]int64{"inputBytes": 1024}}, "If-Match",
		g.Control("GET", "/v1/environments/sandbox", nil).Want(200).Header.Get("ETag")).Want(200)
	strict(g, "listed")
	admit(g, "off", script("off", nil,
		action{ref: "off:plain.do@1", reach: abi.ReachOwner, shape: closedInput},
		action{ref: "off:key.put@1", reach: abi.ReachOwner, steps: []step{do("kv_put", "victim", `"`+bypassKey+`"`)}},
	), []string{"project"}, nil)
	w.open("alice@project", "user:alice", "project", map[string]any{"files": true})
	w.open("keys@project", "user:alice", "project", nil) // apart: what the other reads raises its mark
	w.open("alice@sandbox", "user:alice", "sandbox", nil)
	w.open("alice@org", "user:alice", "org", nil)
	w.open("alice@app", "user:alice", "app", nil)
	g.Control("POST", "/v1/spaces", map[string]string{"id": "alices", "kind": "user"}).Want(201)
	w.open("alices@project", "user:alice", "project", map[string]any{"space": "alices"})
	w.open("alice@strict", "user:alice", "strict", nil)
	w.open("low@project", "user:alice", "project", map[string]any{"clearance": "internal"})
	w.open("bot@project", "agent:bot", "project", map[string]any{"user": "user:alice"})
	w.open("closed@project", "user:alice", "project", nil)
	g.Control("DELETE", "/v1/sessions/"+w.sessions["closed@project"].ID, nil).Want(200)
	for name, token := range map[string]string{"forged@project": w.sessions["alice@project"].Token + "x", "nobody@project": "eco_s_", "operator@project": g.Operator} {
		w.sessions[name] = &servertest.Session{G: g, Token: token}
	}
	if got := errno(w.sessions["alice@project"].Invoke("off:key.put@1", none)); got != 0 {
		t.Fatalf("the victim's key: errno %d", got)
	}
	return w
}

// strict makes the organisation's own environment strict, or changes it: it admits the calls that are
// named, and the biomes that relay those.
func strict(g *servertest.Gateway, names ...string) {
	g.T.Helper()
	refs := []string{"relay:unlisted.do@1"}
	for _, n := range names {
		refs = append(refs, "target:"+n+".do@1", "relay:"+n+".do@1")
	}
	body := map[string]any{"slug": "strict", "base": "environment:project", "allowedCapabilities": refs}
	if have := g.Control("GET", "/v1/orgs/default/environments/strict", nil); have.Status == 200 {
		g.Control("PUT", "/v1/orgs/default/environments/strict", body, "If-Match", have.Header.Get("ETag")).Want(200)
		return
	}
	g.Control("POST", "/v1/orgs/default/environments", body).Want(201)
}

func (w *bypass) open(name, subject, environment string, more map[string]any) {
	w.sessions[name] = w.g.Open(subject, environment, more)
}

func (w *bypass) disable(biome string, yes bool) {
	w.g.T.Helper()
	what := map[bool]string{true: "disable", false: "enable"}[yes]
	tag := w.g.Control("GET", "/v1/biomes/"+biome, nil).Want(200).Header.Get("ETag")
	w.g.Control("POST", "/v1/biomes/"+biome+"/"+what, nil, "If-Match", tag).Want(200)
}

// most is how many capabilities one biome has here; a manifest takes 64.
const most = 40

// provide makes the calls' own capabilities, and the grants they begin with.
func (w *bypass) provide(calls []attempt) {
	w.g.T.Helper()
	var actions []action
	flush := func() {
		name := "target" + string(rune('a'+len(w.targets)))
		// One capability declares the platform's reach, so that the module may import everything.
		wide := action{ref: "wide:" + name + ".do@1", reach: abi.ReachPlatform, steps: []step{do("audit_query", "{}")}}
		w.g.Upload(script(name, func(m *abi.Manifest) {
			m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}}
			m.Requires.Secrets = []abi.Need{{Name: "kept", Why: "test"}, {Name: "unkept", Why: "test"}}
			m.Requires.Capabilities = []abi.CapabilityRef{"target:itself.do@1", "target:plain.do@1"}
		}, append(actions, wide)...)).Want(201)
		w.targets, actions = append(w.targets, name), nil
	}
	for i := range calls {
		h := &calls[i]
		if h.ref != "" {
			continue
		}
		a := action{ref: h.capability(), reach: max(h.reach, abi.ReachOwner), steps: h.steps, register: h.shown, shape: func(d *abi.Descriptor) {
			closedInput(d)
			if h.shape != nil {
				h.shape(d)
			}
		}}
		if actions = append(actions, a); len(actions) == most {
			flush()
		}
	}
	flush()
	w.installTargets("project", "sandbox", "org", "strict")
	for i := range calls {
		h := &calls[i]
		grants := h.grants
		if grants == nil && h.ref == "" {
			grants = []string{"user:" + h.session()}
		}
		for _, to := range grants {
			subject, environment, _ := strings.Cut(to, "@")
			w.g.Grant(subject, h.capability(), environment, h.globs...)
		}
	}
	w.links()
}

func (w *bypass) installTargets(environments ...string) {
	w.g.T.Helper()
	for _, name := range w.targets {
		w.g.Install(name, environments, map[string]any{
			"endpoints": []string{"origin"}, "secrets": []string{"kept"}, "calls": []string{"target:itself.do@1"},
		}).Want(200)
	}
}

// links puts links that lead out into the workspace, behind the gateway's back.
func (w *bypass) links() {
	w.g.T.Helper()
	s := w.sessions["alice@project"]
	room := filepath.Join(w.g.Dir, "workspaces", s.Workspace)
	if _, err := os.Stat(room); err != nil {
		w.g.T.Fatalf("the workspace is not there: %v", err)
	}
	for name, to := range map[string]string{"link": w.outside, "token": filepath.Join(w.g.Dir, "operator.token")} {
		if err := os.Symlink(to, filepath.Join(room, name)); err != nil {
			w.g.T.Fatal(err)
		}
	}
}

// try makes one call through a face and holds everything to what it should be.
func (w *bypass) try(t *testing.T, f face, h *attempt) {
	if h.arrange != nil {
		h.arrange(w)
	}
	started := w.g.Server.Started()
	e := f.invoke(t, w, h)
	got := e.code
	if h.call != "" {
		if e.code != "" || e.row.Decision == nil || e.row.Decision.Verdict != "allow" {
			t.Fatalf("the gate refuses it: %q, %s", e.code, e.row.Raw)
		}
		var made bool
		for _, l := range e.row.Ended.Lines {
			if l.Function == h.call {
				got, made = l.Code, true
			}
		}
		if !made {
			t.Fatalf("the receipt has no %s: %s", h.call, e.row.Raw)
		}
	}
	if got != h.want {
		t.Errorf("%q where %q was expected: %s", got, h.want, e.said)
	}
	if h.call == "" && h.want != "" {
		if n := w.g.Server.Started() - started - f.own(e); n != 0 || e.row.Ended != nil {
			t.Errorf("%d guests were started: %s", n, e.row.Raw)
		}
		verdict := "deny"
		if h.want == abi.CodeApprovalRequired && f.name() != "capability" { // which cannot wait
			verdict = "needs_approval"
		}
		if e.row.Decision != nil && (e.row.Decision.Verdict != verdict || e.row.Decision.Code != h.want) {
			t.Errorf("the row says %s", e.row.Raw)
		}
	}
	for _, canary := range []string{w.g.Operator, bypassSecret, bypassKey, "root:x:", w.g.Dir} {
		if strings.Contains(e.said, canary) {
			t.Errorf("the answer holds %.8s…: %s", canary, e.said)
		}
	}
	if h.right == nil {
		return
	}
	h.right(w)
	if e := f.invoke(t, w, h); e.code != "" {
		t.Errorf("put right, it is %s: %s", e.code, e.said)
	}
}

// untouched holds that nothing got out: no file beside the workspaces', no request that no rule names,
// and no decision on record but the three there are (X43).
func (w *bypass) untouched(t *testing.T) {
	decisions := 0
	for _, r := range w.g.Rows("&kind=invocation") {
		d, _ := r["decision"].(map[string]any)
		if v, _ := d["verdict"].(string); !audit.Verdict(v).Valid() {
			t.Errorf("the audit has the decision %q", v)
		}
		decisions++
	}
	if decisions < len(atTheGate) {
		t.Errorf("%d decisions are on record", decisions)
	}
	if n := w.refused.Load(); n != 0 {
		t.Errorf("%d requests went where no rule leads", n)
	}
	if w.allowed.Load() == 0 {
		t.Error("no request was made at all")
	}
	for _, root := range []string{filepath.Dir(w.g.Dir), w.outside} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if filepath.Base(path) == "pwned" {
				t.Errorf("%s is there", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

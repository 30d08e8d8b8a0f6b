package servertest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// asking is a gateway with a biome whose capabilities want a person's word, an origin that counts, and an
// approver who may give it.
type asking struct {
	g        *servertest.Gateway
	hits     atomic.Int64
	origin   *httptest.Server
	approver string // token
}

func newAsking(t *testing.T, options ...func(*server.Options)) *asking {
	t.Helper()
	a := &asking{}
	a.origin = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a.hits.Add(1)
		_, _ = w.Write([]byte(`"from the origin"`))
	}))
	t.Cleanup(a.origin.Close)
	a.g = servertest.Start(t, append([]func(*server.Options){func(o *server.Options) { o.EgressLoopback = true }}, options...)...)
	endpoint(a.g, "origin", a.origin.URL, nil)
	admitAsking(a)
	a.g.Grant("user:alice", "ask:page.post@1", "project")
	a.approver = a.who("ann", "approver", "user:ann", "regulated", "*")
	return a
}

func wantsApproval(d *abi.Descriptor) { d.RequiresApproval = true }

func admitAsking(a *asking) {
	a.g.T.Helper()
	a.g.Upload(script("ask", func(m *abi.Manifest) { m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}} },
		action{
			ref: "ask:page.post@1", reach: abi.ReachIntegration, register: true, shape: wantsApproval,
			steps: []step{do("http_fetch", `{"method":"POST","url":"`+a.origin.URL+`/"}`, "")},
		})).Want(201)
	a.g.Install("ask", []string{"project"}, map[string]any{"endpoints": []string{"origin"}}).Want(200)
}

// who makes a principal, and lets it approve unless approve is "".
func (a *asking) who(name, role, user, clearance, approve string) string {
	a.g.T.Helper()
	in := map[string]any{"principal": name, "role": role}
	if user != "" {
		in["user"] = user
	}
	if clearance != "" {
		in["clearance"] = clearance
	}
	var made struct{ Token string }
	a.g.Control("POST", "/v1/tokens", in).Want(201).JSON(&made)
	if approve != "" {
		a.g.Control("POST", "/v1/approve-grants", map[string]any{"principal": name, "capability": approve}).Want(201)
	}
	return made.Token
}

func (a *asking) decide(token, id, verdict string) servertest.Response {
	a.g.T.Helper()
	return a.g.Do("POST", a.g.Admin+"/v1/approvals/"+id+"/"+verdict, token, map[string]string{"reason": "because"})
}

// shown is what a session is shown of an invocation of its own.
type shownInvocation struct {
	Approval struct {
		ID      string
		Status  string
		Code    abi.Code
		Changed []string
		Output  json.RawMessage
		Problem struct{ Code abi.Code }
	}
	Resolution *struct {
		Resolution string
		Code       abi.Code
		By         string
	}
	Ended *struct {
		Outcome string
		Code    abi.Code
	}
}

func look(s *servertest.Session, id string) (out shownInvocation) {
	s.G.T.Helper()
	s.G.Do("GET", s.G.Invoke+"/v1/invocations/"+id, s.Token, nil).Want(200).JSON(&out)
	return out
}

// settled waits until nothing more comes of an invocation.
func settled(s *servertest.Session, id string) shownInvocation {
	s.G.T.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		got := look(s, id)
		if !slices.Contains([]string{"pending", "approved", "dispatched"}, got.Approval.Status) {
			return got
		}
		if time.Now().After(end) {
			s.G.T.Fatalf("%s is still %+v", id, got)
		}
	}
}

type approvalDoc struct {
	ID, Kind, State, Subject, Requester, Label, Capability string
	Input                                                  struct{ From, Text, Digest string }
	Basis                                                  struct {
		Digest    string
		Endpoints map[string]int
		Files     map[string]string
	}
	Decision *struct{ Verdict, By, Reason string }
	Changed  []string
}

// X42, X43: what needs an approval waits, durably, and nothing runs before; approved after a restart it runs
// once, as the invocation that asked and where it asked; approving again runs nothing; and its answer is
// there for the session, with everything on one row.
func TestApproval(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	g := a.g
	s := g.Open("user:alice", "project", nil)
	var id string
	if n := started(g, func() { id = s.Invoke("ask:page.post@1", []byte(`{"to":"bob"}`)).Waits() }); n != 0 || a.hits.Load() != 0 {
		t.Errorf("%d guests and %d requests before anyone approved", n, a.hits.Load())
	}
	var e struct {
		Decision string
		Code     abi.Code
	}
	if s.Explain("ask:page.post@1", none).Want(200).JSON(&e); e.Decision != "needs_approval" || e.Code != abi.CodeApprovalRequired {
		t.Errorf("explain says %+v", e)
	}
	if row := rowByID(g, id); row.Decision.Verdict != "needs_approval" || row.Decision.Code != abi.CodeApprovalRequired || row.Ended != nil {
		t.Errorf("%s", row.Raw)
	}
	if got := look(s, id); got.Approval.Status != "pending" || got.Ended != nil {
		t.Errorf("%+v", got)
	}
	var list struct{ Items []approvalDoc }
	g.Do("GET", g.Admin+"/v1/approvals?state=pending", a.approver, nil).Want(200).JSON(&list)
	if len(list.Items) != 1 || list.Items[0].ID != id || list.Items[0].Input.Text != "" {
		t.Errorf("%+v", list)
	}
	g.Do("GET", g.Admin+"/v1/approvals?state=maybe", a.approver, nil).Refused(abi.CodeInvalidRequest)
	var doc approvalDoc
	g.Do("GET", g.Admin+"/v1/approvals/"+id, a.approver, nil).Want(200).JSON(&doc)
	if doc.Input.Text != `{"to":"bob"}` || doc.Input.From != "user:alice" || doc.Input.Digest == "" || doc.Basis.Digest == "" || doc.Basis.Endpoints["origin"] != 1 || doc.State != "pending" {
		t.Errorf("%+v", doc)
	}

	g.Stop()
	if stored, err := os.ReadFile(storeDump(t, g.Dir)); err == nil && bytes.Contains(stored, []byte(`{"to":"bob"}`)) {
		t.Error("the input is at rest in clear")
	}
	g = servertest.Start(t, servertest.In(g.Dir), func(o *server.Options) { o.EgressLoopback = true })
	a.g, s.G = g, g
	if got := look(s, id); got.Approval.Status != "pending" {
		t.Errorf("after a restart: %+v", got)
	}
	a.decide(a.approver, id, "approve").Want(200).JSON(&doc)
	if doc.Decision == nil || doc.Decision.Verdict != "approve" || doc.Decision.By != "principal:default/ann" || doc.Decision.Reason != "because" {
		t.Errorf("%+v", doc.Decision)
	}
	got := settled(s, id)
	if got.Approval.Status != "done" || string(got.Approval.Output) != `"from the origin"` || got.Ended == nil || got.Ended.Outcome != "completed" ||
		got.Resolution == nil || got.Resolution.Resolution != "approved" {
		t.Errorf("%+v", got)
	}
	a.decide(a.approver, id, "approve").Want(200)
	a.decide(a.approver, id, "reject").Refused(abi.CodeConflict)
	if n := a.hits.Load(); n != 1 {
		t.Errorf("the origin was asked %d times", n)
	}
	rows := g.Rows("&capability=ask:page.post@1")
	if len(rows) != 1 || rows[0]["auditId"] != id || rows[0]["decision"].(map[string]any)["environment"] != "environment:project" {
		t.Errorf("%d rows: %v", len(rows), rows)
	}
	// Somebody else's session is told nothing of it.
	other := g.Open("user:alice", "project", nil)
	g.Do("GET", g.Invoke+"/v1/invocations/"+id, other.Token, nil).Refused(abi.CodeNotFound)
}

// storeDump is every byte of the store's files, in one.
func storeDump(t *testing.T, dir string) string {
	t.Helper()
	var all []byte
	err := filepath.WalkDir(filepath.Join(dir, "store"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		all = append(all, raw...)
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("the store has %d bytes: %v", len(all), err)
	}
	out := filepath.Join(t.TempDir(), "dump")
	if err := os.WriteFile(out, all, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// X42: a rejection is final: nothing runs, then or later, and the session is told.
func TestRejection(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	s := a.g.Open("user:alice", "project", nil)
	id := s.Invoke("ask:page.post@1", none).Waits()
	a.decide(a.approver, id, "reject").Want(200)
	check := func() {
		t.Helper()
		got := look(s, id)
		if got.Approval.Status != "rejected" || got.Approval.Code != abi.CodeApprovalRejected || got.Resolution == nil || got.Resolution.Code != abi.CodeApprovalRejected {
			t.Errorf("%+v", got)
		}
		a.decide(a.approver, id, "approve").Refused(abi.CodeApprovalRejected)
		a.decide(a.approver, id, "reject").Want(200)
	}
	check()
	a.g.Stop()
	a.g = servertest.Start(t, servertest.In(a.g.Dir), func(o *server.Options) { o.EgressLoopback = true })
	s.G = a.g
	check()
	if a.hits.Load() != 0 || a.g.Server.Started() != 0 {
		t.Error("what was rejected ran")
	}
}

// S17, PF-A24: who asked does not approve, nor does its user, nor a session, nor nobody; who is not cleared
// for it, or has no grant to approve it, is told what there would be to tell of nothing.
func TestWhoApproves(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	g := a.g
	g.Grant("agent:bot", "ask:page.post@1", "project")
	s := g.Open("user:alice", "project", nil)
	bot := g.Open("agent:bot", "project", map[string]any{"user": "user:alice"})
	id := s.Invoke("ask:page.post@1", none, "Ecotone-Classification", "secret").Waits()
	ofBot := bot.Invoke("ask:page.post@1", none).Waits()
	absent := "01ARZ3NDEKTSV4RRFFQ69G5FAV"

	for _, path := range []string{"", "/" + id} {
		g.Do("GET", g.Admin+"/v1/approvals"+path, "", nil).Refused(abi.CodeUnauthenticated)
		g.Do("GET", g.Admin+"/v1/approvals"+path, s.Token, nil).Refused(abi.CodeForbidden)
	}
	for _, verdict := range []string{"approve", "reject"} {
		a.decide("", id, verdict).Refused(abi.CodeUnauthenticated)
		a.decide(s.Token, id, verdict).Refused(abi.CodeForbidden)
		a.decide(bot.Token, ofBot, verdict).Refused(abi.CodeForbidden)
		a.decide(g.Operator, id, verdict).Refused(abi.CodeForbidden) // opened the session
		a.decide(a.who("auditor-"+verdict, "auditor", "", "", ""), id, verdict).Refused(abi.CodeForbidden)
		for i, asked := range []string{id, ofBot} {
			a.decide(a.who("own-"+verdict+fmt.Sprint(i), "approver", "user:alice", "regulated", "*"), asked, verdict).Refused(abi.CodeForbidden)
		}
	}
	same := func(token string) {
		t.Helper()
		for _, verdict := range []string{"approve", "reject"} {
			there, none := a.decide(token, id, verdict).Refused(abi.CodeNotFound), a.decide(token, absent, verdict).Refused(abi.CodeNotFound)
			if got, want := withoutIDs(there.Body, id), withoutIDs(none.Body, absent); got != want {
				t.Errorf("%s\n%s", got, want)
			}
		}
		there, none := g.Do("GET", g.Admin+"/v1/approvals/"+id, token, nil).Refused(abi.CodeNotFound), g.Do("GET", g.Admin+"/v1/approvals/"+absent, token, nil).Refused(abi.CodeNotFound)
		if got, want := withoutIDs(there.Body, id), withoutIDs(none.Body, absent); got != want {
			t.Errorf("%s\n%s", got, want)
		}
		if list := g.Do("GET", g.Admin+"/v1/approvals", token, nil).Want(200); strings.Contains(string(list.Body), id) {
			t.Errorf("it is in the list: %s", list.Body)
		}
	}
	same(a.who("low", "approver", "user:low", "confidential", "*"))
	same(a.who("ungranted", "approver", "user:un", "regulated", ""))
	same(a.who("elsewhere", "approver", "user:el", "regulated", "ask:other.do@1"))
	var given struct{ ID string }
	revoked := a.who("revoked", "approver", "user:re", "regulated", "")
	g.Control("POST", "/v1/approve-grants", map[string]any{"principal": "revoked", "capability": "ask:page.post@1"}).Want(201).JSON(&given)
	g.Do("GET", g.Admin+"/v1/approvals/"+id, revoked, nil).Want(200)
	g.Control("DELETE", "/v1/approve-grants/"+given.ID, nil).Want(200)
	g.Control("DELETE", "/v1/grants/"+given.ID, nil).Refused(abi.CodeNotFound)
	same(revoked)
	g.Control("POST", "/v1/approve-grants", map[string]any{"principal": "nobody", "capability": "*"}).Refused(abi.CodeNotFound)
	g.Control("POST", "/v1/approve-grants", map[string]any{"principal": "operator", "capability": "*"}).Refused(abi.CodeInvalidRequest)
	g.Control("POST", "/v1/approve-grants", map[string]any{"principal": "revoked", "capability": "ask"}).Refused(abi.CodeInvalidRequest)

	// An administrator of the organisation who is somebody else may, with a clearance.
	admin := a.who("admin", "org-admin", "user:eve", "secret", "")
	if a.hits.Load() != 0 {
		t.Fatal("it ran")
	}
	a.decide(admin, id, "approve").Want(200)
	a.decide(a.approver, ofBot, "approve").Want(200)
	if got := settled(s, id); got.Approval.Status != "done" {
		t.Errorf("%+v", got)
	}
	if got := settled(bot, ofBot); got.Approval.Status != "done" || a.hits.Load() != 2 {
		t.Errorf("%+v", got)
	}
}

// withoutIDs leaves out what differs between two answers anyway: what was asked about, and where it is on record.
func withoutIDs(body []byte, id string) string {
	var doc map[string]any
	_ = json.Unmarshal(body, &doc)
	delete(doc, "auditId")
	out, _ := json.Marshal(doc)
	return strings.ReplaceAll(string(out), id, "ID")
}

// S17: an approval binds what was there when it was asked for: each part that changes voids it, whichever way,
// and nothing runs. What does not concern it voids nothing.
func TestApprovalIsStale(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	g := a.g
	secret := func(value string) {
		header := []string{"If-None-Match", "*"}
		if was := g.Control("GET", "/v1/secrets/key", nil); was.Status == 200 {
			header = []string{"If-Match", was.Header.Get("ETag")}
		}
		g.Control("PUT", "/v1/secrets/key", map[string]any{
			"value": value + strings.Repeat("x", 16), "uses": []map[string]any{{"kind": "header", "header": "X-Key", "endpoint": "origin"}},
		}, header...).Want(200)
	}
	secret("one")
	reinstall := func(more map[string]any) {
		in := map[string]any{"endpoints": []string{"origin"}, "secrets": []string{"key"}}
		for k, v := range more {
			in[k] = v
		}
		g.Install("ask", []string{"project"}, in).Want(200)
	}
	upload := func(more ...action) {
		g.Upload(script("ask", func(m *abi.Manifest) {
			m.Requires.Endpoints, m.Requires.Secrets = []abi.Need{{Name: "origin", Why: "test"}}, []abi.Need{{Name: "key", Why: "test"}}
		}, append(more, action{
			ref: "ask:page.post@1", reach: abi.ReachIntegration, shape: wantsApproval,
			steps: []step{do("http_fetch", `{"method":"POST","url":"`+a.origin.URL+`/"}`, "")},
		})...)).Want(201)
		reinstall(nil)
	}
	upload()
	admit(g, "other", script("other", nil, action{ref: "other:a.high@1", reach: abi.ReachOwner, shape: func(d *abi.Descriptor) { d.OutputClassification = abi.Internal }}), []string{"project"}, nil)

	for _, c := range []struct {
		name    string
		changed string // "": it runs
		change  func(s *servertest.Session)
	}{
		{"nothing", "", func(*servertest.Session) {}},
		{"something else", "", func(*servertest.Session) {
			g.Grant("user:bob", "ask:page.post@1", "project")
			g.Open("user:bob", "project", nil)
			endpoint(g, "unrelated", a.origin.URL, nil)
		}},
		{"install", "install", func(*servertest.Session) { reinstall(nil) }},
		{"digest", "digest", func(*servertest.Session) { upload(action{ref: "ask:more.do@1", reach: abi.ReachOwner}) }},
		{"grant", "grants", func(*servertest.Session) {
			revokeAll(g, "user:alice", "ask:page.post@1")
			g.Grant("user:alice", "ask:page.post@1", "project")
		}},
		{"grant gone", "decision", func(*servertest.Session) { revokeAll(g, "user:alice", "ask:page.post@1") }},
		{"endpoint", "endpoints", func(*servertest.Session) {
			was := g.Control("GET", "/v1/endpoints/origin", nil).Want(200)
			var e map[string]any
			was.JSON(&e)
			g.Control("PUT", "/v1/endpoints/origin", map[string]any{"rule": e["rule"], "clearance": "secret", "label": "public", "loopback": true}, "If-Match", was.Header.Get("ETag")).Want(200)
		}},
		{"secret", "secrets", func(*servertest.Session) { secret("two") }},
		{"ceiling", "ceiling", func(*servertest.Session) {
			g.Control("PUT", "/v1/orgs/default/overrides/project", map[string]string{"maxDataClassification": "secret"}, "If-None-Match", "*").Want(200)
		}},
		{"mark", "label", func(s *servertest.Session) { s.Invoke("other:a.high@1", none).Want(200) }},
		{"session", "session", func(s *servertest.Session) { g.Control("DELETE", "/v1/sessions/"+s.ID, nil).Want(200) }},
		{"disabled", "decision", func(*servertest.Session) {
			tag := g.Control("GET", "/v1/biomes/ask", nil).Want(200).Header.Get("ETag")
			g.Control("POST", "/v1/biomes/ask/disable", nil, "If-Match", tag).Want(200)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Put right what the case before has changed.
			biome := g.Control("GET", "/v1/biomes/ask", nil).Want(200)
			if strings.Contains(string(biome.Body), `"disabled":true`) {
				g.Control("POST", "/v1/biomes/ask/enable", nil, "If-Match", biome.Header.Get("ETag")).Want(200)
			}
			if g.Control("POST", "/v1/grants", map[string]any{"subject": "user:alice", "capability": "ask:page.post@1", "environment": "environment:project"}).Status == 201 {
				t.Log("granted again")
			}
			s := g.Open("user:alice", "project", nil)
			id := s.Invoke("ask:page.post@1", none).Waits()
			before, started := a.hits.Load(), g.Server.Started()
			c.change(s)
			if c.name == "mark" {
				started = g.Server.Started()
			}
			r := a.decide(a.approver, id, "approve")
			if c.changed == "" {
				r.Want(200)
				if got := settled(s, id); got.Approval.Status != "done" || a.hits.Load() != before+1 {
					t.Errorf("%+v", got)
				}
				return
			}
			r.Refused(abi.CodeApprovalStale)
			var doc approvalDoc
			g.Do("GET", g.Admin+"/v1/approvals/"+id, a.approver, nil).Want(200).JSON(&doc)
			if doc.State != "stale" || !slices.Contains(doc.Changed, c.changed) {
				t.Errorf("it is %s for %v, want %s", doc.State, doc.Changed, c.changed)
			}
			if c.name != "session" {
				if got := look(s, id); got.Approval.Status != "stale" || got.Approval.Code != abi.CodeApprovalStale || got.Resolution.Code != abi.CodeApprovalStale || got.Ended != nil {
					t.Errorf("%+v", got)
				}
			}
			if a.hits.Load() != before || g.Server.Started() != started {
				t.Error("it ran")
			}
			a.decide(a.approver, id, "approve").Want(200) // says again what was said; there is nothing to run
			if a.hits.Load() != before || g.Server.Started() != started {
				t.Error("it ran the second time")
			}
		})
	}
}

// S17: files that the input names are bound too: changed, removed or made since, they void the approval.
func TestApprovalBindsFiles(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "files", script("files", nil,
		action{ref: "files:a.make@1", reach: abi.ReachOwner, steps: []step{do("file_create", "docs/a.txt", "one")}},
		action{ref: "files:b.take@1", reach: abi.ReachOwner, shape: wantsApproval, steps: []step{do("file_read", "docs/a.txt", 0, 10)}}), []string{"project"}, nil)
	a := &asking{g: g}
	a.approver = a.who("ann", "approver", "user:ann", "regulated", "*")
	s := g.Open("user:alice", "project", map[string]any{"files": true})
	s.Invoke("files:a.make@1", none).Want(200)
	file := filepath.Join(g.Dir, "workspaces", s.Workspace, "docs", "a.txt")
	input := []byte(`{"from":"./docs/a.txt","to":["docs/b.txt"]}`)
	for name, c := range map[string]struct {
		stale  bool
		change func() error
	}{
		"none":    {false, func() error { return nil }},
		"another": {false, func() error { return os.WriteFile(file+".other", []byte("x"), 0o600) }},
		"changed": {true, func() error { return os.WriteFile(file, []byte("two"), 0o600) }},
		"made":    {true, func() error { return os.WriteFile(filepath.Join(filepath.Dir(file), "b.txt"), []byte("x"), 0o600) }},
		"removed": {true, func() error { return os.Remove(file) }},
	} {
		if err := os.WriteFile(file, []byte("one"), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(filepath.Dir(file), "b.txt"))
		id := s.Invoke("files:b.take@1", input).Waits()
		var doc approvalDoc
		g.Do("GET", g.Admin+"/v1/approvals/"+id, a.approver, nil).Want(200).JSON(&doc)
		if len(doc.Basis.Files) != 2 || doc.Basis.Files["docs/a.txt"] == "" || doc.Basis.Files["docs/b.txt"] != "" || doc.Label != "regulated" {
			t.Fatalf("%s: %+v", name, doc)
		}
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		r := a.decide(a.approver, id, "approve")
		if !c.stale {
			r.Want(200)
			settled(s, id)
			continue
		}
		r.Refused(abi.CodeApprovalStale)
		if got := look(s, id); !slices.Equal(got.Approval.Changed, []string{"files"}) || got.Ended != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// X42: approved by many at once, again and again, and it runs once.
func TestApprovedByManyAtOnce(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	s := a.g.Open("user:alice", "project", nil)
	for range 3 {
		before := a.hits.Load()
		id := s.Invoke("ask:page.post@1", none).Waits()
		for _, r := range together(16, func(int) servertest.Response { return a.decide(a.approver, id, "approve") }) {
			r.Want(200)
		}
		if got := settled(s, id); got.Approval.Status != "done" {
			t.Errorf("%+v", got)
		}
		a.decide(a.approver, id, "approve").Want(200)
		if n := a.hits.Load() - before; n != 1 {
			t.Errorf("it ran %d times", n)
		}
	}
}

// X42: what nobody decides in time is over, and so is what nobody could be asked about.
func TestApprovalExpires(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	end := time.Now().Add(2 * time.Second)
	s := a.g.Open("user:alice", "project", map[string]any{"expires": end})
	id := s.Invoke("ask:page.post@1", none).Waits()
	time.Sleep(time.Until(end) + time.Millisecond)
	a.decide(a.approver, id, "approve").Refused(abi.CodeApprovalStale)
	a.decide(a.approver, id, "reject").Refused(abi.CodeApprovalStale)
	a.g.Stop()
	a.g = servertest.Start(t, servertest.In(a.g.Dir), func(o *server.Options) { o.EgressLoopback = true })
	var doc approvalDoc
	a.g.Do("GET", a.g.Admin+"/v1/approvals/"+id, a.approver, nil).Want(200).JSON(&doc)
	var row struct{ Resolution struct{ Resolution string } }
	if err := json.Unmarshal(rowByID(a.g, id).Raw, &row); err != nil || doc.State != "expired" || row.Resolution.Resolution != "expired" || a.hits.Load() != 0 {
		t.Errorf("%v %+v %+v", err, doc, row)
	}
}

// S17: what an approver could not be shown whole, and as it is, is refused; what hides its direction is written out.
func TestApprovalShowsWhatIsAsked(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	s := a.g.Open("user:alice", "project", nil)
	text := func(v string) []byte { return []byte(`{"to":"` + v + `"}`) }
	s.Invoke("ask:page.post@1", text(strings.Repeat("x", 64<<10))).Refused(abi.CodeInputLimit)
	s.Invoke("ask:page.post@1", text(strings.Repeat("\u202e", 300))).Refused(abi.CodeInvalidRequest)
	id := s.Invoke("ask:page.post@1", text("alice\u202eecila\u200b@evil")).Waits()
	var doc approvalDoc
	a.g.Do("GET", a.g.Admin+"/v1/approvals/"+id, a.approver, nil).Want(200).JSON(&doc)
	if want := `{"to":"alice\u{202e}ecila\u{200b}@evil"}`; doc.Input.Text != want {
		t.Errorf("%s", doc.Input.Text)
	}
	if a.hits.Load() != 0 {
		t.Error("it ran")
	}
}

// X42, S4: what a biome calls cannot wait for a person: it is denied, and an approval of the caller covers nothing
// that it calls.
func TestAChildCannotWait(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	admit(a.g, "outer", script("outer", requires("ask:page.post@1"),
		action{ref: "outer:a.call@1", reach: abi.ReachIntegration, shape: wantsApproval, steps: []step{do("capability_invoke", "ask:page.post@1", "{}")}}),
		[]string{"project"}, map[string]any{"calls": []string{"ask:page.post@1"}})
	s := a.g.Open("user:alice", "project", nil)
	id := s.Invoke("outer:a.call@1", none).Waits()
	a.decide(a.approver, id, "approve").Want(200)
	got := settled(s, id)
	if string(got.Approval.Output) != fmt.Sprint(int(abi.ECHILD)) || a.hits.Load() != 0 {
		t.Errorf("%s, %d requests", got.Approval.Output, a.hits.Load())
	}
	rows := a.g.Rows("&parent=" + id)
	if len(rows) != 1 || rows[0]["decision"].(map[string]any)["code"] != "APPROVAL_REQUIRED" || rows[0]["decision"].(map[string]any)["verdict"] != "deny" {
		t.Errorf("%v", rows)
	}
}

// X44: require-human-approval, of a grant and of an install grant, and a grant's own approval rule.
func TestRequireHumanApproval(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "plain", script("plain", nil, action{ref: "plain:a.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	a := &asking{g: g}
	a.approver = a.who("ann", "approver", "user:ann", "", "plain:a.do@1")
	s := g.Open("user:alice", "project", nil)
	s.Invoke("plain:a.do@1", none).Want(200)
	human := map[string]any{"kind": "require-human-approval"}
	waits := func() {
		t.Helper()
		id := s.Invoke("plain:a.do@1", none).Waits()
		a.decide(a.approver, id, "approve").Want(200)
		if got := settled(s, id); got.Approval.Status != "done" || string(got.Approval.Output) != "0" {
			t.Errorf("%+v", got)
		}
	}
	oblige(g, "plain:a.do@1", human)
	waits()
	oblige(g, "plain:a.do@1")
	s.Invoke("plain:a.do@1", none).Want(200)
	g.Install("plain", []string{"project"}, map[string]any{"obligations": []map[string]any{human}}).Want(200)
	waits()
	g.Install("plain", []string{"project"}, nil).Want(200)
	s.Invoke("plain:a.do@1", none).Want(200)
	revokeAll(g, "user:alice", "plain:a.do@1")
	g.Control("POST", "/v1/grants", map[string]any{"subject": "user:alice", "capability": "plain:a.do@1", "environment": "environment:project", "approval": true}).Want(201)
	waits()
}

// limitPendingApprovals: one more than may wait is refused, and one that is decided makes room.
func limitPendingApprovals(t *testing.T) {
	g := limited(t, map[string]int64{"pendingApprovals": 2})
	admit(g, "plain", script("plain", nil, action{ref: "plain:a.do@1", reach: abi.ReachOwner, shape: wantsApproval}), []string{"project"}, nil)
	a := &asking{g: g}
	a.approver = a.who("ann", "approver", "user:ann", "", "*")
	s := g.Open("user:alice", "project", nil)
	s.Invoke("plain:a.do@1", none).Waits()
	id := s.Invoke("plain:a.do@1", none).Waits()
	r := s.Invoke("plain:a.do@1", none).Refused(abi.CodeQuotaExceeded)
	var row struct {
		Resolution struct {
			Resolution string
			Code       abi.Code
		}
	}
	if err := json.Unmarshal(rowByID(g, r.Header.Get("Ecotone-Invocation")).Raw, &row); err != nil || row.Resolution.Resolution != "refused" || row.Resolution.Code != abi.CodeQuotaExceeded {
		t.Errorf("%v %+v", err, row)
	}
	a.decide(a.approver, id, "reject").Want(200)
	s.Invoke("plain:a.do@1", none).Waits()
}

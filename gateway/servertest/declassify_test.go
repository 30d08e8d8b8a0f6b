package servertest_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// loweringWorld is a gateway with a session that was given something secret, and two places that are cleared for
// nothing but public data.
type loweringWorld struct {
	*asking
	s            *servertest.Session
	other        *httptest.Server
	elsewhere    atomic.Int64
	input, wrong []byte
}

func newLowering(t *testing.T) *loweringWorld {
	t.Helper()
	w := &loweringWorld{asking: &asking{}, input: []byte(`{"say": "hello"}`), wrong: []byte(`{"say":"hello"}`)}
	serve := func(n *atomic.Int64) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { n.Add(1) }))
		t.Cleanup(s.Close)
		return s
	}
	w.origin, w.other = serve(&w.hits), serve(&w.elsewhere)
	g := servertest.Start(t, func(o *server.Options) { o.EgressLoopback = true })
	w.g = g
	endpoint(g, "origin", w.origin.URL, map[string]any{"clearance": "public"})
	endpoint(g, "other", w.other.URL, map[string]any{"clearance": "public"})
	get := func(url string) step { return do("http_fetch", `{"method":"GET","url":"`+url+`/"}`, "") }
	admit(g, "low", script("low", func(m *abi.Manifest) {
		m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}, {Name: "other", Why: "test"}}
		m.Requires.Capabilities = []abi.CapabilityRef{"low:b.leaf@1"}
	},
		action{ref: "low:a.secret@1", reach: abi.ReachOwner, shape: func(d *abi.Descriptor) { d.OutputClassification = abi.Secret }},
		action{ref: "low:b.leaf@1", reach: abi.ReachOwner},
		action{ref: "low:c.send@1", reach: abi.ReachIntegration, steps: []step{
			do("kv_put", "k", "1"), do("capability_invoke", "low:b.leaf@1", "{}"), get(w.other.URL), get(w.origin.URL),
		}},
	), []string{"project"}, map[string]any{"endpoints": []string{"origin", "other"}, "calls": []string{"low:b.leaf@1"}})
	w.approver = w.who("ann", "approver", "user:ann", "regulated", "*")
	w.s = g.Open("user:alice", "project", nil)
	w.s.Invoke("low:a.secret@1", none).Want(200)
	return w
}

func (w *loweringWorld) ask(to, sink string, input []byte, header ...string) servertest.Response {
	w.g.T.Helper()
	return w.g.Do("POST", w.g.Invoke+"/v1/declassify/low:c.send@1", w.s.Token, input,
		append([]string{"Ecotone-Declassify-To", to, "Ecotone-Declassify-Sink", sink}, header...)...)
}

// approved asks and has it approved.
func (w *loweringWorld) approved(to, sink string) string {
	w.g.T.Helper()
	var a struct{ Approval, Status, From, To, Sink string }
	w.ask(to, sink, w.input).Want(202).JSON(&a)
	if a.Status != "needs_approval" || a.From != "secret" || a.To != to || a.Sink != sink {
		w.g.T.Errorf("%+v", a)
	}
	w.decide(w.approver, a.Approval, "approve").Want(200)
	return a.Approval
}

func (w *loweringWorld) use(id string, input []byte) servertest.Response {
	w.g.T.Helper()
	return w.s.Invoke("low:c.send@1", input, "Ecotone-Declassification", id)
}

// S3: what a session was given stays with it, whatever it says of itself; declassified, exactly the bytes that
// somebody else saw pass once, to the one sink, and the mark does not fall.
func TestDeclassify(t *testing.T) {
	t.Parallel()
	w := newLowering(t)
	refused := func() {
		t.Helper()
		for _, header := range [][]string{nil, {"Ecotone-Classification", "public"}} {
			r := w.s.Invoke("low:c.send@1", w.input, header...).Want(200)
			for _, l := range row(w.g, r).Ended.Lines {
				if l.Function == "http_fetch" && l.Code != abi.CodeClassificationFlow {
					t.Errorf("%+v", l)
				}
			}
		}
		if w.hits.Load()+w.elsewhere.Load() > 1 {
			t.Errorf("%d and %d requests", w.hits.Load(), w.elsewhere.Load())
		}
	}
	refused()
	id := w.approved("public", "endpoint:origin")
	var doc struct {
		approvalDoc
		Binding struct{ From, To, Sink string }
	}
	w.g.Do("GET", w.g.Admin+"/v1/approvals/"+id, w.approver, nil).Want(200).JSON(&doc)
	if doc.Kind != "declassify" || doc.Input.Text != string(w.input) || doc.Binding.From != "secret" || doc.Binding.To != "public" || doc.Binding.Sink != "endpoint:origin" || doc.Label != "secret" {
		t.Errorf("%+v", doc)
	}
	w.use(id, w.wrong).Refused(abi.CodeApprovalStale) // the same value, other bytes
	other := w.g.Open("user:alice", "project", nil)
	other.Invoke("low:c.send@1", w.input, "Ecotone-Declassification", id).Refused(abi.CodeApprovalStale)
	w.s.Invoke("low:b.leaf@1", w.input, "Ecotone-Declassification", id).Refused(abi.CodeApprovalStale)
	w.s.Invoke("low:c.send@1", w.input, "Ecotone-Declassification", id, "Ecotone-Classification", "internal").Refused(abi.CodeApprovalStale)
	for _, forged := range []string{"01ARZ3NDEKTSV4RRFFQ69G5FAV", "x", "../x"} {
		w.use(forged, w.input).Refused(abi.CodeApprovalStale)
	}
	if w.hits.Load() != 0 {
		t.Fatal("something passed")
	}

	r := w.use(id, w.input).Want(200)
	codes := map[abi.Code]int{}
	got := row(w.g, r)
	for _, l := range got.Ended.Lines {
		codes[l.Code]++
	}
	if w.hits.Load() != 1 || w.elsewhere.Load() != 0 || codes[""] != 1 {
		t.Errorf("%d requests, %d elsewhere: %+v", w.hits.Load(), w.elsewhere.Load(), got.Ended.Lines)
	}
	var raw struct {
		Decision struct{ Declassification, Label string }
	}
	if err := json.Unmarshal(got.Raw, &raw); err != nil || raw.Decision.Declassification != id || raw.Decision.Label != "public" {
		t.Errorf("the row says %+v, %v", raw, err)
	}
	w.use(id, w.input).Refused(abi.CodeApprovalStale)
	refused() // the mark is what it was
}

// S3, S17: a principal asks in a session's place, by the same rules: neither it, nor its user, nor who opened
// the session decides; approved, the session uses it once, for those bytes and that sink; and the record
// names who asked.
func TestDeclassifyForASession(t *testing.T) {
	t.Parallel()
	w := newLowering(t)
	admin := w.who("admin", "org-admin", "user:admin", "regulated", "")
	path := w.g.Admin + "/v1/sessions/" + w.s.ID + "/declassify"
	in := func(more ...string) map[string]string {
		out := map[string]string{"capability": "low:c.send@1", "input": string(w.input), "to": "public", "sink": "endpoint:origin"}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	for pointer, body := range map[string]map[string]string{
		"/to": in("to", "secret"), "/sink": in("sink", "endpoint:nobody"), "": in("capability", "low"),
	} {
		var p struct{ Pointer string }
		if w.g.Do("POST", path, admin, body).Refused(abi.CodeInvalidRequest).JSON(&p); p.Pointer != pointer {
			t.Errorf("%v: the pointer is %q", body, p.Pointer)
		}
	}
	w.g.Do("POST", path, admin, in("capability", "low:c.none@1")).Refused(abi.CodeMissingGrant)
	w.g.Do("POST", path, admin, in("input", "{")).Refused(abi.CodeInvalidJSON)
	w.g.Do("POST", path, w.approver, in()).Refused(abi.CodeForbidden)
	w.g.Do("POST", path, w.s.Token, in()).Refused(abi.CodeForbidden)
	w.g.Do("POST", w.g.Admin+"/v1/sessions/01ARZ3NDEKTSV4RRFFQ69G5FAV/declassify", admin, in()).Refused(abi.CodeNotFound)
	w.g.Control("POST", "/v1/orgs", map[string]string{"id": "acme"}).Want(201)
	w.g.Control("POST", "/v1/sessions/"+w.s.ID+"/declassify?org=acme", in()).Refused(abi.CodeNotFound)

	var a struct{ Approval, Status, From, To, Sink string }
	r := w.g.Do("POST", path, admin, in()).Want(202)
	r.JSON(&a)
	if a.Status != "needs_approval" || a.From != "secret" || a.To != "public" || a.Sink != "endpoint:origin" || r.Header.Get("Location") != "/v1/approvals/"+a.Approval {
		t.Errorf("%+v at %s", a, r.Header.Get("Location"))
	}
	var doc struct {
		approvalDoc
		AskedBy string
	}
	w.g.Do("GET", w.g.Admin+"/v1/approvals/"+a.Approval, w.approver, nil).Want(200).JSON(&doc)
	if doc.AskedBy != "principal:default/admin" || doc.Requester != "principal:default/operator" || doc.Input.Text != string(w.input) {
		t.Errorf("%+v", doc)
	}
	w.use(a.Approval, w.input).Refused(abi.CodeApprovalRequired)
	for _, token := range []string{admin, w.g.Operator, w.who("own", "approver", "user:admin", "regulated", "*")} {
		w.decide(token, a.Approval, "approve").Refused(abi.CodeForbidden)
	}
	w.decide(w.approver, a.Approval, "approve").Want(200)
	w.use(a.Approval, w.wrong).Refused(abi.CodeApprovalStale)
	w.use(a.Approval, w.input).Want(200)
	if w.hits.Load() != 1 || w.elsewhere.Load() != 0 {
		t.Errorf("%d requests, %d elsewhere", w.hits.Load(), w.elsewhere.Load())
	}
	w.use(a.Approval, w.input).Refused(abi.CodeApprovalStale)
	asked := 0
	for _, r := range w.g.Rows("&kind=admin") {
		if e := r["admin"].(map[string]any); e["operation"] == "declassify.requested" && e["actor"] == "principal:default/admin" && e["object"] == a.Approval {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("the log says %d times who asked", asked)
	}
	w.g.Control("DELETE", "/v1/sessions/"+w.s.ID, nil).Want(200)
	w.g.Do("POST", path, admin, in()).Refused(abi.CodeNotFound)
}

// S3: the answer as the sink: nothing goes to any endpoint, and the answer is labelled as was approved.
func TestDeclassifyOutput(t *testing.T) {
	t.Parallel()
	w := newLowering(t)
	id := w.approved("internal", "output")
	if r := w.use(id, w.input).Want(200); r.Header.Get("Ecotone-Classification") != "internal" || w.hits.Load()+w.elsewhere.Load() != 0 {
		t.Errorf("%s, %d and %d requests", r.Header.Get("Ecotone-Classification"), w.hits.Load(), w.elsewhere.Load())
	}
	if r := w.s.Invoke("low:b.leaf@1", none).Want(200); r.Header.Get("Ecotone-Classification") != "secret" {
		t.Errorf("the mark fell: %s", r.Header.Get("Ecotone-Classification"))
	}
}

// S3, S17: what changes in between voids it: the mark, what serves, and time; a word that was not given lowers
// nothing.
func TestDeclassificationIsStale(t *testing.T) {
	t.Parallel()
	w := newLowering(t)
	var a struct{ Approval string }
	w.ask("public", "endpoint:origin", w.input).Want(202).JSON(&a)
	w.use(a.Approval, w.input).Refused(abi.CodeApprovalRequired)
	w.decide(w.approver, a.Approval, "reject").Want(200)
	w.use(a.Approval, w.input).Refused(abi.CodeApprovalRejected)

	id := w.approved("public", "endpoint:origin")
	was := w.g.Control("GET", "/v1/endpoints/origin", nil).Want(200)
	var e map[string]any
	was.JSON(&e)
	w.g.Control("PUT", "/v1/endpoints/origin", map[string]any{"rule": e["rule"], "clearance": "public", "label": "internal", "loopback": true}, "If-Match", was.Header.Get("ETag")).Want(200)
	w.use(id, w.input).Refused(abi.CodeApprovalStale)

	id = w.approved("public", "endpoint:origin")
	w.g.Install("low", []string{"project"}, map[string]any{"endpoints": []string{"origin", "other"}, "calls": []string{"low:b.leaf@1"}}).Want(200)
	w.use(id, w.input).Refused(abi.CodeApprovalStale)

	id = w.approved("public", "endpoint:origin")
	w.g.Do("POST", w.g.Invoke+"/v1/invoke/low:b.leaf@1", w.s.Token, none, "Ecotone-Classification", "regulated").Want(200) // the mark rises
	w.use(id, w.input).Refused(abi.CodeApprovalStale)
	if w.hits.Load() != 0 {
		t.Error("something passed")
	}

	end := time.Now().Add(3 * time.Second)
	w.s = w.g.Open("user:alice", "project", map[string]any{"expires": end})
	w.s.Invoke("low:a.secret@1", none).Want(200)
	id = w.approved("public", "output")
	time.Sleep(time.Until(end) + time.Millisecond)
	w.use(id, w.input).Refused(abi.CodeUnauthenticated) // it ends with its session at the latest
}

// What cannot be asked for: what is no lowering, no sink, not the session's to invoke, or nobody's to see; and the
// headers belong to their operations.
func TestDeclassifyRequests(t *testing.T) {
	t.Parallel()
	w := newLowering(t)
	w.ask("secret", "output", w.input).Refused(abi.CodeInvalidRequest)
	w.ask("regulated", "output", w.input).Refused(abi.CodeInvalidRequest)
	w.ask("none", "output", w.input).Refused(abi.CodeInvalidRequest)
	for _, sink := range []string{"", "endpoint:", "endpoint:nobody", "everything", "file:x"} {
		w.ask("public", sink, w.input).Refused(abi.CodeInvalidRequest)
	}
	w.ask("public", "output", []byte(`{"a":`)).Refused(abi.CodeInvalidJSON)
	w.ask("public", "output", w.input, "Ecotone-Declassification", "01ARZ3NDEKTSV4RRFFQ69G5FAV").Refused(abi.CodeInvalidRequest)
	w.s.Invoke("low:c.send@1", w.input, "Ecotone-Declassify-To", "public").Refused(abi.CodeInvalidRequest)
	w.s.Explain("low:c.send@1", w.input, "Ecotone-Declassification", "01ARZ3NDEKTSV4RRFFQ69G5FAV").Refused(abi.CodeInvalidRequest)
	header := []string{"Ecotone-Declassify-To", "public", "Ecotone-Declassify-Sink", "output"}
	w.g.Do("POST", w.g.Invoke+"/v1/declassify/low:c.send@1", "", w.input, header...).Refused(abi.CodeUnauthenticated)
	w.g.Do("POST", w.g.Invoke+"/v1/declassify/low:c.none@1", w.s.Token, w.input, header...).Refused(abi.CodeMissingGrant)
	fresh := w.g.Open("user:alice", "project", nil) // nothing is public already
	w.g.Do("POST", w.g.Invoke+"/v1/declassify/low:c.send@1", fresh.Token, w.input, header...).Refused(abi.CodeInvalidRequest)
	var list struct{ Items []any }
	w.g.Do("GET", w.g.Admin+"/v1/approvals", w.approver, nil).Want(200).JSON(&list)
	if len(list.Items) != 0 {
		t.Errorf("%v", list.Items)
	}
}

package servertest_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// flow is a gateway with sources of every kind, each labelled above public, and sinks of every kind that
// are public; and biomes whose capabilities read one and write the other.
type flow struct {
	*servertest.Gateway
	sent atomic.Int64 // requests to the public endpoint
}

// imported is what was put into a workspace behind the gateway's back.
const imported = "the figures nobody has seen"

// Sources by name, with the label that reading them brings, and the errno they end with. Nothing is the last: after
// it the sinks take what they are given.
var flowSources = []struct {
	name  string
	label abi.Classification
	step  func(w *flow, high string) step
	errno abi.Errno
}{
	{"file", abi.Regulated, func(*flow, string) step { return do("file_read", "in.txt", 0, 100) }, 0},
	{"answer", abi.Secret, func(_ *flow, high string) step { return do("http_fetch", `{"method":"GET","url":"`+high+`/"}`, "") }, 0},
	{"signature", abi.Confidential, func(*flow, string) step { return do("secret_hmac", "signer", "m") }, 0},
	{"child", abi.Secret, func(*flow, string) step { return do("capability_invoke", "source:declared.do@1", "{}") }, 0},
	{"failure", abi.Secret, func(*flow, string) step { return do("capability_invoke", "source:failing.do@1", "{}") }, abi.ECHILD},
	{"nothing", abi.Public, func(*flow, string) step { return do("time_now") }, 0},
}

// Sinks by name. Each writes into a space whose floor is public, or to an endpoint cleared for public.
var flowSinks = []struct {
	name string
	step func(low string) step
}{
	{"kv-put", func(string) step { return do("kv_put", "made", `"1"`) }},
	{"kv-over", func(string) step { return do("kv_put", "kept", `"2"`) }},
	{"kv-delete", func(string) step { return do("kv_delete", "kept") }},
	{"file-create", func(string) step { return do("file_create", "made.txt", "1") }},
	{"file-write", func(string) step { return do("file_write", "kept.txt", "2") }},
	{"file-edit", func(string) step { return do("file_edit", "kept.txt", "kept", "lost", 0) }},
	{"file-move", func(string) step { return do("file_move", "kept.txt", "moved.txt") }},
	{"file-remove", func(string) step { return do("file_remove", "kept.txt") }},
	{"request", func(low string) step { return do("http_fetch", `{"method":"POST","url":"`+low+`/"}`, "body") }},
	{"child-put", func(string) step { return do("capability_invoke", "sink:kv.put@1", "{}") }},
}

func newFlow(t *testing.T) *flow {
	t.Helper()
	w := &flow{}
	high := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte(imported)) }))
	t.Cleanup(high.Close)
	low := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { w.sent.Add(1) }))
	t.Cleanup(low.Close)
	w.Gateway = servertest.Start(t, func(o *server.Options) { o.EgressLoopback = true })
	g := w.Gateway
	endpoint(g, "high", high.URL, map[string]any{"label": "secret"})
	endpoint(g, "low", low.URL, map[string]any{"clearance": "public"})
	g.Control("PUT", "/v1/secrets/signer", map[string]any{"value": "a-value-that-signs-0001", "uses": []map[string]any{
		{"kind": "hmac", "prefix": "test.v1:", "label": "confidential"},
		{"kind": "header", "header": "Authorization", "prefix": "Bearer ", "endpoint": "low"},
	}}, "If-None-Match", "*").Want(200)
	needs := func(m *abi.Manifest) {
		m.Requires.Endpoints = []abi.Need{{Name: "high", Why: "test"}, {Name: "low", Why: "test"}}
		m.Requires.Secrets = []abi.Need{{Name: "signer", Why: "test"}}
		m.Requires.Capabilities = []abi.CapabilityRef{"source:declared.do@1", "source:failing.do@1", "sink:kv.put@1"}
	}
	kept := map[string]any{
		"endpoints": []string{"high", "low"}, "secrets": []string{"signer"},
		"calls": []string{"source:declared.do@1", "source:failing.do@1", "sink:kv.put@1"},
	}
	admit(g, "source", script("source", needs,
		action{ref: "source:declared.do@1", reach: abi.ReachOwner, shape: func(d *abi.Descriptor) { d.OutputClassification = abi.Secret }},
		action{ref: "source:failing.do@1", reach: abi.ReachIntegration, steps: []step{
			do("http_fetch", `{"method":"GET","url":"`+high.URL+`/"}`, ""), do("error", "NO_LUCK", "said no"),
		}},
	), []string{"project"}, map[string]any{"endpoints": []string{"high"}})
	admit(g, "sink", script("sink", needs,
		action{ref: "sink:kv.put@1", reach: abi.ReachOwner, steps: []step{do("kv_put", "made", `"1"`)}},
		action{ref: "sink:header.use@1", reach: abi.ReachIntegration, steps: []step{do("http_fetch", `{"method":"GET","url":"`+low.URL+`/","secret":"signer"}`, "")}},
		action{ref: "sink:child.then-put@1", reach: abi.ReachOwner, steps: []step{do("capability_invoke", "source:declared.do@1", "{}"), do("kv_put", "after", `"1"`)}},
		action{ref: "sink:keys.list@1", reach: abi.ReachOwner, steps: []step{do("kv_list", "", "", 0)}, register: true},
	), []string{"project"}, kept)
	actions := []action{
		{ref: "flow:kept.make@1", reach: abi.ReachOwner, steps: []step{do("kv_put", "kept", `"1"`), do("file_create", "kept.txt", "kept")}},
		{ref: "flow:kept.get@1", reach: abi.ReachOwner, steps: []step{do("kv_get", "kept")}, register: true},
		{ref: "flow:keys.list@1", reach: abi.ReachOwner, steps: []step{do("kv_list", "", "", 0)}, register: true},
	}
	for _, from := range flowSources {
		for _, to := range flowSinks {
			actions = append(actions, action{
				ref: flowRef(from.name, to.name), reach: abi.ReachIntegration, steps: []step{from.step(w, high.URL), to.step(low.URL)},
			})
		}
	}
	admit(g, "flow", script("flow", needs, actions...), []string{"project"}, kept)
	return w
}

func flowRef(from, to string) string { return "flow:" + from + "." + to + "@1" }

// open is a session with a workspace that has kept.txt, put there by the session, and in.txt, put there
// behind the gateway's back.
func (w *flow) open(space string) *servertest.Session {
	w.T.Helper()
	s := w.Gateway.Open("user:alice", "project", map[string]any{"files": true, "space": space})
	s.Invoke("flow:kept.make@1", none).Want(200)
	if err := os.WriteFile(filepath.Join(w.room(s), "in.txt"), []byte(imported), 0o600); err != nil {
		w.T.Fatal(err)
	}
	return s
}

func (w *flow) room(s *servertest.Session) string {
	return filepath.Join(w.Dir, "workspaces", s.Workspace)
}

// world is everything a low session of the space can find: its biomes' keys and one value; and the files
// of a session's workspace, with their bytes, as they are on the disk.
func (w *flow) world(s *servertest.Session, space string) map[string]string {
	w.T.Helper()
	low := w.Gateway.Open("user:alice", "project", map[string]any{"space": space})
	out := map[string]string{}
	for _, ref := range []string{"flow:keys.list@1", "flow:kept.get@1", "sink:keys.list@1"} {
		out[ref] = string(low.Invoke(ref, none).Want(200).Body)
	}
	entries, err := os.ReadDir(w.room(s))
	if err != nil {
		w.T.Fatal(err)
	}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(w.room(s), e.Name()))
		if err != nil {
			w.T.Fatal(err)
		}
		out[e.Name()] = string(raw)
	}
	return out
}

func (w *flow) mark(s *servertest.Session) (mark abi.Classification) {
	w.T.Helper()
	var shown struct{ Mark abi.Classification }
	w.Control("GET", "/v1/sessions/"+s.ID, nil).Want(200).JSON(&shown)
	return shown.Mark
}

// X24, S3: what is above public is read and then written into a space whose floor is public, or sent to an
// endpoint cleared for public, with every source and every sink there is: the write is refused and named
// in the receipt, and nothing of the space or the workspace changes. What was read labels the answer
// and marks the session, whatever became of the write. The same write after nothing was read works, and so
// does the same pair in a space that asks for all the care there is.
func TestHigherDataIntoALowerSpace(t *testing.T) {
	t.Parallel()
	w := newFlow(t)
	w.Control("POST", "/v1/spaces", map[string]any{"id": "careful", "kind": "project", "parent": "default", "floor": "regulated"}).Want(201)
	for _, from := range flowSources {
		for _, to := range flowSinks {
			t.Run(from.name+"/"+to.name, func(t *testing.T) {
				s := w.open("default")
				before, sent := w.world(s, "default"), w.sent.Load()
				r := s.Invoke(flowRef(from.name, to.name), none)
				lines := row(w.Gateway, r).Ended.Lines
				sink := lines[len(lines)-1]
				if from.label == abi.Public {
					if got := errno(r); got != 0 || sink.Code != "" {
						t.Fatalf("after nothing was read: errno %d, %+v", got, sink)
					}
					if cmp.Equal(before, w.world(s, "default")) && w.sent.Load() == sent {
						t.Error("the sink takes nothing at all")
					}
					return
				}
				if want := abi.EDENIED; to.name != "child-put" && errno(r) != want {
					t.Errorf("errno %d, not %d", errno(r), want)
				}
				if len(lines) != 2 || (lines[0].Code != "") != (from.errno != 0) {
					t.Errorf("the source: %+v", lines)
				}
				if to.name == "child-put" { // it may run: it is its own write that is refused
					children := childrenOf(w.Gateway, r)
					c := children[slices.IndexFunc(children, func(c auditRow) bool { return c.Decision.Capability == "sink:kv.put@1" })]
					sink = rowByID(w.Gateway, c.ID).Ended.Lines[0]
				}
				if sink.Code != abi.CodeClassificationFlow {
					t.Errorf("the receipt says %+v", sink)
				}
				if diff := cmp.Diff(before, w.world(s, "default")); diff != "" || w.sent.Load() != sent {
					t.Errorf("%d requests left, and the space changed:\n%s", w.sent.Load()-sent, diff)
				}
				if got, mark := r.Header.Get("Ecotone-Classification"), w.mark(s); got != from.label.String() || mark != from.label {
					t.Errorf("the answer is %s, the session's mark %s; what was read is %s", got, mark, from.label)
				}
			})
		}
	}
	t.Run("careful", func(t *testing.T) {
		for _, to := range []string{"kv-put", "file-create", "child-put"} {
			r := w.open("careful").Invoke(flowRef("file", to), none)
			if lines := row(w.Gateway, r).Ended.Lines; errno(r) != 0 || len(lines) != 2 || lines[1].Code != "" {
				t.Errorf("%s: %+v", to, lines)
			}
		}
	})
}

// S3: using a secret raises nothing. A signature has its own label: it labels the answer, marks the session, and
// to who is not cleared for it there is no such secret.
func TestSignatureLabel(t *testing.T) {
	t.Parallel()
	w := newFlow(t)
	s := w.open("default")
	r := s.Invoke("sink:header.use@1", none)
	if errno(r) != 0 || w.sent.Load() != 1 || r.Header.Get("Ecotone-Classification") != "public" || w.mark(s) != abi.Public {
		t.Errorf("a secret sent to its endpoint: %d requests, answer %s, mark %s", w.sent.Load(), r.Header.Get("Ecotone-Classification"), w.mark(s))
	}
	r = s.Invoke(flowRef("signature", "kv-put"), none)
	if got := row(w.Gateway, r).Ended; got.Label != abi.Confidential || w.mark(s) != abi.Confidential || r.Header.Get("Ecotone-Classification") != "confidential" {
		t.Errorf("a signature: %+v, mark %s", got, w.mark(s))
	}
	// Within a session that is not cleared for the signature, the call is refused and lowers nothing.
	low := w.Gateway.Open("user:alice", "project", map[string]any{"clearance": "internal"})
	r = low.Invoke(flowRef("signature", "kv-put"), none)
	if lines := row(w.Gateway, r).Ended.Lines; lines[0].Code != abi.CodeSecretDenied || lines[1].Code != "" || r.Header.Get("Ecotone-Classification") != "public" {
		t.Errorf("not cleared for it: %+v", lines)
	}
}

// S4, S6, X22: what a child declares of its output raises its parent before the parent sees it, and so does what a
// child read that failed. What the session is not cleared for raises nothing: the parent is told the same
// constant document whatever it was, and goes on as low as it was.
func TestChildOutputLabel(t *testing.T) {
	t.Parallel()
	w := newFlow(t)
	for name, child := range map[string]string{"child": "source:declared.do@1", "failure": "source:failing.do@1"} {
		s := w.open("default")
		r := s.Invoke(flowRef(name, "kv-put"), none)
		parent, children := row(w.Gateway, r), childrenOf(w.Gateway, r)
		if len(children) != 1 || children[0].Decision.Capability != child || children[0].Ended.Label != abi.Secret {
			t.Fatalf("%s: %+v", name, children)
		}
		if parent.Ended.Label != abi.Secret || parent.Ended.Lines[1].Code != abi.CodeClassificationFlow || w.mark(s) != abi.Secret {
			t.Errorf("%s: the parent's row is %s, the mark %s", name, parent.Raw, w.mark(s))
		}
	}
	low := w.Gateway.Open("user:alice", "project", map[string]any{"clearance": "internal"})
	r := low.Invoke("sink:child.then-put@1", none)
	lines := row(w.Gateway, r).Ended.Lines
	if errno(r) != 0 || lines[0].Code != abi.CodeClassificationFlow || lines[1].Code != "" || r.Header.Get("Ecotone-Classification") != "public" || w.mark(low) != abi.Public {
		t.Errorf("withheld: %+v, answer %s, mark %s", lines, r.Header.Get("Ecotone-Classification"), w.mark(low))
	}
}

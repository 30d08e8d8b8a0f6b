package servertest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// X57: one grammar, one spelling. A good ref that nobody provides is like one without a grant.
func TestRefGrammar(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	s := g.Open("user:alice", "project", nil)
	for _, good := range []string{"kb:page.read@1", "a:b@0", "a-b:c.d.e-f@12", "kb:page@1"} {
		s.Invoke(good, none).Refused(abi.CodeMissingGrant)
	}
	for _, bad := range []string{
		"kb", "kb:page", "kb:page.read", "kb:page.read@", "kb:page.read@x", "kb:page.read@01", "kb:page.read@-1", "KB:page.read@1",
		"kb:Page.read@1", "kb:page..read@1", "kb:.read@1", "kb:page.@1", "1kb:page.read@1", "kb:page.read@1@2", "kb:pa_ge.read@1",
		"kb:page.read@1%20", "%20kb:page.read@1", "kb::page@1", "kb:page.read@1%00", "k%C3%A9:page.read@1", strings.Repeat("a", 130) + ":b@1",
	} {
		s.Invoke(bad, none).Refused(abi.CodeInvalidRequest)
		g.Control("POST", "/v1/grants", map[string]string{"subject": "user:alice", "capability": strings.ReplaceAll(bad, "%20", " "), "environment": "environment:project"}).
			Refused(abi.CodeInvalidRequest)
	}
}

// X59: the input is judged by the whole schema before anything starts; nothing is coerced, and
// the refusal names the place.
func TestInputSchema(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "strict", script("strict", nil, action{ref: "strict:a.do@1", reach: abi.ReachOwner, shape: func(d *abi.Descriptor) {
		d.InputSchema = json.RawMessage(`{"type":"object","required":["n"],"additionalProperties":false,
			"properties":{"n":{"type":"integer"},"deep":{"type":"object","additionalProperties":false,"properties":{"list":{"type":"array","items":{"type":"string"}}}}}}`)
	}}), []string{"project"}, nil)
	s := g.Open("user:alice", "project", nil)
	if n := started(g, func() {
		for input, at := range map[string]string{
			`{"n":1,"x":2}`:                        "/x",
			`{"n":"1"}`:                            "/n",
			`{"n":1.5}`:                            "/n",
			`{"n":null}`:                           "/n",
			`{"n":1,"deep":{"list":["a",2]}}`:      "/deep/list/1",
			`{"n":1,"deep":{"environment":"org"}}`: "/deep/environment",
			`{}`:                                   "",
			`[]`:                                   "",
		} {
			r := s.Invoke("strict:a.do@1", []byte(input)).Refused(abi.CodeInputSchema)
			var p struct{ Pointer string }
			r.JSON(&p)
			if at != "" && p.Pointer != at {
				t.Errorf("%s: the refusal points to %q, not %s", input, p.Pointer, at)
			}
		}
		for _, input := range []string{`{"n":1,"n":2}`, `{"n":1} {}`, `{"N":1}`, ``, `{"n":`, "{\"n\":\"\xff\"}", strings.Repeat("[", 100) + strings.Repeat("]", 100)} { // PF-A9
			if r := s.Invoke("strict:a.do@1", []byte(input)); r.Status != 400 {
				t.Errorf("%.40s: %d %s", input, r.Status, r.Body)
			}
		}
	}); n != 0 {
		t.Errorf("%d guests were started", n)
	}
	s.Invoke("strict:a.do@1", []byte(`{"n":1,"deep":{"list":["a"]}}`)).Want(200)
}

// X29: a value outside a closed vocabulary fails fast, whichever door and field it comes
// through.
func TestUnknownWords(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "words", script("words", nil, action{ref: "words:a.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	s := g.Open("user:alice", "project", nil)
	words := []string{"", " ", "Public", "PUBLIC", "public ", "top-secret", "0", "1", "null", "public,secret", "\u212aonfidential", strings.Repeat("x", 300), "öffentlich"}
	rule := map[string]any{"scheme": "https", "host": "a.example", "methods": []string{"GET"}, "path": "/"}
	if n := started(g, func() {
		for _, w := range words {
			if w == strings.TrimSpace(w) && !strings.ContainsAny(w, "\u212aö") { // what a header can carry
				s.Invoke("words:a.do@1", none, "Ecotone-Classification", w).Refused(abi.CodeInvalidRequest)
			}
			for _, body := range []struct {
				method, path string
				in           map[string]any
			}{
				{"POST", "/v1/sessions", map[string]any{"subject": "user:a", "clearance": w}},
				{"POST", "/v1/sessions", map[string]any{"subject": "user:a", "environment": w}},
				{"POST", "/v1/sessions", map[string]any{"subject": w + ":a"}},
				{"POST", "/v1/spaces", map[string]any{"id": "x", "kind": w}},
				{"POST", "/v1/spaces", map[string]any{"id": "x", "kind": "project", "parent": "default", "floor": w}},
				{"POST", "/v1/tokens", map[string]any{"principal": "p", "role": w}},
				{"PUT", "/v1/orgs/default/overrides/project", map[string]any{"maxDataClassification": w}},
				{"PUT", "/v1/endpoints/e", map[string]any{"rule": rule, "clearance": w}},
				{"PUT", "/v1/environments/project", map[string]any{"reachCeiling": w}},
			} {
				if r := g.Control(body.method, body.path, body.in); r.Status != 400 {
					t.Errorf("%s %s %v: %d %s", body.method, body.path, body.in, r.Status, r.Body)
				}
			}
		}
	}); n != 0 {
		t.Errorf("%d guests were started", n)
	}
}

// X27, M1: the environment, the space, the subject and the workspace come from the session.
// Whatever else names one is refused, and no host function could.
func TestContextCannotBeForged(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "ctx", script("ctx", nil,
		action{ref: "ctx:a.do@1", reach: abi.ReachOwner, shape: func(d *abi.Descriptor) {
			d.InputSchema = json.RawMessage(`{"type":"object","additionalProperties":false}`)
		}},
		action{ref: "ctx:absolute.read@1", reach: abi.ReachOwner, steps: []step{do("file_read", "/etc/passwd", 0, 100)}, register: true},
		action{ref: "ctx:outside.read@1", reach: abi.ReachOwner, steps: []step{do("file_read", "../../keys/master", 0, 100)}, register: true},
	), []string{"project"}, nil)
	s := g.Open("user:alice", "project", map[string]any{"files": true})
	other := g.Open("user:alice", "project", map[string]any{"files": true})
	if n := started(g, func() {
		for _, name := range []string{"Ecotone-Environment", "Ecotone-Space", "Ecotone-Subject", "Ecotone-Workspace", "Ecotone-Session", "Ecotone-Grant", "Ecotone-Reach"} {
			s.Invoke("ctx:a.do@1", none, name, "environment:system").Refused(abi.CodeInvalidRequest)
		}
		for _, q := range []string{"?environment=environment:system", "?workspace=" + other.Workspace, "?org=system"} {
			s.Invoke("ctx:a.do@1"+q, none).Refused(abi.CodeInvalidRequest)
		}
		for _, field := range []string{"environment", "workspace", "space", "subject"} {
			s.Invoke("ctx:a.do@1", map[string]string{field: "environment:system"}).Refused(abi.CodeInputSchema)
		}
	}); n != 0 {
		t.Errorf("%d guests were started", n)
	}
	g.Control("POST", "/v1/sessions", map[string]any{"subject": "user:alice", "workspace": other.Workspace}).Refused(abi.CodeUnknownField)
	for _, ref := range []string{"ctx:absolute.read@1", "ctx:outside.read@1"} {
		if got := errno(s.Invoke(ref, none)); got != abi.EINVAL {
			t.Errorf("%s: errno %d", ref, got)
		}
	}
	for _, fn := range abi.Functions() {
		for _, p := range fn.Params {
			for _, word := range []string{"environment", "space", "subject", "workspace", "session", "org"} {
				if strings.Contains(p.Name, word) {
					t.Errorf("%s takes %s", fn.Name, p.Name)
				}
			}
		}
	}
	// A header that is not ours names nothing.
	r := s.Invoke("ctx:a.do@1", none, "X-Environment", "environment:system").Want(200)
	if d := row(g, r).Decision; d.Environment != "environment:project" || d.Subject.ID != "alice" || d.Session != s.ID {
		t.Errorf("%+v", d)
	}
}

// X28: the envelope is in the row, whole; invocation ids are unique and in the order of time.
func TestEnvelope(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "env", script("env", nil, action{ref: "env:a.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	s := g.Open("user:alice", "project", nil)
	const trace = "0af7651916cd43dd8448eb211c80319c"
	var last string
	for range 20 {
		r := s.Invoke("env:a.do@1", none, "traceparent", "00-"+trace+"-b7ad6b7169203331-01").Want(200)
		id := r.Header.Get("Ecotone-Invocation")
		if id <= last {
			t.Fatalf("%s does not follow %s", id, last)
		}
		last = id
	}
	var raw struct {
		InvocationID string
		Decision     map[string]any
	}
	if err := json.Unmarshal(rowByID(g, last).Raw, &raw); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"callerKind": "user", "callerOrigin": "http", "space": "default", "environment": "environment:project", "capability": "env:a.do@1",
		"session": s.ID, "traceId": trace, "verdict": "allow",
	}
	for k, v := range want {
		if raw.Decision[k] != v {
			t.Errorf("%s is %v, not %s", k, raw.Decision[k], v)
		}
	}
	for _, k := range []string{"inputDigest", "inputBytes", "policyGeneration", "grants", "digest", "biome", "checks"} {
		if raw.Decision[k] == nil {
			t.Errorf("the row has no %s", k)
		}
	}
	if subject := fmt.Sprint(raw.Decision["subject"]); subject != "map[id:alice kind:user]" || raw.InvocationID != last {
		t.Errorf("%s, %s", subject, raw.InvocationID)
	}
}

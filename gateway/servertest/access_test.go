package servertest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// everywhere is the environments that an install grant can admit without a development server.
func everywhere() []string {
	var out []string
	for _, e := range environment.BuiltIns() {
		if !e.Waives {
			out = append(out, e.Slug)
		}
	}
	return out
}

// X1, X3: an invocation is bound to exactly one environment, and its ref is the same string in
// session, grant and audit row.
func TestOneEnvironmentPerInvocation(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "one", script("one", nil, action{ref: "one:a.do@1", reach: abi.ReachOwner}), []string{"project", "session"}, nil)
	for _, slug := range []string{"project", "session"} {
		r := g.Open("user:alice", slug, nil).Invoke("one:a.do@1", none).Want(200)
		if got := row(g, r).Decision.Environment; got != "environment:"+slug {
			t.Errorf("the row of a session in %s says %s", slug, got)
		}
		var grants struct {
			Items []struct{ Environment string } `json:"items"`
		}
		g.Control("GET", "/v1/grants?subject=user:alice", nil).Want(200).JSON(&grants)
		if !slices.ContainsFunc(grants.Items, func(i struct{ Environment string }) bool { return i.Environment == "environment:"+slug }) {
			t.Errorf("no grant says environment:%s: %v", slug, grants)
		}
	}
	for _, bad := range []string{"sandbox:", "environment:Sandbox", "environment:", "sandbox", "environment:sandbox ", "ENVIRONMENT:sandbox"} {
		g.Control("POST", "/v1/sessions", map[string]string{"subject": "user:alice", "environment": bad}).Refused(abi.CodeInvalidRequest)
		g.Control("POST", "/v1/grants", map[string]string{"subject": "user:alice", "capability": "one:a.do@1", "environment": bad}).Refused(abi.CodeInvalidRequest)
	}
}

// X11, X33: the widest ceiling grants nothing; a grant is for one subject in one environment,
// and its end is felt by the next call.
func TestACeilingIsNotAGrant(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Upload(script("wide", nil, action{ref: "wide:a.do@1", reach: abi.ReachPlatform})).Want(201)
	g.Install("wide", everywhere(), nil).Want(200)
	alice, bob, elsewhere := g.Open("user:alice", "org", nil), g.Open("user:bob", "org", nil), g.Open("user:alice", "system", nil)
	alice.Invoke("wide:a.do@1", none).Refused(abi.CodeMissingGrant)
	id := g.Grant("user:alice", "wide:a.do@1", "org")
	if got := row(g, alice.Invoke("wide:a.do@1", none).Want(200)).Decision.Grants; !slices.Equal(got, []string{id}) {
		t.Errorf("the row names the grants %q, not %s", got, id)
	}
	bob.Invoke("wide:a.do@1", none).Refused(abi.CodeMissingGrant)
	elsewhere.Invoke("wide:a.do@1", none).Refused(abi.CodeMissingGrant)
	g.Control("DELETE", "/v1/grants/"+id, nil).Want(200)
	alice.Invoke("wide:a.do@1", none).Refused(abi.CodeMissingGrant)
}

// X26: the install grant's environments are asked before anything is dispatched.
func TestInstallAdmitsEnvironments(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Upload(script("only", nil, action{ref: "only:a.do@1", reach: abi.ReachOwner})).Want(201)
	g.Install("only", []string{"project"}, nil).Want(200)
	g.Grant("user:alice", "only:a.do@1", "project")
	g.Grant("user:alice", "only:a.do@1", "session")
	s := g.Open("user:alice", "session", nil)
	if n := started(g, func() {
		r := s.Invoke("only:a.do@1", none).Refused(abi.CodeEnvironmentNotGranted)
		var p struct{ AuditID string }
		r.JSON(&p)
		if rowByID(g, p.AuditID).Decision.Code != abi.CodeEnvironmentNotGranted {
			t.Error("the audit id does not find the denial")
		}
	}); n != 0 {
		t.Error("a guest was started")
	}
	g.Open("user:alice", "project", nil).Invoke("only:a.do@1", none).Want(200)
}

// denialSchema is what every denial of an invocation looks like.
const denialSchema = `{
	"type": "object", "additionalProperties": false,
	"required": ["type", "title", "status", "code", "kind", "retryable", "auditId", "subject", "capability", "environment", "decision", "reasons"],
	"properties": {
		"type": {"pattern": "^urn:ecotone:code:[A-Z_]+$"}, "title": {"type": "string", "minLength": 1}, "status": {"type": "integer", "minimum": 400, "maximum": 599},
		"detail": {"type": "string"}, "hint": {"type": "string"}, "pointer": {"type": "string"},
		"code": {"pattern": "^[A-Z][A-Z_]+$"}, "kind": {"type": "string"}, "retryable": {"type": "boolean"}, "auditId": {"pattern": "^[0-9A-HJKMNP-TV-Z]{26}$"},
		"subject": {"type": "object", "additionalProperties": false, "required": ["kind", "ref"],
			"properties": {"kind": {"enum": ["user", "agent", "app", "biome"]}, "ref": {"type": "string"}}},
		"capability": {"type": "string"}, "environment": {"pattern": "^environment:[a-z-]+$"}, "decision": {"const": "deny"},
		"reasons": {"type": "array", "minItems": 1, "items": {"type": "object", "additionalProperties": false, "required": ["code"],
			"properties": {"code": {"pattern": "^[A-Z][A-Z_]+$"}, "detail": {"type": "string"}}}},
		"suggestions": {"type": "array", "items": {"type": "object", "additionalProperties": false, "required": ["kind"],
			"properties": {"kind": {"enum": ["request-grant", "request-install", "switch-environment", "use-another-capability", "use-less-sensitive-data", "correct-input"]},
				"capability": {"type": "string"}, "environment": {"type": "string"}, "subject": {"type": "string"}, "detail": {"type": "string"}}}}
	}
}`

// suggestion is one of a denial.
type suggestion struct{ Kind, Capability, Environment, Subject string }

func suggestions(r servertest.Response) []suggestion {
	var p struct{ Suggestions []suggestion }
	r.JSON(&p)
	return p.Suggestions
}

// X46: every denial satisfies one schema, and following its request-grant suggestion makes the
// same call succeed.
func TestDenialsAreStructured(t *testing.T) {
	t.Parallel()
	c := jsonschema.NewCompiler()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(denialSchema))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("urn:denial", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("urn:denial")
	if err != nil {
		t.Fatal(err)
	}
	g := servertest.Start(t)
	strict := func(d *abi.Descriptor) {
		d.InputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`)
	}
	g.Upload(script("deny", nil,
		action{ref: "deny:owner.do@1", reach: abi.ReachOwner, shape: strict},
		action{ref: "deny:platform.do@1", reach: abi.ReachPlatform},
		action{ref: "deny:approval.do@1", reach: abi.ReachOwner, shape: func(d *abi.Descriptor) { d.RequiresApproval = true }},
	)).Want(201)
	g.Install("deny", []string{"project"}, nil).Want(200)
	g.Grant("user:alice", "deny:platform.do@1", "project")
	g.Grant("user:alice", "deny:approval.do@1", "project")
	g.Grant("user:alice", "deny:owner.do@1", "session")
	g.Grant("agent:bot", "deny:owner.do@1", "project")
	s := g.Open("user:alice", "project", nil)
	low := g.Open("user:alice", "project", map[string]any{"clearance": "public"})
	agent := g.Open("agent:bot", "project", map[string]any{"user": "user:carol"})
	denials := map[abi.Code]servertest.Response{
		abi.CodeMissingGrant:          s.Invoke("deny:owner.do@1", none),
		abi.CodeReachCeiling:          s.Invoke("deny:platform.do@1", none),
		abi.CodeApprovalUnbuilt:       s.Invoke("deny:approval.do@1", none),
		abi.CodeEnvironmentNotGranted: g.Open("user:alice", "session", nil).Invoke("deny:owner.do@1", none),
		abi.CodeSubjectNotCovered:     agent.Invoke("deny:owner.do@1", none),
	}
	missing := s.Invoke("deny:owner.do@1", none).Refused(abi.CodeMissingGrant)
	for _, want := range suggestions(missing) {
		if want.Kind == "request-grant" {
			g.Grant(want.Subject, want.Capability, strings.TrimPrefix(want.Environment, "environment:"))
		}
	}
	s.Invoke("deny:owner.do@1", none).Want(200)
	denials[abi.CodeInputSchema] = s.Invoke("deny:owner.do@1", map[string]any{"n": "1"})
	denials[abi.CodeClassificationCeiling] = low.Invoke("deny:owner.do@1", none, "Ecotone-Classification", "secret")
	for code, r := range denials {
		r.Refused(code)
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(string(r.Body)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(instance); err != nil {
			t.Errorf("%s: %v\n%s", code, err, r.Body)
		}
	}
	// An agent needs a grant of its user: the suggestion says whose.
	for _, want := range suggestions(denials[abi.CodeSubjectNotCovered]) {
		if want.Kind == "request-grant" && want.Subject != "" {
			g.Control("POST", "/v1/grants", map[string]string{"subject": want.Subject, "capability": want.Capability, "environment": want.Environment}).Want(201)
		}
	}
	agent.Invoke("deny:owner.do@1", none).Want(200)
}

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

// childrenOf are the rows of the invocations that an invocation made.
func childrenOf(g *servertest.Gateway, parent servertest.Response) []auditRow {
	g.T.Helper()
	var page struct{ Items []auditRow }
	g.Control("GET", "/v1/audit?limit=100&kind=invocation&parent="+parent.Header.Get("Ecotone-Invocation"), nil).Want(200).JSON(&page)
	return page.Items
}

// X32: a child has its parent's context, an id of its own and its parent's named; a denial in
// the chain is found from the parent.
func TestChildLineage(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "callee", script("callee", nil, action{ref: "callee:a.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	admit(g, "caller", script("caller", requires("callee:a.do@1"),
		action{ref: "caller:a.do@1", reach: abi.ReachOwner, steps: []step{do("capability_invoke", "callee:a.do@1", "{}")}},
	), []string{"project"}, map[string]any{"calls": []string{"callee:a.do@1"}})
	s := g.Open("user:alice", "project", nil)
	r := s.Invoke("caller:a.do@1", none).Want(200)
	parent, children := row(g, r), childrenOf(g, r)
	if len(children) != 1 {
		t.Fatalf("%d children", len(children))
	}
	p, c := parent.Decision, children[0].Decision
	if c.Parent != parent.ID || children[0].ID == parent.ID || c.Environment != p.Environment || c.Space != p.Space || c.Subject != p.Subject ||
		c.Session != p.Session || c.Origin != "capability" || c.CallerKind != "biome" {
		t.Errorf("parent %+v\nchild %+v", p, c)
	}
	revokeAll(g, "user:alice", "callee:a.do@1")
	r = s.Invoke("caller:a.do@1", none)
	if errno(r) != abi.ECHILD {
		t.Errorf("%s", r.Body)
	}
	children = childrenOf(g, r)
	if len(children) != 1 || children[0].Decision.Verdict != "deny" || children[0].Decision.Code != abi.CodeMissingGrant || children[0].Decision.Parent != r.Header.Get("Ecotone-Invocation") {
		t.Errorf("%+v", children)
	}
}

// S4, PF-A15: a child needs all of: the install grant's calls, a grant of the calling biome, a
// grant of the subject, and a reach within the caller's and the environment's. Each is dropped
// in turn.
func TestChildNeedsEverything(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Upload(script("callee", nil,
		action{ref: "callee:owner.do@1", reach: abi.ReachOwner},
		action{ref: "callee:integration.do@1", reach: abi.ReachIntegration},
		action{ref: "callee:platform.do@1", reach: abi.ReachPlatform},
	)).Want(201)
	g.Install("callee", []string{"project"}, nil).Want(200)
	callees := refsOf(g, "callee")
	var calls []abi.CapabilityRef
	var actions []action
	for _, ref := range callees {
		calls = append(calls, abi.CapabilityRef(ref))
		g.Grant("user:alice", ref, "project")
		for _, reach := range []abi.Reach{abi.ReachOwner, abi.ReachIntegration} {
			actions = append(actions, action{ref: reach.String() + strings.Replace(ref, "callee", "", 1), reach: reach, steps: []step{do("capability_invoke", ref, "{}")}})
		}
	}
	admit(g, "caller", script("caller", requires(calls...), actions...), []string{"project"}, map[string]any{"calls": callees})
	s := g.Open("user:alice", "project", nil)
	for _, c := range []struct {
		name  string
		ref   string // caller's reach and callee's reach
		drop  func()
		want  abi.Code // of the child's denial; "" when it is not even a decision
		errno abi.Errno
	}{
		{"nothing is dropped", "owner:owner.do@1", nil, "", 0},
		{"the caller's reach", "owner:integration.do@1", nil, abi.CodeReachCeiling, abi.ECHILD},
		{"enough reach", "integration:integration.do@1", nil, "", 0},
		{"the environment's reach", "integration:platform.do@1", nil, abi.CodeReachCeiling, abi.ECHILD},
		{"the subject's grant", "owner:owner.do@1", func() { revokeAll(g, "user:alice", "callee:owner.do@1") }, abi.CodeMissingGrant, abi.ECHILD},
		{"it is back", "owner:owner.do@1", func() { g.Grant("user:alice", "callee:owner.do@1", "project") }, "", 0},
		{"the biome's grant", "owner:owner.do@1", func() { revokeAll(g, "biome:caller", "callee:owner.do@1") }, abi.CodeMissingGrant, abi.ECHILD},
		{"it is back", "owner:owner.do@1", func() { g.Grant("biome:caller", "callee:owner.do@1", "project") }, "", 0},
		{"the install's calls", "owner:owner.do@1", func() { g.Install("caller", []string{"project"}, nil).Want(200) }, "", abi.EDENIED},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.drop != nil {
				c.drop()
			}
			var r servertest.Response
			n := started(g, func() { r = s.Invoke(c.ref, none) })
			if got := errno(r); got != c.errno {
				t.Errorf("errno %d, not %d: %s", got, c.errno, row(g, r).Raw)
			}
			want := int64(1)
			if c.errno == 0 {
				want = 2
			}
			if n != want {
				t.Errorf("%d guests were started", n)
			}
			if children := childrenOf(g, r); c.want != "" && (len(children) != 1 || children[0].Decision.Code != c.want) {
				t.Errorf("children: %+v", children)
			}
		})
	}
}

// revokeAll revokes every grant of a subject for a capability.
func revokeAll(g *servertest.Gateway, subject, ref string) {
	g.T.Helper()
	var grants struct {
		Items []struct {
			ID      string
			Revoked any
		} `json:"items"`
	}
	g.Control("GET", "/v1/grants?subject="+subject+"&capability="+ref, nil).Want(200).JSON(&grants)
	if len(grants.Items) == 0 {
		g.T.Fatal("there is no such grant")
	}
	for _, i := range grants.Items {
		g.Control("DELETE", "/v1/grants/"+i.ID, nil).Want(200)
	}
}

// S4: what the user loses while the biome runs, the biome loses.
func TestRightRemovedMidSession(t *testing.T) {
	t.Parallel()
	var onRequest atomic.Pointer[func()]
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		(*onRequest.Load())()
		_, _ = w.Write([]byte(`"ok"`))
	}))
	defer origin.Close()
	g := servertest.Start(t, func(o *server.Options) { o.EgressLoopback = true })
	endpoint(g, "origin", origin.URL, nil)
	g.Upload(script("callee", nil, action{ref: "callee:a.do@1", reach: abi.ReachOwner})).Want(201)
	g.Install("callee", []string{"project"}, nil).Want(200)
	g.Upload(script("slow", func(m *abi.Manifest) {
		m.Requires.Capabilities = []abi.CapabilityRef{"callee:a.do@1"}
		m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}}
	}, action{ref: "slow:a.do@1", reach: abi.ReachIntegration, steps: []step{
		do("http_fetch", `{"method":"GET","url":"`+origin.URL+`/"}`, ""),
		do("capability_invoke", "callee:a.do@1", "{}"),
	}})).Want(201)
	g.Install("slow", []string{"project"}, map[string]any{"calls": []string{"callee:a.do@1"}, "endpoints": []string{"origin"}}).Want(200)
	g.Grant("user:alice", "slow:a.do@1", "project")
	g.Grant("user:alice", "callee:a.do@1", "project")
	s := g.Open("user:alice", "project", nil)

	calm := func() {}
	onRequest.Store(&calm)
	if r := s.Invoke("slow:a.do@1", none); errno(r) != 0 {
		t.Fatalf("%s", row(g, r).Raw)
	}
	revoke := func() { revokeAll(g, "user:alice", "callee:a.do@1") }
	onRequest.Store(&revoke)
	r := s.Invoke("slow:a.do@1", none)
	if got := errno(r); got != abi.ECHILD {
		t.Errorf("errno %d", got)
	}
	if c := childrenOf(g, r); len(c) != 1 || c[0].Decision.Code != abi.CodeMissingGrant {
		t.Errorf("%+v", c)
	}
	// The right to the running capability itself ends the run.
	revoke = func() { revokeAll(g, "user:alice", "slow:a.do@1") }
	onRequest.Store(&revoke)
	s.Invoke("slow:a.do@1", none).Refused(abi.CodeGrantRevoked)
}

// endpoint makes an endpoint rule for everything of a loopback origin.
func endpoint(g *servertest.Gateway, name, url string, more map[string]any) {
	g.T.Helper()
	host, port, found := strings.Cut(strings.TrimPrefix(url, "http://"), ":")
	if !found {
		g.T.Fatalf("%s has no port", url)
	}
	in := map[string]any{
		"rule":     map[string]any{"scheme": "http", "host": host, "port": json.Number(port), "methods": []string{"GET", "POST"}, "path": "/**"},
		"loopback": true, "clearance": "regulated", "label": "public",
	}
	for k, v := range more {
		in[k] = v
	}
	g.Control("PUT", "/v1/endpoints/"+name, in, "If-None-Match", "*").Want(200)
}

// X39 in part, PF-B7: a grant's globs are of the one language that is enforced; a file or key
// outside them is refused to the guest and its bytes do not move.
func TestGrantGlobs(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Upload(script("globs", nil,
		action{ref: "globs:inside.put@1", reach: abi.ReachOwner, steps: []step{do("file_create", "reports/a.txt", `"inside"`)}},
		action{ref: "globs:outside.put@1", reach: abi.ReachOwner, steps: []step{do("file_create", "x.txt", `"outside"`)}},
		action{ref: "globs:inside.read@1", reach: abi.ReachOwner, steps: []step{do("file_read", "reports/a.txt", 0, 100)}, register: true},
		action{ref: "globs:outside.read@1", reach: abi.ReachOwner, steps: []step{do("file_read", "x.txt", 0, 100)}, register: true},
		action{ref: "globs:dotted.read@1", reach: abi.ReachOwner, steps: []step{do("file_read", "reports/../x.txt", 0, 100)}, register: true},
		action{ref: "globs:encoded.read@1", reach: abi.ReachOwner, steps: []step{do("file_read", "reports/%2e%2e/x.txt", 0, 100)}, register: true},
		action{ref: "globs:inside.kv@1", reach: abi.ReachOwner, steps: []step{do("kv_put", "reports/k", "1")}},
		action{ref: "globs:outside.kv@1", reach: abi.ReachOwner, steps: []step{do("kv_put", "other", "1")}},
	)).Want(201)
	g.Install("globs", []string{"project"}, nil).Want(200)
	for _, bad := range []string{"/a", "../a", "a/../b", "[", "{a/b,c}", `a\*`, "", "a//b"} {
		r := g.Control("POST", "/v1/grants", map[string]any{
			"subject": "user:alice", "capability": "globs:inside.read@1", "environment": "environment:project", "globs": []string{bad},
		}).Refused(abi.CodeUnsupportedRule)
		if !strings.Contains(string(r.Body), `"hint"`) {
			t.Errorf("%q is refused without a hint: %s", bad, r.Body)
		}
	}
	g.Control("POST", "/v1/grants", map[string]any{
		"subject": "user:alice", "capability": "globs:inside.read@1", "environment": "environment:project", "globs": []string{},
	}).Refused(abi.CodeUnsupportedRule)
	for _, ref := range refsOf(g, "globs") {
		g.Grant("user:alice", ref, "project", "reports/**")
		g.Grant("user:owner", ref, "project")
	}
	// The owner's session makes the file outside; alice's has a workspace of her own, with hers.
	s := g.Open("user:alice", "project", map[string]any{"files": true})
	for _, c := range []struct {
		ref  string
		want abi.Errno
	}{
		{"globs:inside.put@1", 0},
		{"globs:outside.put@1", abi.EDENIED},
		{"globs:outside.read@1", abi.EDENIED},
		{"globs:dotted.read@1", abi.EDENIED},
		{"globs:encoded.read@1", abi.ENOENT}, // a percent sign is a percent sign
		{"globs:inside.kv@1", 0},
		{"globs:outside.kv@1", abi.EDENIED},
	} {
		r := s.Invoke(c.ref, none)
		if got := errno(r); got != c.want {
			t.Errorf("%s: errno %d, not %d", c.ref, got, c.want)
		}
		if c.want != abi.EDENIED {
			continue
		}
		var lines []string
		for _, l := range row(g, r).Ended.Lines {
			lines = append(lines, string(l.Code))
		}
		if !slices.Contains(lines, string(abi.CodeResourceNotInGlob)) {
			t.Errorf("%s: the receipt says %q", c.ref, lines)
		}
	}
	if r := s.Invoke("globs:inside.read@1", none).Want(200); string(r.Body) != `"inside"` {
		t.Errorf("%s", r.Body)
	}
	owner := g.Open("user:owner", "project", map[string]any{"files": true})
	if errno(owner.Invoke("globs:outside.put@1", none)) != 0 {
		t.Error("a grant without globs is for everything")
	}
}

// PF-A1: what is empty, absent or null keeps nothing: four installs of one fetcher are refused
// alike, and the origin sees nobody.
func TestEmptyKeepsNothing(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	origin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer origin.Close()
	g := servertest.Start(t, func(o *server.Options) { o.EgressLoopback = true })
	endpoint(g, "origin", origin.URL, nil)
	g.Upload(script("fetcher", func(m *abi.Manifest) { m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}} },
		action{ref: "f:page.get@1", reach: abi.ReachIntegration, steps: []step{do("http_fetch", `{"method":"GET","url":"`+origin.URL+`/"}`, "")}},
	)).Want(201)
	g.Install("fetcher", []string{"project"}, nil).Want(200)
	g.Grant("user:alice", "f:page.get@1", "project")
	s := g.Open("user:alice", "project", nil)
	for name, more := range map[string]map[string]any{"absent": nil, "empty": {"endpoints": []string{}}, "everything empty": {"endpoints": []string{}, "secrets": []string{}, "calls": []string{}}} {
		g.Install("fetcher", []string{"project"}, more).Want(200)
		r := s.Invoke("f:page.get@1", none)
		if errno(r) != abi.EDENIED {
			t.Errorf("%s: %s", name, r.Body)
		}
		if code, _ := row(g, r).lineCode("http_fetch"); code != abi.CodeEndpointRefused {
			t.Errorf("%s: the receipt says %s", name, code)
		}
	}
	var i struct{ Digest string }
	was := g.Control("GET", "/v1/installs/fetcher", nil).Want(200)
	was.JSON(&i)
	g.Control("PUT", "/v1/installs/fetcher", []byte(`{"digest":"`+i.Digest+`","environments":["environment:project"],"endpoints":null}`), "If-Match", was.Header.Get("ETag")).
		Refused(abi.CodeInvalidJSON)
	if hits.Load() != 0 {
		t.Errorf("the origin was called %d times", hits.Load())
	}
	g.Install("fetcher", []string{"project"}, map[string]any{"endpoints": []string{"origin"}}).Want(200)
	if errno(s.Invoke("f:page.get@1", none)) != 0 || hits.Load() != 1 {
		t.Error("with the endpoint the same call does not work")
	}
}

// PF-A16: of two biomes that provide the same capability the first stays, and keeps working.
func TestCollisionsAreRefused(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "first", script("first", nil, action{ref: "same:a.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	g.Upload(script("second", nil, action{ref: "same:a.do@1", reach: abi.ReachOwner})).Refused(abi.CodeCapabilityTaken)
	g.Control("GET", "/v1/biomes/second", nil).Refused(abi.CodeNotFound)
	r := g.Open("user:alice", "project", nil).Invoke("same:a.do@1", none).Want(200)
	var first struct{ Digest string }
	g.Control("GET", "/v1/biomes/first", nil).Want(200).JSON(&first)
	if row(g, r).Decision.Digest != first.Digest {
		t.Error("another biome answered")
	}
}

// PF-A2, PF-A21: what an install answers is what GET shows is what holds; the same install is
// the same policy.
func TestInstallEchoesWhatHolds(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Upload(script("callee", nil, action{ref: "callee:a.do@1", reach: abi.ReachOwner})).Want(201)
	g.Install("callee", []string{"project"}, nil).Want(200)
	g.Upload(script("caller", requires("callee:a.do@1"),
		action{ref: "caller:a.do@1", reach: abi.ReachOwner, steps: []step{do("capability_invoke", "callee:a.do@1", "{}")}})).Want(201)
	put := g.Install("caller", []string{"project"}, map[string]any{"calls": []string{"callee:a.do@1"}}).Want(200)
	get := g.Control("GET", "/v1/installs/caller", nil).Want(200)
	if string(put.Body) != string(get.Body) || put.Header.Get("ETag") != get.Header.Get("ETag") {
		t.Errorf("PUT %s\nGET %s", put.Body, get.Body)
	}
	var held struct{ Grants, Calls []string }
	get.JSON(&held)
	var grants struct {
		Items []struct{ ID, Subject string }
	}
	g.Control("GET", "/v1/grants?subject=biome:caller", nil).Want(200).JSON(&grants)
	if len(held.Grants) != 1 || len(grants.Items) != 1 || grants.Items[0].ID != held.Grants[0] || !slices.Equal(held.Calls, []string{"callee:a.do@1"}) {
		t.Errorf("%+v, %+v", held, grants)
	}
	// What the manifest does not ask for cannot be kept for it.
	var b struct{ Digest string }
	get.JSON(&b)
	g.Control("PUT", "/v1/installs/caller", map[string]any{"digest": b.Digest, "environments": []string{"environment:project"}, "calls": []string{"other:a.do@1"}},
		"If-Match", get.Header.Get("ETag")).Refused(abi.CodeInvalidRequest)
	if after := g.Control("GET", "/v1/installs/caller", nil).Want(200); string(after.Body) != string(get.Body) {
		t.Error("a refused install changed what holds")
	}
	// The same request again makes the same policy, save what says when it was made.
	again := g.Install("caller", []string{"project"}, map[string]any{"calls": []string{"callee:a.do@1"}}).Want(200)
	same := func(r servertest.Response) string {
		var m map[string]any
		r.JSON(&m)
		for _, k := range []string{"id", "grants", "revision", "createdAt"} {
			delete(m, k)
		}
		raw, _ := json.Marshal(m)
		return string(raw)
	}
	if same(put) != same(again) {
		t.Errorf("%s\n%s", put.Body, again.Body)
	}
}

// X4, X8, X10: what a manifest may not say is refused at upload, with the place, and no guest
// code runs, not even an initialiser's.
func TestUploadsThatReachTooFar(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	edit := func(from, to string) []byte {
		raw := wasmtest.MustJSON(wasmtest.Manifest("edited", wasmtest.Provide("edited:a.do@1", "do", abi.ReachOwner)))
		out := strings.Replace(string(raw), from, to, 1)
		if out == string(raw) {
			t.Fatalf("%s is not in %s", from, raw)
		}
		return wasmtest.New().Memory(1).ExportMemory().Manifest(out).Bytes()
	}
	environments := g.Control("GET", "/v1/environments", nil).Want(200).Body
	before := g.Server.Started()
	for _, c := range []struct {
		name, at string
		module   []byte
		code     abi.Code
	}{
		{"an environment", "/environments", edit(`{"name"`, `{"environments":["mine"],"name"`), abi.CodeUnknownField},
		{"an environment in a capability", "/provides/0/environment", edit(`"export"`, `"environment":"environment:org","export"`), abi.CodeUnknownField},
		{"a reach that is none", "/provides/0/reach", edit(`"reach":"owner"`, `"reach":"global"`), abi.CodeManifestInvalid},
		{"no reach", "/provides/0/reach", edit(`,"reach":"owner"`, ``), abi.CodeManifestInvalid},
		{"a classification that is none", "/provides/0/outputClassification", edit(`"outputClassification":"public"`, `"outputClassification":"open"`), abi.CodeManifestInvalid},
		{"a host function above the reach", "", script("liar", nil, action{ref: "liar:a.do@1", reach: abi.ReachOwner, steps: []step{do("http_fetch", "{}", "")}}), abi.CodeImportAboveReach},
		{"a platform function in an integration", "", script("liar", nil, action{ref: "liar:a.do@1", reach: abi.ReachIntegration, steps: []step{do("audit_query", "{}")}}), abi.CodeImportAboveReach},
	} {
		r := g.Upload(c.module)
		if r.Status != 422 || !strings.Contains(string(r.Body), `"`+string(c.code)+`"`) || !strings.Contains(string(r.Body), c.at) {
			t.Errorf("%s: %d %s", c.name, r.Status, r.Body)
		}
	}
	for _, r := range abi.Reaches() {
		g.Upload(script("ok-"+r.String(), nil, action{ref: "ok:" + r.String() + ".do@1", reach: r})).Want(201)
	}
	if g.Server.Started() != before {
		t.Error("an upload started a guest")
	}
	if after := g.Control("GET", "/v1/environments", nil).Want(200).Body; string(after) != string(environments) {
		t.Error("an upload changed the environments")
	}
}

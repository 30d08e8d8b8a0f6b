package servertest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
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
			"properties": {"kind": {"enum": ["request-grant", "request-install", "request-enable", "request-endpoint", "request-ceiling", "switch-environment", "open-session",
					"use-successor", "use-another-capability", "use-less-sensitive-data", "correct-input", "wait", "await-approval"]},
				"capability": {"type": "string"}, "environment": {"type": "string"}, "subject": {"type": "string"}, "space": {"type": "string"}, "grant": {"type": "string"},
				"biome": {"type": "string"}, "call": {"type": "string"}, "endpoint": {"type": "string"}, "secret": {"type": "string"}, "url": {"type": "string"},
				"globs": {"type": "array", "items": {"type": "string"}}, "classification": {"type": "string"}, "seconds": {"type": "integer"}, "detail": {"type": "string"}}}}
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
	)).Want(201)
	g.Install("deny", []string{"project"}, nil).Want(200)
	g.Grant("user:alice", "deny:platform.do@1", "project")
	g.Grant("user:alice", "deny:owner.do@1", "session")
	g.Grant("agent:bot", "deny:owner.do@1", "project")
	s := g.Open("user:alice", "project", nil)
	low := g.Open("user:alice", "project", map[string]any{"clearance": "public"})
	agent := g.Open("agent:bot", "project", map[string]any{"user": "user:carol"})
	denials := map[abi.Code]servertest.Response{
		abi.CodeMissingGrant:          s.Invoke("deny:owner.do@1", none),
		abi.CodeReachCeiling:          s.Invoke("deny:platform.do@1", none),
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

package servertest_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// attempt is one call that tries to get around the gate or the boundary. It is written once, and
// made through every face the product has: see face.
type attempt struct {
	name string
	// want is the code it is refused with; "" is a call that must work, so that a refusal says something.
	want abi.Code
	as   string // session: subject@environment; "" is alice@project
	ref  string // "" is a capability of its own, target:<name>.do@1
	// input is what is sent, as it is; "" is {"n":1}, which satisfies every capability here.
	input    string
	declared string // classification

	// Of its own capability.
	reach abi.Reach // 0 is owner
	shape func(*abi.Descriptor)
	steps []step // host calls; the last one answers
	shown bool   // when the last one succeeds, its result is the output
	// call is the host function whose receipt line says want, when the gate has nothing against it.
	call string

	grants []string // subject@environment; nil is the session's own
	globs  []string
	// outside is what only a caller can do, not a biome: its credential, the spelling of a ref.
	outside bool
	// arrange is done right before the call, and right, unless nil, right after: then the same call must
	// work. It may name what was wrong.
	arrange, right func(w *bypass)
}

func (h *attempt) capability() string {
	if h.ref != "" {
		return h.ref
	}
	return "target:" + h.name + ".do@1"
}

func (h *attempt) session() string {
	if h.as != "" {
		return h.as
	}
	return "alice@project"
}

func (h *attempt) body() string {
	if h.input != "" {
		return h.input
	}
	return `{"n":1}`
}

// closedInput is the schema of every capability here.
func closedInput(d *abi.Descriptor) {
	d.InputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`)
}

func regrant(subject, environment, name string) func(*bypass) {
	return func(w *bypass) { w.g.Grant(subject, "target:"+name+".do@1", environment) }
}

// atTheGate are calls that no guest of theirs may run for.
var atTheGate = []attempt{
	{name: "plain"},
	{name: "ungranted", want: abi.CodeMissingGrant, grants: []string{}, right: regrant("user:alice", "project", "ungranted")},
	{name: "elsewhere", want: abi.CodeMissingGrant, grants: []string{"user:alice@org"}, right: regrant("user:alice", "project", "elsewhere")},
	{name: "anothers", want: abi.CodeMissingGrant, grants: []string{"user:bob@project", "user:alic@project", "user:alice2@project"}},
	{name: "kinds", want: abi.CodeMissingGrant, grants: []string{"app:alice@project", "biome:alice@project", "agent:alice@project"}},
	{name: "revoked", want: abi.CodeMissingGrant, right: regrant("user:alice", "project", "revoked"), arrange: func(w *bypass) {
		revokeAll(w.g, "user:alice", "target:revoked.do@1")
	}},
	{name: "expired", want: abi.CodeMissingGrant, grants: []string{}, right: regrant("user:alice", "project", "expired"), arrange: func(w *bypass) {
		end := time.Now().Add(time.Second)
		w.g.Control("POST", "/v1/grants", map[string]any{
			"subject": "user:alice", "capability": "target:expired.do@1", "environment": "environment:project", "expires": end,
		}).Want(201)
		time.Sleep(time.Until(end) + time.Millisecond)
	}},
	{name: "forged", want: abi.CodeUnauthenticated, as: "forged@project", grants: []string{"user:alice@project"}, outside: true},
	{name: "of-nobody", want: abi.CodeUnauthenticated, as: "nobody@project", grants: []string{"user:alice@project"}, outside: true},
	{name: "closed", want: abi.CodeUnauthenticated, as: "closed@project", grants: []string{"user:alice@project"}, outside: true},
	{name: "principal", want: abi.CodeForbidden, as: "operator@project", grants: []string{"user:alice@project"}, outside: true},
	{name: "spelled", want: abi.CodeInvalidRequest, ref: "Target:plain.do@1", outside: true},
	{name: "slashed", want: abi.CodeInvalidRequest, ref: "x/../target:plain.do@1", outside: true},
	{name: "padded", want: abi.CodeInvalidRequest, ref: "target:plain.do@1 ", outside: true},
	{name: "unknown", want: abi.CodeMissingGrant, ref: "target:never.was@1"},
	{name: "major", want: abi.CodeMissingGrant, ref: "target:plain.do@2"},
	{name: "biome-unknown", want: abi.CodeMissingGrant, ref: "nobody:plain.do@1"},
	{name: "far", want: abi.CodeReachCeiling, reach: abi.ReachPlatform},
	{name: "far-in-sandbox", want: abi.CodeReachCeiling, as: "alice@sandbox", reach: abi.ReachIntegration},
	{name: "near-in-sandbox", as: "alice@sandbox"},
	{name: "far-in-org", as: "alice@org", reach: abi.ReachPlatform},
	{name: "unadmitted", want: abi.CodeEnvironmentNotGranted, as: "alice@app", right: func(w *bypass) { w.installTargets("project", "sandbox", "org", "strict", "app") }},
	{name: "delegated", as: "bot@project", grants: []string{"agent:bot@project", "user:alice@project"}},
	{name: "beyond-user", want: abi.CodeSubjectNotCovered, as: "bot@project", grants: []string{"agent:bot@project"}, right: regrant("user:alice", "project", "beyond-user")},
	{name: "on-behalf", want: abi.CodeMissingGrant, as: "bot@project", grants: []string{"user:alice@project"}, right: regrant("agent:bot", "project", "on-behalf")},
	{name: "labelled", as: "low@project", grants: []string{"user:alice@project"}, declared: "internal"},
	{name: "over-labelled", want: abi.CodeClassificationCeiling, as: "low@project", grants: []string{"user:alice@project"}, declared: "confidential"},
	{name: "personal", want: abi.CodeMissingGrant, as: "alices@project", grants: []string{"user:alice@project"}},
	{name: "listed", as: "alice@strict"},
	{name: "unlisted", want: abi.CodeNotInAllowList, as: "alice@strict", right: func(w *bypass) {
		w.g.Control("PUT", "/v1/orgs/default/environments/strict", map[string]any{}, "If-Match",
			w.g.Control("GET", "/v1/orgs/default/environments/strict", nil).Want(200).Header.Get("ETag")).Want(200)
	}},
	{name: "disabled", want: abi.CodeBiomeDisabled, ref: "off:plain.do@1", arrange: func(w *bypass) { w.disable("off", true) }, right: func(w *bypass) { w.disable("off", false) }},
	{name: "retired", want: abi.CodeCapabilityRetired, arrange: func(w *bypass) {
		w.g.Control("PUT", "/v1/capabilities/target:retired.do@1/lifecycle", map[string]string{"state": "retired", "replacedBy": "target:plain.do@1"}, "If-None-Match", "*").Want(200)
	}},
	{name: "unclassified", want: abi.CodeUnclassified, as: "alice@sandbox", arrange: func(w *bypass) { w.g.Catalogue.Stop() }, right: func(w *bypass) { w.g.Catalogue.Start() }},
	{name: "unasked", want: abi.CodeApprovalRequired, shape: func(d *abi.Descriptor) { d.RequiresApproval = true }},
	{name: "mistyped", want: abi.CodeInputSchema, input: `{"n":"1"}`},
	{name: "named-environment", want: abi.CodeInputSchema, input: `{"n":1,"environment":"environment:org"}`},
	{name: "proto", want: abi.CodeInputSchema, input: `{"__proto__":{"n":1}}`},
	{name: "case", want: abi.CodeInputSchema, input: `{"N":1}`},
	{name: "a-list", want: abi.CodeInputSchema, input: `[{"n":1}]`},
	{name: "a-string", want: abi.CodeInputSchema, input: `"{\"n\":1}"`},
	{name: "twice", want: abi.CodeInvalidJSON, input: `{"n":1,"n":2}`},
	{name: "trailing", want: abi.CodeInvalidJSON, input: `{"n":1}{"n":2}`},
	{name: "not-json", want: abi.CodeInvalidJSON, input: `n=1`},
	{name: "oversized", want: abi.CodeInputLimit, as: "alice@sandbox", input: `{"n":` + strings.Repeat("1", 1024) + `}`},
}

// atTheBoundary are calls that the gate has nothing against, and whose host calls are refused: nothing
// outside the guest changes.
func atTheBoundary(w *bypass) []attempt {
	create := func(name, path string, want abi.Code) attempt {
		return attempt{name: name, want: want, call: "file_create", steps: []step{do("file_create", path, "pwned")}}
	}
	read := func(name, path string, want abi.Code) attempt {
		return attempt{name: name, want: want, call: "file_read", steps: []step{do("file_read", path, 0, 4096)}}
	}
	get := func(name, url string, want abi.Code) attempt {
		return attempt{name: name, want: want, call: "http_fetch", reach: abi.ReachIntegration, steps: []step{do("http_fetch", `{"method":"GET","url":"`+url+`"}`, "")}}
	}
	kv := func(name, key string, want abi.Code) attempt {
		return attempt{
			name: name, want: want, call: "kv_get", as: "keys@project", grants: []string{"user:alice@project"}, shown: true, steps: []step{do("kv_get", key)},
		}
	}
	host := strings.TrimPrefix(w.origin.URL, "http://")
	port := host[strings.LastIndex(host, ":"):]
	return []attempt{
		// What a module imports because another of its capabilities may use it.
		{name: "liar-audit", want: abi.CodeReachCeiling, call: "audit_query", steps: []step{do("audit_query", "{}")}},
		{name: "liar-fetch", want: abi.CodeReachCeiling, call: "http_fetch", steps: []step{do("http_fetch", `{"method":"GET","url":"`+w.origin.URL+`/allowed/"}`, "")}},
		{name: "liar-sign", want: abi.CodeReachCeiling, call: "secret_hmac", steps: []step{do("secret_hmac", "kept", "m")}},

		// Files outside the workspace; of the gateway's own, too (PF-A18).
		create("inside", "reports/a.txt", ""),
		create("parent", "../pwned", abi.CodePathInvalid),
		create("parents", "a/../../../pwned", abi.CodePathInvalid),
		create("absolute", "/pwned", abi.CodePathInvalid),
		create("store", "../../store/pwned", abi.CodePathInvalid),
		create("audit", "../../audit/pwned", abi.CodePathInvalid),
		create("modules", w.g.Dir+"/modules/pwned", abi.CodePathInvalid),
		create("keys", "./../../keys/pwned", abi.CodePathInvalid),
		create("zero", "a\x00/../../pwned", abi.CodePathInvalid),
		create("backslash", `..\pwned`, abi.CodePathInvalid),
		create("through-link", "link/pwned", abi.CodeNotRegular),
		{name: "move-out", want: abi.CodePathInvalid, call: "file_move", steps: []step{do("file_create", "moved", "pwned"), do("file_move", "moved", "../pwned")}},
		{name: "copy-through", want: abi.CodeNotRegular, call: "file_copy", steps: []step{do("file_copy", "token", "copy")}},
		read("operator", "../../operator.token", abi.CodePathInvalid),
		read("passwd", "/etc/passwd", abi.CodePathInvalid),
		read("environ", "/proc/self/environ", abi.CodePathInvalid),
		read("linked", "token", abi.CodeNotRegular),
		{name: "unnamed", want: abi.CodeResourceNotInGlob, call: "file_create", globs: []string{"reports/**"}, steps: []step{do("file_create", "reportsx/pwned", "pwned")}},
		{name: "unnamed-key", want: abi.CodeResourceNotInGlob, call: "kv_put", globs: []string{"reports/**"}, steps: []step{do("kv_put", "other", "1")}},

		// Another biome's key (PF-E3).
		{name: "own-key", call: "kv_put", as: "keys@project", grants: []string{"user:alice@project"}, steps: []step{do("kv_put", "own", "1")}},
		kv("own-key-again", "own", ""),
		kv("same-key", "victim", abi.CodeKeyNotFound),
		kv("qualified", "off/victim", abi.CodeKeyNotFound),
		kv("zeroed", "\x00off\x00victim", abi.CodeKeyInvalid),
		kv("up", "../off/victim", abi.CodeKeyNotFound),
		kv("no-key", "", abi.CodeKeyInvalid),

		// Requests that no rule names (X45), and addresses that nobody may reach.
		get("within", w.origin.URL+"/allowed/a", ""),
		get("other-path", w.origin.URL+"/other", abi.CodeEndpointRefused),
		get("prefix", w.origin.URL+"/allowedx", abi.CodeEndpointRefused),
		get("dots", w.origin.URL+"/allowed/../other", abi.CodeURLInvalid),
		get("encoded-dots", w.origin.URL+"/allowed/%2e%2e/other", abi.CodeURLInvalid),
		get("encoded-slash", w.origin.URL+"/allowed%2f..%2fother", abi.CodeURLInvalid),
		get("user", "http://"+host+"@"+strings.TrimPrefix(w.elsewhere.URL, "http://")+"/allowed/", abi.CodeURLInvalid),
		get("other-port", w.elsewhere.URL+"/allowed/", abi.CodeEndpointRefused),
		get("decimal", "http://2130706433"+port+"/allowed/", abi.CodeURLInvalid),
		get("short", "http://127.1"+port+"/allowed/", abi.CodeURLInvalid),
		get("mapped", "http://[::ffff:127.0.0.1]"+port+"/allowed/", abi.CodeURLInvalid),
		get("metadata", "http://169.254.169.254/latest/meta-data/", abi.CodeEndpointRefused),
		get("admin", w.g.Admin+"/v1/orgs", abi.CodeEndpointRefused),
		get("scheme", "file:///etc/passwd", abi.CodeURLInvalid),
		{name: "method", want: abi.CodeEndpointRefused, call: "http_fetch", reach: abi.ReachIntegration, steps: []step{do("http_fetch", `{"method":"DELETE","url":"`+w.origin.URL+`/allowed/a"}`, "")}},
		{name: "redirected", call: "http_fetch", reach: abi.ReachIntegration, steps: []step{do("http_fetch", `{"method":"GET","url":"`+w.origin.URL+`/allowed/redirect"}`, "")}},

		// Secrets that were not kept (PF-F2), and uses that were not named (S15).
		{name: "kept", call: "secret_hmac", reach: abi.ReachIntegration, steps: []step{do("secret_hmac", "kept", "m")}},
		{name: "unkept", want: abi.CodeSecretDenied, call: "secret_hmac", reach: abi.ReachIntegration, steps: []step{do("secret_hmac", "unkept", "m")}},
		{name: "no-secret", want: abi.CodeSecretDenied, call: "secret_hmac", reach: abi.ReachIntegration, steps: []step{do("secret_hmac", "nothing", "m")}},
		{
			name: "unkept-bearer", want: abi.CodeSecretDenied, call: "http_fetch", reach: abi.ReachIntegration,
			steps: []step{do("http_fetch", `{"method":"GET","url":"`+w.origin.URL+`/allowed/a","secret":"unkept"}`, "")},
		},
		{
			name: "own-bearer", want: abi.CodeHeaderRefused, call: "http_fetch", reach: abi.ReachIntegration,
			steps: []step{do("http_fetch", `{"method":"GET","url":"`+w.origin.URL+`/allowed/a","headers":{"Authorization":"Bearer mine"},"secret":"kept"}`, "")},
		},

		// Capabilities that the install grant does not let it call, and itself (S4, PF-A15).
		{name: "not-to-call", want: abi.CodeMissingGrant, call: "capability_invoke", steps: []step{do("capability_invoke", "target:plain.do@1", "{}")}},
		{name: "itself", want: abi.CodeChildCycle, call: "capability_invoke", steps: []step{do("capability_invoke", "target:itself.do@1", "{}")}},
	}
}

// Promise 7, PF-A10: what is refused is refused the same way through every face: with the code, before
// anything acts, on record, and without a word about the inside. What is put right works through the
// same face.
func TestBypass(t *testing.T) {
	t.Parallel()
	for _, f := range []face{overHTTP{}, &overCLI{}, overCapability{}, overMCP{}, overMCP{meta: true}} {
		t.Run(f.name(), func(t *testing.T) {
			t.Parallel()
			w := newBypass(t)
			calls := append(append([]attempt{}, atTheGate...), atTheBoundary(w)...)
			w.provide(calls)
			f.prepare(w, calls)
			for i := range calls {
				if calls[i].outside && f.name() == "capability" {
					continue
				}
				t.Run(calls[i].name, func(t *testing.T) { w.try(t, f, &calls[i]) })
			}
			w.untouched(t)
		})
	}
}

package servertest_test

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// lowSteps are host calls of the low caller's capabilities, one or more each; the last answers.
func lowSteps(origin string) [][]step {
	get := func(path, secret string) step {
		return do("http_fetch", `{"method":"GET","url":"`+origin+path+`"`+secret+`}`, "")
	}
	const with = `,"secret":"token"`
	out := [][]step{
		{do("file_list", ".", "", 0)},
		{do("file_list", ".", "in.txt", 1)},
		{do("file_list", "vault", "", 0)},
		{do("file_glob", "**", 0)},
		{do("file_glob", "vault/*", 1)},
		{do("file_grep", "a|o", "**", 0)},
		{do("file_grep", "attack", "in.txt", 1)},
		{do("kv_list", "", "", 0)},
		{do("kv_get", "plan")},
		{do("kv_put", "plan", `"low"`)},
		{do("kv_delete", "plan")},
		{do("kv_get", "mark")},
		{get("/low", "")},
		{get("/low", with)},
		{get("/echo", with)},
		{get("/high", "")},
		{get("/high", with)},
		{get("/none", "")},
		{get("/high", ""), do("kv_put", "plan", `"after"`)},
		{do("secret_hmac", "token", "m")},
		{do("capability_invoke", "callee:mark.withheld@1", "{}")},
		{do("capability_invoke", "callee:mark.withheld@1", "{}"), do("kv_put", "after", `"1"`)},
		{do("capability_invoke", "callee:note.low@1", "{}")},
		{do("capability_invoke", "callee:secret.read@1", "{}")},
		{do("capability_invoke", "high:file.read@1", "{}")},
	}
	for _, path := range []string{"in.txt", "vault/plan", "note", "vault/new"} {
		out = append(
			out,
			[]step{do("file_stat", path)},
			[]step{do("file_read", path, 0, 4096)},
			[]step{do("file_create", path, "low")},
			[]step{do("file_read", path, 0, 10), do("file_write", path, "low")},
			[]step{do("file_edit", path, "o", "oo", 1)},
			[]step{do("file_copy", path, "copy")},
			[]step{do("file_move", path, "moved")},
			[]step{do("file_move", "moved", path)},
			[]step{do("file_remove", path), do("file_mkdir", path), do("file_remove", path)},
		)
	}
	return out
}

func lowRef(i int) string { return fmt.Sprintf("low:call.n%d@1", i) }

// makeHighSteps are what a session that has read everything may try, to be noticed.
func makeHighSteps(origin string) [][]step {
	return [][]step{
		{do("file_read", "in.txt", 0, 4096), do("kv_put", "plan", `"attack"`)},
		{do("kv_put", "high", `"1"`)},
		{do("kv_delete", "plan")},
		{do("file_create", "attack", "1")},
		{do("file_remove", "note")},
		{do("file_mkdir", "attack")},
		{do("http_fetch", `{"method":"GET","url":"`+origin+`/high"}`, ""), do("kv_put", "high", `"1"`)},
		{do("http_fetch", `{"method":"POST","url":"`+origin+`/low"}`, "attack")},
		{do("capability_invoke", "low:note.make@1", "{}")},
		{do("capability_invoke", "callee:mark.put@1", "{}")},
		{do("log", 3, "attack"), do("error", "ATTACK", "at dawn")},
		{do("random", 8, 8), do("kv_get", "plan")},
	}
}

var highSteps = makeHighSteps("")

func highRef(i int) string { return fmt.Sprintf("high:call.n%d@1", i) }

func everyHigh() []int { return upTo(len(highSteps)) }

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// lowCall is one request to the data plane.
type lowCall struct {
	method, path string
	input        any
	header       []string
}

var lowCalls = makeLowCalls()

func everything() []int { return upTo(len(lowCalls)) }

// makeLowCalls is a script of all routes: each of the low caller's capabilities invoked, then what else a caller
// can send.
func makeLowCalls() []lowCall {
	var out []lowCall
	invoke := func(ref string, input any, header ...string) {
		out = append(out, lowCall{"POST", "/v1/invoke/" + url.PathEscape(ref), input, header})
	}
	explain := func(ref string, input any, header ...string) {
		out = append(out, lowCall{"POST", "/v1/explain/" + url.PathEscape(ref), input, header})
	}
	for i := range lowSteps("") {
		invoke(lowRef(i), none)
	}
	for _, to := range []func(string, any, ...string){invoke, explain} {
		to(lowRef(0), none, "Ecotone-Classification", "secret")
		to(lowRef(0), none, "Ecotone-Classification", "internal")
		to(lowRef(0), []byte(`{"a":`))
		to("callee:mark.withheld@1", none)
		to("callee:mark.put@1", none)
		to("high:file.read@1", none)
		to("high:never.was@1", none)
		to("rival:a.b@1", none)
	}
	out = append(
		out,
		lowCall{method: "GET", path: "/v1/capabilities"},
		lowCall{method: "GET", path: "/v1/invocations/{last}"},
		lowCall{method: "POST", path: "/v1/invocations/{last}:cancel"},
		lowCall{method: "GET", path: "/v1/invocations/{hidden}"},
		lowCall{method: "POST", path: "/v1/invocations/{hidden}:cancel"},
		lowCall{method: "GET", path: "/v1/invocations/{asked}"},
		lowCall{method: "POST", path: "/v1/invocations/{asked}:cancel"},
		lowCall{"POST", "/v1/invoke/" + url.PathEscape(lowRef(0)), none, []string{"Ecotone-Declassification", "{asked}"}},
		lowCall{"POST", "/v1/invoke/high:word.ask@1", none, []string{"Ecotone-Declassification", "{asked}"}},
		lowCall{method: "GET", path: "/v1/invocations/01ARZ3NDEKTSV4RRFFQ69G5FAV"},
		lowCall{method: "GET", path: "/v1/nothing"},
		lowCall{method: "DELETE", path: "/v1/capabilities"},
	)
	return out
}

// putToken stores the secret that the low biome may use.
func (p *pair) putToken(g *servertest.Gateway, value string) {
	g.T.Helper()
	header := []string{"If-None-Match", "*"}
	if was := g.Control("GET", "/v1/secrets/token", nil); was.Status == 200 {
		header = []string{"If-Match", was.Header.Get("ETag")}
	}
	g.Control("PUT", "/v1/secrets/token", map[string]any{"value": value, "uses": []map[string]any{
		{"kind": "header", "header": "Authorization", "prefix": "Bearer ", "endpoint": "low"},
		{"kind": "hmac", "prefix": "test.v1:", "label": "confidential"},
	}}, header...).Want(200)
}

// seed is everything of the worlds' organisation that is not secret.
func (p *pair) seed(g *servertest.Gateway) {
	g.T.Helper()
	endpoint(g, "low", p.origin.URL, map[string]any{"clearance": "internal"})
	endpoint(g, "high", p.origin.URL, map[string]any{"label": "secret", "rule": map[string]any{
		"scheme": "http", "host": "127.0.0.1", "port": number(p.origin.URL[strings.LastIndexByte(p.origin.URL, ':')+1:]), "methods": []string{"GET"}, "path": "/high",
	}})
	p.putToken(g, plain.Value)
	calls := []abi.CapabilityRef{"callee:mark.withheld@1", "callee:note.low@1", "callee:secret.read@1", "callee:mark.put@1"}
	needs := func(m *abi.Manifest) {
		m.Requires.Endpoints = []abi.Need{{Name: "low", Why: "test"}, {Name: "high", Why: "test"}}
		m.Requires.Secrets = []abi.Need{{Name: "token", Why: "test"}}
		if m.Name != "callee" {
			m.Requires.Capabilities = calls
		}
	}
	uses := func(calls []abi.CapabilityRef) map[string]any {
		return map[string]any{"endpoints": []string{"low", "high"}, "secrets": []string{"token"}, "calls": calls}
	}
	secretOutput := func(d *abi.Descriptor) { d.OutputClassification = abi.Secret }
	admit(g, "callee", script("callee", needs,
		action{ref: "callee:mark.put@1", reach: abi.ReachOwner, steps: []step{do("kv_put", "mark", `"1"`)}},
		action{ref: "callee:mark.withheld@1", reach: abi.ReachOwner, shape: secretOutput, register: true, steps: []step{do("kv_get", "mark")}},
		action{ref: "callee:note.low@1", reach: abi.ReachOwner, steps: []step{do("time_now")}},
		action{ref: "callee:secret.read@1", reach: abi.ReachIntegration, register: true, steps: []step{
			do("http_fetch", `{"method":"GET","url":"`+p.origin.URL+`/high"}`, ""),
		}},
	), []string{"project"}, uses([]abi.CapabilityRef{}))
	actions := []action{
		{ref: "low:note.make@1", reach: abi.ReachOwner, steps: []step{do("file_create", "note", "note")}},
		{ref: "low:key.put1@1", reach: abi.ReachOwner, steps: []step{do("kv_put", "plan", `"attack"`)}},
		{ref: "low:key.put2@1", reach: abi.ReachOwner, steps: []step{do("kv_put", "plan", `"or do not attack"`)}},
	}
	for i, steps := range lowSteps(p.origin.URL) {
		actions = append(actions, action{ref: lowRef(i), reach: abi.ReachIntegration, steps: steps, register: true})
	}
	admit(g, "low", script("low", needs, actions...), []string{"project"}, uses(calls))
	calls = append(calls, "low:note.make@1")
	actions = []action{{ref: "high:file.read@1", reach: abi.ReachOwner, steps: []step{do("file_read", "in.txt", 0, 4096)}}}
	for i, steps := range makeHighSteps(p.origin.URL) {
		actions = append(actions, action{ref: highRef(i), reach: abi.ReachIntegration, steps: steps})
	}
	actions = append(actions, action{ref: "high:word.ask@1", reach: abi.ReachOwner, shape: func(d *abi.Descriptor) {
		d.RequiresApproval, d.OutputClassification = true, abi.Secret
	}})
	admit(g, "high", script("high", needs, actions...), []string{"project"}, uses(calls))
	a := &asking{g: g}
	p.people[g] = a.who("ann", "approver", "user:ann", "regulated", "*")
}

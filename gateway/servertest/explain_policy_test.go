package servertest_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// takes gives a capability an input schema.
func takes(schema string) func(*abi.Descriptor) {
	return func(d *abi.Descriptor) { d.InputSchema = json.RawMessage(schema) }
}

// X46, promise 2: what explain says is what invoke then does, whatever policy is: the decision, the code of its first
// failed check, and whether the reach was judged. On one server, over many random changes of what decides:
// grants, agents' users, installs, overrides, biomes that are disabled, spaces' floors, the catalogue, the caller's
// classification, its input. And explaining runs nothing.
func TestExplainIsWhatInvokeDoes(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, servertest.Dev)
	everywhere := everywhere()
	g.Upload(script("pro", nil,
		action{ref: "pro:owner.do@1", reach: abi.ReachOwner, shape: takes(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`)},
		action{ref: "pro:wide.do@1", reach: abi.ReachIntegration},
		action{ref: "pro:asks.do@1", reach: abi.ReachOwner, shape: func(d *abi.Descriptor) { d.RequiresApproval = true }},
	)).Want(201)
	g.Install("pro", everywhere, nil).Want(200)
	g.Control("POST", "/v1/spaces", map[string]string{"id": "guarded", "kind": "project", "parent": "default", "floor": "confidential"}).Want(201)
	refs := []string{"pro:owner.do@1", "pro:wide.do@1", "pro:asks.do@1", "pro:absent.do@1"}
	slugs := append(append([]string{}, everywhere[:4]...), "sandbox", "trusted-dev")
	subjects := []string{"user:alice", "user:bob", "agent:bot"}
	sessions := map[string]*servertest.Session{}
	session := func(subject, slug, space string) *servertest.Session {
		key := subject + " " + slug + " " + space
		if sessions[key] == nil {
			more := map[string]any{}
			switch {
			case slug == "trusted-dev":
				more["space"] = "dev"
			case space != "":
				more["space"] = space
			}
			if subject == "agent:bot" {
				more["user"] = "user:alice"
			}
			sessions[key] = g.Open(subject, slug, more)
		}
		return sessions[key]
	}
	granted := map[string]string{}
	disabled := false
	biome := func(to bool) {
		if disabled != to {
			verb := map[bool]string{true: "disable", false: "enable"}[to]
			g.Control("POST", "/v1/biomes/pro/"+verb, nil, "If-Match", g.Control("GET", "/v1/biomes/pro", nil).Want(200).Header.Get("ETag")).Want(200)
			disabled = to
		}
	}
	installed := true // everywhere
	install := func(to []string) {
		g.Install("pro", to, nil).Want(200)
		installed = len(to) == len(everywhere)
	}
	// agree explains and does, and answers what was done.
	agree := func(t interface{ Fatalf(string, ...any) }, s *servertest.Session, ref, input string, header ...string) string {
		var e explanation
		if n := started(g, func() { s.Explain(ref, []byte(input), header...).Want(200).JSON(&e) }); n != 0 {
			t.Fatalf("explaining started %d guests", n)
		}
		r := s.Invoke(ref, []byte(input), header...)
		row := row(g, r).Decision
		said, did := fmt.Sprint(e.Decision, " ", e.Code), fmt.Sprint(row.Verdict, " ", row.Code)
		status := map[string]bool{"allow": r.Status == 200, "needs_approval": r.Status == 202, "deny": r.Status >= 400 && r.Code() == e.Code}
		if said != did || !status[e.Decision] {
			t.Fatalf("%s in %s: explained %s, done %s: %d %s", ref, row.Environment, said, did, r.Status, r.Body)
		}
		if e.Decision != "deny" && e.ReachCheck != row.ReachCheck {
			t.Fatalf("%s in %s: reach check %s explained, %s done", ref, row.Environment, e.ReachCheck, row.ReachCheck)
		}
		return did
	}
	for ref, want := range map[string]string{"pro:owner.do@1": "allow ", "pro:asks.do@1": "needs_approval APPROVAL_REQUIRED"} {
		g.Grant("user:carol", ref, "project")
		if did := agree(t, session("user:carol", "project", ""), ref, `{}`); did != want {
			t.Fatalf("%s: %q", ref, did)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		subject, ref, slug := rapid.SampledFrom(subjects).Draw(rt, "subject"), rapid.SampledFrom(refs).Draw(rt, "ref"), rapid.SampledFrom(slugs).Draw(rt, "environment")
		for _, who := range []string{subject, "user:alice"} { // an agent needs its user's, too
			key := who + " " + ref + " " + slug
			want := rapid.IntRange(0, 3).Draw(rt, "granted") > 0 && ref != "pro:absent.do@1"
			switch {
			case want && granted[key] == "":
				granted[key] = g.Grant(who, ref, slug)
			case !want && granted[key] != "":
				g.Control("DELETE", "/v1/grants/"+granted[key], nil).Want(200)
				granted[key] = ""
			}
		}
		biome(false)
		g.Catalogue.Start()
		if !installed {
			install(everywhere)
		}
		switch rapid.IntRange(0, 9).Draw(rt, "otherwise") {
		case 0:
			biome(true)
		case 1, 2:
			g.Catalogue.Stop()
		case 3:
			install(rapid.SliceOfNDistinct(rapid.SampledFrom(everywhere), 1, 4, rapid.ID[string]).Draw(rt, "installed"))
		}
		space := ""
		if slug != "sandbox" {
			space = rapid.SampledFrom([]string{"", "guarded"}).Draw(rt, "space")
		}
		s := session(subject, slug, space)
		input := rapid.SampledFrom([]string{`{}`, `{"n":1}`, `{"n":"one"}`, `[]`}).Draw(rt, "input")
		var header []string
		if label := rapid.SampledFrom([]string{"", "", "internal", "regulated"}).Draw(rt, "classification"); label == "internal" {
			header = []string{"Ecotone-Classification", label} // no more: the session keeps the mark
		}
		agree(rt, s, ref, input, header...)
	})
}

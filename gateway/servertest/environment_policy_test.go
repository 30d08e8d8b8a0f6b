package servertest_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/store"
	"github.com/ecotone-dev/ecotone/gateway/store/badger"
)

const ownPath = "/v1/orgs/default/environments"

// own makes an environment of the organisation's own.
func own(g *servertest.Gateway, slug, base string, more map[string]any) servertest.Response {
	g.T.Helper()
	in := map[string]any{"slug": slug, "base": "environment:" + base}
	for k, v := range more {
		in[k] = v
	}
	return g.Control("POST", ownPath, in)
}

// setOwn replaces what it says.
func setOwn(g *servertest.Gateway, slug string, in map[string]any) servertest.Response {
	g.T.Helper()
	return g.Control("PUT", ownPath+"/"+slug, in, "If-Match", g.Control("GET", ownPath+"/"+slug, nil).Want(200).Header.Get("ETag"))
}

// X53, X54, P6: an environment of an organisation's own from its making to its end. It is bound to
// sessions, admitted by installs, named by grants; what it no longer gives is refused at the next call;
// what is changed is on record by name; and it is the same after a restart.
func TestOwnEnvironment(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	made := own(g, "strict", "project", map[string]any{"reachCeiling": "owner", "limits": map[string]int{"wall": 4000}}).Want(201)
	if made.Header.Get("Location") != ownPath+"/strict" || made.Header.Get("ETag") != `"1"` {
		t.Errorf("%v", made.Header)
	}
	var doc map[string]any
	made.JSON(&doc)
	limits, _ := doc["limits"].(map[string]any)
	for name, want := range map[string]any{
		"slug": "strict", "ref": "environment:strict", "org": "default", "base": "environment:project", "isBuiltIn": false, "available": true,
		"reachCeiling": "owner", "enforcement": "refinement", "maxDataClassification": "regulated", "revision": 1.0, "allowedCapabilities": nil,
	} {
		if doc[name] != want {
			t.Errorf("%s is %v, not %v", name, doc[name], want)
		}
	}
	if limits["wall"] != 4000.0 || limits["inputBytes"] == nil {
		t.Errorf("limits %v", limits)
	}
	own(g, "strict", "project", nil).Refused(abi.CodeAlreadyExists)

	admit(g, "own", script("own", nil, action{ref: "own:a.do@1", reach: abi.ReachOwner}, action{ref: "own:b.do@1", reach: abi.ReachIntegration}), []string{"project", "strict"}, nil)
	s := g.Open("user:alice", "strict", nil)
	r := s.Invoke("own:a.do@1", none).Want(200)
	if got := row(g, r).Decision.Environment; got != "environment:strict" {
		t.Errorf("the row says %s", got)
	}
	s.Invoke("own:b.do@1", none).Refused(abi.CodeReachCeiling)
	g.Open("user:alice", "project", nil).Invoke("own:b.do@1", none).Want(200)

	setOwn(g, "strict", map[string]any{"maxDataClassification": "internal"}).Want(200)
	s.Invoke("own:b.do@1", none).Want(200)
	s.Invoke("own:a.do@1", none, "Ecotone-Classification", "confidential").Refused(abi.CodeClassificationCeiling)

	// A principal that an environment grant names opens sessions there, and nowhere else.
	author := walkers(g, "default")[session.Author]
	g.Control("POST", "/v1/environment-grants", map[string]string{"principal": "walker-author", "subject": "user:alice", "environment": "environment:strict"}).Want(201)
	open := func(env string) servertest.Response {
		return g.Do("POST", g.Admin+"/v1/sessions", author, map[string]string{"subject": "user:alice", "environment": env})
	}
	var opened struct{ Of struct{ ID string } }
	open("environment:strict").Want(201).JSON(&opened)
	open("environment:project").Want(403)

	before := g.Control("GET", ownPath+"/strict", nil).Want(200).Body
	g.Stop()
	g = servertest.Start(t, servertest.In(g.Dir))
	s.G = g
	if after := g.Control("GET", ownPath+"/strict", nil).Want(200).Body; string(after) != string(before) {
		t.Errorf("before the restart %s, after it %s", before, after)
	}
	s.Invoke("own:a.do@1", none, "Ecotone-Classification", "confidential").Refused(abi.CodeClassificationCeiling)

	tag := []string{"If-Match", g.Control("GET", ownPath+"/strict", nil).Want(200).Header.Get("ETag")}
	var p struct{ Problems []struct{ Session string } }
	g.Control("DELETE", ownPath+"/strict", nil, tag...).Refused(abi.CodeEnvironmentInUse).JSON(&p)
	if len(p.Problems) != 2 || p.Problems[0].Session != s.ID || p.Problems[1].Session != opened.Of.ID {
		t.Errorf("in use by %v, not by %s and %s", p.Problems, s.ID, opened.Of.ID)
	}
	for _, id := range []string{s.ID, opened.Of.ID} {
		g.Control("DELETE", "/v1/sessions/"+id, nil).Want(200)
	}
	g.Control("DELETE", ownPath+"/strict", nil, tag...).Want(204)
	for _, at := range []string{ownPath + "/strict", "/v1/environments/strict"} {
		g.Control("GET", at, nil).Refused(abi.CodeNotFound)
	}
	in := map[string]any{"subject": "user:alice", "environment": "environment:strict"}
	g.Control("POST", "/v1/sessions", in).Refused(abi.CodeNotFound)
	// What was granted there must not come back with another of the same name.
	own(g, "strict", "org", nil).Refused(abi.CodeConflict)

	var events []string
	for _, e := range g.Rows("&kind=admin") {
		raw, _ := json.Marshal(e)
		for _, name := range []string{"environment.created", "environment.updated", "environment.deleted"} {
			if strings.Contains(string(raw), `"`+name+`"`) && strings.Contains(string(raw), "strict") {
				events = append(events, name)
			}
		}
		if strings.Contains(string(raw), "environment.created") && (!strings.Contains(string(raw), "maxDataClassification") || strings.Contains(string(raw), `"owner"`)) {
			t.Errorf("the event does not say names alone: %s", raw)
		}
	}
	slices.Sort(events)
	if got := slices.Compact(slices.Clone(events)); len(got) != 3 {
		t.Errorf("events %q", events)
	}
}

// variable is what differs between two answers that say the same: the request's own id.
var variable = regexp.MustCompile(`"auditId":"[0-9A-Z]{26}"`)

// X53: to another organisation an environment of one's own is not there: it is not listed, and whatever
// is said about it is answered as a name that nobody uses is.
func TestOwnEnvironmentIsOnesOwn(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	own(g, "hidden", "project", map[string]any{"allowedCapabilities": []string{"own:a.do@1"}}).Want(201)
	g.Control("POST", "/v1/orgs", map[string]string{"id": "acme"}).Want(201)
	tokens := walkers(g, "acme")
	g.Upload(script("own", nil, action{ref: "own:a.do@1", reach: abi.ReachOwner})).Want(201)
	acme := g.Control("POST", "/v1/biomes?org=acme", script("mine", nil, action{ref: "mine:a.do@1", reach: abi.ReachOwner}), "Content-Type", "application/wasm").Want(201)
	var up struct{ Biome struct{ Digest string } }
	acme.JSON(&up)
	said := func(slug string) (all []string) {
		for _, role := range []session.Role{session.OrgAdmin, session.Author, session.Auditor} {
			do := func(method, path string, body any, header ...string) {
				r := g.Do(method, g.Admin+path, tokens[role], body, header...)
				text := variable.ReplaceAllString(string(r.Body), "")
				all = append(all, fmt.Sprint(role, method, r.Status, r.Header.Get("ETag"), strings.ReplaceAll(strings.ReplaceAll(path+text, slug, "SLUG"), fmt.Sprint(len(slug)), "N")))
			}
			ref := "environment:" + slug
			do("GET", "/v1/environments", nil)
			do("GET", "/v1/environments?builtin=false", nil)
			do("GET", "/v1/environments/"+slug, nil)
			do("GET", "/v1/orgs/acme/environments", nil)
			do("GET", "/v1/orgs/acme/environments/"+slug, nil)
			do("GET", "/v1/orgs/default/environments/"+slug, nil)
			do("GET", "/v1/orgs/default/environments", nil)
			do("PUT", "/v1/orgs/acme/environments/"+slug, map[string]any{}, "If-Match", `"1"`)
			do("PUT", "/v1/environments/"+slug, map[string]any{}, "If-Match", `"1"`)
			do("DELETE", "/v1/orgs/acme/environments/"+slug, nil, "If-Match", `"1"`)
			do("PUT", "/v1/orgs/acme/overrides/"+slug, map[string]any{"maxDataClassification": "internal"}, "If-None-Match", "*")
			do("POST", "/v1/sessions", map[string]any{"subject": "user:alice", "environment": ref})
			do("POST", "/v1/grants", map[string]any{"subject": "user:alice", "capability": "mine:a.do@1", "environment": ref})
			do("POST", "/v1/environment-grants", map[string]any{"principal": "walker-author", "subject": "user:alice", "environment": ref})
			do("PUT", "/v1/installs/mine", map[string]any{"digest": up.Biome.Digest, "environments": []string{ref}}, "If-None-Match", "*")
		}
		return all
	}
	hidden, absent := said("hidden"), said("absent")
	for i := range hidden {
		if hidden[i] != absent[i] {
			t.Errorf("told apart:\n%s\n%s", hidden[i], absent[i])
		}
	}
	if strings.Contains(strings.Join(hidden, ""), "own:a.do@1") {
		t.Error("something of it is told")
	}
	// The name is free to others, and theirs is another environment.
	g.Control("POST", "/v1/orgs/acme/environments", map[string]any{"slug": "hidden", "base": "environment:org"}).Want(201)
	var e struct{ Base, Org string }
	g.Control("GET", ownPath+"/hidden", nil).Want(200).JSON(&e)
	if e.Base != "environment:project" || e.Org != "default" {
		t.Errorf("%+v", e)
	}
}

// X56, X20, X21, P10: what would be more than the base under the organisation's override is refused,
// what is reserved as well, and a base or an override that is tightened later tightens what derives
// from it.
func TestOwnEnvironmentIsNeverWider(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Control("PUT", "/v1/orgs/default/overrides/app", map[string]string{"maxDataClassification": "internal"}, "If-None-Match", "*").Want(200)
	for name, c := range map[string]struct {
		base string
		more map[string]any
		code abi.Code
	}{
		"reach":           {"project", map[string]any{"reachCeiling": "platform"}, abi.CodeCeilingLoosened},
		"of a boundary":   {"sandbox", map[string]any{"reachCeiling": "integration"}, abi.CodeCeilingLoosened},
		"family":          {"sandbox", map[string]any{"enforcement": "refinement"}, abi.CodeCeilingLoosened},
		"data":            {"app", map[string]any{"maxDataClassification": "confidential"}, abi.CodeCeilingLoosened},
		"limits":          {"project", map[string]any{"limits": map[string]int64{"wall": 6000}}, abi.CodeCeilingLoosened},
		"waives":          {"trusted-dev", nil, abi.CodeUnsupportedRule},
		"no base":         {"other", nil, abi.CodeInvalidRequest},
		"an empty list":   {"project", map[string]any{"allowedCapabilities": []string{}}, abi.CodeUnsupportedRule},
		"a pattern":       {"project", map[string]any{"allowedCapabilities": []string{"kb:*"}}, abi.CodeInvalidRequest},
		"a built-in slug": {"project", map[string]any{"slug": "org"}, abi.CodeBuiltInImmutable},
		"no such limit":   {"project", map[string]any{"limits": map[string]int64{"speed": 1}}, abi.CodeUnknownField},
		"no such family":  {"project", map[string]any{"enforcement": "none"}, abi.CodeInvalidRequest},
		"isBuiltIn":       {"project", map[string]any{"isBuiltIn": true}, abi.CodeMarkerReserved},
		"not built in":    {"project", map[string]any{"isBuiltIn": false}, abi.CodeMarkerReserved},
		"waives set":      {"project", map[string]any{"waives": true}, abi.CodeMarkerReserved},
		"available":       {"project", map[string]any{"available": true}, abi.CodeMarkerReserved},
		"another's":       {"project", map[string]any{"org": "acme"}, abi.CodeInvalidRequest},
		"an unknown word": {"project", map[string]any{"platformManaged": true}, abi.CodeUnknownField},
	} {
		t.Run(name, func(t *testing.T) {
			r := own(g, "e", c.base, c.more).Refused(c.code)
			if c.code == abi.CodeCeilingLoosened && !strings.Contains(string(r.Body), `"pointer"`) {
				t.Errorf("%s", r.Body)
			}
		})
	}
	g.Control("POST", "/v1/environments", map[string]any{"slug": "x", "isBuiltIn": true}).Refused(abi.CodeMarkerReserved)
	g.Control("GET", ownPath+"/e", nil).Refused(abi.CodeNotFound)

	own(g, "e", "project", nil).Want(201)
	setOwn(g, "e", map[string]any{"base": "environment:org"}).Refused(abi.CodeInvalidRequest)
	setOwn(g, "e", map[string]any{"reachCeiling": "platform"}).Refused(abi.CodeCeilingLoosened)
	setOwn(g, "e", map[string]any{"isBuiltIn": true}).Refused(abi.CodeMarkerReserved)
	var whole map[string]any
	g.Control("GET", ownPath+"/e", nil).Want(200).JSON(&whole)
	setOwn(g, "e", whole).Want(200) // what was shown may be sent back
	g.Control("PUT", "/v1/orgs/default/overrides/e", map[string]string{"maxDataClassification": "internal"}, "If-None-Match", "*").Refused(abi.CodeUnsupportedRule)

	admit(g, "own", script("own", nil, action{ref: "own:a.do@1", reach: abi.ReachOwner}), []string{"e"}, nil)
	s := g.Open("user:alice", "e", nil)
	secret := []string{"Ecotone-Classification", "secret"}
	s.Invoke("own:a.do@1", none, secret...).Want(200)
	shown := func() (e struct {
		Max    string `json:"maxDataClassification"`
		Limits map[string]int64
	},
	) {
		g.Control("GET", ownPath+"/e", nil).Want(200).JSON(&e)
		return e
	}
	override := "/v1/orgs/default/overrides/project"
	tag := g.Control("PUT", override, map[string]string{"maxDataClassification": "internal"}, "If-None-Match", "*").Want(200).Header.Get("ETag")
	s.Invoke("own:a.do@1", none, secret...).Refused(abi.CodeClassificationCeiling)
	if e := shown(); e.Max != "internal" {
		t.Errorf("under the override it admits %s", e.Max)
	}
	g.Control("DELETE", override, nil).Refused(abi.CodePreconditionNeeded)
	g.Control("DELETE", override, nil, "If-Match", tag).Want(204)
	g.Control("GET", override, nil).Refused(abi.CodeNotFound)
	s.Invoke("own:a.do@1", none, secret...).Want(200)
	g.Control("PUT", "/v1/environments/project", map[string]any{"limits": map[string]int64{"wall": 700}}, "If-Match", `"1"`).Want(200)
	if e := shown(); e.Max != "regulated" || e.Limits["wall"] != 700 {
		t.Errorf("%+v", e)
	}
	// An override can come back, and its revisions go on.
	if next := g.Control("PUT", override, map[string]string{"maxDataClassification": "secret"}, "If-None-Match", "*").Want(200).Header.Get("ETag"); next != `"3"` {
		t.Errorf("the ETag is %s", next)
	}
}

// X54, X55: a list admits what it names, with a grant, and nothing else, whatever is granted; no
// built-in environment takes one, and what is put into the store behind the gateway's back is seen.
func TestOwnEnvironmentsList(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	own(g, "listed", "project", map[string]any{"allowedCapabilities": []string{"list:a.do@1", "list:ungranted.do@1"}}).Want(201)
	g.Upload(script("list", nil,
		action{ref: "list:a.do@1", reach: abi.ReachOwner}, action{ref: "list:a.do@2", reach: abi.ReachOwner},
		action{ref: "list:b.do@1", reach: abi.ReachOwner}, action{ref: "list:ungranted.do@1", reach: abi.ReachOwner})).Want(201)
	g.Install("list", []string{"listed", "project"}, nil).Want(200)
	for _, ref := range []string{"list:a.do@1", "list:a.do@2", "list:b.do@1"} {
		g.Grant("user:alice", ref, "listed")
		g.Grant("user:alice", ref, "project")
	}
	s, free := g.Open("user:alice", "listed", nil), g.Open("user:alice", "project", nil)
	s.Invoke("list:a.do@1", none).Want(200)
	for _, ref := range []string{"list:a.do@2", "list:b.do@1"} {
		s.Invoke(ref, none).Refused(abi.CodeNotInAllowList)
		free.Invoke(ref, none).Want(200)
	}
	s.Invoke("list:ungranted.do@1", none).Refused(abi.CodeMissingGrant)
	setOwn(g, "listed", map[string]any{"allowedCapabilities": []string{"list:b.do@1"}}).Want(200)
	s.Invoke("list:b.do@1", none).Want(200)
	s.Invoke("list:a.do@1", none).Refused(abi.CodeNotInAllowList)
	setOwn(g, "listed", map[string]any{}).Want(200)
	s.Invoke("list:a.do@1", none).Want(200)

	for _, e := range environment.BuiltIns() {
		for _, list := range []any{[]string{"list:a.do@1"}, []string{}, nil} {
			g.Control("PUT", "/v1/environments/"+e.Slug, map[string]any{"allowedCapabilities": list}, "If-Match", `"1"`).Refused(abi.CodeUnsupportedRule)
		}
	}
	g.Stop()
	for name, change := range map[string]func(map[string]any) (kind, id string){
		"a list of a built-in's": func(r map[string]any) (string, string) {
			for k := range r {
				delete(r, k)
			}
			r["environment"], r["limits"], r["revision"], r["updatedBy"], r["updatedAt"] = "environment:project", map[string]int{"wall": 1000}, 9, "x", "2026-01-01T00:00:00Z"
			r["allowedCapabilities"] = []string{"list:a.do@1"}
			return "limits", "environment:project"
		},
		"one that calls itself a built-in": func(r map[string]any) (string, string) {
			r["slug"], r["allowedCapabilities"] = "project", []string{"list:a.do@1"}
			return "environment", "project"
		},
		"one with an empty list": func(r map[string]any) (string, string) {
			r["allowedCapabilities"] = []string{}
			return "environment", "listed"
		},
		"one that is wider": func(r map[string]any) (string, string) {
			r["reachCeiling"] = "platform"
			return "environment", "listed"
		},
	} {
		t.Run(name, func(t *testing.T) {
			undo := rewrite(t, g.Dir, change)
			servertest.DoesNotOpen(t, abi.CodeInternal, servertest.In(g.Dir))
			undo()
		})
	}
	servertest.Start(t, servertest.In(g.Dir)).Control("GET", ownPath+"/listed", nil).Want(200)
}

// rewrite changes a copy of the record of the environment "listed" and puts it where change says, behind
// the gateway's back. What it returns puts everything back.
func rewrite(t *testing.T, dir string, change func(map[string]any) (kind, id string)) func() {
	t.Helper()
	from := store.Key("policy", "environment", "default", "listed")
	var key, was []byte
	in := func(fn func(store.Tx) error) {
		t.Helper()
		st, err := badger.Open(dir, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Update(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	in(func(tx store.Tx) error {
		raw, err := tx.Get(from)
		if err != nil {
			return err
		}
		var rec map[string]any
		if err := json.Unmarshal(raw, &rec); err != nil {
			return err
		}
		kind, id := change(rec)
		key = store.Key("policy", kind, "default", id)
		if kind == "limits" {
			key = store.Key("policy", kind, id)
		}
		if was, err = tx.Get(key); err != nil {
			was = nil
		}
		was = slices.Clone(was)
		next, err := json.Marshal(rec)
		if err != nil {
			return err
		}
		return tx.Set(key, next)
	})
	return func() {
		in(func(tx store.Tx) error {
			if was == nil {
				return tx.Delete(key)
			}
			return tx.Set(key, was)
		})
	}
}

// X13, X14, X56: without a catalogue an environment of an organisation's own is of its base's family, or
// a boundary where it was made one.
func TestOwnEnvironmentsInAnOutage(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	own(g, "refined", "project", nil).Want(201)
	own(g, "bounded", "project", map[string]any{"enforcement": "boundary"}).Want(201)
	own(g, "boxed", "sandbox", nil).Want(201)
	all := []string{"refined", "bounded", "boxed"}
	admit(g, "out", script("out", nil, action{ref: "out:a.do@1", reach: abi.ReachOwner}), all, nil)
	sessions := map[string]*servertest.Session{}
	for _, slug := range all {
		sessions[slug] = g.Open("user:alice", slug, nil)
		sessions[slug].Invoke("out:a.do@1", none).Want(200)
	}
	g.Catalogue.Stop()
	r := sessions["refined"].Invoke("out:a.do@1", none).Want(200)
	if got := row(g, r).Decision.ReachCheck; got != "deferred" {
		t.Errorf("the row says %s", got)
	}
	n := started(g, func() {
		sessions["bounded"].Invoke("out:a.do@1", none).Refused(abi.CodeUnclassified)
		sessions["boxed"].Invoke("out:a.do@1", none).Refused(abi.CodeUnclassified)
	})
	if n != 0 {
		t.Errorf("%d guests were started", n)
	}
	g.Catalogue.Start()
	// What derives from the sandbox is no sandbox: an upload that nobody admitted does not run there.
	g.Upload(script("out", nil, action{ref: "out:a.do@1", reach: abi.ReachOwner}, action{ref: "out:new.do@1", reach: abi.ReachOwner})).Want(201)
	g.Grant("user:alice", "out:new.do@1", "boxed")
	g.Grant("user:alice", "out:new.do@1", "sandbox")
	sessions["boxed"].Invoke("out:new.do@1", none).Refused(abi.CodeMissingGrant)
	sessions["boxed"].Invoke("out:a.do@1", none).Want(200)
	g.Open("user:alice", "sandbox", nil).Invoke("out:new.do@1", none).Want(200)
}

// S18, X54: what runs in an environment of an organisation's own ends while it waits, when the environment
// is changed so that it would not be allowed any more; a change that takes nothing from it does not end it.
func TestOwnEnvironmentReachesWhatRuns(t *testing.T) {
	t.Parallel()
	s := newStuck(t)
	own(s.g, "strict", "project", map[string]any{"allowedCapabilities": []string{"test:stuck.get@1"}}).Want(201)
	s.g.Install("stuck", []string{"project", "strict"}, map[string]any{"endpoints": []string{"origin"}}).Want(200)
	s.g.Grant("user:alice", "test:stuck.get@1", "strict")
	by := s.g.Open("user:alice", "strict", nil)
	for name, change := range map[string]map[string]any{
		"another list": {"allowedCapabilities": []string{"test:other.get@1"}},
		"less reach":   {"reachCeiling": "owner"},
		"less data":    {"maxDataClassification": "public"},
	} {
		done := s.wait(by, "test:stuck.get@1")
		setOwn(s.g, "strict", map[string]any{"allowedCapabilities": []string{"test:stuck.get@1", "test:other.get@1"}}).Want(200)
		setOwn(s.g, "strict", change).Want(200)
		if r := <-done; r.Code() != abi.CodeGrantRevoked {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
		setOwn(s.g, "strict", map[string]any{"allowedCapabilities": []string{"test:stuck.get@1"}}).Want(200)
	}
	done := s.wait(by, "test:stuck.get@1")
	setOwn(s.g, "strict", map[string]any{}).Want(200)
	s.free()
	(<-done).Want(200)
}

// X56, S9: the limits of an environment of an organisation's own bite there, and only there: before the
// guest, and in its host calls, also when instances of the same module are kept ready for its base.
func TestOwnEnvironmentsLimits(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	own(g, "small", "project", map[string]any{"limits": map[string]int64{"inputBytes": 64, "hostCalls": 3}}).Want(201)
	puts := make([]step, 5)
	for i := range puts {
		puts[i] = do("kv_put", fmt.Sprint("k", i), "1")
	}
	admit(g, "limits", script("limits", nil, action{ref: "limits:a.do@1", reach: abi.ReachOwner}, action{ref: "limits:many.put@1", reach: abi.ReachOwner, steps: puts}), []string{"project", "small"}, nil)
	large := map[string]string{"x": strings.Repeat("x", 64)}
	base, small := g.Open("user:alice", "project", nil), g.Open("user:alice", "small", nil)
	for range 3 { // instances are kept in between
		base.Invoke("limits:a.do@1", large).Want(200)
		small.Invoke("limits:a.do@1", none).Want(200)
		small.Invoke("limits:a.do@1", large).Refused(abi.CodeInputLimit)
		spent, _ := abi.CodeHostCallLimit.Info()
		for s, want := range map[*servertest.Session]abi.Errno{base: 0, small: spent.Errno} {
			if got := errno(s.Invoke("limits:many.put@1", none)); got != want {
				t.Errorf("errno %d, not %d", got, want)
			}
		}
	}
	setOwn(g, "small", map[string]any{"limits": map[string]int64{"inputBytes": 1000}}).Want(200)
	small.Invoke("limits:a.do@1", large).Want(200)
	if got := errno(small.Invoke("limits:many.put@1", none)); got != 0 {
		t.Errorf("errno %d", got)
	}
}

package servertest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// lifecycleOf is what the control plane shows of a capability.
func lifecycleOf(g *servertest.Gateway, ref string) (c policy.Capability) {
	g.T.Helper()
	g.Control("GET", "/v1/capabilities/"+ref, nil).Want(200).JSON(&c)
	return c
}

// end takes a capability further, under the version there is.
func end(g *servertest.Gateway, ref, state, replacedBy string) servertest.Response {
	g.T.Helper()
	header := []string{"If-None-Match", "*"}
	if tag := g.Control("GET", "/v1/capabilities/"+ref, nil).Header.Get("ETag"); tag != "" {
		header = []string{"If-Match", tag}
	}
	body := map[string]string{"state": state}
	if replacedBy != "" {
		body["replacedBy"] = replacedBy
	}
	return g.Control("PUT", "/v1/capabilities/"+ref+"/lifecycle", body, header...)
}

// successor is what a denial or an answer says of what to invoke instead.
type successor struct {
	Code        abi.Code
	Lifecycle   grant.State
	ReplacedBy  string
	Suggestions []struct{ Kind, Capability, Environment, Subject string }
}

// X61: a capability goes from proposed to published to deprecated to retired, each major of its own, and
// never back. A deprecated one works and names its successor everywhere; a retired one is denied, and
// the denial, followed, works. Two majors of one version live side by side.
func TestCapabilityLifecycle(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	const one, two = "life:a.do@1", "life:a.do@2"
	g.Upload(script("life", nil, action{ref: one, reach: abi.ReachOwner}, action{ref: two, reach: abi.ReachOwner})).Want(201)
	if c := lifecycleOf(g, one); c.State != grant.Proposed || c.Digest != "" || c.Biome != "life" {
		t.Errorf("uploaded: %+v", c)
	}
	g.Install("life", []string{"project"}, nil).Want(200)
	published := lifecycleOf(g, one)
	if published.State != grant.Published || published.Digest == "" || published.Revision != 0 {
		t.Errorf("installed: %+v", published)
	}
	g.Grant("user:alice", one, "project")
	g.Grant("user:alice", two, "project")
	s := g.Open("user:alice", "project", nil)
	for _, ref := range []string{one, two} {
		if r := s.Invoke(ref, none).Want(200); r.Header.Get("Ecotone-Replaced-By") != "" {
			t.Errorf("%s: published, and replaced by %q", ref, r.Header.Get("Ecotone-Replaced-By"))
		}
	}
	// An uninstalled capability was published all the same.
	g.Control("DELETE", "/v1/installs/life", nil, "If-Match", g.Control("GET", "/v1/installs/life", nil).Header.Get("ETag")).Want(200)
	if c := lifecycleOf(g, one); c.State != grant.Published || c.Digest != "" {
		t.Errorf("uninstalled: %+v", c)
	}
	g.Install("life", []string{"project"}, nil).Want(200)

	end(g, one, "deprecated", two).Want(200)
	r := s.Invoke(one, none).Want(200)
	var said successor
	s.Explain(one, none).Want(200).JSON(&said)
	if got := r.Header.Get("Ecotone-Replaced-By"); got != two || said.ReplacedBy != two || said.Lifecycle != grant.Deprecated || said.Code != "" {
		t.Errorf("deprecated: the header says %q, explain %+v", got, said)
	}
	if raw := string(row(g, r).Raw); !strings.Contains(raw, `"lifecycle":"deprecated"`) || !strings.Contains(raw, `"replacedBy":"`+two+`"`) {
		t.Errorf("the row says %s", raw)
	}
	if r := s.Invoke(two, none).Want(200); r.Header.Get("Ecotone-Replaced-By") != "" {
		t.Error("the successor is deprecated, too")
	}
	list := func() []string {
		var listed struct {
			Items []struct{ Ref, Lifecycle, ReplacedBy string }
		}
		g.Do("GET", g.Invoke+"/v1/capabilities", s.Token, nil).Want(200).JSON(&listed)
		var out []string
		for _, i := range listed.Items {
			out = append(out, i.Ref+" "+i.Lifecycle+" "+i.ReplacedBy)
		}
		return out
	}
	if got := list(); !slices.Equal(got, []string{one + " deprecated " + two, two + "  "}) {
		t.Errorf("the caller is shown %q", got)
	}

	end(g, one, "retired", two).Want(200)
	denied := func(s *servertest.Session) successor {
		t.Helper()
		var d successor
		if n := started(g, func() {
			r := s.Invoke(one, none).Refused(abi.CodeCapabilityRetired)
			if r.JSON(&d); r.Header.Get("Ecotone-Replaced-By") != two {
				t.Errorf("the header says %q", r.Header.Get("Ecotone-Replaced-By"))
			}
		}); n != 0 {
			t.Error("a guest was started")
		}
		return d
	}
	d := denied(s)
	if len(d.Suggestions) != 1 || d.Suggestions[0].Kind != "use-successor" || d.ReplacedBy != two {
		t.Fatalf("the denial says %+v", d)
	}
	s.Invoke(d.Suggestions[0].Capability, none).Want(200) // followed
	if got := list(); !slices.Equal(got, []string{two + "  "}) {
		t.Errorf("the caller is shown %q", got)
	}

	// Never back, whoever asks for what; nor by a new version, a new install or a restart.
	for _, state := range []string{"deprecated"} {
		end(g, one, state, two).Refused(abi.CodeConflict)
	}
	for _, state := range []string{"published", "proposed", "seeded", "", "Retired"} {
		end(g, one, state, "").Refused(abi.CodeInvalidRequest)
	}
	g.Upload(script("life", nil, action{ref: one, reach: abi.ReachOwner, steps: []step{do("kv_get", "k")}}, action{ref: two, reach: abi.ReachOwner})).Want(201)
	g.Install("life", []string{"project"}, nil).Want(200)
	denied(s)
	g.Stop()
	g = servertest.Start(t, servertest.In(g.Dir))
	s = &servertest.Session{G: g, ID: s.ID, Token: s.Token}
	denied(s)
	s.Invoke(two, none).Want(200)
	if c := lifecycleOf(g, one); c.State != grant.Retired || c.ReplacedBy != two {
		t.Errorf("after a restart: %+v", c)
	}
}

// A successor is one that can be invoked: it is there, it is not retired, and does not lead back. It may be changed.
func TestSuccessors(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	var actions []action
	for _, n := range []string{"1", "2", "3", "4"} {
		actions = append(actions, action{ref: "succ:a.do@" + n, reach: abi.ReachOwner})
	}
	admit(g, "succ", script("succ", nil, actions...), []string{"project"}, nil)
	end(g, "succ:a.do@1", "deprecated", "succ:a.do@9").Refused(abi.CodeNotFound)
	end(g, "succ:a.do@1", "deprecated", "succ:a.do@1").Refused(abi.CodeInvalidRequest)
	end(g, "succ:a.do@1", "deprecated", "@2").Refused(abi.CodeInvalidRequest)
	end(g, "succ:a.do@1", "deprecated", "succ:a.do@2").Want(200)
	end(g, "succ:a.do@2", "deprecated", "succ:a.do@3").Want(200)
	end(g, "succ:a.do@3", "deprecated", "succ:a.do@1").Refused(abi.CodeConflict)
	end(g, "succ:a.do@4", "retired", "").Want(200)
	end(g, "succ:a.do@3", "deprecated", "succ:a.do@4").Refused(abi.CodeConflict)
	end(g, "succ:a.do@1", "deprecated", "succ:a.do@3").Want(200)
	end(g, "succ:b.do@1", "retired", "").Refused(abi.CodeNotFound)
	s := g.Open("user:alice", "project", nil)
	if r := s.Invoke("succ:a.do@1", none).Want(200); r.Header.Get("Ecotone-Replaced-By") != "succ:a.do@3" {
		t.Errorf("the header says %q", r.Header.Get("Ecotone-Replaced-By"))
	}
	// With nothing in its place, nothing is named.
	var d successor
	r := s.Invoke("succ:a.do@4", none).Refused(abi.CodeCapabilityRetired)
	r.JSON(&d)
	if r.Header.Get("Ecotone-Replaced-By") != "" || d.ReplacedBy != "" || len(d.Suggestions) != 1 || d.Suggestions[0].Kind != "use-another-capability" {
		t.Errorf("the denial says %s", r.Body)
	}
}

// X61 with the rule of refusals: to who holds no grant for it, a retired capability is one that is not
// there, byte for byte, its successor included. Another organisation does not see it, either.
func TestRetiredIsUnknownToTheUngranted(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "gone", script("gone", nil, action{ref: "gone:a.do@1", reach: abi.ReachOwner}, action{ref: "gone:a.do@2", reach: abi.ReachOwner}), []string{"project"}, nil)
	end(g, "gone:a.do@1", "retired", "gone:a.do@2").Want(200)
	s := g.Open("user:mallory", "project", nil)
	plain := func(r servertest.Response) string {
		var p struct{ AuditID string }
		r.JSON(&p)
		out := strings.ReplaceAll(string(r.Body), p.AuditID, "")
		for _, ref := range []string{"gone:a.do@1", "gone:a.do@7"} {
			out = strings.ReplaceAll(out, ref, "ref")
		}
		for _, name := range []string{"Ecotone-Replaced-By", "Ecotone-Classification", "Content-Type"} {
			out += "\n" + name + r.Header.Get(name)
		}
		return out
	}
	if a, b := plain(s.Invoke("gone:a.do@1", none).Refused(abi.CodeMissingGrant)), plain(s.Invoke("gone:a.do@7", none).Refused(abi.CodeMissingGrant)); a != b {
		t.Errorf("retired\n%s\nunknown\n%s", a, b)
	}
	if a, b := plain(s.Explain("gone:a.do@1", none).Want(200)), plain(s.Explain("gone:a.do@7", none).Want(200)); a != b {
		t.Errorf("retired\n%s\nunknown\n%s", a, b)
	}
	g.Control("POST", "/v1/orgs", map[string]string{"id": "acme"}).Want(201)
	g.Control("GET", "/v1/capabilities/gone:a.do@1?org=acme", nil).Refused(abi.CodeNotFound)
	g.Control("PUT", "/v1/capabilities/gone:a.do@1/lifecycle?org=acme", map[string]string{"state": "retired"}, "If-None-Match", "*").Refused(abi.CodeNotFound)
}

// Nothing waives lifecycle: a retired capability is denied in trusted-dev, too.
func TestRetiredInDev(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, servertest.Dev)
	g.Upload(script("gone", nil, action{ref: "gone:a.do@1", reach: abi.ReachOwner})).Want(201)
	s := &servertest.Session{G: g, Token: g.Dev}
	s.Invoke("gone:a.do@1", none).Want(200)
	end(g, "gone:a.do@1", "retired", "").Want(200)
	s.Invoke("gone:a.do@1", none).Refused(abi.CodeCapabilityRetired)
}

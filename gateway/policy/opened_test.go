package policy

import (
	"slices"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// X35, X36, S18: a session ends with the first of the environment grants that opened it, the one for an
// agent and the one for its user alike; sessions that it did not open stay, the subject's own included. A
// restart finds the same ones, and a closed one is shown as closed when its grant was revoked.
func TestSessionsEndWithTheirGrants(t *testing.T) {
	s := start(t, false)
	_, text, err := s.IssueToken(t.Context(), s.op, TokenRequest{Org: DefaultOrg, Principal: "ann", Role: session.Author})
	must(t, err)
	ann, err := s.Principal(text)
	must(t, err)
	give := func(subject abi.Subject, slug string, expires *time.Time) string {
		g, err := s.CreateEnvironmentGrant(t.Context(), s.op, EnvironmentGrantRequest{Org: DefaultOrg, Principal: "ann", Subject: subject, Environment: env(slug), Expires: expires})
		must(t, err)
		return g.ID
	}
	type opened struct {
		session.Session
		token string
	}
	open := func(by session.Principal, subject, user abi.Subject, slug string) opened {
		sess, token, err := s.OpenSession(t.Context(), by, SessionRequest{Org: DefaultOrg, Subject: subject, User: user, Environment: env(slug)})
		must(t, err)
		return opened{sess, token}
	}
	soon, late := noon.Add(time.Hour), noon.Add(2*time.Hour)
	agents, adas := give("agent:bot", "project", &soon), give(ada, "project", nil)
	short := give(ada, "sandbox", &soon)
	long := give(ada, "sandbox", &late)

	all := map[string]opened{
		"agent":    open(ann, "agent:bot", ada, "project"),
		"ada":      open(ann, ada, "", "project"),
		"sandbox":  open(ann, ada, "", "sandbox"),
		"operator": open(s.op, ada, "", "project"),
	}
	for name, want := range map[string][]string{"agent": {agents, adas}, "ada": {adas}, "sandbox": {long}, "operator": nil} {
		if got := all[name].Grants; !slices.Equal(got, want) {
			t.Errorf("%s was opened by %v, want %v", name, got, want)
		}
	}
	if got := all["agent"].Expires; !got.Equal(soon) {
		t.Errorf("the agent's session ends at %s", got)
	}
	standing := func(s *server) (out []string) {
		t.Helper()
		for name, o := range all {
			shown, err := s.Session(t.Context(), s.op, DefaultOrg, o.ID)
			must(t, err)
			switch _, err := s.Invoker(o.token); {
			case err == nil && shown.Closed == nil:
				out = append(out, name)
			case err == nil || shown.Closed == nil || !shown.Closed.Equal(noon):
				t.Errorf("%s: %v, shown as closed at %v", name, err, shown.Closed)
			}
			listed, err := s.Sessions(t.Context(), s.op, DefaultOrg, Cut{Limit: 100})
			must(t, err)
			if i := slices.IndexFunc(listed.Items, func(l session.Session) bool { return l.ID == o.ID }); (listed.Items[i].Closed == nil) != (shown.Closed == nil) {
				t.Errorf("%s is listed as %+v", name, listed.Items[i])
			}
		}
		slices.Sort(out)
		return out
	}
	check := func(want ...string) {
		t.Helper()
		if got := standing(s); !slices.Equal(got, want) {
			t.Errorf("standing are %v, want %v", got, want)
		}
		if got := standing(s.again()); !slices.Equal(got, want) {
			t.Errorf("after a restart standing are %v, want %v", got, want)
		}
		if got := s.live.count(DefaultOrg, s.clock()); got != int64(len(want)) {
			t.Errorf("%d are counted, and %d stand", got, len(want))
		}
	}
	check("ada", "agent", "operator", "sandbox")
	must(t, second(s.RevokeEnvironmentGrant(t.Context(), s.op, DefaultOrg, short))) // it opened none
	check("ada", "agent", "operator", "sandbox")
	running := s.live.get(all["agent"].ID)
	must(t, second(s.RevokeEnvironmentGrant(t.Context(), s.op, DefaultOrg, agents)))
	check("ada", "operator", "sandbox")
	code(t, asError(running.stands(s.now)), abi.CodeGrantRevoked)
	code(t, s.Release(t.Context(), all["agent"].ID, abi.Secret), abi.CodeGrantRevoked)
	give("agent:bot", "project", nil)
	all["agent"] = open(ann, "agent:bot", ada, "project")
	must(t, second(s.RevokeEnvironmentGrant(t.Context(), s.op, DefaultOrg, adas)))
	check("operator", "sandbox")
	if len(s.live.opened) != 1 { // by long
		t.Errorf("it remembers sessions by %v", s.live.opened)
	}
}

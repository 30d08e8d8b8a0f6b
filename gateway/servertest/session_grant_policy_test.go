package servertest_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// opener is a principal that opens sessions by environment grants only.
type opener struct {
	g     *servertest.Gateway
	token string
}

func newOpener(g *servertest.Gateway) opener {
	return opener{g, issue(g, "default", "opener", "author")}
}

// may gives it an environment grant and returns its id.
func (o opener) may(subject string) string {
	o.g.T.Helper()
	var made struct{ ID string }
	in := map[string]string{"principal": "opener", "subject": subject, "environment": "environment:project"}
	o.g.Control("POST", "/v1/environment-grants", in).Want(201).JSON(&made)
	return made.ID
}

func (o opener) open(subject string, more map[string]any) *servertest.Session {
	o.g.T.Helper()
	as := *o.g
	as.Operator = o.token
	out := as.Open(subject, "project", more)
	out.G = o.g
	return out
}

func (o opener) revoke(id string) {
	o.g.T.Helper()
	o.g.Control("DELETE", "/v1/environment-grants/"+id, nil).Want(200)
}

// over holds a session to being of no use for anything.
func over(s *servertest.Session, ref string) {
	s.G.T.Helper()
	s.Invoke(ref, none).Refused(abi.CodeUnauthenticated)
	s.Explain(ref, none).Refused(abi.CodeUnauthenticated)
	for _, path := range []string{"/v1/capabilities", "/v1/invocations/" + s.ID} {
		s.G.Do("GET", s.G.Invoke+path, s.Token, nil).Refused(abi.CodeUnauthenticated)
	}
	var shown struct{ Closed *time.Time }
	s.G.Control("GET", "/v1/sessions/"+s.ID, nil).Want(200).JSON(&shown)
	if shown.Closed == nil {
		s.G.T.Error("it is shown as open")
	}
}

// X35, X36, S18: an environment grant that is revoked ends the sessions that it opened, with what runs in
// them, while that waits and before the revocation is answered. Of an agent's session the grant for the
// agent and the one for its user do. The subject's other sessions go on.
func TestAnEnvironmentGrantEndsItsSessions(t *testing.T) {
	t.Parallel()
	s := newStuck(t)
	g := s.g
	o := newOpener(g)
	g.Grant("agent:helper", stuckRef, "project")
	own := g.Open("user:alice", "project", nil)
	ran := s.wait(own, stuckRef) // by the operator's role
	for _, c := range []struct{ name, subject, revoked string }{
		{"of a user", "user:alice", "user:alice"},
		{"of an agent", "agent:helper", "agent:helper"},
		{"of an agent's user", "agent:helper", "user:alice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			by := map[string]string{"user:alice": o.may("user:alice")}
			var more map[string]any
			if c.subject != "user:alice" {
				by[c.subject] = o.may(c.subject)
				more = map[string]any{"user": "user:alice"}
			}
			session := o.open(c.subject, more)
			done := s.wait(session, stuckRef)
			o.revoke(by[c.revoked])
			s.revoked(t, done)
			over(session, stuckRef)
			in := map[string]any{"subject": c.subject, "environment": "environment:project"}
			maps.Copy(in, more)
			g.Do("POST", g.Admin+"/v1/sessions", o.token, in).Refused(abi.CodeRequestNotGranted)
			select {
			case r := <-ran:
				t.Fatalf("a session that no grant opened ended with it: %d %s", r.Status, r.Body)
			default:
			}
			for id := range by {
				if id != c.revoked {
					o.revoke(by[id])
				}
			}
		})
	}
	s.free()
	(<-ran).Want(200)
}

// X36, X34: a restart brings no session back that ended with its grant, and ends no other.
func TestASessionStaysEndedWithItsGrant(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	o := newOpener(g)
	const ref = "ask:a.do@1"
	admit(g, "ask", script("ask", nil, action{ref: ref, reach: abi.ReachOwner}), []string{"project"}, nil)
	own := g.Open("user:alice", "project", nil)
	gone := o.may("user:alice")
	ended := o.open("user:alice", nil)
	o.revoke(gone)
	o.may("user:alice")
	stays := o.open("user:alice", nil)
	g.Stop()
	again := servertest.Start(t, servertest.In(g.Dir))
	ended.G, own.G, stays.G = again, again, again
	over(ended, ref)
	own.Invoke(ref, none).Want(200)
	stays.Invoke(ref, none).Want(200)
}

// S18: what computes when the grant goes ends at its next slice; what it would have answered stays.
func TestAnEnvironmentGrantEndsWhatComputes(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	o := newOpener(g)
	admitAll(t, g, scripted(w.Manifest("busy"), scripts{"do": {{"kv_put", "k", "v"}, {"spin"}}}), "project", nil)
	lowerLimits(t, g, "project", map[string]int64{"wall": 600_000, "fuel": 1 << 40})
	id := o.may("user:alice")
	session := o.open("user:alice", nil)
	done := make(chan servertest.Response, 1)
	go func() { done <- session.Invoke("test:busy.do@1", none) }()
	for !strings.Contains(string(g.Do("GET", g.Ops+"/metrics", "", nil).Body), "\necotone_invocations_running 1\n") {
		time.Sleep(5 * time.Millisecond)
	}
	o.revoke(id)
	(<-done).Refused(abi.CodeGrantRevoked)
	over(session, "test:busy.do@1")
}

// S17, X36: what waits for a person's word waits in vain when the grant that opened its session goes.
func TestAnEnvironmentGrantEndsWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	o := newOpener(a.g)
	grant := o.may("user:alice")
	id := o.open("user:alice", nil).Invoke("ask:page.post@1", none).Waits()
	o.revoke(grant)
	a.decide(a.approver, id, "approve").Refused(abi.CodeApprovalStale)
	var shown struct {
		State   string
		Changed []string
	}
	a.g.Control("GET", "/v1/approvals/"+id, nil).Want(200).JSON(&shown)
	if shown.State != "stale" || len(shown.Changed) != 1 || shown.Changed[0] != "session" {
		t.Errorf("%+v", shown)
	}
	if n := a.hits.Load(); n != 0 {
		t.Errorf("it ran %d times", n)
	}
}

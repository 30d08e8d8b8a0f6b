package servertest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/gateway/session"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// stuck is a gateway with a capability, test:stuck.get@1, that waits for an origin which does not answer
// before the test lets it. What ends it sooner ends it while it waits.
type stuck struct {
	t       *testing.T
	g       *servertest.Gateway
	reached chan struct{} // one for each request that the origin has
	release chan struct{} // closed: the origin answers
}

func newStuck(t *testing.T, options ...func(*server.Options)) *stuck {
	t.Helper()
	s := &stuck{t: t, reached: make(chan struct{}, 64), release: make(chan struct{})}
	s.g = servertest.Start(t, append(options, func(o *server.Options) { o.EgressLoopback = true })...)
	origin := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		s.reached <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-s.release:
		}
		_, _ = io.WriteString(rw, "late")
	}))
	t.Cleanup(origin.Close)
	t.Cleanup(s.free)
	allowOrigin(s.g, origin.URL)
	m := w.Manifest("stuck")
	m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "test"}}
	admitAll(t, s.g, scripted(m, scripts{"get": {fetching(origin.URL + "/")}}), "project", map[string]any{"endpoints": []string{"origin"}})
	lowerLimits(t, s.g, "project", map[string]int64{"httpWall": 60_000, "wall": 600_000})
	return s
}

// free lets the origin answer.
func (s *stuck) free() {
	select {
	case <-s.release:
	default:
		close(s.release)
	}
}

// wait starts the capability and returns when the origin has its request.
func (s *stuck) wait(by *servertest.Session, ref string) chan servertest.Response {
	s.t.Helper()
	done := make(chan servertest.Response, 1)
	go func() { done <- by.Invoke(ref, none) }()
	select {
	case <-s.reached:
	case r := <-done:
		s.t.Fatalf("it did not get as far as the origin: %d %s", r.Status, r.Body)
	}
	return done
}

// revoked holds the end of an invocation that was stopped while it waited to what its answer and its row
// must say.
func (s *stuck) revoked(t *testing.T, done chan servertest.Response) {
	t.Helper()
	r := (<-done).Refused(abi.CodeGrantRevoked)
	got := s.g.Row(r.Header.Get("Ecotone-Invocation"))
	decision, ended := got["decision"].(map[string]any), got["ended"].(map[string]any)
	if ended["outcome"] != "failed" || ended["code"] != "GRANT_REVOKED" || ended["released"] != false {
		t.Errorf("the row says %v", ended)
	}
	if before, after := decision["policyGeneration"].(float64), ended["policyGeneration"].(float64); after < before || before == 0 {
		t.Errorf("decided under policy %v, ended under %v", before, after)
	}
	if e := got["effects"].([]any)[0].(map[string]any); e["outcome"] != "failed" || e["code"] != "GRANT_REVOKED" {
		t.Errorf("the row says of the request %v", e)
	}
}

const stuckRef = "test:stuck.get@1"

// S18: whatever takes a right away reaches an invocation that waits for an origin, while it waits, and
// before the change is answered; and it reaches no other.
func TestRevocationReachesWhatWaits(t *testing.T) {
	t.Parallel()
	s := newStuck(t)
	g := s.g
	g.Grant("user:bob", stuckRef, "project")
	bystander := s.wait(g.Open("user:bob", "project", nil), stuckRef)
	g.Grant("agent:helper", stuckRef, "project")
	biome := func(verb string) {
		path := "/v1/biomes/stuck"
		g.Control("POST", path+"/"+verb, nil, "If-Match", g.Control("GET", path, nil).Want(200).Header.Get("ETag")).Want(200)
	}
	for _, c := range []struct {
		name     string
		subject  string
		revoke   func(*servertest.Session)
		everyone bool // no invocation of the biome is spared
	}{
		{name: "the grant", subject: "user:alice", revoke: func(*servertest.Session) {
			revokeAll(g, "user:alice", stuckRef)
			g.Grant("user:alice", stuckRef, "project")
		}},
		{name: "the user's grant, of an agent", subject: "agent:helper", revoke: func(*servertest.Session) {
			revokeAll(g, "user:alice", stuckRef)
			g.Grant("user:alice", stuckRef, "project")
		}},
		{name: "the session", subject: "user:alice", revoke: func(of *servertest.Session) {
			g.Control("DELETE", "/v1/sessions/"+of.ID, nil).Want(200)
		}},
		{name: "the biome", subject: "user:alice", everyone: true, revoke: func(*servertest.Session) { biome("disable"); biome("enable") }},
		{name: "what the install grant keeps", subject: "user:alice", everyone: true, revoke: func(*servertest.Session) {
			g.Install("stuck", []string{"project"}, nil).Want(200)
			g.Install("stuck", []string{"project"}, map[string]any{"endpoints": []string{"origin"}}).Want(200)
		}},
		{name: "the ceiling", subject: "user:alice", everyone: true, revoke: func(*servertest.Session) {
			g.Control("PUT", "/v1/orgs/default/overrides/project", map[string]string{"maxDataClassification": "secret"}).Want(200)
		}},
		{name: "the endpoint", subject: "user:alice", everyone: true, revoke: func(*servertest.Session) {
			path := "/v1/endpoints/origin"
			g.Control("DELETE", path, nil, "If-Match", g.Control("GET", path, nil).Want(200).Header.Get("ETag")).Want(204)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var more map[string]any
			if c.subject == "agent:helper" {
				more = map[string]any{"user": "user:alice"}
			}
			session := g.Open(c.subject, "project", more)
			done := s.wait(session, stuckRef)
			c.revoke(session)
			s.revoked(t, done)
			if c.everyone {
				s.revoked(t, bystander)
				if c.name != "the endpoint" {
					bystander = s.wait(g.Open("user:bob", "project", nil), stuckRef)
				}
				return
			}
			select {
			case r := <-bystander:
				t.Fatalf("a right of somebody else ended it: %d %s", r.Status, r.Body)
			default:
			}
		})
	}
}

// S18: what policy did not take away is released, and the row names the policy under which: a later one
// than it was decided under.
func TestReleaseNamesItsPolicy(t *testing.T) {
	t.Parallel()
	s := newStuck(t)
	alice := s.g.Open("user:alice", "project", nil)
	generations := func(r servertest.Response) (decided, released float64) {
		got := s.g.Row(r.Want(200).Header.Get("Ecotone-Invocation"))
		ended := got["ended"].(map[string]any)
		if ended["released"] != true {
			t.Errorf("%v", ended)
		}
		return got["decision"].(map[string]any)["policyGeneration"].(float64), ended["policyGeneration"].(float64)
	}
	done := s.wait(alice, stuckRef)
	s.g.Grant("user:bob", stuckRef, "project")
	s.free()
	decided, released := generations(<-done)
	if released <= decided {
		t.Errorf("decided under policy %v, released under %v, and there was a change between them", decided, released)
	}
	if again, after := generations(alice.Invoke(stuckRef, none)); again != released || after != released {
		t.Errorf("nothing changed since %v: decided under policy %v, released under %v", released, again, after)
	}
}

// S18: rights that end with time end what waits, too: a grant's, a session's, and the session's that an
// environment grant let somebody open.
func TestExpiryReachesWhatWaits(t *testing.T) {
	t.Parallel()
	s := newStuck(t)
	g := s.g
	var opener struct{ Token string }
	g.Control("POST", "/v1/tokens", map[string]string{"principal": "opener", "role": "author"}).Want(201).JSON(&opener)
	for _, c := range []struct {
		name string
		open func(expires string) *servertest.Session
	}{
		{"grant", func(expires string) *servertest.Session {
			subject := "user:until-" + session.NewID(time.Now())
			g.Control("POST", "/v1/grants", map[string]string{"subject": subject, "capability": stuckRef, "environment": "environment:project", "expires": expires}).Want(201)
			return g.Open(subject, "project", nil)
		}},
		{"session", func(expires string) *servertest.Session {
			return g.Open("user:alice", "project", map[string]any{"expires": expires})
		}},
		{"environment grant", func(expires string) *servertest.Session {
			in := map[string]string{"principal": "opener", "subject": "user:alice", "environment": "environment:project", "expires": expires}
			g.Control("POST", "/v1/environment-grants", in).Want(201)
			as := *g
			as.Operator = opener.Token
			out := as.Open("user:alice", "project", nil)
			out.G = g
			return out
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			// On a busy machine it may be over before the origin is reached: then with more time.
			for life := 2 * time.Second; life < 2*time.Minute; life *= 2 {
				session := c.open(time.Now().Add(life).UTC().Format(time.RFC3339Nano))
				done := make(chan servertest.Response, 1)
				go func() { done <- session.Invoke(stuckRef, none) }()
				select {
				case <-s.reached:
					s.revoked(t, done)
					return
				case <-done:
				}
			}
			t.Fatal("it never got as far as the origin")
		})
	}
}

// S18: a child that waits is ended for its own lost right, and its parent is told and goes on.
func TestRevocationReachesAChild(t *testing.T) {
	t.Parallel()
	s := newStuck(t)
	g := s.g
	m := w.Manifest("above")
	m.Requires.Capabilities = []abi.CapabilityRef{stuckRef}
	admitAll(t, g, scripted(m, scripts{"call": {
		fetching("https://nowhere.example/"), // refused; but it makes the capability one of its callee's reach
		{"capability_invoke", stuckRef, "{}"}, {"time_now"},
	}}), "project", map[string]any{"calls": []string{stuckRef}})
	done := s.wait(g.Open("user:alice", "project", nil), "test:above.call@1")
	revokeAll(g, "biome:above", stuckRef)
	r := <-done
	if got := errnosOf(r); len(got) != 3 || got[1] != abi.ECHILD {
		t.Errorf("the parent ended with %v", got)
	}
	if c := childrenOf(g, r); len(c) != 1 || c[0].Ended == nil || c[0].Ended.Code != abi.CodeGrantRevoked {
		t.Errorf("the child: %+v", c)
	}
}

// S18: one that waits for a place to run and loses its right meanwhile is told at once, and never runs.
func TestRevocationReachesTheQueue(t *testing.T) {
	t.Parallel()
	s := newStuck(t, func(o *server.Options) {
		if err := o.Limits.Set("running", 1); err != nil {
			t.Fatal(err)
		}
	})
	g := s.g
	g.Grant("user:bob", stuckRef, "project")
	occupant := s.wait(g.Open("user:alice", "project", nil), stuckRef)
	started := g.Server.Started()
	waiting := make(chan servertest.Response, 1)
	bob := g.Open("user:bob", "project", nil)
	go func() { waiting <- bob.Invoke(stuckRef, none) }()
	for !strings.Contains(string(g.Do("GET", g.Ops+"/metrics", "", nil).Body), "\necotone_invocations_running 2\n") {
		time.Sleep(5 * time.Millisecond)
	}
	revokeAll(g, "user:bob", stuckRef)
	(<-waiting).Refused(abi.CodeGrantRevoked)
	if g.Server.Started() != started {
		t.Error("it ran")
	}
	s.free()
	(<-occupant).Want(200)
}

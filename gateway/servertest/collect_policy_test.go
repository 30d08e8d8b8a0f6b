package servertest_test

import (
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// Sessions and tokens that expired long ago are removed by the server itself, in a change on record; others
// are not, nor is what was invoked; and the chain of changes stands without them.
func TestExpiredIsCollected(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "col", script("col", nil, action{ref: "col:a.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	s := g.Open("user:alice", "project", nil)
	ran := row(g, s.Invoke("col:a.do@1", none).Want(200)).ID
	long := g.Open("user:alice", "project", map[string]any{"expires": time.Now().Add(29 * 24 * time.Hour).UTC()})
	g.Stop()

	after := policy.DefaultSession + policy.KeptAfter + time.Hour
	g = servertest.Start(t, servertest.In(g.Dir), func(o *server.Options) { o.Clock = func() time.Time { return time.Now().Add(after) } })
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if g.Control("GET", "/v1/sessions/"+s.ID, nil).Status == 404 {
			break
		}
		if time.Now().After(until) {
			t.Fatal("the session is still kept")
		}
	}
	g.Control("GET", "/v1/sessions/"+long.ID, nil).Want(200)
	if got := g.Row(ran)["decision"].(map[string]any)["session"]; got != s.ID {
		t.Errorf("the row names the session %v", got)
	}
	collected := func() (n int) {
		for _, r := range g.Rows("&kind=admin") {
			if a, _ := r["admin"].(map[string]any); a["operation"] == "expired.collected" {
				n++
			}
		}
		return n
	}
	for until := time.Now().Add(time.Minute); collected() < 2 && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
	}
	if n := collected(); n != 2 {
		t.Errorf("%d events, of one session and one token", n)
	}
	g.Stop()
	servertest.Start(t, servertest.In(g.Dir), func(o *server.Options) { o.Clock = func() time.Time { return time.Now().Add(after) } })
}

package policy

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// However sessions are opened, closed and left to expire, those that are counted are those that
// are open, closed ones take no more room than open ones do, and no token outlives its session.
func TestSessionsAreCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newSessions()
		l.loaded()
		now := noon
		type model struct {
			ends   time.Time
			closed bool
		}
		var all []*model
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch n := len(all); rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				m := &model{ends: now.Add(time.Duration(rapid.IntRange(1, 50).Draw(t, "lasts")) * time.Minute)}
				all = append(all, m)
				id := fmt.Sprint("s", n)
				l.apply(session.Session{ID: id, Org: "o", Expires: m.ends, Mark: abi.Public})
				l.addToken(session.Token{ID: "t" + id, Kind: session.KindSession, Org: "o", Session: id})
			case 2:
				if n > 0 {
					i := rapid.IntRange(0, n-1).Draw(t, "which")
					all[i].closed = true
					closed := now
					l.apply(session.Session{ID: fmt.Sprint("s", i), Org: "o", Closed: &closed})
				}
			case 3:
				now = now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "later")) * time.Minute)
			}
			open := 0
			for i, m := range all {
				stands := !m.closed && now.Before(m.ends)
				if stands {
					open++
				}
				if s := l.get(fmt.Sprint("s", i)); stands && (s == nil || s.stands(now) != nil) || s != nil && m.closed {
					t.Fatalf("session %d: %v, %+v", i, s, m)
				}
			}
			if n := l.count("o", now); n != int64(open) {
				t.Fatalf("%d are counted, %d are open", n, open)
			}
			if tokens := l.tokens.Load().Len(); tokens != open {
				t.Fatalf("%d tokens of %d sessions", tokens, open)
			}
		}
	})
}

func TestClosedSessionsTakeNoRoom(t *testing.T) {
	l := newSessions()
	l.loaded()
	for i := range 10 * slack {
		s := session.Session{ID: fmt.Sprint(i), Org: "o", Expires: noon}
		l.apply(s)
		s.Closed = &noon
		l.apply(s)
	}
	if n := len(l.orgs["o"].ends); n > slack {
		t.Errorf("%d are remembered, and none is open", n)
	}
}

package policy

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// keysOf counts the records of a kind.
func (s *server) keysOf(kind string) (n int) {
	s.t.Helper()
	must(s.t, s.store.View(s.t.Context(), func(tx store.Tx) error {
		return tx.Scan(prefixOf(kind), nil, func(_, _ []byte) (bool, error) { n++; return true, nil })
	}))
	return n
}

// Whatever is opened, closed, issued and revoked, and whenever is collected: of sessions and tokens those are
// kept that have not expired KeptAfter ago, and no others; what stands works as before; and the store
// opens with what is left, to the same.
func TestCollect(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := start(t, false)
		defer s.store.Close()
		type thing struct {
			token string
			ends  time.Time
			over  bool
		}
		sessions, tokens := map[string]*thing{}, map[string]*thing{}
		have := s.keysOf("token")
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			ends := s.now.Add(time.Duration(rapid.IntRange(1, 29).Draw(rt, "days")) * 24 * time.Hour)
			switch rapid.SampledFrom([]string{"open", "open", "issue", "close", "revoke", "later", "collect"}).Draw(rt, "step") {
			case "open":
				sess, token, err := s.OpenSession(t.Context(), s.op, SessionRequest{Org: DefaultOrg, Subject: "user:ada", Environment: env("project"), Expires: &ends})
				must(t, err)
				must(t, s.Release(t.Context(), sess.ID, abi.Internal))
				sessions[sess.ID] = &thing{token: token, ends: ends}
			case "issue":
				tok, token, err := s.IssueToken(t.Context(), s.op, TokenRequest{Org: DefaultOrg, Principal: "bob", Role: session.Auditor, Expires: &ends})
				must(t, err)
				tokens[tok.ID] = &thing{token: token, ends: ends}
			case "close":
				for id, x := range sessions {
					if s.now.Before(x.ends) {
						must(t, second(s.CloseSession(t.Context(), s.op, DefaultOrg, id)))
						x.over = true
						break
					}
				}
			case "revoke":
				for id, x := range tokens {
					if s.now.Before(x.ends) {
						must(t, s.RevokeToken(t.Context(), s.op, DefaultOrg, id))
						x.over = true
						break
					}
				}
			case "later":
				s.now = s.now.Add(time.Duration(rapid.IntRange(1, 40).Draw(rt, "days")) * 24 * time.Hour)
			case "collect":
				must(t, s.Collect(t.Context()))
				for _, all := range []map[string]*thing{sessions, tokens} {
					for id, x := range all {
						if s.now.Add(-KeptAfter).After(x.ends) {
							delete(all, id)
						}
					}
				}
				if a, b := s.keysOf("session"), s.keysOf("token"); a != len(sessions) || b != have+len(sessions)+len(tokens) {
					rt.Fatalf("%d sessions and %d tokens are kept, not %d and %d", a, b, len(sessions), have+len(sessions)+len(tokens))
				}
				revoked, marks := 0, 0
				for _, x := range tokens {
					if x.over {
						revoked++
					}
				}
				must(t, s.store.View(t.Context(), func(tx store.Tx) error {
					return tx.Scan(store.Key("session-mark"), nil, func(_, _ []byte) (bool, error) { marks++; return true, nil })
				}))
				if got := s.keysOf("token-revocation"); got != revoked || marks != len(sessions) {
					rt.Fatalf("%d revocations of tokens are kept, not %d; %d marks of %d sessions", got, revoked, marks, len(sessions))
				}
			}
			again := s
			if rapid.IntRange(0, 4).Draw(rt, "restart") == 0 {
				again = s.again()
			}
			for _, all := range []map[string]*thing{sessions, tokens} {
				for id, x := range all {
					_, err := again.Authenticate(x.token)
					if stands := !x.over && s.now.Before(x.ends); (err == nil) != stands {
						rt.Fatalf("%s stands: %v; %v", id, stands, err)
					}
				}
			}
		}
	})
}

// More than one change takes, and nothing twice.
func TestCollectMany(t *testing.T) {
	s := start(t, false)
	before := s.keysOf("token")
	for range 3 {
		var rs []SessionRequest
		for i := range collectAtOnce / 2 {
			rs = append(rs, SessionRequest{Org: DefaultOrg, Subject: abi.Subject(fmt.Sprint("user:u", i)), Environment: env("project")})
		}
		_, err := s.OpenSessions(t.Context(), s.op, DefaultOrg, rs)
		must(t, err)
	}
	must(t, s.Collect(t.Context()))
	if n := s.keysOf("session"); n != collectAtOnce*3/2 {
		t.Errorf("%d are kept", n)
	}
	s.now = s.now.Add(DefaultSession + KeptAfter + time.Second)
	generation := s.Snapshot().Generation
	must(t, s.Collect(t.Context()))
	if a, b := s.keysOf("session"), s.keysOf("token"); a != 0 || b != before {
		t.Errorf("%d sessions and %d tokens are kept", a, b)
	}
	if got := s.Snapshot().Generation - generation; got != 4 {
		t.Errorf("%d changes", got)
	}
	must(t, s.Collect(t.Context()))
	if got := s.Snapshot().Generation - generation; got != 4 {
		t.Errorf("nothing to collect is %d changes", got)
	}
	s.again()
}

package policy

import (
	"context"
	"fmt"
	"time"

	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// KeptAfter is how long the records of a session and of a token stay after it expired. Until then who
// asks for one by its id is told what it was.
const KeptAfter = 30 * 24 * time.Hour

// collectAtOnce bounds what one change of [Service.Collect] looks at.
const collectAtOnce = 1000

// Collect removes the records of sessions and tokens that expired [KeptAfter] ago, with the sessions'
// marks and the tokens' revocations: nothing they could allow comes back with them, because policy's time does
// not. Rights have no such end: grants and what revokes them stay. The gateway itself does it, in
// changes of their own.
func (s *Service) Collect(ctx context.Context) error {
	s.mu.RLock()
	orgs := sorted(s.state.orgs)
	s.mu.RUnlock()
	for _, o := range orgs {
		for _, kind := range []string{"session", "token"} {
			for after := []byte(nil); ; {
				next, err := s.collect(ctx, o.record.ID, kind, after)
				if err != nil {
					return err
				}
				if next == nil {
					break
				}
				after = next
			}
		}
	}
	return nil
}

// collect looks at some records of one kind, and answers the last one when there may be more.
func (s *Service) collect(ctx context.Context, org, kind string, after []byte) (next []byte, err error) {
	in := intent{op: OpCollect, org: org, actor: actorGateway, may: func(*state) error { return nil }}
	err = s.apply(ctx, in, func(*state) (*change, error) {
		c := &change{}
		looked, found, over := 0, 0, s.clock().Add(-KeptAfter)
		err := s.store.View(ctx, func(tx store.Tx) error {
			return tx.Scan(store.Key(keySpace, kind, org), after, func(k, v []byte) (bool, error) {
				if looked++; looked > collectAtOnce {
					return false, nil
				}
				next = k
				gone, err := expiredRecords(kind, v, over)
				if len(gone) > 0 {
					c.gone = append(c.gone, gone...)
					found++
				}
				return true, err
			})
		})
		if err != nil {
			return nil, readable(err)
		}
		if looked <= collectAtOnce {
			next = nil
		}
		if found == 0 {
			return nil, nil
		}
		c.target = fmt.Sprintf("%d of the kind %s", found, kind)
		return c, nil
	})
	return next, err
}

// expiredRecords are the records that go with one session or token that expired before over.
func expiredRecords(kind string, data []byte, over time.Time) ([]any, error) {
	switch kind {
	case "session":
		r, err := decode[session.Session](data)
		if err == nil && r.Expires.Before(over) {
			return []any{r}, nil
		}
		return nil, err
	case "token":
		t, err := decode[session.Token](data)
		if err == nil && t.Expires != nil && t.Expires.Before(over) {
			return []any{t, tokenRevocation{Org: t.Org, Token: t.ID}}, nil
		}
		return nil, err
	}
	return nil, fmt.Errorf("nothing of the kind %s is collected", kind)
}

// remove takes the record at a key out of a transaction, and out of what records sum up to.
func remove(tx store.Tx, total *tally, rec any) error {
	key := keyOf(rec)
	old, err := lookupRaw(tx, key)
	if err != nil || old == nil {
		return err
	}
	if counted(key) {
		total.remove(key, old)
	}
	if r, ok := rec.(session.Session); ok {
		if err := tx.Delete(markKey(r.ID)); err != nil {
			return err
		}
	}
	return tx.Delete(key)
}

// forget takes a record that was removed out of the state.
func (st *state) forget(rec any) {
	switch r := rec.(type) {
	case session.Session:
		st.sessions.drop(r.Org, r.ID, hasExpired)
	case session.Token:
		st.sessions.dropToken(r.ID)
	case tokenRevocation:
		if o := st.orgs[r.Org]; o != nil {
			delete(o.dead, r.Token)
		}
	}
}

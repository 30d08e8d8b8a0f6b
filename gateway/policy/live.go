package policy

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// sessions is the tokens and open sessions of the server, looked up at every request without
// any of the service's locks. Changes to it are made under Service.writer.
type sessions struct {
	tokens sync.Map // token id → session.Token; a revoked token is not here (PF-F18)
	live   sync.Map // session id → *live; a closed session is not here

	mu   sync.Mutex
	orgs map[string]map[string]*live // org → session id → session, to count them
}

// live is an open session.
type live struct {
	session session.Session // without its mark
	closed  atomic.Bool

	mu   sync.Mutex // held while the mark is made durable
	mark abi.Classification
}

func newSessions() *sessions { return &sessions{orgs: map[string]map[string]*live{}} }

func (l *sessions) addToken(t session.Token) { l.tokens.Store(t.ID, t) }

func (l *sessions) dropToken(id string) { l.tokens.Delete(id) }

func (l *sessions) token(id string) *session.Token {
	if t, ok := l.tokens.Load(id); ok {
		t := t.(session.Token)
		return &t
	}
	return nil
}

func (l *sessions) get(id string) *live {
	if s, ok := l.live.Load(id); ok {
		return s.(*live)
	}
	return nil
}

// apply takes a session record: an open one is added, a closed one ends.
func (l *sessions) apply(r session.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Closed != nil {
		l.drop(r.Org, r.ID)
		return
	}
	s := &live{session: r, mark: r.Mark}
	if l.orgs[r.Org] == nil {
		l.orgs[r.Org] = map[string]*live{}
	}
	l.orgs[r.Org][r.ID] = s
	l.live.Store(r.ID, s)
}

// drop ends a session. l.mu is held.
func (l *sessions) drop(org, id string) {
	if s := l.get(id); s != nil {
		s.closed.Store(true)
	}
	l.live.Delete(id)
	delete(l.orgs[org], id)
}

// count is the number of an organisation's sessions that are open at now. The expired ones are
// dropped on the way when there are limit or more.
func (l *sessions) count(org string, limit int64, now time.Time) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if int64(len(l.orgs[org])) >= limit {
		for id, s := range l.orgs[org] {
			if !now.Before(s.session.Expires) {
				l.drop(org, id)
			}
		}
	}
	return int64(len(l.orgs[org]))
}

// now is a copy of the session with its mark.
func (s *live) now() session.Session {
	out := s.session
	s.mu.Lock()
	out.Mark = s.mark
	s.mu.Unlock()
	return out
}

// stands is nil as long as the session is open.
func (s *live) stands(now time.Time) *abi.Error {
	if s.closed.Load() {
		return abi.Errorf(abi.CodeGrantRevoked, "the session was closed")
	}
	if !now.Before(s.session.Expires) {
		return abi.Errorf(abi.CodeGrantRevoked, "the session has expired")
	}
	return nil
}

func markKey(id string) []byte { return store.Key("session-mark", id) }

// loadMark reads a session's mark. A session whose mark is damaged is marked regulated.
func loadMark(tx store.Tx, id string) (abi.Classification, error) {
	v, err := tx.Get(markKey(id))
	if errors.Is(err, store.ErrNotFound) {
		return abi.Public, nil
	}
	if err != nil {
		return 0, err
	}
	c, err := abi.ParseClassification(string(v))
	if err != nil {
		return abi.Regulated, nil
	}
	return c, nil
}

// Authenticate says who a token stands for. Whatever is wrong with it (unknown, revoked,
// expired, of a closed session, malformed), the answer is the same UNAUTHENTICATED.
func (s *Service) Authenticate(token string) (Identity, error) {
	p, err := session.Parse(token)
	if err != nil {
		return Identity{}, err
	}
	now := s.clock()
	t := s.live.token(p.ID)
	if !p.Matches(t, now) {
		return Identity{}, session.Refused()
	}
	if t.Kind == session.KindPrincipal {
		who, ok := s.principal(t.Org, t.Principal)
		if !ok {
			return Identity{}, session.Refused()
		}
		return Identity{Token: t.ID, Principal: who}, nil
	}
	l := s.live.get(t.Session)
	if l == nil || l.session.Org != t.Org || l.stands(now) != nil {
		return Identity{}, session.Refused()
	}
	sess := l.now()
	return Identity{Token: t.ID, Session: &sess}, nil
}

// Principal is [Service.Authenticate] for what only principals may do. A session token, valid
// as it may be, is FORBIDDEN (S19, PF-A22).
func (s *Service) Principal(token string) (session.Principal, error) {
	id, err := s.Authenticate(token)
	if err != nil {
		return session.Principal{}, err
	}
	if id.Session != nil {
		return session.Principal{}, abi.Errorf(abi.CodeForbidden, "a session administers nothing").
			WithHint("present a principal's token, which begins with eco_p_")
	}
	return id.Principal, nil
}

// Invoker is [Service.Authenticate] for invocations, which only sessions make.
func (s *Service) Invoker(token string) (*session.Session, error) {
	id, err := s.Authenticate(token)
	if err != nil {
		return nil, err
	}
	if id.Session == nil {
		return nil, abi.Errorf(abi.CodeForbidden, "a principal invokes nothing").
			WithHint("open a session and present its token, which begins with eco_s_")
	}
	return id.Session, nil
}

// Release joins the label of something that is about to be released to a session into the
// session's mark. The mark is durable when Release returns; on an error nothing may be released
// (S3). A session that was closed or has expired is GRANT_REVOKED: nothing is released to it.
func (s *Service) Release(ctx context.Context, id string, label abi.Classification) error {
	l := s.live.get(id)
	if l == nil {
		return abi.Errorf(abi.CodeGrantRevoked, "the session was closed")
	}
	if err := l.stands(s.clock()); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	mark := abi.Join(l.mark, label)
	if mark == l.mark {
		return nil
	}
	err := s.store.Update(ctx, func(tx store.Tx) error { return tx.Set(markKey(id), []byte(mark.String())) })
	if err != nil {
		return abi.Errorf(abi.CodeNotReady, "the session's mark could not be kept: %w", err)
	}
	l.mark = mark
	return nil
}

func (s *Service) principal(org, id string) (session.Principal, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	o := s.state.orgs[org]
	if o == nil {
		return session.Principal{}, false
	}
	p, ok := o.principals[id]
	return p, ok
}

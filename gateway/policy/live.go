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
	"github.com/ecotone-dev/ecotone/gateway/trie"
)

// sessions is the tokens and open sessions of the server. Every request looks them up, without a
// lock and without allocating; changes are made under Service.writer, one at a time.
type sessions struct {
	tokens atomic.Pointer[trie.Map[string, *credential]] // by id; a revoked token is not here (PF-F18)
	live   atomic.Pointer[trie.Map[string, *live]]       // by id; a closed session is not here
	orgs   map[string]*expiries
	opened map[string]map[string]struct{} // open sessions by the environment grants they were opened by
	batch  *trie.Batch                    // while records are loaded and nobody looks anything up; nil afterwards
}

// credential is a token, with the session it stands for unless it is a principal's.
type credential struct {
	token   session.Token
	session *live
}

// live is an open session.
type live struct {
	token string                 // id of its token, "" before there is one
	over  atomic.Pointer[string] // why it is over; nil: it is not
	// present is the session with the mark that was made durable last. A higher mark makes another:
	// invocations are handed what is here, and keep it.
	present atomic.Pointer[session.Session]

	raising sync.Mutex // held while a higher mark is made durable
}

func newSessions() *sessions {
	l := &sessions{orgs: map[string]*expiries{}, opened: map[string]map[string]struct{}{}, batch: new(trie.Batch)}
	l.tokens.Store(&trie.Map[string, *credential]{})
	l.live.Store(&trie.Map[string, *live]{})
	return l
}

// loaded ends the loading: from now on every change is seen whole or not at all.
func (l *sessions) loaded() { l.batch = nil }

// set changes one of the two maps.
func set[V any](at *atomic.Pointer[trie.Map[string, V]], change func(trie.Map[string, V]) trie.Map[string, V]) {
	next := change(*at.Load())
	at.Store(&next)
}

// addToken takes a token. One of a session that is not open stands for nobody and is left out.
func (l *sessions) addToken(t session.Token) {
	c := &credential{token: t}
	if t.Kind == session.KindSession {
		if c.session = l.get(t.Session); c.session == nil {
			return
		}
		c.session.token = t.ID
	}
	set(&l.tokens, func(m trie.Map[string, *credential]) trie.Map[string, *credential] { return m.With(l.batch, t.ID, c) })
}

func (l *sessions) dropToken(id string) {
	set(&l.tokens, func(m trie.Map[string, *credential]) trie.Map[string, *credential] { return m.Without(l.batch, id) })
}

func (l *sessions) get(id string) *live { return l.live.Load().At(id) }

// apply takes a session record: an open one is added, a closed one ends.
func (l *sessions) apply(r session.Session) {
	if r.Closed != nil {
		l.drop(r.Org, r.ID, wasClosed)
		return
	}
	s := &live{}
	s.present.Store(&r)
	set(&l.live, func(m trie.Map[string, *live]) trie.Map[string, *live] { return m.With(l.batch, r.ID, s) })
	e := l.orgs[r.Org]
	if e == nil {
		e = &expiries{}
		l.orgs[r.Org] = e
	}
	e.add(r.Expires, r.ID)
	for _, g := range r.Grants {
		if l.opened[g] == nil {
			l.opened[g] = map[string]struct{}{}
		}
		l.opened[g][r.ID] = struct{}{}
	}
}

// Why a session is over.
const (
	wasClosed  = "the session was closed"
	hasExpired = "the session has expired"
	wasRevoked = "the environment grant that the session was opened by was revoked"
)

// revoked ends the sessions that an environment grant opened.
func (l *sessions) revoked(org, grant string) {
	for id := range l.opened[grant] {
		l.drop(org, id, wasRevoked)
	}
}

// drop ends a session and its token.
func (l *sessions) drop(org, id, why string) {
	s := l.get(id)
	if s == nil {
		return
	}
	s.over.Store(&why)
	l.dropToken(s.token)
	for _, g := range s.now().Grants {
		if delete(l.opened[g], id); len(l.opened[g]) == 0 {
			delete(l.opened, g)
		}
	}
	set(&l.live, func(m trie.Map[string, *live]) trie.Map[string, *live] { return m.Without(l.batch, id) })
	e := l.orgs[org]
	e.open--
	e.compact(func(id string) bool { return l.get(id) != nil })
}

// count is the number of an organisation's sessions that are open at now. Those that have expired
// since the last count are dropped on the way; no others are looked at.
func (l *sessions) count(org string, now time.Time) int64 {
	e := l.orgs[org]
	if e == nil {
		return 0
	}
	for {
		id, ok := e.expired(now)
		if !ok {
			return e.open
		}
		l.drop(org, id, hasExpired)
	}
}

// now is the session with its mark. It must not be changed.
func (s *live) now() *session.Session { return s.present.Load() }

// marked gives the session another mark.
func (s *live) marked(mark abi.Classification) {
	next := *s.now()
	next.Mark = mark
	s.present.Store(&next)
}

// stands is nil as long as the session is open.
func (s *live) stands(now time.Time) *abi.Error {
	if why := s.over.Load(); why != nil {
		return abi.Errorf(abi.CodeGrantRevoked, "%s", *why)
	}
	if !now.Before(s.now().Expires) {
		return abi.Errorf(abi.CodeGrantRevoked, hasExpired)
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
	c := s.live.tokens.Load().At(p.ID)
	var t *session.Token
	if c != nil {
		t = &c.token
	}
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
	l := c.session
	if l == nil || l.now().Org != t.Org || l.stands(now) != nil {
		return Identity{}, session.Refused()
	}
	return Identity{Token: t.ID, Session: l.now()}, nil
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
		return abi.Errorf(abi.CodeGrantRevoked, wasClosed)
	}
	if err := l.stands(s.clock()); err != nil {
		return err
	}
	if have := l.now().Mark; abi.Join(have, label) == have {
		return nil // nothing above what was released before
	}
	l.raising.Lock()
	defer l.raising.Unlock()
	have := l.now().Mark
	mark := abi.Join(have, label)
	if mark == have {
		return nil
	}
	err := s.store.Update(ctx, func(tx store.Tx) error { return tx.Set(markKey(id), []byte(mark.String())) })
	if err != nil {
		return abi.Errorf(abi.CodeNotReady, "the session's mark could not be kept: %w", err)
	}
	l.marked(mark)
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

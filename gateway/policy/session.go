package policy

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/space"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// How long a session lasts unless it says so, and at most.
const (
	DefaultSession = 12 * time.Hour
	MaxSession     = 30 * 24 * time.Hour
)

// OpenSession binds a subject to a space and an environment and returns the session with its
// token, which is shown this once. Only principals call it: operators and administrators, and
// others as far as an environment grant goes, and no longer (S19). The session's fields never
// change.
func (s *Service) OpenSession(ctx context.Context, p session.Principal, r SessionRequest) (session.Session, string, error) {
	opened, err := s.OpenSessions(ctx, p, r.Org, []SessionRequest{r})
	if err != nil {
		return session.Session{}, "", err
	}
	return opened[0].Session, opened[0].Token, nil
}

// Opened is a session with its token.
type Opened struct {
	Session session.Session
	Token   string
}

// OpenSessions opens sessions of one organisation together, at most [MaxTogether]: all of them
// in one change, or none. Its audit event names each.
func (s *Service) OpenSessions(ctx context.Context, p session.Principal, org string, rs []SessionRequest) ([]Opened, error) {
	var out []Opened
	in := intent{by: p, op: OpSessionOpen, org: org, fields: []string{"subject", "user", "space", "environment", "files", "clearance", "expires"}}
	by := make([]opening, len(rs))
	in.may = func(st *state) (err error) {
		if len(rs) == 0 {
			return Allowed(p, OpSessionOpen, org)
		}
		for i := range rs {
			if by[i], err = st.mayOpen(p, rs[i], s.clock()); err != nil {
				return err
			}
		}
		return nil
	}
	err := s.apply(ctx, in, func(st *state) (*change, error) {
		if len(rs) == 0 || len(rs) > MaxTogether {
			return nil, tooMany("sessions")
		}
		now := s.clock().UTC()
		c := &change{}
		var ids []string
		for i, r := range rs {
			sess, err := s.newSession(st, p, org, r, by[i], now)
			if err != nil {
				return nil, err
			}
			if have := s.live.count(org, now); have+int64(i) >= s.maxSessions {
				return nil, abi.Errorf(abi.CodeQuotaExceeded, "the organisation has %d sessions open, and may have %d", have, s.maxSessions)
			}
			rec, text := session.NewToken(session.KindSession, now)
			rec.Org, rec.Session, rec.Expires, rec.CreatedBy = org, sess.ID, &sess.Expires, p.Name()
			out, ids, c.records = append(out, Opened{sess, text}), append(ids, sess.ID), append(c.records, sess, rec)
		}
		c.target = strings.Join(ids, " ")
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// newSession checks a request against the state and makes its record.
func (s *Service) newSession(st *state, p session.Principal, org string, r SessionRequest, by opening, now time.Time) (session.Session, error) {
	none := session.Session{}
	o := st.orgs[org]
	if o == nil || r.Org != org {
		return none, notThere("organisation", r.Org)
	}
	sess, err := s.bind(st, o, p, r, now)
	if err != nil {
		return none, err
	}
	sess.Grants = by.grants
	if by.latest != nil && sess.Expires.After(*by.latest) {
		if r.Expires != nil {
			return none, abi.Errorf(abi.CodeInvalidRequest, "the environment grant ends before that").At("/expires")
		}
		sess.Expires = by.latest.UTC()
	}
	return sess, nil
}

// opening is what lets a principal open a session, when its role does not.
type opening struct {
	grants []string   // ids of the environment grants; the session ends with the first of them
	latest *time.Time // when the first of them expires; nil: none does
}

// mayOpen is the role, or environment grants for exactly this principal, environment and space: one for
// the subject and, of an agent, one for the user it acts for, whom it never exceeds (X38). What a
// principal of the organisation asked for by name, and no grant lets it ask for, is
// ENVIRONMENT_REQUEST_NOT_GRANTED, whether it is there or not (X30).
func (st *state) mayOpen(p session.Principal, r SessionRequest, now time.Time) (by opening, refused error) {
	refused = Allowed(p, OpSessionOpen, r.Org)
	o := st.orgs[r.Org]
	if refused == nil || o == nil || p.Org != r.Org {
		return opening{}, refused
	}
	var at string
	chain, _ := o.named(or(r.Space, RootSpace)) // what is not there is not granted either
	if len(chain) > 0 {
		at = chain[len(chain)-1].ID
	}
	in := space.Resolve(chain...)
	env := r.Environment
	if env == "" {
		env = in.Kind.Environment()
	}
	sides := []abi.Subject{r.Subject}
	if r.User != "" {
		sides = append(sides, r.User)
	}
	for _, side := range sides {
		g := o.opens(func(g *grant.EnvironmentGrant) bool {
			return g.Principal == p.ID && g.Subject == side && g.Environment == env && grant.Active(g.Expires, now) && g.HoldsIn(at, in.Personal)
		})
		if g == nil {
			if r.Environment != "" || r.Space != "" {
				refused = abi.Errorf(abi.CodeRequestNotGranted, "no environment grant lets this principal ask for that")
			}
			return opening{}, refused
		}
		by.grants = append(by.grants, g.ID)
		if g.Expires != nil && (by.latest == nil || g.Expires.Before(*by.latest)) {
			by.latest = g.Expires
		}
	}
	return by, nil
}

// opens is, of the environment grants that stand and do what is asked, the one that lasts longest; of
// several the first that was made. nil: there is none.
func (o *orgState) opens(does func(*grant.EnvironmentGrant) bool) *grant.EnvironmentGrant {
	var best *grant.EnvironmentGrant
	for id, g := range o.environments {
		if _, revoked := o.revoked[id]; !revoked && does(&g) && (best == nil || longer(&g, best)) {
			best = &g
		}
	}
	return best
}

func longer(g, than *grant.EnvironmentGrant) bool {
	switch {
	case g.Expires == nil && than.Expires == nil, g.Expires != nil && than.Expires != nil && g.Expires.Equal(*than.Expires):
		return g.ID < than.ID
	case g.Expires == nil || than.Expires == nil:
		return g.Expires == nil
	}
	return g.Expires.After(*than.Expires)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// bind resolves everything the session fixes.
func (s *Service) bind(st *state, o *orgState, p session.Principal, r SessionRequest, now time.Time) (session.Session, error) {
	none := session.Session{}
	if _, err := abi.ParseSubject(string(r.Subject)); err != nil {
		return none, abi.AsError(err).At("/subject")
	}
	chain, err := o.named(or(r.Space, RootSpace))
	if err != nil {
		return none, abi.AsError(err).At("/space")
	}
	spaceID := chain[len(chain)-1].ID
	in := space.Resolve(chain...)
	env := r.Environment
	if env == "" {
		env = in.Kind.Environment()
	}
	e, err := st.usable(o, env, in)
	if err != nil {
		return none, abi.AsError(err).At("/environment")
	}
	clearance := r.Clearance
	if !clearance.Valid() {
		clearance = in.Clearance
	}
	if clearance > in.Clearance {
		return none, abi.Errorf(abi.CodeCeilingLoosened, "the space is cleared for %s", in.Clearance).At("/clearance")
	}
	expires, err := until(r.Expires, now, DefaultSession, MaxSession)
	if err != nil {
		return none, err
	}
	out := session.Session{
		ID: session.NewID(now), Org: r.Org, Subject: r.Subject, User: r.User, Space: spaceID, Environment: env, Clearance: clearance,
		Dev: e.Waives, Expires: expires, OpenedBy: p.Name(), OpenedAt: now, Mark: abi.Public,
	}
	if r.Files {
		out.Workspace = out.ID
	}
	return out, asError(out.Check())
}

// usable refuses an environment that is not there, and trusted-dev outside development spaces:
// those made under --dev in a data directory made under --dev, and never with production data
// (X7, S19).
func (st *state) usable(o *orgState, ref abi.EnvironmentRef, in space.Effective) (environment.Environment, error) {
	e, err := st.find(o, ref)
	switch {
	case err != nil:
		return e, err
	case !e.Available:
		return e, abi.Errorf(abi.CodeEnvironmentUnusable, "%s is not available on this server", ref).
			WithHint("it needs a server started with --dev on a data directory that was made so")
	case e.Waives && (!in.Dev || in.Production):
		return e, abi.Errorf(abi.CodeEnvironmentUnusable, "%s is not available in this space", ref).
			WithHint("it needs a space made under --dev that is not for production")
	}
	return e, nil
}

// until resolves an expiry.
func until(asked *time.Time, now time.Time, standard, longest time.Duration) (time.Time, error) {
	if asked == nil {
		return now.Add(standard), nil
	}
	if !now.Before(*asked) || asked.After(now.Add(longest)) {
		return time.Time{}, abi.Errorf(abi.CodeInvalidRequest, "expires lies between now and %d hours from now", int(longest.Hours())).At("/expires")
	}
	return asked.UTC(), nil
}

// CloseSession closes a session for good. Its token is refused from now on, running
// invocations end at their next host call, and nothing more is released to it.
func (s *Service) CloseSession(ctx context.Context, p session.Principal, org, id string) (out session.Session, err error) {
	err = s.apply(ctx, intent{by: p, op: OpSessionClose, org: org, target: id}, func(*state) (*change, error) {
		if out, err = s.stored(ctx, org, id); err != nil {
			return nil, err
		}
		if out.Closed != nil {
			return nil, nil
		}
		now := s.clock().UTC()
		out.Closed = &now
		return &change{records: []any{out}}, nil
	})
	return out, err
}

// Session returns one session, open or not, with its mark.
func (s *Service) Session(ctx context.Context, p session.Principal, org, id string) (session.Session, error) {
	if err := Allowed(p, OpReadGuarded, org); err != nil {
		return session.Session{}, err
	}
	return s.stored(ctx, org, id)
}

// stored reads a session from the store: closed and expired ones are not in memory.
func (s *Service) stored(ctx context.Context, org, id string) (session.Session, error) {
	var out session.Session
	err := s.store.View(ctx, func(tx store.Tx) error {
		v, err := tx.Get(keyOf(session.Session{Org: org, ID: id}))
		if errors.Is(err, store.ErrNotFound) {
			return notThere("session", id)
		}
		if err != nil {
			return err
		}
		return withMark(tx, v, &out)
	})
	if err != nil {
		return session.Session{}, readable(err)
	}
	return out, nil
}

func withMark(tx store.Tx, v []byte, out *session.Session) error {
	if err := abi.DecodeStrict(v, out); err != nil {
		return err
	}
	return complete(tx, out)
}

// complete adds to a session's record what is kept elsewhere: its mark, and that an environment grant it
// was opened by was revoked, which closed it.
func complete(tx store.Tx, out *session.Session) (err error) {
	if out.Mark, err = loadMark(tx, out.ID); err != nil {
		return err
	}
	for _, id := range out.Grants {
		r, err := lookup[grant.Revocation](tx, keyOf(grant.Revocation{Org: out.Org, Grant: id}))
		if err != nil {
			return err
		}
		if r != nil && (out.Closed == nil || r.CreatedAt.Before(*out.Closed)) {
			out.Closed = &r.CreatedAt
		}
	}
	return nil
}

// readable makes an error of the store one that says so.
func readable(err error) error {
	var own *abi.Error
	if errors.As(err, &own) {
		return own
	}
	return abi.Errorf(abi.CodeNotReady, "the store cannot be read: %w", err)
}

// Sessions lists an organisation's sessions, closed ones included.
func (s *Service) Sessions(ctx context.Context, p session.Principal, org string, cut Cut) (Page[session.Session], error) {
	return listing(ctx, s, p, OpReadGuarded, "session", org, cut, func(tx store.Tx, one *session.Session) (session.Session, bool, error) {
		err := complete(tx, one)
		return *one, true, err
	})
}

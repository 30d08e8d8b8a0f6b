package policy

import (
	"context"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// How long a principal's token lasts unless it says so, and at most.
const (
	DefaultToken = 90 * 24 * time.Hour
	MaxToken     = 366 * 24 * time.Hour
)

// IssueToken issues a token for a principal and returns its text, which is shown this once. The
// principal is made when it is not there; one that is there keeps its role, its user and its
// clearance (CONFLICT): they are the principal's, never the token's, so that there is one answer to
// what a token may do (PF-A14). Only an operator makes operators, and only in an organisation of
// their own choosing; nobody issues a token that is cleared for more than they are.
func (s *Service) IssueToken(ctx context.Context, p session.Principal, r TokenRequest) (t TokenStatus, token string, err error) {
	in := intent{by: p, op: OpTokenIssue, org: r.Org, fields: []string{"principal", "role", "user", "clearance", "expires"}}
	err = s.apply(ctx, in, func(st *state) (*change, error) {
		o := st.orgs[r.Org]
		if o == nil {
			return nil, notThere("organisation", r.Org)
		}
		if _, err := abi.ParseSlug("a principal", r.Principal); err != nil {
			return nil, abi.AsError(err).At("/principal")
		}
		var role session.Role
		if err := role.UnmarshalText([]byte(r.Role)); err != nil {
			return nil, abi.AsError(err).At("/role")
		}
		if role == session.Operator && p.Role != session.Operator {
			return nil, abi.Errorf(abi.CodeForbidden, "only an operator makes operators")
		}
		now := s.clock().UTC()
		expires, err := until(r.Expires, now, DefaultToken, MaxToken)
		if err != nil {
			return nil, err
		}
		who, err := o.principalFor(r, role)
		if err != nil {
			return nil, err
		}
		if who.Cleared() > p.Cleared() {
			return nil, abi.Errorf(abi.CodeForbidden, "nobody issues a token that is cleared for more than they are").At("/clearance")
		}
		var rec session.Token
		rec, token = newPrincipalToken(who, p.Name(), now)
		rec.Expires = &expires
		t = status(rec, who, false)
		return &change{records: []any{who, rec}, target: rec.ID}, nil
	})
	if err != nil {
		return TokenStatus{}, "", err
	}
	return t, token, nil
}

func newPrincipalToken(who session.Principal, by string, now time.Time) (session.Token, string) {
	rec, text := session.NewToken(session.KindPrincipal, now)
	rec.Org, rec.Principal, rec.CreatedBy = who.Org, who.ID, by
	return rec, text
}

// principalFor is who a token is asked for: the principal that is there, or the one to be made.
func (o *orgState) principalFor(r TokenRequest, role session.Role) (session.Principal, error) {
	if r.User != "" {
		if _, err := abi.ParseSubject(string(r.User)); err != nil || r.User.Kind() != abi.SubjectUser {
			return session.Principal{}, abi.Errorf(abi.CodeInvalidRequest, "%s is not a user", abi.Quote(string(r.User))).At("/user")
		}
	}
	have, there := o.principals[r.Principal]
	if !there {
		who := session.Principal{ID: r.Principal, Org: r.Org, Role: role, User: r.User, Clearance: r.Clearance}
		who.Clearance = who.Cleared()
		return who, nil
	}
	fixed := func(at string) error {
		return abi.Errorf(abi.CodeConflict, "the principal is there already, and with another %s", at).At("/" + at)
	}
	switch {
	case have.Role != role:
		return have, fixed("role")
	case r.User != "" && have.User != r.User:
		return have, fixed("user")
	case r.Clearance.Valid() && have.Cleared() != r.Clearance:
		return have, fixed("clearance")
	}
	return have, nil
}

func status(t session.Token, who session.Principal, revoked bool) TokenStatus {
	out := TokenStatus{
		ID: t.ID, Kind: t.Kind, Org: t.Org, Principal: t.Principal, Session: t.Session,
		Expires: t.Expires, CreatedBy: t.CreatedBy, CreatedAt: t.CreatedAt, Revoked: revoked,
	}
	if who.ID != "" {
		out.Role, out.User, out.Clearance = who.Role, who.User, who.Cleared()
	}
	return out
}

// RevokeToken ends a token with a record of its own. It is refused from the moment this
// returns (PF-F18). Revoking twice changes nothing.
func (s *Service) RevokeToken(ctx context.Context, p session.Principal, org, id string) error {
	return s.apply(ctx, intent{by: p, op: OpTokenRevoke, org: org, target: id}, func(st *state) (*change, error) {
		o := st.orgs[org]
		if o == nil {
			return nil, notThere("token", id)
		}
		t, err := s.storedToken(ctx, org, id)
		if err != nil {
			return nil, err
		}
		if o.principals[t.Principal].Role == session.Operator && p.Role != session.Operator {
			return nil, abi.Errorf(abi.CodeForbidden, "only an operator revokes an operator's token")
		}
		if _, dead := o.dead[id]; dead {
			return nil, nil
		}
		return &change{records: []any{tokenRevocation{Token: id, Org: org, CreatedBy: p.Name(), CreatedAt: s.clock().UTC()}}}, nil
	})
}

// storedToken reads a token from the store: those that stand for nobody are not in memory.
func (s *Service) storedToken(ctx context.Context, org, id string) (*session.Token, error) {
	var t *session.Token
	err := s.store.View(ctx, func(tx store.Tx) (err error) {
		t, err = lookup[session.Token](tx, keyOf(session.Token{Org: org, ID: id}))
		return err
	})
	switch {
	case err != nil:
		return nil, readable(err)
	case t == nil:
		return nil, notThere("token", id)
	}
	return t, nil
}

// Tokens lists an organisation's tokens, without anything of their text.
func (s *Service) Tokens(ctx context.Context, p session.Principal, org string, cut Cut) (Page[TokenStatus], error) {
	return listing(ctx, s, p, OpReadGuarded, "token", org, cut, func(tx store.Tx, t *session.Token) (TokenStatus, bool, error) {
		dead, err := lookup[tokenRevocation](tx, keyOf(tokenRevocation{Org: org, Token: t.ID}))
		who, _ := s.principal(org, t.Principal)
		return status(*t, who, dead != nil), true, err
	})
}

// Package session is who acts: principals, who administer, and sessions, in which subjects
// invoke.
//
// It promises that a bearer token is kept only as a hash, is compared in constant time and is
// shown once, and that everything an invocation is bound to is fixed when its session is opened,
// save the mark, which only rises. It refuses to know where records are kept and what a session
// may do.
package session

import (
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// Role is the closed set of roles a principal can have.
type Role string

const (
	Operator Role = "operator"  // runs the server; acts in every organisation
	OrgAdmin Role = "org-admin" // administers one organisation
	Author   Role = "author"    // uploads biomes
	Approver Role = "approver"  // decides approvals
	Auditor  Role = "auditor"   // reads
)

// UnmarshalText accepts exactly the roles.
func (r *Role) UnmarshalText(b []byte) error {
	switch v := Role(b); v {
	case Operator, OrgAdmin, Author, Approver, Auditor:
		*r = v
		return nil
	}
	return abi.Errorf(abi.CodeInvalidRequest, "%s is not one of operator, org-admin, author, approver, auditor", abi.Quote(string(b)))
}

// Principal is who administers. The zero principal may do nothing. All of it is fixed when the
// principal is made.
type Principal struct {
	ID   string `json:"id"` // a slug, unique in the organisation
	Org  string `json:"org"`
	Role Role   `json:"role"`
	// User is whose principal it is, or "": who asks as that user, or has an agent ask, is not
	// somebody else who decides (S17).
	User abi.Subject `json:"user,omitempty"`
	// Clearance is what the principal may be shown of what invocations carry; see [Principal.Cleared].
	Clearance abi.Classification `json:"clearance,omitempty"`
}

// DefaultClearance is what a principal is cleared for that nothing was said of.
func (r Role) DefaultClearance() abi.Classification {
	if r == Operator {
		return abi.Regulated
	}
	return abi.Internal
}

// Cleared is the principal's clearance: one made before there were any has its role's.
func (p Principal) Cleared() abi.Classification {
	if p.Clearance.Valid() {
		return p.Clearance
	}
	return p.Role.DefaultClearance()
}

// Name is how a record names the principal: organisation and id.
func (p Principal) Name() string { return "principal:" + p.Org + "/" + p.ID }

// CallerKind is what kind of caller a session serves.
type CallerKind string

// Session binds a caller to everything an invocation takes from it. All fields are fixed when
// the session is opened; the mark is kept beside it.
type Session struct {
	ID          string             `json:"id"` // ULID
	Org         string             `json:"org"`
	Subject     abi.Subject        `json:"subject"`
	User        abi.Subject        `json:"user,omitempty"` // the user an agent acts for
	Space       string             `json:"space"`
	Environment abi.EnvironmentRef `json:"environment"`
	Workspace   string             `json:"workspace,omitempty"` // "" when the session has no files
	Clearance   abi.Classification `json:"clearance"`           // of the answers it is given
	Dev         bool               `json:"dev"`                 // opened for trusted-dev, in a development space (S19)
	Expires     time.Time          `json:"expires"`
	OpenedBy    string             `json:"openedBy"`
	OpenedAt    time.Time          `json:"openedAt"`
	// Grants are the environment grants that let its principal open it, for the subject and, of an agent,
	// for its user; none when the principal's role did. It ends with the first of them.
	Grants []string `json:"grants,omitempty"`

	Mark   abi.Classification `json:"mark"` // the join of every label released to it (S3)
	Closed *time.Time         `json:"closed,omitempty"`
}

// CallerKind is the session's subject's kind, as the execution context names it (X28).
func (s *Session) CallerKind() CallerKind { return CallerKind(s.Subject.Kind()) }

// Check refuses a binding that no invocation could run under.
func (s *Session) Check() *abi.Error {
	switch k := s.Subject.Kind(); {
	case k == abi.SubjectBiome:
		return abi.Errorf(abi.CodeInvalidRequest, "a biome acts only inside an invocation; it has no session").At("/subject")
	case k == abi.SubjectAgent && s.User == "":
		return abi.Errorf(abi.CodeInvalidRequest, "an agent acts for a user; name that user").At("/user")
	case k != abi.SubjectAgent && s.User != "":
		return abi.Errorf(abi.CodeInvalidRequest, "only an agent acts for a user").At("/user")
	case s.User != "" && s.User.Kind() != abi.SubjectUser:
		return abi.Errorf(abi.CodeInvalidRequest, "%s is not a user", abi.Quote(string(s.User))).At("/user")
	}
	return nil
}

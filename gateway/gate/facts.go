package gate

import (
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/host/authority"
)

// Facts is everything a decision depends on besides policy. The zero value is denied.
type Facts struct {
	Now time.Time

	// From the session: the caller says nothing of these (X27).
	Org         string
	Session     string
	Space       string
	Workspace   string
	Subject     abi.Subject
	User        abi.Subject // the user an agent acts for
	Environment abi.EnvironmentRef
	Dev         bool   // the session was opened for trusted-dev
	Client      string // the principal that opened the session
	Clearance   abi.Classification
	Mark        abi.Classification

	// From the request.
	Capability abi.CapabilityRef
	Declared   abi.Classification // invalid when the caller declared nothing

	// From the catalogue: the reach declared for the version that [Snapshot.Route] names.
	// Invalid when the catalogue cannot say.
	Reach abi.Reach

	// Rate and Schema are found out by the caller of [Decide], each when everything before it
	// passed: an invocation that is refused anyway uses nothing up.
	Rate   Rate
	Schema Schema

	// Approved says that a person approved this invocation, and no other (X42). It is set by who uses that
	// approval up, for nobody else.
	Approved bool

	// Lower is a declassification that this invocation uses up, and no other; nil for nearly all.
	Lower *Lowering

	// Parent is set for an invocation made by capability_invoke.
	Parent *Parent
}

// Rate is what the limiter said, asked about [Buckets].
type Rate uint8

const (
	Uncounted Rate = iota // it was not asked yet
	Within
	Exceeded
	Uncountable // it cannot answer (X41)
)

// Schema is what is known of the input.
type Schema uint8

const (
	Unjudged Schema = iota
	Satisfied
	Violated
)

// Parent is the invocation that calls a child.
type Parent struct {
	Authority *authority.Authority
	Label     abi.Classification // of the parent now
}

// FactsOf fills in what a session binds.
func FactsOf(s *session.Session, ref abi.CapabilityRef, now time.Time) Facts {
	return Facts{
		Now: now, Org: s.Org, Session: s.ID, Space: s.Space, Workspace: s.Workspace, Subject: s.Subject, User: s.User,
		Environment: s.Environment, Dev: s.Dev, Client: s.OpenedBy, Clearance: s.Clearance, Mark: s.Mark, Capability: ref,
	}
}

// Child returns the facts of an invocation of ref made by the invocation that f, a and label
// belong to: the same session, nothing of the parent's request (X32).
func (f *Facts) Child(a *authority.Authority, label abi.Classification, ref abi.CapabilityRef, now time.Time) Facts {
	c := *f
	c.Now, c.Capability = now, ref
	c.Declared, c.Reach, c.Rate, c.Schema, c.Approved, c.Lower = 0, 0, Uncounted, Unjudged, false, nil
	c.Parent = &Parent{Authority: a, Label: label}
	return c
}

// Package authority holds what an allowed invocation may do.
//
// An [Authority] is made by the gate, carried by the call, and asked by every host
// function, again at commit and again at release. It is immutable: an invocation can
// lose its authority, never widen it. This package refuses to know how the decision was
// reached; a test holds that only the gate makes one.
package authority

import (
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/egress"
	"github.com/ecotone-dev/ecotone/host/files/glob"
)

// Spec is the content of an authority. Slices are not copied: whoever builds a Spec
// gives them up.
type Spec struct {
	Invocation string // ULID
	Parent     string // ULID of the parent invocation, or ""
	Org        string
	Space      string
	Session    string
	Workspace  string // "" when the session has no files
	Subject    abi.Subject
	User       abi.Subject // the user an agent acts for, or ""
	Biome      string
	Digest     string // hex SHA-256 over length-prefixed manifest and module
	Capability abi.CapabilityRef
	Export     string
	Face       abi.Face // what the module was built for; "" is native
	Arguments  []string // of a command
	// How a foreign guest's bytes stand for the JSON that callers see.
	InputEncoding, OutputEncoding abi.Encoding

	Environment abi.EnvironmentRef
	Boundary    bool      // boundary family: coarse clock
	Reach       abi.Reach // min(capability, environment); what host functions are held to

	Floor     abi.Classification // of the space
	Start     abi.Classification // join(declared, floor, mark)
	Ceiling   abi.Classification // above it a read is refused and looks like absence
	Clearance abi.Classification // of the answer: the session's

	Resources glob.Sets          // what the grants used name, the parent's included; none: every resource of the session's own workspace and keys
	Endpoints []*egress.Endpoint // what the install grant kept
	Egress    []*egress.List     // obligations of the grants used: a URL that one of them does not admit is refused
	Secrets   []string
	Calls     []abi.CapabilityRef
	Config    map[string]string   // what the install grant tells the biome; only faces that have configuration show it
	Chain     []abi.CapabilityRef // ancestors, outermost first, without Capability itself

	Limits     abi.Limits
	Deadline   time.Time
	Generation uint64 // of the policy snapshot that allowed it
	Grants     []string
}

// Authority is what an allowed invocation may do. The zero value and nil allow nothing.
type Authority struct {
	spec    Spec
	current func() *abi.Error
}

// New makes an authority. current is asked before every effect whether the authority
// still stands; it must be fast, safe for concurrent use, and is never nil.
// Only the gate calls New.
func New(spec Spec, current func() *abi.Error) *Authority {
	if current == nil {
		panic("authority: no way to ask whether it still stands")
	}
	return &Authority{spec: spec, current: current}
}

// Spec returns the content. Callers must not change what its slices point to.
func (a *Authority) Spec() *Spec { return &a.spec }

// Current reports whether the authority still stands: nil, or the reason why not
// (GRANT_REVOKED, CANCELED, DEADLINE_EXCEEDED …).
func (a *Authority) Current() *abi.Error {
	if a == nil || a.current == nil {
		return abi.Errorf(abi.CodeGrantRevoked, "no authority")
	}
	return a.current()
}

// Reaches reports whether host functions of reach r are within the authority.
func (a *Authority) Reaches(r abi.Reach) bool { return a != nil && r.Within(a.spec.Reach) }

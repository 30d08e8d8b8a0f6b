// Package approval is what people are asked for, and what came of it.
//
// It promises that what was asked is fixed when it is asked: an approval is bound to the bytes, the
// versions and the rights that the decision rested on, and what differs later voids it (S17). Each
// step is one immutable record: the request, the decision, the use, the result. A use is durable
// before anything runs by it, and its being there means never again. The package refuses to know who
// may decide, and where records are kept.
package approval

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// Kind is the closed set of what can be asked for.
type Kind string

// The kinds.
const (
	Invocation Kind = "invocation" // one invocation, run by the gateway once it is approved (X42)
	Declassify Kind = "declassify" // one invocation that begins lower than its session's mark (S3)
	Promotion  Kind = "promotion"  // admitting a version of a biome (X62)
)

// How long an approval can be waited for unless its request says so, and at most.
const (
	DefaultLife = 24 * time.Hour
	MaxLife     = 7 * 24 * time.Hour
)

// Request is what was asked. It is immutable.
type Request struct {
	ID        string      `json:"id"` // ULID; of an invocation, the invocation's own
	Org       string      `json:"org"`
	Kind      Kind        `json:"kind"`
	Subject   abi.Subject `json:"subject,omitempty"` // who invokes; "" when a principal asks for itself
	User      abi.Subject `json:"user,omitempty"`    // the user an agent acts for, or whose principal asks
	Requester string      `json:"requester"`         // the principal that asks, or opened the session that does
	// AskedBy is the principal that asks in the place of a session, and AskedFor its user.
	AskedBy  string      `json:"askedBy,omitempty"`
	AskedFor abi.Subject `json:"askedFor,omitempty"`
	// Label is how sensitive it is what the request shows: who is not cleared for it sees no request.
	Label       abi.Classification `json:"label"`
	Capability  abi.CapabilityRef  `json:"capability,omitempty"`
	Biome       string             `json:"biome,omitempty"`
	Context     Context            `json:"context,omitzero"`
	InputDigest string             `json:"inputDigest,omitempty"` // keyed, as audit rows have it
	InputBytes  int64              `json:"inputBytes,omitempty"`
	Basis       Basis              `json:"basis,omitzero"`
	// Binding is what else is bound, in a form of the kind's own.
	Binding     json.RawMessage `json:"binding,omitempty"`
	RequestedAt time.Time       `json:"requestedAt"`
	Expires     time.Time       `json:"expires"`
}

// Context is what an invocation takes from its session and its request, as it was when it asked: it runs
// under this and nothing else (X42).
type Context struct {
	Session     string             `json:"session,omitempty"`
	Space       string             `json:"space,omitempty"`
	Environment abi.EnvironmentRef `json:"environment,omitempty"`
	Workspace   string             `json:"workspace,omitempty"`
	Clearance   abi.Classification `json:"clearance,omitzero"`
	Declared    abi.Classification `json:"declared,omitzero"`
	Origin      string             `json:"origin,omitempty"` // the face it came by
	Trace       string             `json:"trace,omitempty"`
}

// Basis is what an approved decision rests on besides the context and the input. What of it differs when
// the approval is to be used voids the approval.
type Basis struct {
	Generation uint64              `json:"generation"` // of the policy; informs, and voids nothing by itself
	Digest     string              `json:"digest"`     // of manifest and module
	Install    string              `json:"install,omitempty"`
	Grants     []string            `json:"grants,omitempty"`
	Reach      abi.Reach           `json:"reach"`
	Start      abi.Classification  `json:"start"` // the label it begins with: of the input, the space and the session
	Ceiling    abi.Classification  `json:"ceiling"`
	Calls      []abi.CapabilityRef `json:"calls,omitempty"`
	Endpoints  map[string]uint64   `json:"endpoints,omitempty"` // name → revision
	Secrets    map[string]uint64   `json:"secrets,omitempty"`   // name → version
	Files      map[string]string   `json:"files,omitempty"`     // named by the input: path → version, "" for none
}

// Changed names what differs between two bases, in a fixed order. The generation alone is no difference:
// policy changes for many reasons that do not concern what was asked.
func (b *Basis) Changed(now *Basis) []string {
	var out []string
	for _, m := range []struct {
		name string
		same bool
	}{
		{"digest", b.Digest == now.Digest},
		{"install", b.Install == now.Install},
		{"grants", slices.Equal(b.Grants, now.Grants)},
		{"reach", b.Reach == now.Reach},
		{"label", b.Start == now.Start},
		{"ceiling", b.Ceiling == now.Ceiling},
		{"calls", slices.Equal(b.Calls, now.Calls)},
		{"endpoints", maps.Equal(b.Endpoints, now.Endpoints)},
		{"secrets", maps.Equal(b.Secrets, now.Secrets)},
		{"files", maps.Equal(b.Files, now.Files)},
	} {
		if !m.same {
			out = append(out, m.name)
		}
	}
	return out
}

// Verdict is what a person says.
type Verdict string

// The verdicts.
const (
	Approve Verdict = "approve"
	Reject  Verdict = "reject"
)

// Decision is a person's word. It is final.
type Decision struct {
	Approval string      `json:"approval"`
	Org      string      `json:"org"`
	Verdict  Verdict     `json:"verdict"`
	By       string      `json:"by"` // principal
	User     abi.Subject `json:"user,omitempty"`
	Reason   string      `json:"reason,omitempty"`
	At       time.Time   `json:"at"`
}

// Withdrawal is the word of who asked that it is not wanted any more. It is final, unless what was asked for
// runs already.
type Withdrawal struct {
	Approval string    `json:"approval"`
	Org      string    `json:"org"`
	By       string    `json:"by"` // subject
	At       time.Time `json:"at"`
}

// Use says that an approval is used up. It is durable before anything is run by it: whatever becomes of
// that, there is no second time.
type Use struct {
	Approval string    `json:"approval"`
	Org      string    `json:"org"`
	At       time.Time `json:"at"`
}

// Result is what came of a request in the end.
type Result struct {
	Approval string    `json:"approval"`
	Org      string    `json:"org"`
	State    State     `json:"state"`
	Code     abi.Code  `json:"code,omitempty"`
	Changed  []string  `json:"changed,omitempty"` // of what is stale, what differed
	At       time.Time `json:"at"`
}

// State is how far a request is. The set is closed.
type State string

// The states. From Rejected on they are final.
const (
	Pending     State = "pending"
	Approved    State = "approved"   // and not used yet
	Dispatched  State = "dispatched" // used; it runs, or the process died while it did
	Rejected    State = "rejected"
	Withdrawn   State = "withdrawn" // by who asked
	Expired     State = "expired"   // nobody decided, or used it, in time
	Stale       State = "stale"     // what was approved is not what there is any more
	Refused     State = "refused"   // it was never asked of anybody
	Done        State = "done"
	Failed      State = "failed"
	Interrupted State = "interrupted" // the process died while it ran: nobody knows how far it came
)

// States lists the closed set.
func States() []State {
	return []State{Pending, Approved, Dispatched, Rejected, Withdrawn, Expired, Stale, Refused, Done, Failed, Interrupted}
}

// Standing is a request with all that has come of it.
type Standing struct {
	Request    Request
	Decision   *Decision
	Withdrawal *Withdrawal
	Use        *Use
	Result     *Result
}

// State is how far it is at a time.
func (s *Standing) State(now time.Time) State {
	switch {
	case s.Result != nil:
		return s.Result.State
	case s.Use != nil:
		return Dispatched
	case s.Withdrawal != nil:
		return Withdrawn
	case s.Decision != nil && s.Decision.Verdict == Reject:
		return Rejected
	case !now.Before(s.Request.Expires):
		return Expired
	case s.Decision != nil:
		return Approved
	}
	return Pending
}

// changes is the cause of a stale approval.
type changes []string

func (c changes) Error() string { return strings.Join(c, ", ") + " changed" }

// StaleBecause is the refusal of an approval that what changed has voided.
func StaleBecause(changed []string) *abi.Error {
	c := changes(changed)
	if len(c) == 0 {
		c = changes{"decision"}
	}
	return abi.Errorf(abi.CodeApprovalStale, "what was approved is not what would run now: %s", c.Error()).
		WithHint("ask again: a new request is bound to what there is now").WithCause(c)
}

// ChangedOf names what voided an approval, as [StaleBecause] was told; nil when it was not that.
func ChangedOf(err error) []string {
	var c changes
	if !errors.As(err, &c) {
		return nil
	}
	return c
}

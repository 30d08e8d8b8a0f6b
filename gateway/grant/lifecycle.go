package grant

import (
	"slices"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// State is how far a capability of one major version has come (X61). It only ever goes forward.
type State string

const (
	Proposed   State = "proposed"   // uploaded; no install grant ever admitted it
	Published  State = "published"  // an install grant admitted it
	Deprecated State = "deprecated" // works; callers are told what to invoke instead
	Retired    State = "retired"    // denied, with what to invoke instead
)

var states = []State{Proposed, Published, Deprecated, Retired}

// States lists the vocabulary in its order.
func States() []State { return slices.Clone(states) }

// After reports whether s comes after other; an unknown state comes after nothing.
func (s State) After(other State) bool { return slices.Index(states, s) > slices.Index(states, other) }

// Lifecycle says that a capability is deprecated or retired. What comes before follows from uploads
// and install grants, and has no record.
type Lifecycle struct {
	Org        string            `json:"org"`
	Capability abi.CapabilityRef `json:"capability"`
	State      State             `json:"state"`
	ReplacedBy abi.CapabilityRef `json:"replacedBy,omitempty"` // what to invoke instead; "" when there is nothing
	Revision   uint64            `json:"revision"`
	UpdatedBy  string            `json:"updatedBy"`
	UpdatedAt  time.Time         `json:"updatedAt"`
}

// Check refuses a record of a state that follows from others, and a capability that replaces itself.
func (l *Lifecycle) Check() *abi.Error {
	switch {
	case l.State == Proposed || l.State == Published:
		return abi.Errorf(abi.CodeInvalidRequest, "a capability is %s by being uploaded or installed", l.State).At("/state")
	case l.State != Deprecated && l.State != Retired:
		return abi.Errorf(abi.CodeInvalidRequest, "the state must be deprecated or retired, not %s", abi.Quote(string(l.State))).At("/state")
	case l.ReplacedBy == l.Capability:
		return abi.Errorf(abi.CodeInvalidRequest, "a capability does not replace itself").At("/replacedBy")
	}
	return nil
}

package gate

import (
	"fmt"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/grant"
)

// Verdict is what a decision comes to. The zero value is [Deny].
type Verdict uint8

const (
	Deny Verdict = iota
	Allow
	NeedsApproval // a person's word is all that is missing (X42)
)

func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case NeedsApproval:
		return "needs_approval"
	}
	return "deny"
}

// MarshalText implements [encoding.TextMarshaler].
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// State is what one check came to.
type State uint8

const (
	NotReached    State = iota // what it would judge is not there, or may not be told
	Failed                     // its code says why
	Passed                     //
	Waived                     // trusted-dev does not ask
	Deferred                   // the catalogue could not answer, and the environment refines (X13)
	NotApplicable              // of children or agents only
	Pending                    // the fact it judges is not known yet
)

var stateNames = [...]string{"not-reached", "failed", "passed", "waived", "deferred", "not-applicable", "pending"}

func (s State) String() string { return stateNames[s] }

// States are all there are, in their order.
func States() []State {
	out := make([]State, len(stateNames))
	for i := range out {
		out[i] = State(i)
	}
	return out
}

// MarshalText implements [encoding.TextMarshaler].
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Result is one check's verdict.
type Result struct {
	State State
	Code  abi.Code // set when State is Failed
}

// Decision is a verdict with everything it rests on. The zero value denies.
type Decision struct {
	Verdict Verdict
	Code    abi.Code // of the first failed check in table order; "" when allowed
	// Pending is [CheckRate] or [CheckSchema] when nothing before it failed and the fact it
	// judges is not known: find it out and decide again. Until then the verdict is Deny. Otherwise 0.
	Pending CheckID
	Checks  [NumChecks]Result

	ReachDeferred bool // the declared reach was not judged; the audit row says so
	Generation    uint64

	// What was found. Empty when the caller may not know of the capability.
	Biome      string
	Owner      string // organisation of the biome
	Digest     string
	Install    string
	Descriptor *abi.Descriptor
	Ending     Ending // of the capability, when it is deprecated or retired

	Reach   abi.Reach          // min(declared, environment, parent)
	Start   abi.Classification // label the invocation starts at
	Ceiling abi.Classification // label nothing it reads may exceed

	grants [numGrants]*grant.Grant // those that were used
	served *Admission
}

const (
	grantOfSubject = iota
	grantOfUser
	grantOfCaller
	numGrants
)

// Grants returns the ids of the grants that were used, as records name them.
func (d *Decision) Grants() []string {
	var out []string
	for _, g := range d.grants {
		if g != nil {
			out = append(out, g.ID)
		}
	}
	return out
}

// Obligations is what comes with the rights that were used: of the install grant and of each grant. Where
// those are waived, nothing.
func (d *Decision) Obligations() grant.Obligations {
	var out grant.Obligations
	if d.served != nil && d.Checks[CheckInstall].State == Passed {
		out = d.served.Asks
	}
	for _, g := range d.grants {
		if g != nil {
			out = out.With(g.Asks())
		}
	}
	return out
}

// Kept is what the version that serves may call and use; nil unless the decision allows, or needs no more
// than an approval. s and f are what it was made from.
func (d *Decision) Kept(s *Snapshot, f *Facts) *Kept {
	if d.served == nil {
		return nil
	}
	return d.served.kept(s.EnvironmentIn(f.Org, f.Environment))
}

// Config are the names of what the version that serves is told by its install grant; none unless the
// decision allows, or needs no more than an approval.
func (d *Decision) Config() []string {
	if d.served == nil {
		return nil
	}
	return d.served.Config.Names()
}

// Report is one check as explain shows it.
type Report struct {
	Check   string   `json:"check"`
	State   State    `json:"state"`
	Code    abi.Code `json:"code,omitempty"`
	Suggest string   `json:"suggest,omitempty"` // what would help, for a failed check
	// Instead is what to invoke, when the suggestion is to use a successor.
	Instead abi.CapabilityRef `json:"instead,omitempty"`
}

// Explain lists every check in order. A check of children or agents is left out of a
// decision it does not apply to.
func (d *Decision) Explain() []Report {
	out := make([]Report, 0, NumChecks)
	for i, r := range d.Checks {
		if r.State == NotApplicable {
			continue
		}
		row := Report{Check: checks[i].Name, State: r.State, Code: r.Code}
		if r.State == Failed {
			row.Suggest = checks[i].Suggest
			if r.Code == abi.CodeCapabilityRetired && d.Ending.ReplacedBy != "" {
				row.Suggest, row.Instead = useSuccessor, d.Ending.ReplacedBy
			}
		}
		out = append(out, row)
	}
	return out
}

// useSuccessor is suggested where another capability takes the place of a retired one.
const useSuccessor = "use-successor"

// Err is the refusal as an error, or nil when the decision allows.
func (d *Decision) Err() *abi.Error {
	if d.Verdict == Allow {
		return nil
	}
	code := d.Code
	if code == "" {
		code = abi.CodeMissingGrant
	}
	info, _ := code.Info()
	err := abi.Errorf(code, "%s", info.Meaning)
	for i, r := range d.Checks {
		if r.State == Failed {
			return err.WithHint(fmt.Sprintf("refused by the check %q; suggestion: %s", checks[i].Name, checks[i].Suggest))
		}
	}
	return err
}

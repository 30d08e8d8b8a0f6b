package grant

import (
	"strconv"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// ObligationKind names what comes with a right (X44). The set is closed: a kind that is not in it
// is INVALID_REQUEST, and one that is in it but not enforced is UNSUPPORTED_RULE.
type ObligationKind string

// The kinds.
const (
	ObligeAudit          ObligationKind = "audit"                          // always so; naming it changes nothing
	ObligeRedactSecrets  ObligationKind = "redact-secrets"                 // always so as well
	ObligeApproval       ObligationKind = "require-human-approval"         //
	ObligeDuration       ObligationKind = "max-duration-seconds"           // Seconds
	ObligeClassification ObligationKind = "restrict-output-classification" // Classification
	ObligeEgress         ObligationKind = "egress-allowlist"               // Allow, Block
	ObligeRunner         ObligationKind = "require-runner-kind"            //
	ObligeCost           ObligationKind = "max-cost-usd"                   //
	ObligeResidency      ObligationKind = "data-residency"                 //
)

// Bounds of obligations.
const (
	MaxObligations = 16
	MaxSeconds     = 600
)

// Obligation is one in its stored form. Members that its kind does not take are refused.
type Obligation struct {
	Kind           ObligationKind     `json:"kind"`
	Seconds        int64              `json:"seconds,omitempty"`
	Classification abi.Classification `json:"classification,omitzero"`
	Allow          []string           `json:"allow,omitempty"`
	Block          []string           `json:"block,omitempty"`
}

// obligationKinds is the closed set: which members each kind takes, and whether it is enforced.
var obligationKinds = map[ObligationKind]struct {
	seconds, classification, patterns bool
	unenforced                        bool
}{
	ObligeAudit:          {},
	ObligeRedactSecrets:  {},
	ObligeApproval:       {},
	ObligeDuration:       {seconds: true},
	ObligeClassification: {classification: true},
	ObligeEgress:         {patterns: true},
	ObligeRunner:         {unenforced: true},
	ObligeCost:           {unenforced: true},
	ObligeResidency:      {unenforced: true},
}

// Obligations is what a list of obligations comes to, compiled. The zero value asks for nothing.
type Obligations struct {
	Duration  time.Duration      // an invocation lasts no longer; 0: no bound of its own
	Clearance abi.Classification `json:",omitzero"` // the answer is no more sensitive; invalid: no bound of its own
	Egress    []*egress.List     // a request has to pass all of them
	Approval  bool               // a person has to approve it
}

// CompileObligations checks a list and compiles it. Of several of one kind each holds. Errors point
// at the member.
func CompileObligations(list []Obligation) (Obligations, error) {
	var out Obligations
	if len(list) > MaxObligations {
		return out, abi.Errorf(abi.CodeInvalidRequest, "there are %d obligations; at most %d are taken", len(list), MaxObligations).At("/obligations")
	}
	for i, o := range list {
		if err := out.add(o); err != nil {
			return Obligations{}, err.At("/obligations/" + strconv.Itoa(i) + err.Pointer)
		}
	}
	return out, nil
}

func (out *Obligations) add(o Obligation) *abi.Error {
	k, known := obligationKinds[o.Kind]
	if !known {
		return abi.Errorf(abi.CodeInvalidRequest, "%s is not an obligation", abi.Quote(string(o.Kind))).At("/kind")
	}
	if k.unenforced {
		return abi.Errorf(abi.CodeUnsupportedRule, "%s is not enforced yet, so it is not accepted", o.Kind).At("/kind")
	}
	for _, m := range []struct {
		name         string
		given, taken bool
	}{
		{"seconds", o.Seconds != 0, k.seconds},
		{"classification", o.Classification != 0, k.classification},
		{"allow", o.Allow != nil, k.patterns},
		{"block", o.Block != nil, k.patterns},
	} {
		if m.given && !m.taken {
			return abi.Errorf(abi.CodeInvalidRequest, "%s takes no %s", o.Kind, m.name).At("/" + m.name)
		}
	}
	switch o.Kind {
	case ObligeApproval:
		out.Approval = true
	case ObligeDuration:
		if o.Seconds < 1 || o.Seconds > MaxSeconds {
			return abi.Errorf(abi.CodeInvalidRequest, "seconds must be from 1 to %d", MaxSeconds).At("/seconds")
		}
		d := time.Duration(o.Seconds) * time.Second
		if out.Duration == 0 || d < out.Duration {
			out.Duration = d
		}
	case ObligeClassification:
		if !o.Classification.Valid() {
			return abi.Errorf(abi.CodeInvalidRequest, "classification is missing").At("/classification")
		}
		if !out.Clearance.Valid() || o.Classification < out.Clearance {
			out.Clearance = o.Classification
		}
	case ObligeEgress:
		l, err := egress.CompileList(o.Allow, o.Block)
		if err != nil {
			return abi.AsError(err)
		}
		out.Egress = append(out.Egress, l)
	}
	return nil
}

// With is what both ask for.
func (o Obligations) With(more Obligations) Obligations {
	if o.Duration == 0 || more.Duration != 0 && more.Duration < o.Duration {
		o.Duration = more.Duration
	}
	if !o.Clearance.Valid() || more.Clearance.Valid() && more.Clearance < o.Clearance {
		o.Clearance = more.Clearance
	}
	o.Approval = o.Approval || more.Approval
	if len(more.Egress) > 0 {
		o.Egress = append(o.Egress[:len(o.Egress):len(o.Egress)], more.Egress...)
	}
	return o
}

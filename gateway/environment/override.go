package environment

import (
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// Override is one organisation's cap on one built-in environment (X19). It turns an allow
// into a deny, never the reverse: the effective ceiling is the lower of the two (X20).
type Override struct {
	Org         string             `json:"org"`
	Environment abi.EnvironmentRef `json:"environment"`
	MaxData     abi.Classification `json:"maxDataClassification"`
	Removed     bool               `json:"removed,omitempty"`
	Revision    uint64             `json:"revision"`
	UpdatedBy   string             `json:"updatedBy"`
	UpdatedAt   time.Time          `json:"updatedAt"`
}

// Check refuses an override of anything but a built-in environment (X21) and one above the
// built-in's own ceiling (CEILING_LOOSENED).
func (o Override) Check() *abi.Error {
	e, ok := BuiltIn(o.Environment)
	switch {
	case !ok:
		return abi.Errorf(abi.CodeUnsupportedRule, "%s is not a built-in environment; only those are overridden", abi.Quote(string(o.Environment))).
			At("/environment")
	case !o.MaxData.Valid():
		return abi.Errorf(abi.CodeInvalidRequest, "maxDataClassification is missing").At("/maxDataClassification")
	case o.MaxData > e.MaxData:
		return abi.Errorf(abi.CodeCeilingLoosened, "%s admits at most %s", o.Environment, e.MaxData).At("/maxDataClassification")
	}
	return nil
}

// Effective is the ceiling that holds for an organisation: o may be nil.
func (e *Environment) Effective(o *Override) abi.Classification {
	if o == nil {
		return e.MaxData
	}
	return abi.Meet(e.MaxData, o.MaxData)
}

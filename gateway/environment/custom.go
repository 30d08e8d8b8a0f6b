package environment

import (
	"slices"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// What an organisation may have of its own at most.
const (
	MaxCustom  = 256 // environments
	MaxAllowed = 256 // capabilities that one of them names
)

// Custom is an environment of an organisation's own (X53). It derives from a built-in one and takes
// away from it, never adds (X56): what holds is computed from the base as it is when it is asked for,
// see [Custom.Resolve].
type Custom struct {
	Org     string             `json:"org"`
	Slug    string             `json:"slug"`
	Base    abi.EnvironmentRef `json:"base"`
	Reach   abi.Reach          `json:"reachCeiling"`
	MaxData abi.Classification `json:"maxDataClassification"`
	// Boundary puts it into the boundary family. One that derives from a boundary environment is in
	// it whatever this says.
	Boundary bool `json:"boundary,omitempty"`
	// Allowed is the capabilities it admits, each by its exact ref; nil is no list, and an empty list
	// is no value (X54, X55).
	Allowed   []abi.CapabilityRef `json:"allowedCapabilities,omitempty"`
	Limits    map[string]int64    `json:"limits,omitempty"` // only what it lowers
	Removed   bool                `json:"removed,omitempty"`
	Revision  uint64              `json:"revision"`
	CreatedBy string              `json:"createdBy"`
	CreatedAt time.Time           `json:"createdAt"`
	UpdatedBy string              `json:"updatedBy"`
	UpdatedAt time.Time           `json:"updatedAt"`
}

// Ref is how the environment is named on the wire.
func (c *Custom) Ref() abi.EnvironmentRef { return abi.MakeEnvironmentRef(c.Slug) }

// Check refuses what no base could make right. It is asked when a record is written and again when
// it is read, so that a store that somebody else wrote to is not believed (X54).
func (c *Custom) Check() *abi.Error {
	if _, err := abi.ParseSlug("an environment", c.Slug); err != nil {
		return abi.AsError(err).At("/slug")
	}
	if _, taken := BuiltIn(c.Ref()); taken {
		return abi.Errorf(abi.CodeBuiltInImmutable, "%s is a built-in environment", c.Slug).At("/slug")
	}
	base, ok := BuiltIn(c.Base)
	switch {
	case !ok:
		return abi.Errorf(abi.CodeInvalidRequest, "an environment derives from a built-in one").At("/base")
	case base.Waives:
		return abi.Errorf(abi.CodeUnsupportedRule, "what waives grants is not derived from").At("/base")
	case !c.Reach.Valid():
		return abi.Errorf(abi.CodeInvalidRequest, "reachCeiling is missing").At("/reachCeiling")
	case !c.MaxData.Valid():
		return abi.Errorf(abi.CodeInvalidRequest, "maxDataClassification is missing").At("/maxDataClassification")
	}
	if err := checkAllowed(c.Allowed); err != nil {
		return err
	}
	if _, err := SetLimits(abi.DefaultLimits(), c.Limits); err != nil {
		return err
	}
	return c.within(&base, base.MaxData)
}

func checkAllowed(refs []abi.CapabilityRef) *abi.Error {
	if refs == nil {
		return nil
	}
	const at = "/allowedCapabilities"
	if len(refs) == 0 || len(refs) > MaxAllowed {
		return abi.Errorf(abi.CodeUnsupportedRule, "the list names 1 to %d capabilities", MaxAllowed).At(at).
			WithHint("leave it out to admit whatever is granted; an environment that admits nothing is one that nothing is granted in")
	}
	for i, ref := range refs {
		if _, err := abi.ParseCapabilityRef(string(ref)); err != nil {
			return abi.AsError(err).At(at)
		}
		if slices.Contains(refs[:i], ref) {
			return abi.Errorf(abi.CodeInvalidRequest, "%s is listed twice", ref).At(at)
		}
	}
	return nil
}

// Within refuses what would not tighten the base as it is now, with the organisation's override of
// it, which may be nil: CEILING_LOOSENED. It is asked of requests only. A base that is tightened
// later tightens what derives from it.
func (c *Custom) Within(base *Environment, o *Override) *abi.Error {
	if err := c.within(base, base.Effective(o)); err != nil {
		return err
	}
	limits := LimitsByName(base.Limits)
	for name, v := range c.Limits {
		if v > limits[name] {
			return loosened("/limits/"+name, "%s has at most %d for %s", base.Slug, limits[name], name)
		}
	}
	return nil
}

func (c *Custom) within(base *Environment, most abi.Classification) *abi.Error {
	switch {
	case !c.Reach.Within(base.Reach):
		return loosened("/reachCeiling", "%s reaches at most %s", base.Slug, base.Reach)
	case c.MaxData > most:
		return loosened("/maxDataClassification", "%s admits at most %s", base.Slug, most)
	}
	return nil
}

func loosened(at, format string, args ...any) *abi.Error {
	return abi.Errorf(abi.CodeCeilingLoosened, format, args...).At(at).WithHint("an environment of an organisation's own only tightens its base")
}

// Resolve is what holds: in everything the lower of c and of its base, which is tightened by the
// organisation's override o of it; o may be nil.
func (c *Custom) Resolve(base *Environment, o *Override) Environment {
	limits, err := SetLimits(base.Limits, c.Limits)
	if err != nil { // it was checked: a name or value that the base's table does not have any more changes nothing
		limits = base.Limits
	}
	out := Environment{
		Slug: c.Slug, Ref: c.Ref(), Org: c.Org, Base: c.Base,
		Reach: abi.MinReach(c.Reach, base.Reach), Enforcement: base.Enforcement, MaxData: abi.Meet(c.MaxData, base.Effective(o)),
		Available: base.Available, Limits: base.Limits.Tighten(limits), Revision: c.Revision, allowed: slices.Clone(c.Allowed),
	}
	if c.Boundary {
		out.Enforcement = Boundary
	}
	return out
}

// Package environment is the trust profiles an invocation can be bound to.
//
// It promises one table of the nine built-in environments, whose slug, reach ceiling and
// family nothing can change, and overrides and environments of an organisation's own that only
// ever tighten them. It refuses to know who is calling and where records are kept.
package environment

import (
	"encoding/json"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
)

// Family says what happens when the catalogue cannot tell a capability's reach (X13). The
// zero value is [Boundary].
type Family uint8

const (
	// Boundary denies: CAPABILITY_UNCLASSIFIED.
	Boundary Family = iota
	// Refinement defers: the declared reach is not judged, the grant decides, and the audit
	// row says so. Host functions stay bounded by the environment all the same.
	Refinement
)

func (f Family) String() string {
	if f == Refinement {
		return "refinement"
	}
	return "boundary"
}

// MarshalText implements [encoding.TextMarshaler].
func (f Family) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// Environment is a trust profile, resolved: what a snapshot holds and an invocation is bound to.
type Environment struct {
	Slug        string
	Ref         abi.EnvironmentRef
	Org         string             // whose it is; "" for a built-in one
	Base        abi.EnvironmentRef // the built-in one it derives from; "" for a built-in one
	BuiltIn     bool
	Reach       abi.Reach          // ceiling
	Enforcement Family             // when the catalogue cannot answer
	MaxData     abi.Classification // ceiling; never invalid (X17)
	Waives      bool               // trusted-dev: install, grant, glob, rate and approval are waived for what the manifest declares
	Available   bool               // trusted-dev is there only under --dev (X7)
	Limits      abi.Limits         // resolved
	Revision    uint64             // raised by every change of the limits; 1 as shipped

	allowed []abi.CapabilityRef // of an organisation's own only: what it admits; nil is no list
	blank   bool                // shown without its configuration
}

// The slugs of the built-in environments (X2, X3).
const (
	System      = "system"
	Org         = "org"
	Project     = "project"
	App         = "app"
	Session     = "session"
	Sandbox     = "sandbox"
	Public      = "public"
	StoreReview = "store-review"
	TrustedDev  = "trusted-dev"
)

// builtIns is the closed set (X2, X9). Every built-in admits all data until an organisation
// says otherwise.
var builtIns = [...]struct {
	slug        string
	reach       abi.Reach
	enforcement Family
}{
	{System, abi.ReachPlatform, Refinement},
	{Org, abi.ReachPlatform, Refinement},
	{Project, abi.ReachIntegration, Refinement},
	{App, abi.ReachIntegration, Refinement},
	{Session, abi.ReachIntegration, Refinement},
	{Sandbox, abi.ReachOwner, Boundary},
	{Public, abi.ReachOwner, Boundary},
	{StoreReview, abi.ReachOwner, Boundary},
	{TrustedDev, abi.ReachPlatform, Refinement},
}

// BuiltIns returns the nine built-in environments as shipped, in their documented order.
// trusted-dev is not available.
func BuiltIns() []Environment {
	out := make([]Environment, len(builtIns))
	for i, b := range builtIns {
		out[i] = Environment{
			Slug:        b.slug,
			Ref:         abi.MakeEnvironmentRef(b.slug),
			BuiltIn:     true,
			Reach:       b.reach,
			Enforcement: b.enforcement,
			MaxData:     abi.Regulated,
			Waives:      b.slug == TrustedDev,
			Available:   b.slug != TrustedDev,
			Limits:      abi.DefaultLimits(),
			Revision:    1,
		}
	}
	return out
}

// BuiltIn returns one built-in environment as shipped.
func BuiltIn(ref abi.EnvironmentRef) (Environment, bool) {
	for _, e := range BuiltIns() {
		if e.Ref == ref {
			return e, true
		}
	}
	return Environment{}, false
}

// Shown is an environment as the API shows it. Limits are the ones an environment resolves, by name. A
// built-in one has no members for what only an organisation's own can have (X55).
type Shown struct {
	Slug        string              `json:"slug"`
	Ref         abi.EnvironmentRef  `json:"ref"`
	Org         string              `json:"org,omitempty"`
	Base        abi.EnvironmentRef  `json:"base,omitempty"`
	BuiltIn     bool                `json:"isBuiltIn"`
	Reach       abi.Reach           `json:"reachCeiling"`
	Enforcement Family              `json:"enforcement"`
	MaxData     abi.Classification  `json:"maxDataClassification"`
	Allowed     []abi.CapabilityRef `json:"allowedCapabilities,omitempty"`
	Limits      map[string]int64    `json:"limits"`
	Revision    uint64              `json:"revision"`
	Available   bool                `json:"available"`
}

// MarshalJSON writes the environment as it is [Shown].
func (e Environment) MarshalJSON() ([]byte, error) {
	limits := map[string]int64{}
	if !e.blank {
		limits = LimitsByName(e.Limits)
	}
	return json.Marshal(Shown{
		e.Slug, e.Ref, e.Org, e.Base, e.BuiltIn, e.Reach, e.Enforcement, e.MaxData, e.allowed, limits, e.Revision, e.Available,
	})
}

// Blank is the environment as it is shown to who may not see its configuration: without limits and
// without the capabilities it names (P5).
func (e Environment) Blank() Environment {
	e.blank, e.allowed = true, nil
	return e
}

// LimitsByName returns the limits that an environment resolves, by name.
func LimitsByName(l abi.Limits) map[string]int64 {
	m := map[string]int64{}
	for _, row := range abi.LimitTable() {
		if row.Scope == abi.ScopeEnvironment {
			m[row.Name] = l.Get(row.Limit)
		}
	}
	return m
}

// SetLimits returns l with the named limits changed. A name that is not a limit an
// environment resolves, and a value outside the table's bounds, are refused (PF-D1, PF-H10).
func SetLimits(l abi.Limits, changes map[string]int64) (abi.Limits, *abi.Error) {
	resolves := LimitsByName(l)
	for name, v := range changes {
		if _, ok := resolves[name]; !ok {
			return abi.Limits{}, abi.Errorf(abi.CodeUnknownField, "environments have no limit %s", abi.Quote(name)).At("/limits/" + name)
		}
		if err := l.Set(name, v); err != nil {
			return abi.Limits{}, abi.AsError(err).At("/limits/" + name)
		}
	}
	return l, nil
}

// Boundary reports whether the environment is of the boundary family.
func (e *Environment) Boundary() bool { return e.Enforcement == Boundary }

// Allows reports whether the environment names the capabilities it admits, and whether ref is one
// of them. Only an environment of an organisation's own can name any (X54).
func (e *Environment) Allows(ref abi.CapabilityRef) (named, ok bool) {
	return e.allowed != nil, slices.Contains(e.allowed, ref)
}

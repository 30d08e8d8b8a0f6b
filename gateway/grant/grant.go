// Package grant is the records that give rights.
//
// It promises that a right is one immutable record and its end another: nothing here is
// edited or deleted, so an old audit row always finds the grant it names. A rule that would
// not be enforced is refused, never stored (PF-B7). The package refuses to know where records
// are kept and how they are weighed against each other: the gate does that.
package grant

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/rate"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// Grant says that a subject may invoke a capability in an environment (X33).
type Grant struct {
	ID          string             `json:"id"` // ULID
	Org         string             `json:"org"`
	Subject     abi.Subject        `json:"subject"`
	Capability  abi.CapabilityRef  `json:"capability"`
	Environment abi.EnvironmentRef `json:"environment"`
	Globs       []string           `json:"globs"` // never empty; [Everything] when the grant names no resources
	// URLs, when there are any, is what requests may go to, of what the install grant kept (X39).
	URLs []string `json:"urls,omitempty"`
	// Spaces, when there are any, is where the grant holds. Without any it holds in each space of the
	// organisation, save those of users: who may invoke in these is named (X70).
	Spaces      []string     `json:"spaces,omitempty"`
	Expires     *time.Time   `json:"expires,omitempty"`
	Rate        *Rate        `json:"rate,omitempty"`     // nil: no ceiling beside the subject's and the client's
	Approval    bool         `json:"approval,omitempty"` // a person has to approve every use
	Obligations []Obligation `json:"obligations,omitempty"`
	Replaces    string       `json:"replaces,omitempty"` // the grant that ended with the making of this one
	Install     string       `json:"install,omitempty"`  // the install grant this was made by, for biome: subjects
	CreatedBy   string       `json:"createdBy"`
	CreatedAt   time.Time    `json:"createdAt"`

	more *compiled // of the few that have something to compile
}

// Bounds of one grant.
const (
	MaxURLs   = 64
	MaxSpaces = 16
)

// Compile makes the grant ready to be used. An error means that it should not have been stored.
func (g *Grant) Compile() error {
	asks, err := CompileObligations(g.Obligations)
	if err != nil {
		return err
	}
	asks.Approval = asks.Approval || g.Approval
	urls, err := CompileURLs(g.URLs)
	if err != nil {
		return err
	}
	if urls != nil {
		asks.Egress = append(asks.Egress, urls)
	}
	g.more = nil
	if everything := slices.Contains(g.Globs, Everything); !everything || g.Approval || g.Obligations != nil || urls != nil {
		g.more = &compiled{asks: asks, globs: g.Globs}
	}
	return nil
}

// CompileURLs compiles the patterns that a grant's requests are held to; nil is none. A list that is
// given is not empty, and each member is one that [egress.CompileList] takes.
func CompileURLs(patterns []string) (*egress.List, error) {
	switch {
	case patterns == nil:
		return nil, nil
	case len(patterns) == 0 || len(patterns) > MaxURLs:
		return nil, abi.Errorf(abi.CodeUnsupportedRule, "a grant names 1 to %d URLs", MaxURLs).At("/urls").
			WithHint("leave the field out to hold to what the install grant kept")
	}
	l, err := egress.CompileList(patterns, nil)
	if err != nil {
		e := abi.AsError(err)
		return nil, e.At(strings.Replace(e.Pointer, "/allow", "/urls", 1))
	}
	return l, nil
}

// HoldsIn reports whether the grant holds in a space. personal says that it is a user's, or lies in one:
// that is no space of everybody's, and only a grant that names it holds there.
func (g *Grant) HoldsIn(space string, personal bool) bool { return holdsIn(g.Spaces, space, personal) }

func holdsIn(spaces []string, space string, personal bool) bool {
	if len(spaces) == 0 {
		return !personal
	}
	return slices.Contains(spaces, space)
}

// Asks is what the grant asks for besides the right it gives. Nothing, before it was compiled.
func (g *Grant) Asks() Obligations {
	if g.more == nil {
		return Obligations{}
	}
	return g.more.asks
}

// Rate is how often a grant may be used, over all who use it.
type Rate struct {
	PerHour rate.Limit `json:"perHour"`
}

// Check refuses what would not be a ceiling.
func (r *Rate) Check() *abi.Error {
	if r != nil && !r.PerHour.Valid() {
		return abi.Errorf(abi.CodeUnsupportedRule, "a ceiling is from 1 to %d an hour", rate.MaxPerHour).At("/rate/perHour")
	}
	return nil
}

// Revocation ends a grant, an environment grant or an install grant. It is a record of its own, so
// that nothing that was lost or restored can bring a right back (X34).
type Revocation struct {
	Grant     string    `json:"grant"`
	Org       string    `json:"org"`
	CreatedBy string    `json:"createdBy"`
	CreatedAt time.Time `json:"createdAt"`
}

// EnvironmentGrant lets a principal that may otherwise open no session open one for a subject
// in an environment (X36, S19).
type EnvironmentGrant struct {
	ID          string             `json:"id"`
	Org         string             `json:"org"`
	Principal   string             `json:"principal"`
	Subject     abi.Subject        `json:"subject"`
	Environment abi.EnvironmentRef `json:"environment"`
	Spaces      []string           `json:"spaces,omitempty"` // as those of a [Grant] (X30)
	Expires     *time.Time         `json:"expires,omitempty"`
	CreatedBy   string             `json:"createdBy"`
	CreatedAt   time.Time          `json:"createdAt"`
}

// HoldsIn reports whether the grant holds in a space: see [Grant.HoldsIn].
func (g *EnvironmentGrant) HoldsIn(space string, personal bool) bool {
	return holdsIn(g.Spaces, space, personal)
}

// AnyCapability, in an approve grant, covers every request.
const AnyCapability = "*"

// ApproveGrant lets a principal decide requests for a capability (S17).
type ApproveGrant struct {
	ID         string     `json:"id"`
	Org        string     `json:"org"`
	Principal  string     `json:"principal"`  // its name
	Capability string     `json:"capability"` // a ref, or [AnyCapability]
	Expires    *time.Time `json:"expires,omitempty"`
	CreatedBy  string     `json:"createdBy"`
	CreatedAt  time.Time  `json:"createdAt"`
}

// Covers reports whether the grant is this principal's, for this capability.
func (g *ApproveGrant) Covers(principal string, ref abi.CapabilityRef) bool {
	return g.Principal == principal && (g.Capability == AnyCapability || g.Capability == string(ref))
}

// Install says which environments an organisation admitted a biome to, bound to one digest,
// and what the biome itself may call and use there. It, not the manifest, is consulted at run
// time. A list that was not given is empty and keeps nothing (PF-A1).
type Install struct {
	ID           string               `json:"id"` // ULID
	Org          string               `json:"org"`
	Biome        string               `json:"biome"`
	Digest       string               `json:"digest"`
	Environments []abi.EnvironmentRef `json:"environments"`
	Calls        []abi.CapabilityRef  `json:"calls"`
	Endpoints    []string             `json:"endpoints"`
	Secrets      []string             `json:"secrets"`
	Config       Config               `json:"config,omitempty"`      // what the biome is told
	Obligations  []Obligation         `json:"obligations,omitempty"` // of every invocation of the biome
	Permissions  string               `json:"permissions,omitempty"` // digest of the version's permission document, which was there to be looked at (X63)
	Approval     string               `json:"approval,omitempty"`    // the approval it was made by; "" when somebody installed it by hand
	Alongside    bool                 `json:"alongside,omitempty"`   // it was made beside those of other digests, not in their place
	Grants       []string             `json:"grants"`                // made for biome:<id> with it
	Stage        Stage                `json:"stage"`
	Revision     uint64               `json:"revision"`
	CreatedBy    string               `json:"createdBy"`
	CreatedAt    time.Time            `json:"createdAt"`
}

// Stage is how far a biome has come in an organisation.
type Stage string

const (
	SandboxInstalled Stage = "sandbox-installed" // uploaded; callable in sandbox and trusted-dev only
	ReviewRequired   Stage = "review-required"   // somebody is asked to admit it
	OrgInstalled     Stage = "org-installed"     // an install grant admits it
	Archived         Stage = "archived"          // no more uploads and installs; what is installed goes on
)

// Endpoint is a rule for requests that leave the gateway, in its stored form.
type Endpoint struct {
	Org       string             `json:"org"`
	Name      string             `json:"name"`
	Rule      egress.Rule        `json:"rule"`
	Clearance abi.Classification `json:"clearance"` // what may be sent to it
	Label     abi.Classification `json:"label"`     // what comes back from it
	Loopback  bool               `json:"loopback"`
	Removed   bool               `json:"removed,omitempty"`
	Revision  uint64             `json:"revision"`
	UpdatedBy string             `json:"updatedBy"`
	UpdatedAt time.Time          `json:"updatedAt"`
}

// Secret is a sealed value and how it may be used. Both Uses and Sealed are the vault's; this
// package never reads them. It is never shown as it is: see [SecretInfo].
type Secret struct {
	Org       string          `json:"org"`
	Name      string          `json:"name"`
	Uses      json.RawMessage `json:"uses"`
	Sealed    json.RawMessage `json:"sealed"`
	Version   uint64          `json:"version"` // raised by every new value
	Removed   bool            `json:"removed,omitempty"`
	Revision  uint64          `json:"revision"`
	UpdatedBy string          `json:"updatedBy"`
	UpdatedAt time.Time       `json:"updatedAt"`
}

// SecretInfo is what anyone may be shown of a secret.
type SecretInfo struct {
	Org       string          `json:"org"`
	Name      string          `json:"name"`
	Uses      json.RawMessage `json:"uses"`
	Version   uint64          `json:"version"`
	Revision  uint64          `json:"revision"`
	UpdatedBy string          `json:"updatedBy"`
	UpdatedAt time.Time       `json:"updatedAt"`
}

// Info leaves the sealed value out.
func (s Secret) Info() SecretInfo {
	return SecretInfo{s.Org, s.Name, s.Uses, s.Version, s.Revision, s.UpdatedBy, s.UpdatedAt}
}

// Active reports whether a right that ends at expires holds at now; nil never ends.
func Active(expires *time.Time, now time.Time) bool { return expires == nil || now.Before(*expires) }

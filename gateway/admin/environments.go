package admin

import (
	"encoding/json"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/policy"
)

func (s *Server) listEnvironments(c *call) (*reply, error) {
	builtin := c.r.URL.Query().Get("builtin")
	if builtin != "" && builtin != "true" && builtin != "false" {
		return nil, abi.Errorf(abi.CodeInvalidRequest, "builtin must be true or false").At("builtin")
	}
	own, err := s.o.Policy.OwnEnvironments(c.principal, c.org)
	return page(c, shown(c, slices.Concat(s.o.Policy.Environments(), own)), err, bySlug, func(e environment.Environment) bool {
		return builtin == "" || e.BuiltIn == (builtin == "true")
	})
}

func bySlug(e environment.Environment) string { return e.Slug }

// environment is the built-in one that the path names.
func (s *Server) environment(c *call) (environment.Environment, error) {
	for _, e := range s.o.Policy.Environments() {
		if e.Slug == c.r.PathValue("slug") {
			return e, nil
		}
	}
	return environment.Environment{}, abi.Errorf(abi.CodeNotFound, "there is no environment %s", abi.Quote(c.r.PathValue("slug")))
}

func (s *Server) getEnvironment(c *call) (*reply, error) {
	e, err := s.environment(c)
	if err != nil {
		e, err = s.o.Policy.OwnEnvironment(c.principal, c.org, c.r.PathValue("slug"))
	}
	return okTagged(e.Revision, shown(c, []environment.Environment{e})[0], err)
}

// shown is what the principal may see of environments: their configuration is for those who
// administer or audit (P5).
func shown(c *call, all []environment.Environment) []environment.Environment {
	if policy.Allowed(c.principal, policy.OpReadGuarded, c.org) == nil {
		return all
	}
	out := make([]environment.Environment, len(all))
	for i, e := range all {
		out[i] = e.Blank()
	}
	return out
}

// environmentBody is what a client may send back of what it was shown. Everything but the
// limits must be as it is: a built-in's identity is not editable (X2, P10).
type environmentBody struct {
	Slug        string              `json:"slug,omitempty"`
	Ref         abi.EnvironmentRef  `json:"ref,omitempty"`
	BuiltIn     *bool               `json:"isBuiltIn,omitempty"`
	Reach       abi.Reach           `json:"reachCeiling,omitempty"`
	Enforcement string              `json:"enforcement,omitempty"`
	MaxData     *abi.Classification `json:"maxDataClassification,omitempty"`
	Limits      map[string]int64    `json:"limits,omitempty"`
	Revision    uint64              `json:"revision,omitempty"`
	Available   *bool               `json:"available,omitempty"`
	Waives      *bool               `json:"waives,omitempty"`

	Allowed json.RawMessage `json:"allowedCapabilities,omitempty"` // refused: see putEnvironment
}

func (b *environmentBody) sameAs(e *environment.Environment) bool {
	return (b.Slug == "" || b.Slug == e.Slug) && (b.Ref == "" || b.Ref == e.Ref) && (b.BuiltIn == nil || *b.BuiltIn == e.BuiltIn) &&
		(b.Reach == 0 || b.Reach == e.Reach) && (b.Enforcement == "" || b.Enforcement == e.Enforcement.String()) &&
		(b.MaxData == nil || *b.MaxData == e.MaxData)
}

func (s *Server) putEnvironment(c *call) (*reply, error) {
	e, err := s.environment(c)
	if err != nil {
		return nil, err
	}
	// A null ceiling would read as "not configured" while something is enforced (X17).
	var raw map[string]json.RawMessage
	if json.Unmarshal(c.body, &raw) == nil && string(raw["maxDataClassification"]) == "null" {
		return nil, abi.Errorf(abi.CodeInvalidRequest, "maxDataClassification is never null").At("/maxDataClassification")
	}
	var in environmentBody
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if _, lists := raw["allowedCapabilities"]; lists { // whatever it is: an empty one would deny nothing or everything (X54, X55)
		return nil, abi.Errorf(abi.CodeUnsupportedRule, "a built-in environment names no capabilities").At("/allowedCapabilities").
			WithHint("an organisation derives an environment that does with POST /v1/orgs/{org}/environments")
	}
	if !in.sameAs(&e) {
		return nil, abi.Errorf(abi.CodeBuiltInImmutable, "only the limits of a built-in environment can be changed").
			WithHint("an organisation tightens a ceiling for itself with PUT /v1/orgs/{org}/overrides/{slug}")
	}
	expect, err := c.expect()
	if err != nil {
		return nil, err
	}
	e, err = s.o.Policy.SetEnvironmentLimits(c.ctx, c.principal, e.Ref, in.Limits, expect)
	return okTagged(e.Revision, e, err)
}

func (s *Server) createEnvironment(c *call) (*reply, error) {
	if err := unmarked(c.body, nil); err != nil {
		return nil, err
	}
	return nil, abi.Errorf(abi.CodeBuiltInImmutable, "the set of built-in environments is closed").
		WithHint("an organisation makes its own with POST /v1/orgs/{org}/environments")
}

func (s *Server) deleteEnvironment(c *call) (*reply, error) {
	if _, err := s.environment(c); err != nil {
		return nil, err
	}
	return nil, abi.Errorf(abi.CodeBuiltInImmutable, "a built-in environment cannot be removed")
}

func (s *Server) listOverrides(c *call) (*reply, error) {
	items, err := s.o.Policy.Overrides(c.principal, c.org)
	return page(c, items, err, func(o environment.Override) string { return string(o.Environment) }, nil)
}

func (s *Server) getOverride(c *call) (*reply, error) {
	o, err := s.o.Policy.OverrideOf(c.principal, c.org, abi.MakeEnvironmentRef(c.r.PathValue("slug")))
	return okTagged(o.Revision, o, err)
}

func (s *Server) putOverride(c *call) (*reply, error) {
	var in overrideBody
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	ref, e, err := overridden(c)
	if err != nil {
		return nil, err
	}
	o, err := s.o.Policy.PutOverride(c.ctx, c.principal, policy.OverrideRequest{Org: c.org, Environment: ref, MaxData: in.MaxData}, e)
	return okTagged(o.Revision, o, err)
}

func (s *Server) deleteOverride(c *call) (*reply, error) {
	ref, e, err := overridden(c)
	if err != nil {
		return nil, err
	}
	return gone(s.o.Policy.RemoveOverride(c.ctx, c.principal, c.org, ref, e))
}

// overridden is the environment that the path names, and the revision the change starts from.
func overridden(c *call) (abi.EnvironmentRef, policy.Expect, error) {
	ref, err := abi.ParseEnvironmentRef("environment:" + c.r.PathValue("slug"))
	if err != nil {
		return "", 0, err
	}
	e, err := c.expect()
	return ref, e, err
}

package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// GrantCmd is the noun grant.
type GrantCmd struct {
	Create  GrantCreateCmd  `cmd:"" help:"Let a subject invoke a capability in an environment."`
	List    GrantListCmd    `cmd:"" aliases:"ls" help:"List grants and their revocations."`
	Revoke  GrantRevokeCmd  `cmd:"" help:"Revoke a grant with a new record."`
	Suggest GrantSuggestCmd `cmd:"" help:"The smallest grants for what a biome did in trusted-dev."`
}

// GrantCreateCmd gives.
type GrantCreateCmd struct {
	Subject     string        `arg:"" help:"Who may: user:ID, agent:ID, app:ID or biome:NAME."`
	Capability  string        `arg:"" help:"What: a capability ref."`
	Environment string        `arg:"" help:"Where: an environment's slug."`
	Glob        []string      `help:"Paths and keys it is limited to, as reports/**; may be repeated." placeholder:"GLOB"`
	URL         []string      `help:"URLs its requests are limited to, as https://host/path/**; may be repeated." placeholder:"PATTERN" name:"url"`
	Space       []string      `help:"Spaces it holds in; by default each that is not a user's. May be repeated." placeholder:"ID"`
	Replaces    string        `help:"Id of the grant that ends with the making of this one." placeholder:"ID"`
	Expires     time.Duration `help:"It ends by itself after this long." placeholder:"DURATION"`
	Rate        int64         `help:"Invocations an hour, over all who use it." placeholder:"N"`
	Approval    bool          `help:"A person has to approve every use."`
	Obligation  []string      `help:"What comes with it, as JSON; may be repeated." placeholder:"JSON" sep:"none"`
}

// Run gives one grant.
func (c *GrantCreateCmd) Run(e *Env) error {
	in := map[string]any{"subject": c.Subject, "capability": c.Capability, "environment": abi.MakeEnvironmentRef(c.Environment)}
	if len(c.Glob) > 0 {
		in["globs"] = c.Glob
	}
	if len(c.URL) > 0 {
		in["urls"] = c.URL
	}
	if len(c.Space) > 0 {
		in["spaces"] = c.Space
	}
	set(in, "replaces", c.Replaces)
	if t := expiry(c.Expires); t != nil {
		in["expires"] = t
	}
	if c.Rate != 0 {
		in["rate"] = map[string]int64{"perHour": c.Rate}
	}
	if c.Approval {
		in["approval"] = true
	}
	var obligations []json.RawMessage
	for _, o := range c.Obligation {
		if !json.Valid([]byte(o)) {
			return usagef("an obligation is a JSON object, as {\"kind\":\"audit\"}")
		}
		obligations = append(obligations, json.RawMessage(o))
	}
	if obligations != nil {
		in["obligations"] = obligations
	}
	return e.send(http.MethodPost, "/v1/grants", in)
}

// GrantListCmd lists.
type GrantListCmd struct {
	Page
	Subject    string `help:"Only this subject's." placeholder:"SUBJECT"`
	Capability string `help:"Only for this capability." placeholder:"REF"`
}

// Run prints one page.
func (c *GrantListCmd) Run(e *Env) error {
	return e.list("/v1/grants", c.Page, url.Values{"subject": {c.Subject}, "capability": {c.Capability}},
		"id", "subject", "capability", "environment", "globs", "expires", "revoked")
}

// GrantRevokeCmd revokes.
type GrantRevokeCmd struct {
	ID string `arg:"" help:"Id of the grant."`
}

// Run revokes one grant.
func (c *GrantRevokeCmd) Run(e *Env) error {
	return e.send(http.MethodDelete, "/v1/grants/"+url.PathEscape(c.ID), nil)
}

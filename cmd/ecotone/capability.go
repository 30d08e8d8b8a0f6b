package main

import (
	"encoding/json"
	"net/http"
	"net/url"
)

// CapabilityCmd is the noun capability.
type CapabilityCmd struct {
	List      CapabilityListCmd      `cmd:"" aliases:"ls" help:"List capabilities and how far each has come."`
	Show      CapabilityShowCmd      `cmd:"" help:"Show one capability."`
	Deprecate CapabilityDeprecateCmd `cmd:"" help:"Say that a capability is on its way out; it works."`
	Retire    CapabilityRetireCmd    `cmd:"" help:"Deny a capability for good."`
}

// CapabilityListCmd lists.
type CapabilityListCmd struct{ Page }

// Run prints one page.
func (c *CapabilityListCmd) Run(e *Env) error {
	return e.list("/v1/capabilities", c.Page, nil, "capability", "biome", "state", "replacedBy", "reach", "riskTier")
}

// CapabilityShowCmd shows.
type CapabilityShowCmd struct {
	Ref string `arg:"" help:"Capability."`
}

// Run prints one capability.
func (c *CapabilityShowCmd) Run(e *Env) error {
	return e.send(http.MethodGet, capabilityPath(c.Ref), nil)
}

func capabilityPath(ref string) string { return "/v1/capabilities/" + url.PathEscape(ref) }

// ending is what deprecating and retiring take.
type ending struct {
	Ref        string `arg:"" help:"Capability."`
	ReplacedBy string `help:"What to invoke instead." placeholder:"REF"`
}

// CapabilityDeprecateCmd deprecates.
type CapabilityDeprecateCmd struct{ ending }

// Run deprecates under the version the server shows.
func (c *CapabilityDeprecateCmd) Run(e *Env) error { return c.say(e, "deprecated") }

// CapabilityRetireCmd retires.
type CapabilityRetireCmd struct{ ending }

// Run retires under the version the server shows.
func (c *CapabilityRetireCmd) Run(e *Env) error { return c.say(e, "retired") }

func (c *ending) say(e *Env, state string) error {
	was, err := e.conn.admin(e.ctx, http.MethodGet, capabilityPath(c.Ref)+e.orgQuery(), nil)
	if err != nil {
		return err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if tag := was.header.Get("ETag"); tag != "" {
		header.Set("If-Match", tag)
	} else {
		header.Set("If-None-Match", "*")
	}
	body := map[string]string{"state": state}
	if c.ReplacedBy != "" {
		body["replacedBy"] = c.ReplacedBy
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	res, err := e.conn.call(e.ctx, e.conn.Admin, http.MethodPut, capabilityPath(c.Ref)+"/lifecycle"+e.orgQuery(), header, raw)
	if err != nil {
		return err
	}
	return e.show(res.body, nil)
}

package main

import (
	"net/url"
)

// EndpointCmd is the noun endpoint.
type EndpointCmd struct {
	Put    EndpointPutCmd    `cmd:"" help:"Name an origin and what may be sent to it."`
	List   EndpointListCmd   `cmd:"" aliases:"ls" help:"List endpoints."`
	Remove EndpointRemoveCmd `cmd:"" aliases:"rm" help:"Remove an endpoint."`
}

// EndpointPutCmd names.
type EndpointPutCmd struct {
	Name      string   `arg:"" help:"Name of the endpoint."`
	URL       string   `arg:"" help:"Scheme, host, port and path pattern, as https://api.example.com/v1/**."`
	Method    []string `help:"Method that is allowed; may be repeated." default:"GET"`
	Clearance string   `help:"Most sensitive data that may be sent." placeholder:"LEVEL"`
	Label     string   `help:"How sensitive what comes back is." placeholder:"LEVEL"`
	Loopback  bool     `help:"It is on this machine; the server must allow that too (--egress-loopback)."`
}

// Run makes or changes an endpoint.
func (c *EndpointPutCmd) Run(e *Env) error {
	rule, err := ruleOf(c.URL, c.Method)
	if err != nil {
		return err
	}
	in := map[string]any{"rule": rule, "loopback": c.Loopback}
	if c.Clearance != "" {
		in["clearance"] = c.Clearance
	}
	if c.Label != "" {
		in["label"] = c.Label
	}
	return e.put("/v1/endpoints/"+url.PathEscape(c.Name), in)
}

// EndpointListCmd lists.
type EndpointListCmd struct{ Page }

// Run prints one page.
func (c *EndpointListCmd) Run(e *Env) error {
	return e.list("/v1/endpoints", c.Page, nil, "name", "rule", "clearance", "label", "loopback")
}

// EndpointRemoveCmd removes.
type EndpointRemoveCmd struct {
	Name string `arg:"" help:"Name of the endpoint."`
}

// Run removes under the version the server shows.
func (c *EndpointRemoveCmd) Run(e *Env) error {
	return e.remove("/v1/endpoints/" + url.PathEscape(c.Name))
}

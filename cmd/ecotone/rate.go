package main

import (
	"net/http"
	"net/url"
)

// RateCmd is the noun rate.
type RateCmd struct {
	Show RateShowCmd `cmd:"" help:"Show how often the organisation's subjects and clients may invoke."`
	Set  RateSetCmd  `cmd:"" help:"Set how often the organisation's subjects and clients may invoke."`
}

func (e *Env) ratesPath() string { return "/v1/orgs/" + url.PathEscape(e.conn.Org) + "/rates" }

// RateShowCmd shows.
type RateShowCmd struct{}

// Run prints both ceilings.
func (c *RateShowCmd) Run(e *Env) error { return e.send(http.MethodGet, e.ratesPath(), nil) }

// RateSetCmd sets.
type RateSetCmd struct {
	Subject int64 `arg:"" help:"Invocations an hour of one subject behind one client."`
	Client  int64 `arg:"" help:"Invocations an hour of everything that comes by one client: the principal that opens the sessions."`
}

// Run sets both ceilings.
func (c *RateSetCmd) Run(e *Env) error {
	return e.put(e.ratesPath(), map[string]any{"subjectPerHour": c.Subject, "clientPerHour": c.Client})
}

package main

import (
	"net/http"
	"net/url"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// SessionCmd is the noun session.
type SessionCmd struct {
	Open  SessionOpenCmd  `cmd:"" help:"Open a session; its token is shown once."`
	Show  SessionShowCmd  `cmd:"" help:"Show a session."`
	List  SessionListCmd  `cmd:"" aliases:"ls" help:"List sessions."`
	Close SessionCloseCmd `cmd:"" help:"Close a session."`
}

// SessionOpenCmd opens.
type SessionOpenCmd struct {
	Subject     string        `arg:"" help:"Who invokes: user:ID, agent:ID or app:ID."`
	User        string        `help:"The user an agent acts for." placeholder:"user:ID"`
	Space       string        `help:"Space the data is in, by id or URI; by default the organisation's own." placeholder:"ID"`
	Environment string        `help:"Environment the session is bound to; by default the space's kind says." placeholder:"SLUG"`
	Files       bool          `help:"Give the session a workspace of its own."`
	Clearance   string        `help:"Most sensitive data the session may be given." placeholder:"LEVEL"`
	Expires     time.Duration `help:"Close it by itself after this long." placeholder:"DURATION"`
	Save        string        `help:"Write the token to this new file instead of printing it." type:"path"`
}

// Run opens a session.
func (c *SessionOpenCmd) Run(e *Env) error {
	in := map[string]any{"subject": c.Subject}
	set(in, "user", c.User)
	set(in, "space", c.Space)
	set(in, "clearance", c.Clearance)
	if c.Environment != "" {
		in["environment"] = abi.MakeEnvironmentRef(c.Environment)
	}
	if c.Files {
		in["files"] = true
	}
	if t := expiry(c.Expires); t != nil {
		in["expires"] = t
	}
	return e.token("/v1/sessions", in, c.Save)
}

// SessionShowCmd shows.
type SessionShowCmd struct {
	ID string `arg:"" help:"Id of the session."`
}

// Run prints one session.
func (c *SessionShowCmd) Run(e *Env) error {
	return e.send(http.MethodGet, "/v1/sessions/"+url.PathEscape(c.ID), nil)
}

// SessionListCmd lists.
type SessionListCmd struct{ Page }

// Run prints one page.
func (c *SessionListCmd) Run(e *Env) error {
	return e.list("/v1/sessions", c.Page, nil, "id", "subject", "environment", "space", "mark", "expires", "closed")
}

// SessionCloseCmd closes.
type SessionCloseCmd struct {
	ID string `arg:"" help:"Id of the session."`
}

// Run closes one session.
func (c *SessionCloseCmd) Run(e *Env) error {
	return e.send(http.MethodDelete, "/v1/sessions/"+url.PathEscape(c.ID), nil)
}

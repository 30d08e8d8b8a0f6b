package main

import (
	"net/http"
	"net/url"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// SessionCmd is the noun session.
type SessionCmd struct {
	Declassify SessionDeclassifyCmd `cmd:"" help:"Ask that one invocation, with exactly this input, may begin lower than the session's mark."`
	Open       SessionOpenCmd       `cmd:"" help:"Open a session; its token is shown once."`
	Show       SessionShowCmd       `cmd:"" help:"Show a session."`
	List       SessionListCmd       `cmd:"" aliases:"ls" help:"List sessions."`
	Close      SessionCloseCmd      `cmd:"" help:"Close a session."`
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

// SessionDeclassifyCmd asks, with the session's own token or for it.
type SessionDeclassifyCmd struct {
	Ref            string `arg:"" help:"Capability ref, as kb:page.read@1."`
	Input          string `help:"Input JSON, @FILE, or - for standard input: exactly what will be sent." default:"{}" placeholder:"JSON"`
	To             string `help:"What the input carries at most." required:"" placeholder:"LEVEL"`
	Sink           string `help:"Where it goes: output, or endpoint: and its name." required:"" placeholder:"SINK"`
	Classification string `help:"How sensitive the input is said to be, here and then." placeholder:"LEVEL"`
	Session        string `help:"Ask in the place of this session, with a principal's token." placeholder:"ID"`
}

// Run asks once. The exit code is 4: somebody has to say so first.
func (c *SessionDeclassifyCmd) Run(e *Env) error {
	input, err := e.readArgument(c.Input)
	if err != nil {
		return err
	}
	if c.Session != "" {
		in := map[string]any{"capability": c.Ref, "input": string(input), "to": c.To, "sink": c.Sink}
		set(in, "classification", c.Classification)
		if err := e.send(http.MethodPost, "/v1/sessions/"+url.PathEscape(c.Session)+"/declassify", in); err != nil {
			return err
		}
		return errQuiet(exitApproval)
	}
	h := (&InvokeCmd{Classification: c.Classification}).header()
	h.Set("Ecotone-Declassify-To", c.To)
	h.Set("Ecotone-Declassify-Sink", c.Sink)
	res, err := e.conn.call(e.ctx, e.conn.Invoke, http.MethodPost, "/v1/declassify/"+url.PathEscape(c.Ref), h, input)
	if err != nil {
		return err
	}
	if err := e.show(res.body, nil); err != nil {
		return err
	}
	return errQuiet(exitApproval)
}

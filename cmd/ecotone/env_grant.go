package main

import (
	"net/http"
	"net/url"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

const environmentGrants = "/v1/environment-grants"

// EnvGrantCmd is the noun env-grant.
type EnvGrantCmd struct {
	Create EnvGrantCreateCmd `cmd:"" help:"Let a principal open sessions for a subject in an environment."`
	List   EnvGrantListCmd   `cmd:"" aliases:"ls" help:"List environment grants that stand."`
	Show   EnvGrantShowCmd   `cmd:"" help:"Show an environment grant, and its revocation."`
	Revoke EnvGrantRevokeCmd `cmd:"" help:"Revoke an environment grant, and end the sessions it opened."`
}

// EnvGrantCreateCmd gives.
type EnvGrantCreateCmd struct {
	Principal   string        `arg:"" help:"Who may open them."`
	Subject     string        `arg:"" help:"For whom: user:ID, agent:ID or app:ID. An agent's session needs one for its user too."`
	Environment string        `arg:"" help:"Where: an environment's slug."`
	Space       []string      `help:"Spaces it holds in; by default each that is not a user's. May be repeated." placeholder:"ID"`
	Expires     time.Duration `help:"It ends by itself after this long, and with it the sessions it opened." placeholder:"DURATION"`
}

// Run gives one environment grant.
func (c *EnvGrantCreateCmd) Run(e *Env) error {
	in := map[string]any{"principal": c.Principal, "subject": c.Subject, "environment": abi.MakeEnvironmentRef(c.Environment)}
	if len(c.Space) > 0 {
		in["spaces"] = c.Space
	}
	if t := expiry(c.Expires); t != nil {
		in["expires"] = t
	}
	return e.send(http.MethodPost, environmentGrants, in)
}

// EnvGrantListCmd lists.
type EnvGrantListCmd struct{ Page }

// Run prints one page.
func (c *EnvGrantListCmd) Run(e *Env) error {
	return e.list(environmentGrants, c.Page, nil, "id", "principal", "subject", "environment", "spaces", "expires")
}

// EnvGrantShowCmd shows.
type EnvGrantShowCmd struct {
	ID string `arg:"" help:"Id of the environment grant."`
}

// Run prints one environment grant.
func (c *EnvGrantShowCmd) Run(e *Env) error {
	return e.send(http.MethodGet, environmentGrants+"/"+url.PathEscape(c.ID), nil)
}

// EnvGrantRevokeCmd revokes.
type EnvGrantRevokeCmd struct {
	ID string `arg:"" help:"Id of the environment grant."`
}

// Run revokes one environment grant.
func (c *EnvGrantRevokeCmd) Run(e *Env) error {
	return e.send(http.MethodDelete, environmentGrants+"/"+url.PathEscape(c.ID), nil)
}

package main

import (
	"net/http"
	"net/url"
	"time"
)

// TokenCmd is the noun token.
type TokenCmd struct {
	Issue  TokenIssueCmd  `cmd:"" help:"Issue a principal's token; it is shown once."`
	List   TokenListCmd   `cmd:"" aliases:"ls" help:"List tokens."`
	Revoke TokenRevokeCmd `cmd:"" help:"Revoke a token."`
}

// TokenIssueCmd issues.
type TokenIssueCmd struct {
	Principal string        `arg:"" help:"Name of the principal."`
	Role      string        `help:"operator, org-admin, author, approver or auditor." required:""`
	User      string        `help:"Whose principal it is, as user:NAME. Fixed with the first token." placeholder:"SUBJECT"`
	Clearance string        `help:"What it may be shown of what invocations carry; internal, and regulated for operators, unless it is said. Fixed with the first token." placeholder:"LABEL"`
	Expires   time.Duration `help:"It ends by itself after this long." placeholder:"DURATION"`
	Save      string        `help:"Write the token to this new file instead of printing it." type:"path"`
}

// Run issues one token.
func (c *TokenIssueCmd) Run(e *Env) error {
	in := map[string]any{"principal": c.Principal, "role": c.Role}
	set(in, "user", c.User)
	set(in, "clearance", c.Clearance)
	if t := expiry(c.Expires); t != nil {
		in["expires"] = t
	}
	return e.token("/v1/tokens", in, c.Save)
}

// TokenListCmd lists.
type TokenListCmd struct{ Page }

// Run prints one page.
func (c *TokenListCmd) Run(e *Env) error {
	return e.list("/v1/tokens", c.Page, nil, "id", "kind", "principal", "role", "user", "clearance", "session", "expires", "revoked")
}

// TokenRevokeCmd revokes.
type TokenRevokeCmd struct {
	ID string `arg:"" help:"Id of the token: the 26 characters after eco_p_ or eco_s_."`
}

// Run revokes one token.
func (c *TokenRevokeCmd) Run(e *Env) error {
	return e.send(http.MethodDelete, "/v1/tokens/"+url.PathEscape(c.ID), nil)
}

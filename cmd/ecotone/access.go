package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// get fetches one object and decodes it.
func (e *Env) get(path string, v any) error {
	res, err := e.conn.admin(e.ctx, http.MethodGet, path+e.orgQuery(), nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(res.body, v); err != nil {
		return fmt.Errorf("the answer does not decode: %w", err)
	}
	return nil
}

func (e *Env) encode(v any) error { return json.NewEncoder(e.stdout).Encode(v) }

// remove deletes under the version the server shows.
func (e *Env) remove(path string) error {
	res, err := e.conn.admin(e.ctx, http.MethodGet, path+e.orgQuery(), nil)
	if err != nil {
		return err
	}
	header := http.Header{"If-Match": {res.header.Get("ETag")}}
	_, err = e.conn.call(e.ctx, e.conn.Admin, http.MethodDelete, path+e.orgQuery(), header, nil)
	return err
}

// token prints an object whose token is shown once, or saves the token and prints the object. The
// file is made first: a token that could not be kept would be one that nobody has.
func (e *Env) token(path string, in any, save string) (err error) {
	if save == "" {
		return e.send(http.MethodPost, path, in)
	}
	file, err := newTokenFile(save)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.close()) }()
	res, err := e.conn.admin(e.ctx, http.MethodPost, path+e.orgQuery(), in)
	if err != nil {
		return err
	}
	var out struct {
		Token string          `json:"token"`
		Of    json.RawMessage `json:"of"`
	}
	if err := json.Unmarshal(res.body, &out); err != nil {
		return fmt.Errorf("the answer does not decode: %w", err)
	}
	if err := file.keep(out.Token); err != nil {
		return fmt.Errorf("the token could not be saved, and is not shown again: %w", err)
	}
	return e.show(out.Of, nil)
}

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
	Space       string        `help:"Space the data is in; by default the organisation's own." placeholder:"ID"`
	Environment string        `help:"Environment the session is bound to; by default the space's kind says." placeholder:"SLUG"`
	Files       bool          `help:"Give the session a workspace of its own."`
	Clearance   string        `help:"Most sensitive data the session may be given." placeholder:"LEVEL"`
	Expires     time.Duration `help:"Close it by itself after this long." placeholder:"DURATION"`
	Save        string        `help:"Write the token to this new file instead of printing it." type:"path"`
}

// Run opens a session.
func (c *SessionOpenCmd) Run(e *Env) error {
	in := map[string]any{"subject": c.Subject}
	set := func(name, v string) {
		if v != "" {
			in[name] = v
		}
	}
	set("user", c.User)
	set("space", c.Space)
	set("clearance", c.Clearance)
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

// GrantCmd is the noun grant.
type GrantCmd struct {
	Create GrantCreateCmd `cmd:"" help:"Let a subject invoke a capability in an environment."`
	List   GrantListCmd   `cmd:"" aliases:"ls" help:"List grants and their revocations."`
	Revoke GrantRevokeCmd `cmd:"" help:"Revoke a grant with a new record."`
}

// GrantCreateCmd gives.
type GrantCreateCmd struct {
	Subject     string        `arg:"" help:"Who may: user:ID, agent:ID, app:ID or biome:NAME."`
	Capability  string        `arg:"" help:"What: a capability ref."`
	Environment string        `arg:"" help:"Where: an environment's slug."`
	Glob        []string      `help:"Paths and keys it is limited to, as reports/**; may be repeated." placeholder:"GLOB"`
	Expires     time.Duration `help:"It ends by itself after this long." placeholder:"DURATION"`
}

// Run gives one grant.
func (c *GrantCreateCmd) Run(e *Env) error {
	in := map[string]any{"subject": c.Subject, "capability": c.Capability, "environment": abi.MakeEnvironmentRef(c.Environment)}
	if len(c.Glob) > 0 {
		in["globs"] = c.Glob
	}
	if t := expiry(c.Expires); t != nil {
		in["expires"] = t
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

// EnvCmd is the noun env.
type EnvCmd struct {
	List     EnvListCmd     `cmd:"" aliases:"ls" help:"List environments."`
	Show     EnvShowCmd     `cmd:"" help:"Show an environment and its limits."`
	Limit    EnvLimitCmd    `cmd:"" help:"Set limits of an environment."`
	Override EnvOverrideCmd `cmd:"" help:"Tighten an environment's classification ceiling for an organisation."`
}

// EnvListCmd lists.
type EnvListCmd struct{ Page }

// Run prints one page.
func (c *EnvListCmd) Run(e *Env) error {
	return e.list("/v1/environments", c.Page, nil, "slug", "reachCeiling", "enforcement", "maxDataClassification", "available", "revision")
}

// EnvShowCmd shows.
type EnvShowCmd struct {
	Slug string `arg:"" help:"Slug of the environment."`
}

// Run prints one environment.
func (c *EnvShowCmd) Run(e *Env) error {
	return e.send(http.MethodGet, "/v1/environments/"+url.PathEscape(c.Slug), nil)
}

// EnvLimitCmd sets limits.
type EnvLimitCmd struct {
	Slug   string           `arg:"" help:"Slug of the environment."`
	Limits map[string]int64 `arg:"" help:"Limits as name=value, e.g. wall=2000."`
}

// Run changes the named limits.
func (c *EnvLimitCmd) Run(e *Env) error {
	return e.put("/v1/environments/"+url.PathEscape(c.Slug), map[string]any{"limits": c.Limits})
}

// EnvOverrideCmd tightens.
type EnvOverrideCmd struct {
	Slug    string `arg:"" help:"Slug of the built-in environment."`
	MaxData string `arg:"" help:"Most sensitive data admitted."`
}

// Run makes or changes the override.
func (c *EnvOverrideCmd) Run(e *Env) error {
	header := http.Header{"Content-Type": {"application/json"}, "If-None-Match": {"*"}}
	var page struct {
		Items []struct {
			Environment string `json:"environment"`
			Revision    uint64 `json:"revision"`
		} `json:"items"`
	}
	res, err := e.conn.admin(e.ctx, http.MethodGet, "/v1/orgs/"+url.PathEscape(e.conn.Org)+"/overrides", nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(res.body, &page); err != nil {
		return fmt.Errorf("the answer does not decode: %w", err)
	}
	for _, o := range page.Items {
		if o.Environment == string(abi.MakeEnvironmentRef(c.Slug)) {
			header.Del("If-None-Match")
			header.Set("If-Match", fmt.Sprintf("%q", fmt.Sprint(o.Revision)))
		}
	}
	body, err := json.Marshal(map[string]string{"maxDataClassification": c.MaxData})
	if err != nil {
		return err
	}
	res, err = e.conn.call(e.ctx, e.conn.Admin, http.MethodPut, "/v1/orgs/"+url.PathEscape(e.conn.Org)+"/overrides/"+url.PathEscape(c.Slug), header, body)
	if err != nil {
		return err
	}
	return e.show(res.body, nil)
}

// SpaceCmd is the noun space.
type SpaceCmd struct {
	Create SpaceCreateCmd `cmd:"" help:"Make a space."`
	List   SpaceListCmd   `cmd:"" aliases:"ls" help:"List spaces."`
}

// SpaceCreateCmd makes.
type SpaceCreateCmd struct {
	ID         string `arg:"" help:"Name of the space."`
	Kind       string `help:"project, app, session, biome, user …" required:""`
	Parent     string `help:"Space around it." placeholder:"ID"`
	Production bool   `help:"Mark it as production: no development session gets in."`
	Floor      string `help:"Least label of everything in it." placeholder:"LEVEL"`
	Clearance  string `help:"Most sensitive data in it." placeholder:"LEVEL"`
}

// Run makes one space.
func (c *SpaceCreateCmd) Run(e *Env) error {
	in := map[string]any{"id": c.ID, "kind": c.Kind, "production": c.Production}
	for name, v := range map[string]string{"parent": c.Parent, "floor": c.Floor, "clearance": c.Clearance} {
		if v != "" {
			in[name] = v
		}
	}
	return e.send(http.MethodPost, "/v1/spaces", in)
}

// SpaceListCmd lists.
type SpaceListCmd struct{ Page }

// Run prints one page.
func (c *SpaceListCmd) Run(e *Env) error {
	return e.list("/v1/spaces", c.Page, nil, "id", "kind", "parent", "production", "floor", "clearance")
}

// SecretCmd is the noun secret.
type SecretCmd struct {
	Put    SecretPutCmd    `cmd:"" help:"Store a secret, read from standard input or a file."`
	List   SecretListCmd   `cmd:"" aliases:"ls" help:"List secrets; values are never shown."`
	Remove SecretRemoveCmd `cmd:"" aliases:"rm" help:"Remove a secret."`
}

// SecretPutCmd stores.
type SecretPutCmd struct {
	Name  string `arg:"" help:"Name of the secret."`
	Value string `help:"@FILE, or - for standard input. A value on the command line would be seen by others and is refused." default:"-"`
	Uses  string `help:"JSON array of uses, or @FILE." required:"" placeholder:"JSON"`
}

// Run stores the value; one trailing newline is not part of it.
func (c *SecretPutCmd) Run(e *Env) error {
	if c.Value != "-" && !strings.HasPrefix(c.Value, "@") {
		return usagef("give the value as @FILE or on standard input: others can read a command line")
	}
	value, err := e.readArgument(c.Value)
	if err != nil {
		return err
	}
	uses, err := e.readArgument(c.Uses)
	if err != nil {
		return err
	}
	if !json.Valid(uses) {
		return usagef("--uses is not JSON")
	}
	return e.put("/v1/secrets/"+url.PathEscape(c.Name), map[string]any{
		"value": strings.TrimSuffix(strings.TrimSuffix(string(value), "\n"), "\r"), "uses": json.RawMessage(uses),
	})
}

// SecretListCmd lists.
type SecretListCmd struct{ Page }

// Run prints one page.
func (c *SecretListCmd) Run(e *Env) error {
	return e.list("/v1/secrets", c.Page, nil, "name", "version", "uses", "updatedAt")
}

// SecretRemoveCmd removes.
type SecretRemoveCmd struct {
	Name string `arg:"" help:"Name of the secret."`
}

// Run removes under the version the server shows.
func (c *SecretRemoveCmd) Run(e *Env) error { return e.remove("/v1/secrets/" + url.PathEscape(c.Name)) }

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
	Expires   time.Duration `help:"It ends by itself after this long." placeholder:"DURATION"`
	Save      string        `help:"Write the token to this new file instead of printing it." type:"path"`
}

// Run issues one token.
func (c *TokenIssueCmd) Run(e *Env) error {
	in := map[string]any{"principal": c.Principal, "role": c.Role}
	if t := expiry(c.Expires); t != nil {
		in["expires"] = t
	}
	return e.token("/v1/tokens", in, c.Save)
}

// TokenListCmd lists.
type TokenListCmd struct{ Page }

// Run prints one page.
func (c *TokenListCmd) Run(e *Env) error {
	return e.list("/v1/tokens", c.Page, nil, "id", "kind", "principal", "role", "session", "expires", "revoked")
}

// TokenRevokeCmd revokes.
type TokenRevokeCmd struct {
	ID string `arg:"" help:"Id of the token: the 26 characters after eco_p_ or eco_s_."`
}

// Run revokes one token.
func (c *TokenRevokeCmd) Run(e *Env) error {
	return e.send(http.MethodDelete, "/v1/tokens/"+url.PathEscape(c.ID), nil)
}

// refusedModule prints why an upload was refused before the refusal itself is reported.
func refusedModule(e *Env, err error) error {
	var no *denied
	if !asDenied(err, &no) || e.json {
		return err
	}
	var doc struct {
		Problems []struct {
			Code    string `json:"code"`
			Offset  int    `json:"offset"`
			Section string `json:"section"`
			Pointer string `json:"pointer"`
			Message string `json:"message"`
			Hint    string `json:"hint"`
		} `json:"problems"`
	}
	if json.Unmarshal(no.raw, &doc) == nil {
		for _, p := range doc.Problems {
			where := fmt.Sprintf("byte %d", p.Offset)
			if p.Section != "" {
				where += " (" + p.Section + ")"
			}
			if p.Pointer != "" {
				where = p.Pointer
			}
			fmt.Fprintf(e.stderr, "%s at %s: %s\n", p.Code, where, p.Message)
			hint(e, p.Hint)
		}
	}
	return err
}

func uploadText(w io.Writer, body []byte) error {
	var out struct {
		Biome struct {
			Name, Digest, Stage string
		} `json:"biome"`
		Report struct {
			Size  int    `json:"size"`
			Reach string `json:"reach"`
		} `json:"report"`
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return fmt.Errorf("the answer does not decode: %w", err)
	}
	_, err := fmt.Fprintf(w, "%s %s: %s, %d bytes, reach %s\n", out.Biome.Name, out.Biome.Digest, out.Biome.Stage, out.Report.Size, out.Report.Reach)
	return err
}

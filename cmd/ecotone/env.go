package main

import (
	"net/http"
	"net/url"

	"github.com/ecotone-dev/ecotone/abi"
)

// EnvCmd is the noun env.
type EnvCmd struct {
	List     EnvListCmd     `cmd:"" aliases:"ls" help:"List environments."`
	Show     EnvShowCmd     `cmd:"" help:"Show an environment and its limits."`
	Limit    EnvLimitCmd    `cmd:"" help:"Set limits of a built-in environment."`
	Override EnvOverrideCmd `cmd:"" help:"Tighten a built-in environment's classification ceiling for an organisation."`
	Create   EnvCreateCmd   `cmd:"" help:"Derive an environment of the organisation's own from a built-in one."`
	Update   EnvUpdateCmd   `cmd:"" help:"Change an environment of the organisation's own to exactly what is said."`
	Delete   EnvDeleteCmd   `cmd:"" help:"Remove an environment of the organisation's own; no session may be open in it."`
}

// EnvListCmd lists.
type EnvListCmd struct{ Page }

// Run prints one page.
func (c *EnvListCmd) Run(e *Env) error {
	return e.list("/v1/environments", c.Page, nil, "slug", "base", "reachCeiling", "enforcement", "maxDataClassification", "available", "revision")
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
	MaxData string `arg:"" optional:"" help:"Most sensitive data admitted."`
	Remove  bool   `help:"Remove the organisation's ceiling; the built-in one's own holds again."`
}

// Run makes, changes or removes the override.
func (c *EnvOverrideCmd) Run(e *Env) error {
	path := e.orgPath("overrides", c.Slug)
	switch {
	case c.Remove == (c.MaxData != ""):
		return usagef("say what is admitted at most, or --remove")
	case c.Remove:
		return e.remove(path)
	}
	return e.put(path, map[string]string{"maxDataClassification": c.MaxData})
}

// ownFlags is what is said of an environment of an organisation's own.
type ownFlags struct {
	Reach    string           `help:"Furthest reach; the base's unless it is said." placeholder:"REACH"`
	MaxData  string           `help:"Most sensitive data admitted; what the base admits unless it is said." placeholder:"LEVEL"`
	Boundary bool             `help:"Deny what the catalogue cannot classify, where the base would defer."`
	Allow    []string         `help:"Admit this capability; those that are not named are then not admitted. Repeat." placeholder:"REF" sep:"none"`
	Limit    map[string]int64 `help:"Lower a limit of the base, as name=value. Repeat." placeholder:"NAME=VALUE"`
}

func (f *ownFlags) body() map[string]any {
	in := map[string]any{}
	set(in, "reachCeiling", f.Reach)
	set(in, "maxDataClassification", f.MaxData)
	if f.Boundary {
		in["enforcement"] = "boundary"
	}
	if len(f.Allow) > 0 {
		in["allowedCapabilities"] = f.Allow
	}
	if len(f.Limit) > 0 {
		in["limits"] = f.Limit
	}
	return in
}

// EnvCreateCmd derives.
type EnvCreateCmd struct {
	Slug string `arg:"" help:"Slug of the new environment."`
	Base string `help:"Slug of the built-in environment it derives from." required:""`
	ownFlags
}

// Run makes one environment.
func (c *EnvCreateCmd) Run(e *Env) error {
	in := c.body()
	in["slug"], in["base"] = c.Slug, abi.MakeEnvironmentRef(c.Base)
	return e.send(http.MethodPost, e.orgPath("environments"), in)
}

// EnvUpdateCmd changes.
type EnvUpdateCmd struct {
	Slug string `arg:"" help:"Slug of the environment."`
	ownFlags
}

// Run replaces what the environment says.
func (c *EnvUpdateCmd) Run(e *Env) error { return e.put(e.orgPath("environments", c.Slug), c.body()) }

// EnvDeleteCmd removes.
type EnvDeleteCmd struct {
	Slug string `arg:"" help:"Slug of the environment."`
}

// Run removes one environment.
func (c *EnvDeleteCmd) Run(e *Env) error { return e.remove(e.orgPath("environments", c.Slug)) }

// orgPath is a path under the organisation.
func (e *Env) orgPath(parts ...string) string {
	path := "/v1/orgs/" + url.PathEscape(e.conn.Org)
	for _, p := range parts {
		path += "/" + url.PathEscape(p)
	}
	return path
}

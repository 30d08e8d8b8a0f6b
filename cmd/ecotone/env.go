package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/ecotone-dev/ecotone/abi"
)

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

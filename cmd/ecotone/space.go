package main

import (
	"net/http"
	"net/url"
)

// SpaceCmd is the noun space.
type SpaceCmd struct {
	Create SpaceCreateCmd `cmd:"" help:"Make a space."`
	Show   SpaceShowCmd   `cmd:"" help:"Show a space."`
	List   SpaceListCmd   `cmd:"" aliases:"ls" help:"List spaces."`
}

// SpaceShowCmd shows.
type SpaceShowCmd struct {
	ID string `arg:"" help:"Id of the space."`
}

// Run prints one space.
func (c *SpaceShowCmd) Run(e *Env) error {
	return e.send(http.MethodGet, "/v1/spaces/"+url.PathEscape(c.ID), nil)
}

// SpaceCreateCmd makes.
type SpaceCreateCmd struct {
	ID         string `arg:"" help:"Name of the space."`
	Kind       string `help:"project, app, session, biome, user …" required:""`
	Parent     string `help:"Space around it, by id or URI." placeholder:"ID"`
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
	return e.list("/v1/spaces", c.Page, nil, "id", "uri", "production", "floor", "clearance")
}

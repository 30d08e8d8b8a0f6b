package main

import (
	"net/http"
	"net/url"
)

// BiomeDisableCmd disables.
type BiomeDisableCmd struct {
	Name string `arg:"" help:"Name of the biome."`
}

// Run disables under the version the server shows.
func (c *BiomeDisableCmd) Run(e *Env) error { return e.verb("biomes", c.Name, "disable") }

// BiomeEnableCmd enables.
type BiomeEnableCmd struct {
	Name string `arg:"" help:"Name of the biome."`
}

// Run enables under the version the server shows.
func (c *BiomeEnableCmd) Run(e *Env) error { return e.verb("biomes", c.Name, "enable") }

// BiomeArchiveCmd archives.
type BiomeArchiveCmd struct {
	Name string `arg:"" help:"Name of the biome."`
}

// Run archives under the version the server shows.
func (c *BiomeArchiveCmd) Run(e *Env) error { return e.verb("biomes", c.Name, "archive") }

// BiomeRollbackCmd rolls back.
type BiomeRollbackCmd struct {
	Name string `arg:"" help:"Name of the biome."`
}

// Run rolls back from the install grant that the server shows.
func (c *BiomeRollbackCmd) Run(e *Env) error { return e.verb("installs", c.Name, "rollback") }

// verb does something to a biome under the version that the server shows of the biome, or of what is
// installed of it.
func (e *Env) verb(under, name, verb string) error {
	res, err := e.conn.admin(e.ctx, http.MethodGet, "/v1/"+under+"/"+url.PathEscape(name)+e.orgQuery(), nil)
	if err != nil {
		return err
	}
	header := http.Header{"If-Match": {res.header.Get("ETag")}}
	if res, err = e.conn.call(e.ctx, e.conn.Admin, http.MethodPost, "/v1/biomes/"+url.PathEscape(name)+"/"+verb+e.orgQuery(), header, nil); err != nil {
		return err
	}
	return e.show(res.body, nil)
}

// BiomeUninstallCmd uninstalls.
type BiomeUninstallCmd struct {
	Name   string `arg:"" help:"Name of the biome."`
	Digest string `help:"Only the install grant of this version; by default all of them." placeholder:"HEX"`
}

// Run revokes under the version the server shows.
func (c *BiomeUninstallCmd) Run(e *Env) error {
	path := "/v1/installs/" + url.PathEscape(c.Name) + e.orgQuery()
	if c.Digest != "" {
		path += "&digest=" + url.QueryEscape(c.Digest)
	}
	res, err := e.conn.admin(e.ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	header := http.Header{"If-Match": {res.header.Get("ETag")}}
	if res, err = e.conn.call(e.ctx, e.conn.Admin, http.MethodDelete, path, header, nil); err != nil {
		return err
	}
	return e.show(res.body, nil)
}

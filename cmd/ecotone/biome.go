package main

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
)

// BiomeCmd is the noun biome.
type BiomeCmd struct {
	New       BiomeNewCmd       `cmd:"" help:"Make the folder of a new biome, with everything it takes to build it."`
	Build     BiomeBuildCmd     `cmd:"" help:"Compile a folder, or take a module, put the manifest into it, and report its size, imports and reach."`
	Lint      BiomeLintCmd      `cmd:"" help:"Say what admission would say of a biome, without a server."`
	Test      BiomeTestCmd      `cmd:"" help:"Run a biome's examples and tests in a gateway of their own, without a server."`
	Push      BiomePushCmd      `cmd:"" help:"Upload a biome."`
	Install   BiomeInstallCmd   `cmd:"" help:"Admit one digest of a biome to environments."`
	Diff      BiomeDiffCmd      `cmd:"" help:"Show what a version of a biome may do at most, and what changes with it."`
	Promote   BiomePromoteCmd   `cmd:"" help:"Ask for a version to be admitted; somebody else has to approve."`
	Rollback  BiomeRollbackCmd  `cmd:"" help:"Install the version that was installed before."`
	Uninstall BiomeUninstallCmd `cmd:"" help:"Revoke a biome's install grants."`
	Archive   BiomeArchiveCmd   `cmd:"" help:"Take no more uploads and installs of a biome; what is installed goes on."`
	List      BiomeListCmd      `cmd:"" aliases:"ls" help:"List biomes."`
	Show      BiomeShowCmd      `cmd:"" help:"Show a biome and its install grant."`
	Disable   BiomeDisableCmd   `cmd:"" help:"Stop a biome from being invoked."`
	Enable    BiomeEnableCmd    `cmd:"" help:"Let a disabled biome be invoked again."`
}

// admits is what installing a version takes, and asking for it.
type admits struct {
	Name        string   `arg:"" help:"Name of the biome."`
	Digest      string   `help:"Digest to admit; by default the newest upload." placeholder:"HEX"`
	Environment []string `help:"Environment it may run in; may be repeated." required:"" placeholder:"SLUG"`
	Call        []string `help:"Capability it may invoke; may be repeated." placeholder:"REF"`
	Endpoint    []string `help:"Endpoint it may use; may be repeated." placeholder:"NAME"`
	Secret      []string `help:"Secret it may use; may be repeated." placeholder:"NAME"`
	Config      []string `help:"What to tell it, for guests whose interface has configuration; may be repeated." sep:"none" placeholder:"NAME=VALUE"`
	Alongside   bool     `help:"Leave other versions that are installed in place."`
	Permissions string   `help:"Go on only if this is the digest of its permission document, as biome diff prints it." placeholder:"HEX"`
}

// request prints what would be admitted, and is the request for nothing else: the digest of the permission
// document goes with it.
func (c *admits) request(e *Env) (map[string]any, error) {
	config, err := pairs(c.Config)
	if err != nil {
		return nil, err
	}
	p, raw, err := e.permissions(c.Name, c.Digest)
	if err != nil {
		return nil, err
	}
	if err := permissionsText(e.stderr, raw); err != nil {
		return nil, err
	}
	envs := make([]string, len(c.Environment))
	for i, slug := range c.Environment {
		envs[i] = string(abi.MakeEnvironmentRef(slug))
	}
	in := map[string]any{
		"digest": p.Digest, "environments": envs, "calls": nonNil(c.Call), "endpoints": nonNil(c.Endpoint), "secrets": nonNil(c.Secret),
		"permissions": cmp.Or(c.Permissions, p.Permissions),
	}
	if len(c.Config) > 0 {
		in["config"] = config
	}
	if c.Alongside {
		in["alongside"] = true
	}
	return in, nil
}

// pairs reads NAME=VALUE; a value may have further equals signs.
func pairs(list []string) (map[string]string, error) {
	out := make(map[string]string, len(list))
	for _, pair := range list {
		name, value, ok := strings.Cut(pair, "=")
		if _, twice := out[name]; !ok || twice {
			return nil, usagef("--config %q: NAME=VALUE is expected, each name once", pair)
		}
		out[name] = value
	}
	return out, nil
}

// BiomeInstallCmd admits.
type BiomeInstallCmd struct{ admits }

// Run makes or replaces the install grant.
func (c *BiomeInstallCmd) Run(e *Env) error {
	in, err := c.request(e)
	if err != nil {
		return err
	}
	return e.put("/v1/installs/"+url.PathEscape(c.Name), in)
}

// BiomePromoteCmd asks for somebody to admit.
type BiomePromoteCmd struct{ admits }

// Run asks, and prints what waits. The exit code is 4.
func (c *BiomePromoteCmd) Run(e *Env) error {
	in, err := c.request(e)
	if err != nil {
		return err
	}
	if err := e.send(http.MethodPost, "/v1/biomes/"+url.PathEscape(c.Name)+"/promote", in); err != nil {
		return err
	}
	return errQuiet(exitApproval)
}

func nonNil(list []string) []string { return append([]string{}, list...) }

// BiomeListCmd lists.
type BiomeListCmd struct{ Page }

// Run prints one page.
func (c *BiomeListCmd) Run(e *Env) error {
	return e.list("/v1/biomes", c.Page, nil, "name", "stage", "disabled", "digest")
}

// BiomeShowCmd shows.
type BiomeShowCmd struct {
	Name string `arg:"" help:"Name of the biome."`
}

// Run prints the biome's record, and its install grant when there is one.
func (c *BiomeShowCmd) Run(e *Env) error {
	res, err := e.conn.admin(e.ctx, http.MethodGet, "/v1/biomes/"+url.PathEscape(c.Name)+e.orgQuery(), nil)
	if err != nil {
		return err
	}
	if err := e.show(res.body, nil); err != nil || e.json {
		return err
	}
	var no *denied
	res, err = e.conn.admin(e.ctx, http.MethodGet, "/v1/installs/"+url.PathEscape(c.Name)+e.orgQuery(), nil)
	switch {
	case asDenied(err, &no) && no.status == http.StatusNotFound:
		_, err = fmt.Fprintln(e.stdout, "not installed: callable in sandbox only")
		return err
	case err != nil:
		return err
	}
	return e.show(res.body, nil)
}

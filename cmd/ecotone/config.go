package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"github.com/ecotone-dev/ecotone/gateway/listen"
	"github.com/ecotone-dev/ecotone/gateway/logs"
	"github.com/ecotone-dev/ecotone/host/vault"
)

// ConfigCmd is the noun config.
type ConfigCmd struct {
	Check  ConfigCheckCmd  `cmd:"" help:"Check the settings of serve, and the files they name, without starting anything."`
	Print  ConfigPrintCmd  `cmd:"" help:"Print the settings serve would have, and where each is from; takes the flags of serve."`
	Schema ConfigSchemaCmd `cmd:"" help:"Print the JSON Schema of a file of settings."`
}

// ConfigCheckCmd checks.
type ConfigCheckCmd struct {
	File string `arg:"" optional:"" help:"The file; by default what ECOTONE_CONFIG names, or none." type:"existingfile"`
}

// Run checks as serve would, variables included. Exit code 2 is for settings, 1 for what they name.
func (c *ConfigCheckCmd) Run(e *Env) error {
	args := []string{"serve"}
	if c.File != "" {
		args = append(args, "--config", c.File)
	}
	cli, _, err := parse(args, io.Discard, io.Discard)
	if err != nil {
		return usagef("%v", err)
	}
	s := &cli.Serve.Settings
	if err := s.check(); err != nil {
		return err
	}
	if s.TLSCert != "" {
		certs, err := listen.Load(s.TLSCert, s.TLSKey, listen.TLS13)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.stderr, "the TLS certificate runs out on %s\n", certs.Expires().UTC().Format("2006-01-02"))
	}
	if s.KeyFile != "" {
		if _, err := vault.LoadKeyring(s.KeyFile, false); err != nil {
			return err
		}
	}
	if e.json {
		return e.encode(map[string]bool{"ok": true})
	}
	_, err = fmt.Fprintln(e.stdout, "ok")
	return err
}

// ConfigPrintCmd prints.
type ConfigPrintCmd struct {
	Settings
	Redacted bool `help:"Leave secrets out." default:"true" negatable:""`
}

// Run prints YAML that serve takes as a file, or JSON with the sources.
func (c *ConfigPrintCmd) Run(e *Env, ctx *kong.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	from := sources(ctx)
	values, origin := map[string]any{}, map[string]string{}
	for _, s := range c.table() {
		if !s.set() {
			continue
		}
		if _, secret := s.value.Interface().(logs.Secret); secret && c.Redacted {
			s.value.SetString(logs.Redacted)
		}
		origin[s.Key] = from(s.Key)
		if values[s.Key] = s.native(); e.json {
			continue
		}
		comment := ""
		if !s.File {
			comment = "# " // serve would not take it from a file
		}
		fmt.Fprintf(e.stdout, "%s%s: %s # %s\n", comment, s.Key, s.text(), origin[s.Key])
	}
	if e.json {
		return e.encode(map[string]any{"settings": values, "from": origin})
	}
	return nil
}

// sources tells where a flag's value is from.
func sources(ctx *kong.Context) func(key string) string {
	out := map[string]string{}
	for _, f := range ctx.Flags() {
		if fromVariable(f) {
			out[f.Name] = "variable"
		}
	}
	for _, p := range ctx.Path {
		switch {
		case p.Flag == nil:
		case p.Resolved:
			out[p.Flag.Name] = "file"
		default:
			out[p.Flag.Name] = "flag"
		}
	}
	return func(key string) string {
		if from := out[key]; from != "" {
			return from
		}
		return "default"
	}
}

// ConfigSchemaCmd prints the schema.
type ConfigSchemaCmd struct{}

// Run prints it.
func (*ConfigSchemaCmd) Run(e *Env) error {
	_, err := e.stdout.Write(settingsSchema())
	return err
}

// settingsSchema is the JSON Schema of a file of settings. It says of each value what can be said of it alone.
func settingsSchema() []byte {
	properties := map[string]any{}
	for _, s := range (&Settings{}).table() {
		if !s.File {
			continue
		}
		p := map[string]any{"description": s.Help}
		for k, v := range s.Kind.schema {
			p[k] = v
		}
		if s.Enum != nil {
			p["enum"] = s.Enum
		}
		if s.Default != "" {
			var v any = s.Default
			if p["type"] == "integer" {
				v = json.Number(s.Default)
			}
			p["default"] = v
		}
		properties[s.Key] = p
	}
	raw, err := json.MarshalIndent(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:ecotone:settings",
		"title": "Settings of ecotone serve", "type": "object", "additionalProperties": false, "properties": properties,
	}, "", "  ")
	if err != nil {
		panic(err) // the table is ours
	}
	return append(raw, '\n')
}

// parse reads a command line. What kong would print goes to the two writers.
func parse(args []string, stdout, stderr io.Writer) (*CLI, *kong.Context, error) {
	cli := &CLI{}
	exited := -1
	parser, err := kong.New(cli,
		kong.Name("ecotone"),
		kong.Description("A gateway that runs untrusted WebAssembly capabilities under the ceilings of their environment."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exited = code }),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		nameVariables(),
	)
	if err != nil {
		return nil, nil, err
	}
	ctx, err := parser.Parse(args)
	if exited >= 0 {
		return nil, nil, errQuiet(exited)
	}
	return cli, ctx, err
}

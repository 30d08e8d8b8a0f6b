package main

import (
	"encoding/json"
	"net/url"
	"strings"
)

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

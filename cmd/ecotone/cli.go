package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/version"
)

// CLI is the whole command line: nouns, then verbs.
type CLI struct {
	Output string `help:"How to print results: text or json." enum:"text,json" default:"text" env:"ECOTONE_OUTPUT"`
	Connection

	Serve   ServeCmd   `cmd:"" help:"Run the gateway."`
	Invoke  InvokeCmd  `cmd:"" help:"Invoke a capability with a session's token."`
	Explain ExplainCmd `cmd:"" help:"Show every check of an invocation without running it."`
	MCP     MCPCmd     `cmd:"" name:"mcp" help:"Speak the Model Context Protocol on standard input and output, as a client of the server."`

	Invocation InvocationCmd `cmd:"" help:"Show and cancel a session's own invocations."`

	Biome      BiomeCmd      `cmd:"" help:"Build, upload, install and disable biomes."`
	Capability CapabilityCmd `cmd:"" help:"List, deprecate and retire capabilities."`
	Session    SessionCmd    `cmd:"" help:"Open, show and close sessions."`
	Grant      GrantCmd      `cmd:"" help:"Give, list and revoke grants."`
	EnvGrant   EnvGrantCmd   `cmd:"" help:"Let principals without the role open sessions."`
	Env        EnvCmd        `cmd:"" help:"Show environments and tighten their ceilings."`
	Space      SpaceCmd      `cmd:"" help:"Make and list spaces."`
	Rate       RateCmd       `cmd:"" help:"Show and set how often may be invoked."`
	Approval   ApprovalCmd   `cmd:"" help:"Decide what waits for a person's word, and say who may."`
	Secret     SecretCmd     `cmd:"" help:"Store, list and remove secrets; values are never shown."`
	Endpoint   EndpointCmd   `cmd:"" help:"Name the origins that biomes may be allowed to call."`
	Token      TokenCmd      `cmd:"" help:"Issue, list and revoke principals' tokens."`
	Audit      AuditCmd      `cmd:"" help:"Read and verify the audit log."`
	Config     ConfigCmd     `cmd:"" help:"Check and print the settings of serve."`
	Completion CompletionCmd `cmd:"" help:"Print a completion script for a shell."`
	Man        ManCmd        `cmd:"" help:"Print the manual page."`
	Version    VersionCmd    `cmd:"" help:"Say which build this is."`
}

// Env is what commands have of the outside world.
type Env struct {
	ctx    context.Context
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	json   bool
	conn   *Connection
	args   []string
}

type usageError struct{ msg string }

func (u *usageError) Error() string { return u.msg }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// errQuiet ends with an exit code after everything was said already.
type errQuiet int

func (e errQuiet) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// Run parses args, runs one command and returns the exit code. It writes results to stdout
// and everything else to stderr.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	cli, kctx, err := parse(args, stdout, stderr)
	var quiet errQuiet
	if errors.As(err, &quiet) {
		return int(quiet)
	}
	if err != nil {
		fmt.Fprintf(stderr, "ecotone: error: %v\nhint: ecotone --help lists commands and flags\n", err)
		return exitUsage
	}
	env := &Env{ctx: ctx, stdin: stdin, stdout: stdout, stderr: &plainWriter{to: stderr}, json: cli.Output == "json", conn: &cli.Connection, args: args}
	if !env.json { // with it, what is printed is for a program, byte for byte
		env.stdout = &plainWriter{to: stdout}
	}
	return report(env, kctx.Run(env))
}

// report turns an error into a message and an exit code.
func report(env *Env, err error) int {
	var quiet errQuiet
	var usage *usageError
	var no *denied
	var own *abi.Error
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &quiet):
		return int(quiet)
	case errors.As(err, &usage):
		fmt.Fprintf(env.stderr, "ecotone: error: %s\n", usage.msg)
		return exitUsage
	case errors.As(err, &no):
		if env.json {
			_, _ = env.stdout.Write(no.raw)
		}
		fmt.Fprintf(env.stderr, "ecotone: error: %s\n", no.Error())
		hint(env, no.Hint)
		if no.Audit != "" {
			fmt.Fprintf(env.stderr, "audit: %s\n", no.Audit)
		}
		switch {
		case no.Decis == "needs_approval", no.Code == abi.CodeApprovalRequired:
			return exitApproval
		case no.Kind == abi.KindPermissionDenied, no.Kind == abi.KindUnauthenticated:
			return exitDenied
		}
		return exitFailed
	case errors.As(err, &own):
		fmt.Fprintf(env.stderr, "ecotone: error: %s\n", own.Error())
		hint(env, own.Hint)
		return exitFailed
	}
	fmt.Fprintf(env.stderr, "ecotone: error: %v\n", err)
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		hint(env, hinted.Hint())
	}
	return exitFailed
}

func hint(env *Env, text string) {
	if text != "" {
		fmt.Fprintf(env.stderr, "hint: %s\n", text)
	}
}

// show prints an answer: as it came with --output json, else through text.
func (e *Env) show(body []byte, text func(w io.Writer, body []byte) error) error {
	if e.json || text == nil {
		out := strings.TrimRight(string(body), "\n")
		if !e.json {
			var v any
			if json.Unmarshal(body, &v) == nil {
				if pretty, err := json.MarshalIndent(v, "", "  "); err == nil {
					out = string(pretty)
				}
			}
		}
		_, err := fmt.Fprintln(e.stdout, out)
		return err
	}
	return text(e.stdout, body)
}

// readArgument reads a value given as text, as @FILE, or as - for standard input.
func (e *Env) readArgument(v string) ([]byte, error) {
	switch {
	case v == "-":
		return io.ReadAll(io.LimitReader(e.stdin, maxAnswer))
	case strings.HasPrefix(v, "@"):
		return os.ReadFile(v[1:])
	}
	return []byte(v), nil
}

// VersionCmd prints the build.
type VersionCmd struct{}

// Run prints one line, or one object.
func (*VersionCmd) Run(e *Env) error {
	if e.json {
		return json.NewEncoder(e.stdout).Encode(map[string]string{"version": version.Version, "commit": version.Commit, "date": version.Date})
	}
	_, err := fmt.Fprintln(e.stdout, version.String())
	return err
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

var biomeNames = []string{"notes", "workspace", "http", "relay"}

// demo is the state of one run.
type demo struct {
	ctx    context.Context
	bin    string
	biomes string
	dir    string
	data   string
	step   string
	quiet  bool

	server *exec.Cmd
	ready  struct{ Invoke, Admin, Ops, MCP string }
	origin *origin
	http   *http.Server

	workspace string // of the session in project
	allowed   int
	denied    int
	refused   int
	uploads   int
	rows      int
	entries   int
}

// summary is the last line of the demo.
type summary struct {
	Demo           string `json:"demo"`
	Step           string `json:"step,omitempty"`
	Error          string `json:"error,omitempty"`
	Biomes         int    `json:"biomes"`
	RefusedUploads int    `json:"refusedUploads"`
	Allowed        int    `json:"allowed"`
	Denied         int    `json:"denied"`
	AuditRows      int    `json:"auditRows"`
	AuditEntries   int    `json:"auditEntries"`
}

func (d *demo) summary(how string) summary {
	return summary{
		Demo: how, Biomes: d.uploads, RefusedUploads: d.refused, Allowed: d.allowed, Denied: d.denied,
		AuditRows: d.rows, AuditEntries: d.entries,
	}
}

func (d *demo) biome(name string) string { return filepath.Join(d.biomes, name+".wasm") }
func (d *demo) operator() string         { return filepath.Join(d.data, "operator.token") }
func (d *demo) token(name string) string { return filepath.Join(d.dir, name+".token") }

// serve starts the server and waits for its ready line.
func (d *demo) serve(flags ...string) error {
	args := append([]string{"serve", "--data", d.data}, flags...)
	d.server = exec.Command(d.bin, args...)
	d.server.Stderr = os.Stderr
	out, err := d.server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := d.server.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the server did not become ready: %w", err)
	}
	fmt.Printf("$ ecotone %s\n%s", strings.Join(args, " "), line)
	return json.Unmarshal(line, &d.ready)
}

// close ends what the demo started, by its own handles.
func (d *demo) close() {
	if d.http != nil {
		_ = d.http.Close()
	}
	d.stop()
}

// stop ends the server as an operator would, and waits for it.
func (d *demo) stop() {
	if d.server == nil || d.server.Process == nil {
		return
	}
	_ = d.server.Process.Signal(syscall.SIGTERM)
	done := make(chan struct{})
	go func() { _ = d.server.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		_ = d.server.Process.Kill()
		<-done
	}
	d.server = nil
}

// result is what a command said.
type result struct {
	code           int
	stdout, stderr string
}

func (r result) all() string { return r.stdout + r.stderr }

// run runs one command line with somebody's token, prints it as it would be typed, with its
// output, and returns both.
func (d *demo) run(tokenFile string, args ...string) (result, error) {
	cmd := exec.CommandContext(d.ctx, d.bin, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "ECOTONE_TOKEN_FILE="+tokenFile, "ECOTONE_INVOKE="+d.ready.Invoke, "ECOTONE_ADMIN="+d.ready.Admin)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return result{}, err
	}
	r := result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
	if !d.quiet {
		who := strings.TrimSuffix(filepath.Base(tokenFile), ".token")
		fmt.Printf("%s$ ecotone %s\n%s", who, shown(args), r.all())
	}
	return r, nil
}

// shown is a command line with its long and quoted arguments as a shell would need them.
func shown(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		if strings.ContainsAny(a, " {}\"*") {
			a = "'" + a + "'"
		}
		out[i] = a
	}
	return strings.Join(out, " ")
}

// cli is run for a command that must succeed.
func (d *demo) cli(tokenFile string, args ...string) (result, error) {
	r, err := d.run(tokenFile, args...)
	if err == nil && r.code != 0 {
		err = fmt.Errorf("exit code %d where 0 was expected: %s", r.code, r.stderr)
	}
	return r, err
}

// allow invokes where it must work, and looks for want in the output.
func (d *demo) allow(session, ref, input, want string) (result, error) {
	r, err := d.cli(d.token(session), "invoke", ref, "--input", input)
	if err != nil {
		return r, err
	}
	if !strings.Contains(r.stdout, want) {
		return r, fmt.Errorf("the output lacks %q", want)
	}
	d.allowed++
	return r, nil
}

// deny invokes where it must be refused with a code.
func (d *demo) deny(session, ref, input, code string, args ...string) (result, error) {
	r, err := d.run(d.token(session), append([]string{"invoke", ref, "--input", input}, args...)...)
	if err != nil {
		return r, err
	}
	if r.code == 0 || !strings.Contains(r.stderr, code) {
		return r, fmt.Errorf("exit code %d and no %s where a refusal was expected", r.code, code)
	}
	d.denied++
	return r, nil
}

func (d *demo) say(format string, args ...any) { fmt.Printf("# "+format+"\n", args...) }

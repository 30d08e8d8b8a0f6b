package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// guestSteps is the demo of guests in four languages, and of two that were written for something else.
var guestSteps = []step{
	{"A gateway on loopback, with a new data directory", (*demo).startGuests},
	{"A biome in each of four languages: uploaded, installed, granted", (*demo).uploadGuests},
	{"They do the same in sandbox and in project, within what their inputs may be", (*demo).useGuests},
	{"A program for WASI, unmodified, with a manifest beside it", (*demo).wasi},
	{"A plug-in for Extism, unmodified, with a manifest beside it", (*demo).extism},
	{"What happened is on record", (*demo).recordGuests},
}

// guest is a biome in some language, and calls of it.
type guest struct {
	language, biome, path string
	calls                 []guestCall
}

// guestCall is one invocation that works in sandbox and in project.
type guestCall struct{ ref, input, want string }

// guests are built by make, or committed with their source beside them.
func (d *demo) guests() []guest {
	return []guest{
		{"Go", "notes", d.biome("notes"), []guestCall{
			{"notes:note.put@1", `{"id":"a","text":"in Go"}`, `{"id":"a"}`},
			{"notes:note.get@1", `{"id":"a"}`, `"in Go"`},
		}},
		{"C", "textstats", filepath.Join("biomes", "textstats", "textstats.wasm"), []guestCall{
			{"text:slug.make@1", `{"text":"Crème Brûlée, twice"}`, "creme-brulee-twice"},
		}},
		{"Rust", "tally", filepath.Join("biomes", "tally", "tally.wasm"), []guestCall{
			{"tally:counter.add@1", `{"name":"cups","by":3}`, `"total":`},
			{"tally:counter.read@1", `{"name":"cups"}`, `"total":`},
		}},
		{"AssemblyScript", "table", filepath.Join("biomes", "table", "table.wasm"), []guestCall{
			{"table:csv.parse@1", `{"csv":"a,b\n1,\"x,y\"\n"}`, `"x,y"`},
		}},
	}
}

var twoEnvironments = []string{"sandbox", "project"}

func (d *demo) startGuests() error {
	if err := d.serve("--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"); err != nil {
		return err
	}
	for _, slug := range twoEnvironments {
		if _, err := d.cli(d.operator(), "--output", "json", "session", "open", "user:alice", "--environment", slug, "--files", "--save", d.token(slug)); err != nil {
			return err
		}
	}
	return nil
}

// push uploads a biome and lets it into project; sandbox runs what is uploaded.
func (d *demo) push(name, path string, more ...string) error {
	if _, err := d.cli(d.operator(), append([]string{"biome", "push", path}, more...)...); err != nil {
		return err
	}
	d.uploads++
	_, err := d.cli(d.operator(), "--output", "json", "biome", "install", name, "--environment", "project")
	return err
}

// give grants a capability to alice in both environments.
func (d *demo) give(ref string) error {
	for _, slug := range twoEnvironments {
		if _, err := d.cli(d.operator(), "--output", "json", "grant", "create", "user:alice", ref, slug); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) uploadGuests() error {
	for _, g := range d.guests() {
		d.say("%s", g.language)
		if err := d.push(g.biome, g.path); err != nil {
			return err
		}
		if _, err := d.deny("project", g.calls[0].ref, g.calls[0].input, "MISSING_GRANT"); err != nil {
			return err
		}
		for _, c := range g.calls {
			if err := d.give(c.ref); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *demo) useGuests() error {
	for _, g := range d.guests() {
		for _, slug := range twoEnvironments {
			for _, c := range g.calls {
				if _, err := d.allow(slug, c.ref, c.input, c.want); err != nil {
					return err
				}
			}
			if _, err := d.deny(slug, g.calls[0].ref, `{"nobody":"knows this"}`, "INPUT_SCHEMA_VIOLATION"); err != nil {
				return err
			}
		}
	}
	return nil
}

// foreign is the manifest of a module that was written for something else.
func (d *demo) foreign(name string, manifest map[string]any) (string, error) {
	raw, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return "", err
	}
	path := filepath.Join(d.dir, name+".json")
	return path, os.WriteFile(path, raw, 0o600)
}

// provide is one capability; more are further members.
func provide(ref, export, reach string, more map[string]any) map[string]any {
	out := map[string]any{
		"ref": ref, "export": export, "title": ref, "summary": "Written for something else.", "sideEffects": "none",
		"inputSchema": map[string]any{}, "outputSchema": map[string]any{}, "riskTier": "low", "outputClassification": "public", "reach": reach,
	}
	for k, v := range more {
		out[k] = v
	}
	return out
}

// folder is where a Go module's files are; its tests bring guests of other makers.
func folder(ctx context.Context, dir, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = dir
	out, err := cmd.Output()
	var where struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(out, &where)
	}
	if err != nil || where.Dir == "" {
		return "", fmt.Errorf("the module %s is not here and cannot be fetched: %w", module, errors.Join(err, exitText(err)))
	}
	return where.Dir, nil
}

func exitText(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	return nil
}

// wasi runs a cat that somebody compiled with TinyGo to print files of a folder it is given.
func (d *demo) wasi() error {
	dir, err := folder(d.ctx, ".", "github.com/tetratelabs/wazero")
	if err != nil {
		return err
	}
	module := filepath.Join(dir, "imports", "wasi_snapshot_preview1", "example", "testdata", "tinygo", "cat.wasm")
	cat := func(abi string) map[string]any {
		return map[string]any{
			"name": "cat", "version": "1.0.0", "abi": abi,
			"provides": []any{
				provide("cat:file.print@1", "_start", "owner", map[string]any{"arguments": []string{"/notes/today.txt"}, "outputEncoding": "text"}),
				provide("cat:file.guess@1", "_start", "owner", map[string]any{"arguments": []string{"../../../etc/passwd"}, "outputEncoding": "text"}),
			},
		}
	}
	wrong, err := d.foreign("cat-native", cat("ecotone_v1"))
	if err != nil {
		return err
	}
	d.say("said to be a native biome, it is refused: its doors are other ones")
	r, err := d.run(d.operator(), "biome", "push", module, "--manifest", wrong)
	if err != nil {
		return err
	}
	if r.code == 0 || !strings.Contains(r.stderr, "MODULE_REFUSED") {
		return fmt.Errorf("exit code %d where a refusal was expected", r.code)
	}
	d.refused++
	right, err := d.foreign("cat", cat("wasi_snapshot_preview1"))
	if err != nil {
		return err
	}
	if err := d.push("cat", module, "--manifest", right); err != nil {
		return err
	}
	if err := d.push("workspace", d.biome("workspace")); err != nil {
		return err
	}
	for _, ref := range []string{"ws:file.write@1", "cat:file.print@1", "cat:file.guess@1"} {
		if err := d.give(ref); err != nil {
			return err
		}
	}
	for _, slug := range twoEnvironments {
		if _, err := d.deny(slug, "cat:file.print@1", `{}`, "GUEST_EXIT"); err != nil { // there is no such file yet
			return err
		}
		if _, err := d.allow(slug, "ws:file.write@1", `{"path":"notes/today.txt","text":"written in `+slug+`"}`, "today.txt"); err != nil {
			return err
		}
		if _, err := d.allow(slug, "cat:file.print@1", `{}`, "written in "+slug); err != nil {
			return err
		}
		if _, err := d.deny(slug, "cat:file.guess@1", `{}`, "GUEST_EXIT"); err != nil {
			return err
		}
	}
	return nil
}

// recordGuests holds what is on record to what was shown.
func (d *demo) recordGuests() error {
	return d.countRows(0)
}

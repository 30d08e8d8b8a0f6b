package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// step is one part of a demo.
type step struct {
	title string
	do    func(*demo) error
}

// steps is the demo, in order. Each step checks what it shows.
var steps = []step{
	{"A gateway on loopback, with a new data directory", (*demo).start},
	{"Upload: each module is read, compiled in a confined child and tried before it is stored", (*demo).upload},
	{"A module that declares owner and imports the network is refused at upload", (*demo).uploadLiar},
	{"Install, grants and sessions: nobody may do anything until someone says so", (*demo).admit},
	{"One capability, allowed in project and refused in sandbox", (*demo).reach},
	{"A secret goes to the origin and to nobody else", (*demo).secret},
	{"Files: an existing file is overwritten only by who read it", (*demo).files},
	{"A capability that invokes another, within what both may do", (*demo).child},
	{"An organisation tightens project: data above the ceiling looks absent", (*demo).override},
	{"What happened is on record", (*demo).record},
	{"The record can be checked by anyone, and a changed byte shows", (*demo).verify},
}

func (d *demo) start() error {
	secret := "demo-" + rand.Text()
	if err := d.startOrigin(secret); err != nil {
		return err
	}
	return d.serve("--egress-loopback", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0")
}

func (d *demo) upload() error {
	for _, name := range biomeNames {
		if _, err := d.cli(d.operator(), "biome", "push", d.biome(name)); err != nil {
			return err
		}
		d.uploads++
	}
	return nil
}

// uploadLiar uploads the http biome with a manifest that understates its reach.
func (d *demo) uploadLiar() error {
	module, err := os.ReadFile(d.biome("http"))
	if err != nil {
		return err
	}
	manifests, err := wasm.Custom(module, abi.ManifestSection)
	if err != nil || len(manifests) != 1 {
		return errors.Join(errors.New("the http biome has no manifest"), err)
	}
	lie := bytes.ReplaceAll(manifests[0], []byte(`"integration"`), []byte(`"owner"`))
	if module, err = wasm.SetCustom(module, abi.ManifestSection, lie); err != nil {
		return err
	}
	path := filepath.Join(d.dir, "liar.wasm")
	if err := os.WriteFile(path, module, 0o600); err != nil {
		return err
	}
	r, err := d.run(d.operator(), "biome", "push", path)
	if err != nil {
		return err
	}
	if r.code == 0 || !strings.Contains(r.stderr, string(abi.CodeImportAboveReach)) {
		return fmt.Errorf("exit code %d, and no %s", r.code, abi.CodeImportAboveReach)
	}
	d.refused++
	return nil
}

func (d *demo) admit() error {
	op := d.operator()
	if err := d.putSecret(); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"endpoint", "put", "origin", d.origin.url + "/**", "--loopback", "--clearance", "internal", "--label", "public"},
		{"biome", "install", "notes", "--environment", "project"},
		{"biome", "install", "workspace", "--environment", "project"},
		{"biome", "install", "http", "--environment", "project", "--endpoint", "origin", "--secret", "token"},
		{"biome", "install", "relay", "--environment", "project", "--call", "notes:note.get@1"},
		{"session", "open", "user:alice", "--environment", "project", "--files", "--save", d.token("project")},
		{"session", "open", "user:alice", "--environment", "sandbox", "--save", d.token("sandbox")},
	} {
		r, err := d.cli(op, append([]string{"--output", "json"}, args...)...)
		if err != nil {
			return err
		}
		var s struct {
			Workspace string `json:"workspace"`
		}
		if json.Unmarshal([]byte(r.stdout), &s) == nil && s.Workspace != "" {
			d.workspace = s.Workspace
		}
	}
	if _, err := d.deny("project", "notes:note.put@1", `{"id":"a","text":"x"}`, "MISSING_GRANT"); err != nil {
		return err
	}
	for _, g := range [][2]string{
		{"notes:note.put@1", "project"},
		{"notes:note.get@1", "project"},
		{"web:page.fetch@1", "project"},
		{"web:page.fetch@1", "sandbox"},
		{"ws:file.read@1", "project"},
		{"ws:file.write@1", "project"},
		{"relay:capability.invoke@1", "project"},
	} {
		if _, err := d.cli(op, "--output", "json", "grant", "create", "user:alice", g[0], g[1]); err != nil {
			return err
		}
	}
	_, err := d.allow("project", "notes:note.put@1", `{"id":"a","text":"order 4711"}`, `"a"`)
	return err
}

// putSecret gives the vault the origin's token, with the one use it may be put to.
func (d *demo) putSecret() error {
	path := filepath.Join(d.dir, "value")
	if err := os.WriteFile(path, []byte(d.origin.secret), 0o600); err != nil {
		return err
	}
	if _, err := d.cli(d.operator(), "--output", "json", "secret", "put", "token", "--value", "@"+path,
		"--uses", `[{"kind":"header","header":"Authorization","prefix":"Bearer ","endpoint":"origin"}]`); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return nil
}

func (d *demo) reach() error {
	input := fmt.Sprintf(`{"url":"%s/orders/4711"}`, d.origin.url)
	if _, err := d.allow("project", "web:page.fetch@1", input, `"status":401`); err != nil {
		return err
	}
	before := d.origin.all.Load()
	if _, err := d.deny("sandbox", "web:page.fetch@1", input, "REACH_CEILING_EXCEEDED"); err != nil {
		return err
	}
	if d.origin.all.Load() != before {
		return errors.New("the origin saw a request from sandbox")
	}
	d.say("the origin saw %d request(s), none from sandbox", before)
	return nil
}

func (d *demo) secret() error {
	r, err := d.allow("project", "web:page.fetch@1", fmt.Sprintf(`{"url":"%s/orders/4711","secret":"token"}`, d.origin.url), `shipped`)
	if err != nil {
		return err
	}
	if n := d.origin.seen.Load(); n != 1 {
		return fmt.Errorf("the origin saw the secret %d times", n)
	}
	if strings.Contains(r.all(), d.origin.secret) {
		return errors.New("the secret is in the answer")
	}
	where, err := d.search(d.origin.secret)
	if err != nil {
		return err
	}
	if where != "" {
		return fmt.Errorf("the secret is in %s", where)
	}
	d.say("the origin saw the secret once; it is in no answer and in no file of the data directory")
	return nil
}

// search looks for text in every file of the data directory.
func (d *demo) search(text string) (string, error) {
	found := ""
	err := filepath.WalkDir(d.data, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || found != "" {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(text)) {
			found = path
		}
		return err
	})
	return found, err
}

func (d *demo) files() error {
	if _, err := d.allow("project", "ws:file.write@1", `{"path":"reports/a.md","text":"# A\n"}`, `version`); err != nil {
		return err
	}
	_, err := d.allow("project", "ws:file.read@1", `{"path":"reports/a.md"}`, `# A`)
	return err
}

func (d *demo) child() error {
	input := `{"ref":"notes:note.get@1","input":{"id":"a"}}`
	if _, err := d.allow("project", "relay:capability.invoke@1", input, `order 4711`); err != nil {
		return err
	}
	_, err := d.allow("project", "relay:capability.invoke@1", `{"ref":"notes:note.put@1","input":{"id":"a","text":"y"}}`, `"ok":false`)
	if err == nil {
		d.say("the child note.put was refused: the relay was installed with note.get only")
	}
	return err
}

// override puts a file into the workspace behind the gateway's back, which makes it as
// sensitive as can be, and tightens the environment before it is read.
func (d *demo) override() error {
	path := filepath.Join(d.data, "workspaces", d.workspace, "import.txt")
	if err := os.WriteFile(path, []byte("salaries"), 0o600); err != nil {
		return err
	}
	d.say("the operator copied import.txt into the workspace; what is imported counts as regulated")
	if _, err := d.cli(d.operator(), "--output", "json", "env", "override", "project", "internal"); err != nil {
		return err
	}
	r, err := d.deny("project", "ws:file.read@1", `{"path":"import.txt"}`, "GUEST_ERROR")
	if err != nil {
		return err
	}
	if strings.Contains(r.all(), "salaries") {
		return errors.New("the text is in the answer")
	}
	row, err := d.cli(d.operator(), "--output", "json", "audit", "show", auditOf(r))
	if err != nil {
		return err
	}
	if !strings.Contains(row.stdout, string(abi.CodeClassificationCeiling)) {
		return fmt.Errorf("the row does not say %s", abi.CodeClassificationCeiling)
	}
	_, err = d.deny("project", "ws:file.read@1", `{"path":"reports/a.md"}`, "CLASSIFICATION_CEILING_EXCEEDED", "--classification", "confidential")
	return err
}

func (d *demo) record() error {
	// The child that ran has a row of its own; the one that was refused is a line of its parent's receipt.
	if err := d.countRows(1); err != nil {
		return err
	}
	r, err := d.cli(d.operator(), "audit", "list", "--kind", "refused")
	if err == nil && !strings.Contains(r.stdout, "MODULE_REFUSED") {
		err = errors.New("the refused upload has no row")
	}
	return err
}

// countRows lists the invocations and counts them: one row for each that was allowed or denied, and more for what ran beside them.
func (d *demo) countRows(more int) error {
	r, err := d.cli(d.operator(), "audit", "list", "--kind", "invocation", "--limit", "100")
	if err != nil {
		return err
	}
	d.rows = strings.Count(r.stdout, "\n") - 1
	if want := d.allowed + d.denied + more; d.rows != want {
		return fmt.Errorf("%d rows where %d were expected", d.rows, want)
	}
	return nil
}

func (d *demo) verify() error {
	head, err := d.cli(d.operator(), "audit", "head")
	if err != nil {
		return err
	}
	headFile, log, copied := filepath.Join(d.dir, "head"), filepath.Join(d.data, "audit"), filepath.Join(d.dir, "copy")
	if err := os.WriteFile(headFile, []byte(head.stdout), 0o600); err != nil {
		return err
	}
	r, err := d.cli(d.operator(), "audit", "verify", log, "--head", headFile)
	if err != nil {
		return err
	}
	if _, err := fmt.Sscanf(r.stdout, "ok: %d entries", &d.entries); err != nil {
		return err
	}
	if err := os.CopyFS(copied, os.DirFS(log)); err != nil {
		return err
	}
	if err := flip(copied); err != nil {
		return err
	}
	d.say("one byte of the copy is changed")
	r, err = d.run(d.operator(), "audit", "verify", copied, "--head", headFile)
	if err == nil && r.code == 0 {
		err = errors.New("a changed log verified")
	}
	return err
}

// flip changes one byte in the middle of the first file of entries.
func flip(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.entries"))
	if err != nil || len(files) == 0 {
		return errors.Join(errors.New("the copy has no entries"), err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	raw[len(raw)/2] ^= 1
	return os.WriteFile(files[0], raw, 0o600)
}

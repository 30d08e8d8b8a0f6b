package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// policySteps is the demo of the permission plane, in order. Each step checks what it shows.
var policySteps = []step{
	{"A gateway on loopback, with biomes admitted and nothing granted that is not shown here", (*demo).startPolicy},
	{"Override: an organisation tightens project, and may loosen it to what it was and no further", (*demo).tighten},
	{"An environment of the organisation's own: at most its base, and only what it lists", (*demo).ownEnvironment},
	{"Information flow: what was read does not go where less is allowed", (*demo).flow},
	{"Explain: every check before the fact, and the row with what would help after it", (*demo).explain},
	{"Approval: it waits through a restart, is given by somebody else, and runs once", (*demo).approval},
	{"Declassification: exactly these bytes, to one sink, once, by somebody else's word", (*demo).declassify},
	{"Revocation: a running invocation ends", (*demo).revocation},
	{"All of it is on record", (*demo).policyRecord},
}

var onLoopback = []string{"--egress-loopback", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"}

// operate runs the operator's commands, as JSON.
func (d *demo) operate(commands ...[]string) error {
	for _, args := range commands {
		if _, err := d.cli(d.operator(), append([]string{"--output", "json"}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// open opens a session of user:alice whose token is saved under a name, and returns its workspace.
func (d *demo) open(name string, args ...string) (string, error) {
	args = append([]string{"--output", "json", "session", "open", "user:alice", "--save", d.token(name)}, args...)
	r, err := d.cli(d.operator(), args...)
	if err != nil {
		return "", err
	}
	var s struct {
		Workspace string `json:"workspace"`
	}
	return s.Workspace, json.Unmarshal([]byte(r.stdout), &s)
}

func (d *demo) startPolicy() error {
	if err := d.startOrigin("unused-here-0001"); err != nil {
		return err
	}
	if err := d.serve(onLoopback...); err != nil {
		return err
	}
	for _, name := range []string{"notes", "workspace", "http"} {
		if _, err := d.cli(d.operator(), "--output", "json", "biome", "push", d.biome(name)); err != nil {
			return err
		}
		d.uploads++
	}
	err := d.operate(
		[]string{"env", "limit", "project", "wall=60000", "httpWall=30000"}, // the machine may be busy, and an origin slow
		[]string{"endpoint", "put", "origin", d.origin.url + "/**", "--loopback", "--label", "public"},
		[]string{"biome", "install", "notes", "--environment", "project"},
		[]string{"biome", "install", "workspace", "--environment", "project"},
		[]string{"biome", "install", "http", "--environment", "project", "--endpoint", "origin"},
		[]string{"grant", "create", "user:alice", "notes:note.put@1", "project"},
		[]string{"grant", "create", "user:alice", "notes:note.get@1", "project"},
		[]string{"grant", "create", "user:alice", "ws:file.read@1", "project"},
	)
	if err != nil {
		return err
	}
	_, err = d.open("project", "--environment", "project")
	return err
}

func (d *demo) tighten() error {
	note := `{"id":"a","text":"order 4711"}`
	if _, err := d.allow("project", "notes:note.put@1", note, `"a"`); err != nil {
		return err
	}
	if err := d.operate([]string{"env", "override", "project", "internal"}); err != nil {
		return err
	}
	if _, err := d.deny("project", "notes:note.put@1", note, "CLASSIFICATION_CEILING_EXCEEDED", "--classification", "confidential"); err != nil {
		return err
	}
	if err := d.operate([]string{"env", "override", "project", "--remove"}); err != nil {
		return err
	}
	d.say("nothing of a built-in environment itself can be widened, by the operator neither:")
	return d.refuse("BUILTIN_IMMUTABLE", "env", "create", "project", "--base", "org")
}

// refuse runs an operator's command that must be refused with a code.
func (d *demo) refuse(code string, args ...string) error {
	r, err := d.run(d.operator(), args...)
	if err == nil && (r.code == 0 || !strings.Contains(r.stderr, code)) {
		err = fmt.Errorf("exit code %d and no %s where a refusal was expected", r.code, code)
	}
	return err
}

func (d *demo) ownEnvironment() error {
	if err := d.refuse("CEILING_LOOSENED", "env", "create", "wider", "--base", "sandbox", "--reach", "platform"); err != nil {
		return err
	}
	err := d.operate(
		[]string{"env", "create", "readers", "--base", "project", "--reach", "owner", "--allow", "notes:note.get@1"},
		[]string{"biome", "install", "notes", "--environment", "project", "--environment", "readers"},
		[]string{"grant", "create", "user:alice", "notes:note.get@1", "readers"},
		[]string{"grant", "create", "user:alice", "notes:note.put@1", "readers"},
	)
	if err != nil {
		return err
	}
	if _, err := d.open("readers", "--environment", "readers"); err != nil {
		return err
	}
	if _, err := d.allow("readers", "notes:note.get@1", `{"id":"a"}`, "order 4711"); err != nil {
		return err
	}
	_, err = d.deny("readers", "notes:note.put@1", `{"id":"a","text":"x"}`, "CAPABILITY_NOT_IN_ENVIRONMENT_ALLOWLIST")
	return err
}

// flow reads a file that was put into the workspace behind the gateway's back, which makes it regulated, and then
// tries to keep a note of it in a space whose floor is public.
func (d *demo) flow() error {
	workspace, err := d.open("reader", "--environment", "project", "--files")
	if err != nil {
		return err
	}
	if _, err := d.deny("reader", "ws:file.read@1", `{"path":"import.txt"}`, "GUEST_ERROR"); err != nil { // makes the workspace
		return err
	}
	path := filepath.Join(d.data, "workspaces", workspace, "import.txt")
	if err := os.WriteFile(path, []byte("salaries"), 0o600); err != nil {
		return err
	}
	d.say("the operator copied import.txt into the workspace; what is imported counts as regulated")
	if _, err := d.allow("reader", "ws:file.read@1", `{"path":"import.txt"}`, "salaries"); err != nil {
		return err
	}
	r, err := d.deny("reader", "notes:note.put@1", `{"id":"leak","text":"salaries"}`, "GUEST_ERROR")
	if err != nil {
		return err
	}
	row, err := d.cli(d.operator(), "audit", "show", auditOf(r))
	if err != nil {
		return err
	}
	if !strings.Contains(row.stdout, "CLASSIFICATION_FLOW") {
		return errors.New("the row does not say CLASSIFICATION_FLOW")
	}
	_, err = d.deny("project", "notes:note.get@1", `{"id":"leak"}`, "GUEST_ERROR")
	if err == nil {
		d.say("another session finds no such note")
	}
	return err
}

// auditOf is the audit id that a refusal names.
func auditOf(r result) string {
	_, id, _ := strings.Cut(r.stderr, "audit: ")
	return strings.TrimSpace(id)
}

func (d *demo) explain() error {
	input := fmt.Sprintf(`{"url":"%s/orders/4711"}`, d.origin.url)
	r, err := d.run(d.token("project"), "explain", "web:page.fetch@1", "--input", input)
	if err != nil {
		return err
	}
	if r.code != 3 || !strings.Contains(r.stdout, "MISSING_GRANT") {
		return fmt.Errorf("exit code %d and no MISSING_GRANT", r.code)
	}
	if r, err = d.deny("project", "web:page.fetch@1", input, "MISSING_GRANT"); err != nil {
		return err
	}
	row, err := d.cli(d.operator(), "audit", "show", auditOf(r))
	if err != nil {
		return err
	}
	_, help, found := strings.Cut(row.stdout, "request-grant")
	if !found {
		return errors.New("the row suggests no grant")
	}
	d.say("what it suggests is a command; the operator types it:")
	if _, err := d.cli(d.operator(), strings.Fields(strings.TrimPrefix(strings.TrimSpace(help), "ecotone "))...); err != nil {
		return err
	}
	_, err = d.allow("project", "web:page.fetch@1", input, `"status":401`)
	return err
}

// approval asks for a person's word, stops the server while it waits, and lets somebody else give it.
func (d *demo) approval() error {
	err := d.operate(
		[]string{"grant", "create", "user:alice", "notes:note.delete@1", "project", "--approval"},
		[]string{"token", "issue", "ann", "--role", "approver", "--user", "user:ann", "--clearance", "regulated", "--save", d.token("ann")},
		[]string{"approval", "grant", "ann", "notes:note.delete@1"},
	)
	if err != nil {
		return err
	}
	r, err := d.run(d.token("project"), "invoke", "notes:note.delete@1", "--input", `{"id":"a"}`)
	if err != nil {
		return err
	}
	if r.code != 4 {
		return fmt.Errorf("exit code %d where 4 was expected", r.code)
	}
	id := auditOf(r)
	d.say("the server stops and starts again")
	d.stop()
	if err := d.serve(onLoopback...); err != nil {
		return err
	}
	if err := d.refuse("FORBIDDEN", "approval", "approve", id); err != nil {
		return err
	}
	if _, err := d.cli(d.token("ann"), "approval", "show", id); err != nil {
		return err
	}
	if _, err := d.cli(d.token("ann"), "approval", "approve", id, "--reason", "it is a copy"); err != nil {
		return err
	}
	if err := d.over(id); err != nil {
		return err
	}
	if _, err := d.deny("project", "notes:note.get@1", `{"id":"a"}`, "GUEST_ERROR"); err != nil {
		return err
	}
	d.say("the note is gone; alice writes it again, and ann approves again what is done already:")
	if _, err := d.allow("project", "notes:note.put@1", `{"id":"a","text":"order 4712"}`, `"a"`); err != nil {
		return err
	}
	if r, err = d.run(d.token("ann"), "--output", "json", "approval", "approve", id); err != nil || !strings.Contains(r.stdout, `"state":"done"`) {
		return errors.Join(errors.New("the second approval does not say that it is done"), err)
	}
	_, err = d.allow("project", "notes:note.get@1", `{"id":"a"}`, "order 4712")
	return err
}

// declassify lets the session that has read the import send one request to an origin that is cleared for nothing
// but public data.
func (d *demo) declassify() error {
	const ref = "web:page.fetch@1"
	input := fmt.Sprintf(`{"url":"%s/orders/4711"}`, d.origin.url)
	if err := d.operate([]string{"approval", "grant", "ann", ref}); err != nil {
		return err
	}
	if _, err := d.deny("reader", ref, input, "GUEST_ERROR"); err != nil {
		return err
	}
	d.say("what this session has read is regulated, and the endpoint is cleared for less; so it asks:")
	r, err := d.run(d.token("reader"), "--output", "json", "session", "declassify", ref, "--to", "public", "--sink", "endpoint:origin", "--input", input)
	if err != nil {
		return err
	}
	var asked struct {
		Approval string `json:"approval"`
	}
	if err := json.Unmarshal([]byte(r.stdout), &asked); err != nil || r.code != 4 {
		return errors.Join(fmt.Errorf("exit code %d where 4 was expected", r.code), err)
	}
	for _, verb := range []string{"show", "approve"} {
		if _, err := d.cli(d.token("ann"), "approval", verb, asked.Approval); err != nil {
			return err
		}
	}
	other := fmt.Sprintf(`{"url":"%s/salaries"}`, d.origin.url)
	if _, err := d.deny("reader", ref, other, "APPROVAL_STALE", "--declassification", asked.Approval); err != nil {
		return err
	}
	if r, err = d.cli(d.token("reader"), "invoke", ref, "--input", input, "--declassification", asked.Approval); err != nil {
		return err
	}
	if !strings.Contains(r.stdout, `"status":401`) {
		return errors.New("the approved request did not reach the origin")
	}
	d.allowed++
	_, err = d.deny("reader", ref, input, "APPROVAL_STALE", "--declassification", asked.Approval)
	return err
}

// over waits until what was approved has run: an approval does not wait for that.
func (d *demo) over(id string) error {
	d.quiet = true
	defer func() { d.quiet = false }()
	for range 300 {
		r, err := d.cli(d.token("ann"), "--output", "json", "approval", "show", id)
		if err != nil {
			return err
		}
		var s struct {
			State string `json:"state"`
		}
		if err := json.Unmarshal([]byte(r.stdout), &s); err != nil {
			return err
		}
		if s.State == "done" {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return errors.New("what was approved was not done within half a minute")
}

// revocation takes away the right of an invocation that waits for its origin.
func (d *demo) revocation() error {
	r, err := d.run(d.operator(), "--output", "json", "grant", "list", "--subject", "user:alice", "--capability", "web:page.fetch@1")
	if err != nil {
		return err
	}
	var page struct {
		Items []struct {
			ID string `json:"id"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(r.stdout), &page); err != nil || len(page.Items) != 1 {
		return errors.Join(errors.New("alice does not hold one grant"), err)
	}
	type ended struct {
		result
		err error
	}
	done := make(chan ended, 1)
	go func() {
		r, err := d.deny("project", "web:page.fetch@1", fmt.Sprintf(`{"url":"%s/slow"}`, d.origin.url), "GRANT_REVOKED")
		done <- ended{r, err}
	}()
	select {
	case <-d.origin.waiting:
	case e := <-done:
		return errors.Join(errors.New("it ended before it reached the origin"), e.err)
	}
	d.say("alice's request is at the origin, which does not answer")
	began := time.Now()
	if err := d.operate([]string{"grant", "revoke", page.Items[0].ID}); err != nil {
		return err
	}
	e := <-done
	if e.err == nil {
		d.say("it ended %v after the operator began to type", time.Since(began).Round(time.Millisecond))
	}
	return e.err
}

// policyRecord counts the rows: of what was allowed, what was denied, and what waited.
func (d *demo) policyRecord() error {
	return d.countRows(1)
}

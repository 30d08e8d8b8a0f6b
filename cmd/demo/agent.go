package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

// agentSteps is the demo of the face for agents, in order. Each step checks what it shows. The agent knows two
// things: an address and a token.
var agentSteps = []step{
	{"A gateway with the face for agents, a biome admitted, and an agent that acts for alice and may do nothing yet", (*demo).startAgent},
	{"Six tools, whatever there is: a search finds what may be invoked, which is nothing", (*demo).agentSearches},
	{"It calls all the same: denied, with a reason that somebody can act on, and the operator does", (*demo).agentIsDenied},
	{"Now the capability is found, described, judged and invoked; and it is a tool of its own in the other shape", (*demo).agentInvokes},
	{"A call that needs a person: the agent is told to come back, and does, once ann has approved it", (*demo).agentAsks},
	{"The same over standard input and output", (*demo).agentOverStdio},
	{"All of it is on record", (*demo).policyRecord},
}

func (d *demo) startAgent() error {
	if err := d.serve(append([]string{"--mcp-listen", "127.0.0.1:0"}, onLoopback...)...); err != nil {
		return err
	}
	if _, err := d.cli(d.operator(), "--output", "json", "biome", "push", d.biome("notes")); err != nil {
		return err
	}
	d.uploads++
	return d.operate(
		[]string{"env", "limit", "project", "wall=60000"}, // the machine may be busy
		[]string{"biome", "install", "notes", "--environment", "project"},
		[]string{"grant", "create", "user:alice", "notes:note.put@1", "project"},
		[]string{"session", "open", "agent:bot", "--user", "user:alice", "--environment", "project", "--save", d.token("bot")},
	)
}

// rpc is the part of a result that the demo looks at.
type rpc struct {
	Result struct {
		IsError bool
		Content []struct{ Text string }
		Tools   []struct{ Name, Title string }
		State   string `json:"requestState"`
		Inputs  map[string]struct {
			Params struct{ Message string }
		} `json:"inputRequests"`
		Meta struct {
			Invocation string `json:"ecotone/invocation"`
		} `json:"_meta"`
	}
	Error *struct{ Message string }
}

func (r *rpc) text() string {
	if len(r.Result.Content) == 0 {
		return ""
	}
	return r.Result.Content[0].Text
}

// ask sends one request of the protocol with the agent's token, and prints both without the protocol's own members.
func (d *demo) ask(path, method string, params map[string]any) (*rpc, error) {
	plain, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	fmt.Printf("bot> %s%s %s %s\n", d.ready.MCP, path, method, plain)
	full := map[string]any{"_meta": map[string]any{
		"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{"elicitation": map[string]any{"form": map[string]any{}}},
	}}
	for k, v := range params {
		full[k] = v
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": full})
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(d.token("bot"))
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(d.ctx, http.MethodPost, d.ready.MCP+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for k, v := range map[string]string{
		"Authorization": "Bearer " + strings.TrimSpace(string(token)), "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method,
	} {
		req.Header.Set(k, v)
	}
	if name, ok := params["name"].(string); ok {
		req.Header.Set("Mcp-Name", name)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	var out rpc
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("%w in %s", err, raw)
	}
	switch {
	case out.Error != nil:
		return nil, errors.New(out.Error.Message)
	case out.Result.State != "":
		fmt.Printf("   < wait: %s\n", out.Result.Inputs["approval"].Params.Message)
	case out.Result.Tools != nil:
		for _, t := range out.Result.Tools {
			fmt.Printf("   < tool %s: %s\n", t.Name, t.Title)
		}
	default:
		fmt.Printf("   < isError=%v %s\n", out.Result.IsError, out.text())
	}
	return &out, nil
}

// tool calls a tool, and holds the answer to whether it is an error and to what it contains.
func (d *demo) tool(path, name string, arguments map[string]any, failed bool, want string) (*rpc, error) {
	r, err := d.ask(path, "tools/call", map[string]any{"name": name, "arguments": arguments})
	if err == nil && (r.Result.IsError != failed || !strings.Contains(r.text(), want)) {
		err = fmt.Errorf("an answer with %q was expected", want)
	}
	return r, err
}

var aNote = map[string]any{"id": "a", "text": "order 4711"}

func (d *demo) agentSearches() error {
	r, err := d.ask("/meta", "tools/list", map[string]any{})
	if err != nil || len(r.Result.Tools) != 6 {
		return errors.Join(errors.New("there are not six tools"), err)
	}
	_, err = d.tool("/meta", "search", map[string]any{"query": "note"}, false, `"hits":[]`)
	return err
}

func (d *demo) agentIsDenied() error {
	r, err := d.tool("/meta", "invoke", map[string]any{"ref": "notes:note.put@1", "input": aNote}, true, `"code":"MISSING_GRANT"`)
	if err != nil {
		return err
	}
	d.denied++
	var denial struct {
		Suggestions []struct{ Kind, Subject, Capability, Environment string }
	}
	if err := json.Unmarshal([]byte(r.text()), &denial); err != nil || len(denial.Suggestions) == 0 || denial.Suggestions[0].Kind != "request-grant" {
		return errors.Join(errors.New("nobody can act on the denial"), err)
	}
	s := denial.Suggestions[0]
	d.say("the operator reads what is suggested, and does it:")
	_, err = d.cli(d.operator(), "grant", "create", s.Subject, s.Capability, strings.TrimPrefix(s.Environment, "environment:"))
	return err
}

func (d *demo) agentInvokes() error {
	for _, c := range []struct {
		name      string
		arguments map[string]any
		want      string
	}{
		{"search", map[string]any{"query": "note"}, "notes:note.put@1"},
		{"describe", map[string]any{"refs": []string{"notes:note.put@1", "notes:note.delete@1"}}, `"notFound":["notes:note.delete@1"]`},
		{"preflight", map[string]any{"ref": "notes:note.put@1", "input": aNote}, `"decision":"allow"`},
		{"invoke", map[string]any{"ref": "notes:note.put@1", "input": aNote}, `"a"`},
	} {
		if _, err := d.tool("/meta", c.name, c.arguments, false, c.want); err != nil {
			return err
		}
	}
	d.allowed++
	r, err := d.ask("", "tools/list", map[string]any{})
	if err != nil || len(r.Result.Tools) != 1 || r.Result.Tools[0].Name != "notes__note_put__1" {
		return errors.Join(errors.New("the one tool is not there"), err)
	}
	if _, err = d.tool("", "notes__note_put__1", aNote, false, `"a"`); err == nil {
		d.allowed++
	}
	return err
}

func (d *demo) agentAsks() error {
	const ref = "notes:note.delete@1"
	err := d.operate(
		[]string{"grant", "create", "user:alice", ref, "project"},
		[]string{"grant", "create", "agent:bot", ref, "project", "--approval"},
		[]string{"token", "issue", "ann", "--role", "approver", "--user", "user:ann", "--clearance", "regulated", "--save", d.token("ann")},
		[]string{"approval", "grant", "ann", ref},
	)
	if err != nil {
		return err
	}
	call := map[string]any{"name": "notes__note_delete__1", "arguments": map[string]any{"id": "a"}}
	r, err := d.ask("", "tools/call", call)
	if err != nil || r.Result.State == "" {
		return errors.Join(errors.New("it does not wait"), err)
	}
	id := r.Result.Meta.Invocation
	d.say("the agent's user says that it shall go on; that approves nothing:")
	call["requestState"], call["inputResponses"] = r.Result.State, map[string]any{"approval": map[string]any{"action": "accept"}}
	if r, err = d.ask("", "tools/call", call); err != nil || r.Result.State == "" {
		return errors.Join(errors.New("it went on"), err)
	}
	for _, verb := range []string{"show", "approve"} {
		if _, err := d.cli(d.token("ann"), "approval", verb, id); err != nil {
			return err
		}
	}
	if r, err = d.ask("", "tools/call", call); err != nil || r.Result.State != "" || r.Result.IsError {
		return errors.Join(errors.New("approved, it does not succeed"), err)
	}
	// It has one row, which countRows knows of: it ran once, as the invocation that asked.
	d.say("the agent's token decides nothing:")
	refused, err := d.run(d.token("bot"), "approval", "approve", id)
	if err == nil && !strings.Contains(refused.stderr, "FORBIDDEN") {
		err = errors.New("it decides")
	}
	return err
}

func (d *demo) agentOverStdio() error {
	lines := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"demo","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"notes__note_put__1","arguments":{"id":"b","text":"order 4712"}}}
`
	cmd := exec.CommandContext(d.ctx, d.bin, "mcp")
	cmd.Env = append(os.Environ(), "ECOTONE_TOKEN_FILE="+d.token("bot"), "ECOTONE_MCP="+d.ready.MCP)
	cmd.Stdin, cmd.Stderr = strings.NewReader(lines), os.Stderr
	out, err := cmd.Output()
	fmt.Printf("bot$ ecotone mcp\n%s%s", lines, out)
	if err == nil && (strings.Count(string(out), "\n") != 2 || !strings.Contains(string(out), `"id":2,"result"`) || strings.Contains(string(out), `"isError":true`)) {
		err = errors.New("two answers were expected")
	}
	if err == nil {
		d.allowed++
	}
	return err
}

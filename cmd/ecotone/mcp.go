package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// MCPCmd speaks the Model Context Protocol on standard input and output, for clients that start their servers,
// and passes every message on to a server.
type MCPCmd struct {
	URL  string `name:"url" help:"Endpoint of the server, as its ready line says it." default:"http://127.0.0.1:8183/mcp" env:"ECOTONE_MCP" placeholder:"URL"`
	Meta bool   `help:"The six tools that find and invoke capabilities, instead of one tool for each."`
}

// Run passes messages on until standard input ends and what was asked is answered.
func (c *MCPCmd) Run(e *Env) error {
	token, err := e.conn.token()
	if err != nil {
		return err
	}
	endpoint := strings.TrimSuffix(c.URL, "/")
	if c.Meta && !strings.HasSuffix(endpoint, "/meta") {
		endpoint += "/meta"
	}
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" {
		return usagef("%q is not an address like http://127.0.0.1:8183/mcp", c.URL)
	}
	out := e.stdout
	if p, ok := out.(*plainWriter); ok { // what is printed is for a program, byte for byte
		out = p.to
	}
	trust, err := e.conn.trust()
	if err != nil {
		return err
	}
	p := &mcpProxy{
		endpoint: endpoint, token: token, out: out, running: map[string]context.CancelFunc{}, places: make(chan struct{}, mcpAtOnce),
		client: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport:     &http.Transport{Proxy: nil, MaxIdleConnsPerHost: mcpAtOnce, TLSClientConfig: trust},
		},
	}
	return p.run(e.ctx, e.stdin)
}

// mcpAtOnce bounds the messages that wait for an answer at once; more are read when there are fewer.
const mcpAtOnce = 256

// errRefused is the code of JSON-RPC for what the server refused before it was a message of the protocol.
const errRefused = -32000

// mcpProxy passes messages from lines to requests and back. It interprets nothing but what the transport over
// HTTP has in headers.
type mcpProxy struct {
	endpoint, token string
	client          *http.Client
	places          chan struct{}
	all             sync.WaitGroup

	write sync.Mutex // one line at a time
	out   io.Writer

	mu      sync.Mutex
	version string                        // that initialize agreed on
	running map[string]context.CancelFunc // by id
}

// mcpMessage is of a message what the transport needs.
type mcpMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name    string          `json:"name"`
		Request json.RawMessage `json:"requestId"`
		Meta    struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

func (p *mcpProxy) run(ctx context.Context, in io.Reader) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	defer p.all.Wait()
	for {
		line, err := readLine(lines)
		if line = bytes.TrimSpace(line); len(line) > 0 {
			p.take(ctx, line)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return nil
		}
	}
}

// readLine reads one message, of at most what an answer may have.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > maxAnswer {
			return nil, fmt.Errorf("a message is longer than %d bytes", maxAnswer)
		}
	}
}

func (p *mcpProxy) take(ctx context.Context, line []byte) {
	var m mcpMessage
	if err := json.Unmarshal(line, &m); err != nil || m.Method == "" {
		p.fail(nil, -32600, "the line is no request of JSON-RPC; messages are sent one on a line", nil)
		return
	}
	if m.Method == "notifications/cancelled" {
		p.mu.Lock()
		cancel := p.running[string(m.Params.Request)]
		p.mu.Unlock()
		if cancel != nil {
			cancel() // closing the request is how the server is told
		}
		return
	}
	version := m.Params.Meta.Version
	if version == "" {
		p.mu.Lock()
		version = p.version
		p.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	p.mu.Lock()
	if m.ID != nil {
		p.running[string(m.ID)] = cancel
	}
	p.mu.Unlock()
	p.places <- struct{}{}
	p.all.Add(1)
	pass := func() {
		defer p.all.Done()
		defer func() { <-p.places }()
		defer cancel()
		p.pass(ctx, &m, line, version)
		p.mu.Lock()
		delete(p.running, string(m.ID))
		p.mu.Unlock()
	}
	if m.Method == "initialize" { // what comes after it depends on its answer
		pass()
		return
	}
	go pass()
}

// pass sends one message and writes what comes back: for a request exactly one response, unless it was cancelled.
func (p *mcpProxy) pass(ctx context.Context, m *mcpMessage, line []byte, version string) {
	res, err := p.send(ctx, m, line, version)
	if err != nil {
		if ctx.Err() == nil && m.ID != nil {
			p.fail(m.ID, errRefused, "the server cannot be reached", nil)
		}
		return
	}
	defer res.Body.Close()
	answered := false
	forward := func(raw []byte) {
		var back struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Result struct {
				Version string `json:"protocolVersion"`
			} `json:"result"`
		}
		if json.Unmarshal(raw, &back) != nil || back.Method == "" && (answered || m.ID == nil) {
			return // no message, or another response than the one there is
		}
		if back.Method == "" {
			answered = true
			if m.Method == "initialize" && back.Result.Version != "" {
				p.mu.Lock()
				p.version = back.Result.Version
				p.mu.Unlock()
			}
		}
		p.print(raw)
	}
	media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	switch media {
	case "text/event-stream":
		events(io.LimitReader(res.Body, maxAnswer), forward)
	case "application/json":
		if raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer)); err == nil {
			forward(raw)
		}
	case "application/problem+json":
		raw, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		d := &denied{raw: raw}
		if json.Unmarshal(raw, d) == nil && m.ID != nil {
			answered = true
			p.fail(m.ID, errRefused, d.Error(), raw)
		}
	}
	if !answered && m.ID != nil && ctx.Err() == nil {
		p.fail(m.ID, errRefused, "the server answered "+res.Status+" and no message", nil)
	}
}

func (p *mcpProxy) send(ctx context.Context, m *mcpMessage, line []byte, version string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.endpoint, bytes.NewReader(line))
	if err != nil {
		return nil, err
	}
	h := req.Header
	h.Set("Authorization", "Bearer "+p.token)
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	if version != "" {
		h.Set("Mcp-Protocol-Version", version)
	}
	if version >= "2026-07-28" {
		h.Set("Mcp-Method", m.Method)
		if m.Method == "tools/call" {
			h.Set("Mcp-Name", m.Params.Name)
		}
	}
	return p.client.Do(req)
}

// events reads a stream of server-sent events, and calls f with the data of each.
func events(r io.Reader, f func([]byte)) {
	lines := bufio.NewReader(r)
	var data []byte
	for {
		line, err := lines.ReadBytes('\n')
		line = bytes.TrimRight(line, "\r\n")
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
		} else if len(line) == 0 && len(data) > 0 {
			f(data)
			data = nil
		}
		if err != nil {
			return
		}
	}
}

func (p *mcpProxy) fail(id json.RawMessage, code int, message string, data json.RawMessage) {
	if id == nil {
		id = json.RawMessage("null")
	}
	type inner struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data,omitempty"`
	}
	raw, err := json.Marshal(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   inner           `json:"error"`
	}{"2.0", id, inner{code, message, data}})
	if err == nil {
		p.print(raw)
	}
}

// print writes one message as one line.
func (p *mcpProxy) print(raw []byte) {
	var line bytes.Buffer
	if json.Compact(&line, raw) != nil {
		return
	}
	line.WriteByte('\n')
	p.write.Lock()
	defer p.write.Unlock()
	_, _ = p.out.Write(line.Bytes())
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ecotone-dev/ecotone/benchmarks/load"
)

// serving is a child that serves.
type serving struct {
	Invoke string // host:port
	Admin  string // base URL
	Ops    string

	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
	errs  tail
	mu    sync.Mutex
}

// tail keeps the last of what a child wrote to standard error.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if n := len(t.buf); n > 4<<10 {
		t.buf = append([]byte(nil), t.buf[n-4<<10:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

// serve starts a child and waits for its ready line.
func serve(ctx context.Context, kind string, args ...string) (*serving, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &serving{cmd: exec.CommandContext(ctx, self, append([]string{"child", kind}, args...)...)}
	// Its standard input ends a child; what does not end in time is killed.
	s.cmd.Cancel, s.cmd.WaitDelay = func() error { return s.stdin.Close() }, 10*time.Second
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.cmd.Stderr = &s.errs
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.lines = bufio.NewScanner(out)
	var ready struct{ Invoke, Admin, Ops string }
	if err := s.line(&ready); err != nil {
		_ = s.stop()
		return nil, fmt.Errorf("the %s does not start: %w: %s", kind, err, s.errs.String())
	}
	s.Invoke, s.Admin, s.Ops = strings.TrimPrefix(ready.Invoke, "http://"), ready.Admin, ready.Ops
	return s, nil
}

func (s *serving) line(v any) error {
	if !s.lines.Scan() {
		return fmt.Errorf("it ended: %w", io.ErrUnexpectedEOF)
	}
	return json.Unmarshal(s.lines.Bytes(), v)
}

// ask sends one line and reads the answer.
func (s *serving) ask(what string) (stats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out stats
	if _, err := fmt.Fprintln(s.stdin, what); err != nil {
		return out, err
	}
	return out, s.line(&out)
}

// stop ends the child and waits for it. It is killed when it does not end.
func (s *serving) stop() error {
	_ = s.stdin.Close()
	timer := time.AfterFunc(20*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, s.errs.String())
	}
	return nil
}

// stopAll stops children at the same time; nil is one that was not started.
func stopAll(all []*serving) {
	var wg sync.WaitGroup
	for _, s := range all {
		if s != nil {
			wg.Go(func() { _ = s.stop() })
		}
	}
	wg.Wait()
}

// gateway is a running gateway with its operator.
type gateway struct {
	*serving
	dir      string
	operator string
}

// startGateway starts a gateway on a directory; what more it is told are flags of the child.
func startGateway(ctx context.Context, dir string, args ...string) (*gateway, error) {
	s, err := serve(ctx, "gateway", append([]string{"-dir", dir}, args...)...)
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(dir, "operator.token"))
	if err != nil {
		_ = s.stop()
		return nil, err
	}
	return &gateway{s, dir, strings.TrimSpace(string(raw))}, nil
}

var control = &http.Client{Timeout: time.Minute}

// do sends one request to the control plane and decodes the answer into out, unless nil.
func (g *gateway) do(ctx context.Context, method, path string, body, out any, header ...string) error {
	_, err := g.tagged(ctx, method, path, body, out, header...)
	return err
}

// tagged is do that answers the ETag too.
func (g *gateway) tagged(ctx context.Context, method, path string, body, out any, header ...string) (etag string, err error) {
	var raw []byte
	contentType := "application/json"
	switch b := body.(type) {
	case nil:
	case []byte:
		raw, contentType = b, "application/wasm"
	default:
		if raw, err = json.Marshal(b); err != nil {
			return "", err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, g.Admin+path, bytes.NewReader(raw))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Authorization", "Bearer "+g.operator)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := control.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return "", err
	}
	if res.StatusCode/100 != 2 {
		return "", fmt.Errorf("%s %s: %d %s", method, path, res.StatusCode, answer)
	}
	if out == nil {
		return res.Header.Get("ETag"), nil
	}
	return res.Header.Get("ETag"), json.Unmarshal(answer, out)
}

// install uploads a module into an organisation and admits it to the environment project.
func (g *gateway) install(ctx context.Context, org, biome string, module []byte) error {
	if err := g.do(ctx, "POST", "/v1/biomes?org="+org, module, nil); err != nil {
		return err
	}
	var b struct{ Digest string }
	if err := g.do(ctx, "GET", "/v1/biomes/"+biome+"?org="+org, nil, &b); err != nil {
		return err
	}
	return g.do(ctx, "PUT", "/v1/installs/"+biome+"?org="+org, map[string]any{"digest": b.Digest, "environments": []string{"environment:project"}}, nil, "If-None-Match", "*")
}

func (g *gateway) grant(ctx context.Context, org, subject, ref string) error {
	return g.do(ctx, "POST", "/v1/grants?org="+org, map[string]any{"subject": subject, "capability": ref, "environment": "environment:project"}, nil)
}

// open opens a session and returns its token.
func (g *gateway) open(ctx context.Context, org, subject string) (string, error) {
	var out struct{ Token string }
	err := g.do(ctx, "POST", "/v1/sessions?org="+org, map[string]any{"subject": subject, "environment": "environment:project"}, &out)
	return out.Token, err
}

// allow installs a module, grants it to a subject and opens a session: a token that may.
func (g *gateway) allow(ctx context.Context, org, biome, ref string, module []byte) (string, error) {
	if err := g.install(ctx, org, biome, module); err != nil {
		return "", err
	}
	if err := g.grant(ctx, org, "user:bench", ref); err != nil {
		return "", err
	}
	return g.open(ctx, org, "user:bench")
}

// post is a request that invokes.
func (s *serving) post(ref, token string, body []byte, header ...string) load.Request {
	return load.Post(s.Invoke, "/v1/invoke/"+ref, token, body, header...)
}

// always makes the same request every time.
func always(r load.Request) func(int, int) load.Request {
	return func(int, int) load.Request { return r }
}

// drive runs a plan and refuses a result that is not all good.
func drive(ctx context.Context, p load.Plan) (*load.Result, error) {
	r, err := load.Run(ctx, p)
	if err != nil {
		return nil, err
	}
	if len(r.Latency) == 0 || r.Bad() > 0 {
		return nil, fmt.Errorf("%d answers, %d of them not 200: %v", len(r.Latency), r.Bad(), r.Status)
	}
	return r, nil
}

// costs drives like drive, and says too how much processor time of the server a request took.
func (s *serving) costs(ctx context.Context, p load.Plan) (r *load.Result, cpu float64, err error) {
	before, err := s.ask("stats")
	if err != nil {
		return nil, 0, err
	}
	if r, err = drive(ctx, p); err != nil {
		return nil, 0, err
	}
	after, err := s.ask("stats")
	return r, float64(after.CPU-before.CPU) / float64(len(r.Latency)), err
}

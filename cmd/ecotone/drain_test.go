package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// slow is a server with one invocation under way: its guest waits for an origin.
type slow struct {
	*served
	t       *testing.T
	token   string
	release func()
	first   chan answer // of the invocation
}

type answer struct {
	status int
	body   string
}

func startSlow(t *testing.T, flags ...string) *slow {
	t.Helper()
	entered, released := make(chan struct{}), make(chan struct{})
	origin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-released
	}))
	t.Cleanup(origin.Close)
	release := sync.OnceFunc(func() { close(released) })
	t.Cleanup(release)

	dir := filepath.Join(t.TempDir(), "data")
	server, err := startServer(os.Environ(), t.TempDir(), append([]string{"--data", dir, "--egress-loopback"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.kill)
	s := &slow{served: server, t: t, release: release, first: make(chan answer, 1)}
	module, token := filepath.Join(t.TempDir(), "fetch.wasm"), filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(module, fetcher(origin.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"endpoint", "put", "origin", origin.URL + "/**", "--loopback", "--clearance", "internal", "--label", "public"},
		{"biome", "push", module},
		{"biome", "install", "fetch", "--environment", "project", "--endpoint", "origin"},
		{"grant", "create", "user:alice", "t:slow.do@1", "project"},
		{"session", "open", "user:alice", "--environment", "project", "--save", token},
	} {
		var out bytes.Buffer
		args = append([]string{"--admin", s.Admin, "--invoke", s.Invoke, "--token-file", filepath.Join(dir, "operator.token")}, args...)
		if code := Run(t.Context(), args, strings.NewReader(""), &out, &out); code != exitDone {
			t.Fatalf("%v: exit code %d\n%s", args, code, &out)
		}
	}
	raw, err := os.ReadFile(token)
	if err != nil {
		t.Fatal(err)
	}
	s.token = strings.TrimSpace(string(raw))
	go func() { s.first <- s.invoke() }()
	select {
	case <-entered:
	case a := <-s.first:
		t.Fatalf("the invocation did not reach the origin: %+v", a)
	}
	return s
}

func (s *slow) invoke() answer { return s.request("POST", s.Invoke+"/v1/invoke/t:slow.do@1") }

func (s *slow) request(method, url string) answer {
	req, err := http.NewRequest(method, url, strings.NewReader("{}"))
	if err != nil {
		return answer{0, err.Error()}
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return answer{0, err.Error()}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{0, err.Error()}
	}
	return answer{res.StatusCode, string(body)}
}

// term sends SIGTERM.
func (s *slow) term() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
}

// drains sends SIGTERM and waits until the server says that it drains.
func (s *slow) drains() {
	s.t.Helper()
	if a := s.request("GET", s.Ops+"/readyz"); a.status != http.StatusOK {
		s.t.Errorf("before: /readyz %+v", a)
	}
	s.term()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		a := s.request("GET", s.Ops+"/readyz")
		if a.status == http.StatusServiceUnavailable && strings.Contains(a.body, "DRAINING") {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("while draining: /readyz %+v", a)
		}
	}
}

func (s *slow) ended() {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(patience):
		s.t.Fatal("the server does not stop")
	}
}

// SIGTERM drains: what runs gets its answer, what comes is refused and told why, /readyz is red
// and /livez is not, and the process ends with 0.
func TestTermDrains(t *testing.T) {
	t.Parallel()
	s := startSlow(t)
	s.drains()
	if a := s.request("GET", s.Ops+"/livez"); a.status != http.StatusOK {
		t.Errorf("while draining: /livez %+v", a)
	}
	var refused struct {
		Code abi.Code `json:"code"`
	}
	if a := s.invoke(); json.Unmarshal([]byte(a.body), &refused) != nil || refused.Code != abi.CodeDraining {
		t.Errorf("while draining: a new invocation got %+v", a)
	}
	s.release()
	if a := <-s.first; a.status != http.StatusOK || a.body != "{}" {
		t.Errorf("what ran got %+v", a)
	}
	if s.ended(); s.err != nil {
		t.Errorf("the server did not end well: %v\n%s", s.err, s.stderr)
	}
}

// A second SIGTERM does not wait for the drain.
func TestSecondTermEnds(t *testing.T) {
	t.Parallel()
	s := startSlow(t, "--drain-timeout", "1h")
	s.drains()
	s.term()
	s.ended()
	var exit *exec.ExitError
	if !errors.As(s.err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("the server ended with %v\n%s", s.err, s.stderr)
	}
}

// fetcher fetches one URL and answers {}.
func fetcher(url string) []byte {
	request := wasmtest.MustJSON(map[string]string{"method": "GET", "url": url + "/"})
	const at = 1024
	b := wasmtest.New()
	fetch, output := b.Host("http_fetch"), b.Host("output")
	b.Capability("do",
		wasmtest.I32Const(at), wasmtest.I32Const(int32(len(request))), wasmtest.I32Const(0), wasmtest.I32Const(0), wasmtest.Call(fetch), wasmtest.Op(wasmtest.OpDrop),
		wasmtest.I32Const(0), wasmtest.I32Const(2), wasmtest.Call(output), wasmtest.Op(wasmtest.OpI32WrapI64))
	b.Data(0, []byte("{}")).Data(at, request)
	m := wasmtest.Manifest("fetch", wasmtest.Provide("t:slow.do@1", "do", abi.ReachIntegration))
	m.Requires.Endpoints = []abi.Need{{Name: "origin", Why: "to wait for it"}}
	return b.Memory(1).ExportMemory().Manifest(m).Bytes()
}

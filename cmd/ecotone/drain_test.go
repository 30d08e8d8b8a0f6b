package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// SIGTERM drains: what runs gets its answer, what comes is refused and told why, /readyz is red
// and /livez is not, and the process ends with 0.
func TestTermDrains(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	origin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-release
	}))
	defer origin.Close()
	released := false
	defer func() {
		if !released {
			close(release)
		}
	}()

	dir := filepath.Join(t.TempDir(), "data")
	s, err := startServer(os.Environ(), t.TempDir(), "--data", dir, "--egress-loopback")
	if err != nil {
		t.Fatal(err)
	}
	defer s.kill()
	module := filepath.Join(t.TempDir(), "fetch.wasm")
	if err := os.WriteFile(module, fetcher(origin.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "token")
	run := func(args ...string) {
		t.Helper()
		var out bytes.Buffer
		args = append([]string{"--admin", s.Admin, "--invoke", s.Invoke, "--token-file", filepath.Join(dir, "operator.token")}, args...)
		if code := Run(t.Context(), args, strings.NewReader(""), &out, &out); code != exitDone {
			t.Fatalf("%v: exit code %d\n%s", args, code, &out)
		}
	}
	run("endpoint", "put", "origin", origin.URL+"/**", "--loopback", "--clearance", "internal", "--label", "public")
	run("biome", "push", module)
	run("biome", "install", "fetch", "--environment", "project", "--endpoint", "origin")
	run("grant", "create", "user:alice", "t:slow.do@1", "project")
	run("session", "open", "user:alice", "--environment", "project", "--save", token)
	raw, err := os.ReadFile(token)
	if err != nil {
		t.Fatal(err)
	}
	bearer := "Bearer " + strings.TrimSpace(string(raw))

	type answer struct {
		status int
		body   string
	}
	request := func(method, url string) answer {
		req, err := http.NewRequest(method, url, strings.NewReader("{}"))
		if err != nil {
			return answer{0, err.Error()}
		}
		req.Header.Set("Authorization", bearer)
		req.Header.Set("Content-Type", "application/json")
		client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Do(req)
		if err != nil {
			return answer{0, err.Error()}
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return answer{res.StatusCode, string(body)}
	}
	invoke := s.Invoke + "/v1/invoke/t:slow.do@1"
	first := make(chan answer, 1)
	go func() { first <- request("POST", invoke) }()
	select {
	case <-entered:
	case a := <-first:
		t.Fatalf("the invocation did not reach the origin: %+v", a)
	}
	if a := request("GET", s.Ops+"/readyz"); a.status != http.StatusOK {
		t.Errorf("before: /readyz %+v", a)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var ready answer
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ready = request("GET", s.Ops+"/readyz"); ready.status == http.StatusServiceUnavailable {
			break
		}
	}
	if ready.status != http.StatusServiceUnavailable || !strings.Contains(ready.body, "DRAINING") {
		t.Errorf("while draining: /readyz %+v", ready)
	}
	if a := request("GET", s.Ops+"/livez"); a.status != http.StatusOK {
		t.Errorf("while draining: /livez %+v", a)
	}
	var refused struct {
		Code abi.Code `json:"code"`
	}
	if a := request("POST", invoke); json.Unmarshal([]byte(a.body), &refused) != nil || refused.Code != abi.CodeDraining {
		t.Errorf("while draining: a new invocation got %+v", a)
	}
	close(release)
	released = true
	if a := <-first; a.status != http.StatusOK || a.body != "{}" {
		t.Errorf("what ran got %+v", a)
	}
	select {
	case <-s.done:
	case <-time.After(patience):
		t.Fatal("the server does not stop")
	}
	if s.err != nil {
		t.Errorf("the server did not end well: %v\n%s", s.err, s.stderr)
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

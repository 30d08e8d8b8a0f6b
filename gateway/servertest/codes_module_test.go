package servertest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// S10: a schema that is none, or that refers outside itself, is refused at upload.
func TestCodeSchemaInvalid(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	for _, schema := range []string{`{"type":"nonsense"}`, `{"$ref":"https://schemas.test/x"}`, `{"pattern":"("}`} {
		module := script("odd", nil, action{ref: "odd:a.do@1", reach: abi.ReachOwner, shape: func(d *abi.Descriptor) { d.InputSchema = json.RawMessage(schema) }})
		r := g.Upload(module).Refused(abi.CodeModuleRefused)
		if !slices.ContainsFunc(problems(t, r), func(p uploadProblem) bool { return p.Code == abi.CodeSchemaInvalid }) {
			t.Errorf("%s: %s", schema, r.Body)
		}
	}
}

// S14: without a compiled form nothing is invoked and the server compiles nothing itself; while the
// original is missing it stays so.
func TestCodeImageNotReady(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "cold", script("cold", nil, action{ref: "cold:a.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	s := g.Open("user:alice", "project", nil)
	s.Invoke("cold:a.do@1", none).Want(200)
	g.Stop()
	for path := range contents(t, filepath.Join(g.Dir, "cache")) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	originals, err := filepath.Glob(filepath.Join(g.Dir, "modules", "*.wasm"))
	if err != nil || len(originals) != 1 {
		t.Fatalf("the originals are %v, %v", originals, err)
	}
	if err := os.Rename(originals[0], originals[0]+".away"); err != nil {
		t.Fatal(err)
	}
	g = servertest.Start(t, servertest.In(g.Dir))
	s.G = g
	if n := started(g, func() { s.Invoke("cold:a.do@1", none).Refused(abi.CodeImageNotReady) }); n != 0 {
		t.Errorf("%d guests were started", n)
	}
	if err := os.Rename(originals[0]+".away", originals[0]); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		r := s.Invoke("cold:a.do@1", none)
		if r.Status == 200 {
			return
		}
		if r.Refused(abi.CodeImageNotReady); time.Now().After(deadline) {
			t.Fatal("the compiled form is not made again")
		}
	}
}

// M49
func TestCodeSchemaUnsupported(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Stop()
	if err := os.WriteFile(filepath.Join(g.Dir, "SCHEMA"), []byte(`{"schema":1000,"dev":false}`), 0o600); err != nil {
		t.Fatal(err)
	}
	servertest.DoesNotOpen(t, abi.CodeSchemaUnsupported, servertest.In(g.Dir))
}

// S14: a compile child that ends without an answer is a refused upload and nothing else. The test is
// not parallel: the child it ends is the only one there is.
func TestCodeCompileFailed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("children are found in /proc")
	}
	g := servertest.Start(t)
	heavy := w.New()
	conditionals(heavy)
	heavy.Capability("run")
	heavy.Memory(1).ExportMemory().Manifest(w.Manifest("heavy", w.Provide("test:heavy.do@1", "run", abi.ReachOwner)))
	answered := make(chan servertest.Response, 1)
	go func() { answered <- g.Upload(heavy.Bytes()) }()
	for {
		if pid := child(t); pid != 0 {
			p, err := os.FindProcess(pid)
			if err == nil {
				err = p.Signal(syscall.SIGABRT)
			}
			if err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
		}
		select {
		case r := <-answered:
			r.Refused(abi.CodeModuleRefused)
			if p := problems(t, r); len(p) != 1 || p[0].Code != abi.CodeCompileFailed {
				t.Errorf("%s", r.Body)
			}
			g.Upload(padded(1)).Want(201)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// child is the compile child of this process, or 0.
func child(t *testing.T) int {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		dir := filepath.Dir(path)
		line, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(line, []byte("ecotone-compile\x00")) {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(dir, "stat")) // pid (name) state parent …
		if err != nil {
			continue
		}
		after := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(after) > 1 && after[1] == strconv.Itoa(os.Getpid()) {
			pid, err := strconv.Atoi(filepath.Base(dir))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	return 0
}

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/biomes/build"
	"github.com/ecotone-dev/ecotone/host/compile"
	"github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// TestMain lets the test binary be the command itself, for scripts and for servers, and the child
// that a server compiles in.
func TestMain(m *testing.M) {
	compile.RunIfChild()
	testscript.Main(m, map[string]func(){"ecotone": main})
}

// TestScripts runs testdata/*.txtar: the real command against real servers, each a process. Beside
// testscript's own commands there are those of scriptCommands.
func TestScripts(t *testing.T) {
	root, err := build.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Scripts have no home; what the Go tool keeps there is named to it.
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	kept := strings.Split(string(out), "\n")
	// The engine's module brings programs for WASI that others compiled.
	programs := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero")
	programs.Dir = root
	engine, err := programs.Output()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata", RequireExplicitExec: true, RequireUniqueNames: true, Cmds: scriptCommands,
		// [c], [rust] and [assemblyscript] hold where biomes in these can be built.
		Condition: func(name string) (bool, error) {
			if !slices.Contains(build.Languages(), build.Language(name)) {
				return false, fmt.Errorf("unknown condition %s", name)
			}
			err := build.Available(t.Context(), t.TempDir(), build.Language(name))
			if err != nil {
				t.Logf("SKIPPED: %v", err)
			}
			return err == nil, nil
		},
		Setup: func(e *testscript.Env) error {
			for i, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY"} {
				e.Setenv(name, kept[i])
			}
			home, _ := os.UserHomeDir()
			for name, folder := range map[string]string{"CARGO_HOME": ".cargo", "RUSTUP_HOME": ".rustup"} {
				e.Setenv(name, cmp.Or(os.Getenv(name), filepath.Join(home, folder)))
			}
			e.Setenv("ROOT", root)
			e.Setenv("PROGRAMS", filepath.Join(strings.TrimSpace(string(engine)), "imports/wasi_snapshot_preview1/example/testdata"))
			e.Setenv("ECOTONE_VERIFY", "all")
			return nil
		},
	})
}

type scriptCommand = func(*testscript.TestScript, bool, []string)

var scriptCommands = map[string]scriptCommand{
	"code":    cmdCode,
	"start":   cmdStart,
	"stop":    cmdStop,
	"mkbiome": cmdBiome,
	"field":   cmdField,
	"members": cmdMembers,
	"mode":    cmdMode,
	"flip":    cmdFlip,
	"notools": cmdNoTools,
}

// code N args... runs ecotone and wants exactly that exit code.
func cmdCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: code N args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec("ecotone", args[1:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d\n%s%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// patience bounds what the tests wait for.
const patience = time.Minute

// served is one running server.
type served struct {
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	done   chan struct{}
	err    error // of Wait, after done
	extra  int   // lines on standard output after the first

	Invoke, Admin, Ops string
}

// startServer runs serve as a process of its own and waits for the line that says it serves.
func startServer(env []string, dir string, args ...string) (*served, error) {
	return startServerLogging(nil, env, dir, args...)
}

// startServerLogging writes the server's log to a writer; nil keeps it for the end.
func startServerLogging(log io.Writer, env []string, dir string, args ...string) (*served, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &served{stderr: &bytes.Buffer{}, done: make(chan struct{})}
	if log == nil {
		log = s.stderr
	}
	s.cmd = &exec.Cmd{
		Path: exe, Env: env, Dir: dir, Stderr: log, WaitDelay: patience,
		Args: append([]string{"ecotone", "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"}, args...),
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	go func() {
		defer close(s.done)
		lines := bufio.NewScanner(out)
		if lines.Scan() && json.Unmarshal(lines.Bytes(), s) == nil {
			close(ready)
		}
		for lines.Scan() {
			s.extra++
		}
		s.err = s.cmd.Wait()
	}()
	select {
	case <-ready:
		return s, nil
	case <-s.done:
		return nil, fmt.Errorf("the server ended before it served: %w\n%s", s.err, s.stderr)
	case <-time.After(patience):
		s.kill()
		return nil, errors.New("the server does not get ready")
	}
}

func (s *served) kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// stop asks the server to end; it has to end well.
func (s *served) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-s.done:
	case <-time.After(patience):
		s.kill()
		return errors.New("the server does not stop")
	}
	if s.err != nil || s.extra > 0 {
		return fmt.Errorf("the server did not stop cleanly, or wrote %d lines more: %w\n%s", s.extra, s.err, s.stderr)
	}
	return nil
}

var running = map[*testscript.TestScript]*served{}

// start [flags] runs a server on $WORK/data and points the environment at it.
func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	if neg || running[ts] != nil {
		ts.Fatalf("usage: start [flags], once until stop")
	}
	s, err := startServer(os.Environ(), ts.MkAbs("."), append([]string{"--data", ts.MkAbs("data")}, args...)...)
	ts.Check(err)
	running[ts] = s
	ts.Defer(func() {
		s.kill()
		delete(running, ts)
	})
	ts.Setenv("ECOTONE_ADMIN", s.Admin)
	ts.Setenv("ECOTONE_INVOKE", s.Invoke)
	ts.Setenv("ADMIN_ADDRESS", strings.TrimPrefix(s.Admin, "http://"))
	ts.Setenv("ECOTONE_TOKEN_FILE", ts.MkAbs("data/operator.token"))
}

// stop ends the server with SIGTERM.
func cmdStop(ts *testscript.TestScript, neg bool, args []string) {
	s := running[ts]
	if neg || len(args) > 0 || s == nil {
		ts.Fatalf("usage: stop, after start")
	}
	delete(running, ts)
	ts.Check(s.stop())
}

// mkbiome [-bare] [-import fn] FILE REF REACH [REF REACH]... writes a biome whose capabilities answer
// their input. Its name is the file's. -bare leaves the manifest out; -import lets it import one
// more host function than it uses.
func cmdBiome(ts *testscript.TestScript, neg bool, args []string) {
	bare, extra := false, ""
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch {
		case args[0] == "-bare":
			bare, args = true, args[1:]
		case args[0] == "-import" && len(args) > 1:
			extra, args = args[1], args[2:]
		default:
			ts.Fatalf("mkbiome: unknown flag %s", args[0])
		}
	}
	if neg || len(args) < 3 || len(args)%2 == 0 {
		ts.Fatalf("usage: mkbiome [-bare] [-import fn] FILE REF REACH...")
	}
	b := wasmtest.New()
	input, read, output := b.Host("input"), b.Host("result_read"), b.Host("output")
	if extra != "" {
		b.Host(extra)
	}
	m := wasmtest.Manifest(strings.TrimSuffix(filepath.Base(args[0]), ".wasm"))
	for i := 1; i < len(args); i += 2 {
		reach, err := abi.ParseReach(args[i+1])
		ts.Check(err)
		export := fmt.Sprintf("do%d", i/2)
		const at, size = 1024, 63 << 10
		b.Capability(export,
			wasmtest.Call(input), wasmtest.Op(wasmtest.OpDrop), wasmtest.I32Const(at),
			wasmtest.I32Const(at), wasmtest.I32Const(0), wasmtest.I32Const(size), wasmtest.Call(read), wasmtest.Op(wasmtest.OpI32WrapI64),
			wasmtest.Call(output), wasmtest.Op(wasmtest.OpI32WrapI64))
		m.Provides = append(m.Provides, wasmtest.Provide(args[i], export, reach))
	}
	b.Memory(1).ExportMemory()
	if !bare {
		b.Manifest(m)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o644))
}

// field VAR path sets a variable to a member of the JSON on the last standard output, as of.id.
func cmdField(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: field VAR path")
	}
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	for _, name := range strings.Split(args[1], ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[name]
		case []any:
			i, err := strconv.Atoi(name)
			ts.Check(err)
			if i >= len(at) {
				ts.Fatalf("there is no %s in %s", args[1], ts.ReadFile("stdout"))
			}
			v = at[i]
		default:
			v = nil
		}
	}
	text, ok := v.(string)
	if !ok {
		ts.Fatalf("%s is no string in %s", args[1], ts.ReadFile("stdout"))
	}
	ts.Setenv(args[0], text)
}

// members FILE holds that the JSON on the last standard output has every member whose path is a line
// of FILE, as .items[].id. It may have more.
func cmdMembers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: members FILE")
	}
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	paths := map[string]bool{}
	walk("", v, paths)
	want := strings.Fields(ts.ReadFile(args[0]))
	for _, p := range want {
		if !paths[p] {
			ts.Fatalf("%s is not in %s", p, ts.ReadFile("stdout"))
		}
	}
	if len(want) == 0 {
		ts.Fatalf("%s is empty", args[0])
	}
}

// walk collects the paths of v's values.
func walk(at string, v any, paths map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			walk(at+"."+name, member, paths)
		}
	case []any:
		for _, item := range v {
			walk(at+"[]", item, paths)
		}
	default:
		paths[at] = true
	}
}

// mode MODE FILE holds a file's permissions.
func cmdMode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mode 600 FILE")
	}
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := strconv.FormatUint(uint64(info.Mode().Perm()), 8); got != args[0] {
		ts.Fatalf("%s has mode %s", args[1], got)
	}
}

// flip GLOB changes one byte in the middle of the one file that matches.
func cmdFlip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: flip GLOB")
	}
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(files) != 1 {
		ts.Fatalf("%s matches %v", args[0], files)
	}
	raw, err := os.ReadFile(files[0])
	ts.Check(err)
	raw[len(raw)/2] ^= 1
	ts.Check(os.WriteFile(files[0], raw, 0o600))
}

// notools leaves nothing on the path but ecotone itself.
func cmdNoTools(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: notools")
	}
	ts.Setenv("PATH", filepath.SplitList(ts.Getenv("PATH"))[0])
}

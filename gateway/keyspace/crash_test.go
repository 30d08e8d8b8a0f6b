package keyspace

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/store/badger"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/files"
)

const crashEnv = "ECOTONE_TEST_CRASH_DIR"

// change is one line of the child: what it is about to do, and with Done that it did.
type change struct {
	N    int
	Call string
	Path string
	To   string
	Data string
	Done bool
}

// crashChild is the process that is killed: it changes files and keys and says so.
func crashChild() {
	dir := os.Getenv(crashEnv)
	if dir == "" {
		return
	}
	st, err := badger.Open(dir, false)
	check(err)
	svc, err := files.New(dir, NewLabels(st))
	check(err)
	ctx := context.Background()
	check(svc.Ensure(ctx, "WS1", abi.Public))
	kv := New(st)
	spec := someSpec()
	spec.Ceiling = abi.Public // an imported file is absent
	pick := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	paths := []string{"a", "b", "d/a", "d/b", "d/e/a"}
	out := json.NewEncoder(os.Stdout)
	for n := 0; ; n++ {
		c := change{
			N: n, Call: []string{"write", "write", "edit", "copy", "move", "remove", "put", "delete"}[pick.IntN(8)],
			Path: paths[pick.IntN(len(paths))], To: paths[pick.IntN(len(paths))],
		}
		c.Data = fmt.Sprintf("%d-%d:%s", os.Getpid(), n, strings.Repeat("x", pick.IntN(20_000)))
		check(out.Encode(c))
		sc, _ := scope(spec)
		switch c.Call {
		case "write":
			_, err = svc.Read(ctx, sc, c.Path, 0, 0)
			if err == nil || abi.CodeOf(err) == abi.CodeFileNotFound {
				_, err = svc.Write(ctx, sc, c.Path, []byte(c.Data))
			}
		case "edit":
			if _, err = svc.Read(ctx, sc, c.Path, 0, 0); err == nil {
				_, err = svc.Edit(ctx, sc, c.Path, []byte(":"), []byte("!:"), true)
			}
		case "copy":
			_, err = svc.Copy(ctx, sc, c.Path, c.To)
		case "move":
			_, err = svc.Move(ctx, sc, c.Path, c.To)
		case "remove":
			_, err = svc.Remove(ctx, sc, c.Path)
		case "put":
			_, err = kv.Put(ctx, sc, c.Path, []byte(c.Data))
		case "delete":
			_, err = kv.Delete(ctx, sc, c.Path)
		}
		if err != nil {
			switch abi.CodeOf(err) {
			case abi.CodeFileNotFound, abi.CodeFileExists, abi.CodeKeyNotFound:
			default:
				check(err)
			}
		}
		c.Done = true
		check(out.Encode(c))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

// model is what must be there.
type model struct{ files, keys map[string]string }

func (m model) clone() model {
	c := model{map[string]string{}, map[string]string{}}
	for k, v := range m.files {
		c.files[k] = v
	}
	for k, v := range m.keys {
		c.keys[k] = v
	}
	return c
}

func (m model) apply(c change) {
	old, there := m.files[c.Path]
	_, taken := m.files[c.To]
	switch c.Call {
	case "write":
		m.files[c.Path] = c.Data
	case "edit":
		if there {
			m.files[c.Path] = strings.ReplaceAll(old, ":", "!:")
		}
	case "copy", "move":
		if there && !taken {
			m.files[c.To] = old
			if c.Call == "move" {
				delete(m.files, c.Path)
			}
		}
	case "remove":
		delete(m.files, c.Path)
	case "put":
		m.keys[c.Path] = c.Data
	case "delete":
		delete(m.keys, c.Path)
	}
}

// The process is killed at random moments, again and again on one data directory. What it
// had acknowledged is there, what it was doing is done or not begun, no file is torn, no
// temporary file is left, and no file of ours is taken for one that came from outside.
func TestKilledAtAnyMoment(t *testing.T) {
	dir := t.TempDir()
	m := model{map[string]string{}, map[string]string{}}
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	changes := 0
	for round := range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashEnv+"="+dir)
		cmd.Stderr = os.Stderr
		pipe, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		lines := bufio.NewScanner(pipe)
		lines.Buffer(nil, 1<<20)
		var doing *change
		kill := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
		for lines.Scan() {
			var c change
			if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
				break // the line the kill cut
			}
			if c.N == 0 && !c.Done {
				kill.Reset(time.Duration(5+rand.IntN(150)) * time.Millisecond)
			}
			if doing = &c; c.Done {
				m.apply(c)
				doing = nil
				changes++
			}
		}
		kill.Stop()
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
			t.Fatalf("round %d: the child was not killed: %v", round, err)
		}
		m = settle(t, dir, round, m, doing)
	}
	if changes < rounds {
		t.Errorf("only %d changes in %d rounds", changes, rounds)
	}
}

// settle compares what is there with the model, with or without the change that was under way.
func settle(t *testing.T, dir string, round int, m model, doing *change) model {
	t.Helper()
	st, err := badger.Open(dir, false)
	must(t, err)
	defer st.Close()
	svc, err := files.New(dir, NewLabels(st))
	must(t, err)
	defer svc.Close()
	spec := someSpec()
	spec.Ceiling = abi.Public
	kv := New(st)
	holds := func(m model) (wrong string) {
		for _, p := range []string{"a", "b", "d/a", "d/b", "d/e/a"} {
			got, ok := readAll(t, svc, spec, p)
			if want, there := m.files[p]; ok != there || got != want {
				return fmt.Sprintf("file %s: there %v, %.40q (%d bytes), want %v, %.40q (%d bytes)", p, ok, got, len(got), there, want, len(want))
			}
			sc, _ := scope(spec)
			r, err := kv.Get(t.Context(), sc, p)
			if want, there := m.keys[p]; (err == nil) != there || string(r.Body) != want {
				return fmt.Sprintf("key %s: %v, %d bytes, want %v, %d bytes", p, err, len(r.Body), there, len(want))
			}
		}
		return ""
	}
	wrong := holds(m)
	if wrong != "" && doing != nil {
		after := m.clone()
		after.apply(*doing)
		if holds(after) == "" {
			m, wrong = after, ""
		}
	}
	if wrong != "" {
		t.Fatalf("round %d, after %+.80v: %s", round, doing, wrong)
	}
	root := filepath.Join(dir, "workspaces", "WS1")
	must(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), ".ecotone") {
			t.Errorf("round %d: %s is left", round, d.Name())
		}
		return err
	}))
	return m
}

func readAll(t *testing.T, svc *files.Service, spec authority.Spec, p string) (string, bool) {
	t.Helper()
	sc, _ := scope(spec)
	r, err := svc.Read(t.Context(), sc, p, 0, files.MaxReadBytes)
	switch abi.CodeOf(err) {
	case "":
		return string(r.Body), true
	case abi.CodeFileNotFound:
		return "", false
	}
	t.Fatalf("read %s: %v", p, err)
	return "", false
}

var _ boundary.Files = (*files.Service)(nil)

package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/files"
	programs "github.com/ecotone-dev/ecotone/testdata/wasi"
)

// shipped are the programs that the engine's module has for tests of its own WASI, as they are.
func shipped(t *testing.T) (dir string) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	dir = filepath.Join(strings.TrimSpace(string(out)), "imports", "wasi_snapshot_preview1", "testdata")
	if _, missing := os.Stat(filepath.Join(dir, "zig", "wasi.wasm")); err != nil || missing != nil {
		t.Skipf("the engine's test programs are not here (%v): they are not under go mod vendor", err)
	}
	return dir
}

// labels keeps the records of one workspace in memory.
type labels map[string]files.Record

func (l labels) Load(_ context.Context, _ string, fn func(string, files.Record) error) error {
	for p, r := range l {
		if err := fn(p, r); err != nil {
			return err
		}
	}
	return nil
}

func (l labels) Apply(_ context.Context, _ string, changes []files.Change) error {
	for _, c := range changes {
		if delete(l, c.Path); c.Record != nil {
			l[c.Path] = *c.Record
		}
	}
	return nil
}

// unwritten is a journal for tests that look at no audit.
type unwritten struct{ boundary.Journal }

func (unwritten) Started(context.Context, *authority.Authority) error { return nil }

// Programs in Rust, TinyGo, Zig, C and Go that know nothing of this host say what the engine's own
// tests have them say, in an instance that is put back between them.
func TestShippedWASIPrograms(t *testing.T) {
	dir := shipped(t)
	data := t.TempDir()
	service, err := files.New(data, labels{}, files.WithImportLabel(abi.Public))
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	for _, ws := range []string{"few", "many"} {
		if err := service.Ensure(t.Context(), ws, abi.Public); err != nil {
			t.Fatal(err)
		}
	}
	plant := func(ws, name string) {
		if err := os.WriteFile(filepath.Join(data, "workspaces", ws, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(data, "workspaces", "few", "a-"), 0o700); err != nil {
		t.Fatal(err)
	}
	plant("few", "-")
	plant("few", "ab-")
	const many = 1234 // more than one host call lists
	for i := range many {
		plant("many", fmt.Sprint(i))
	}
	binaries := map[string]string{}
	for _, name := range []string{"cargo-wasi", "tinygo", "zig", "zig-cc"} {
		binaries[name] = filepath.Join(dir, name, "wasi.wasm")
	}
	if !testing.Short() {
		binaries["go"] = filepath.Join(t.TempDir(), "go.wasm")
		build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", binaries["go"], filepath.Join(dir, "go", "wasi.go"))
		build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for name, path := range binaries {
		t.Run(name, func(t *testing.T) {
			module, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			// What an operator sets for such programs: Go's has 9 MB, and Zig's begins with 16 MiB of memory.
			r := newRig(t, 0, func(l *abi.Limits) { l[abi.LimitModuleBytes] = 16 << 20 })
			digest := r.admit(programs.Biome("wasi", module, programs.Text(programs.Command("test:it.run@1", "ls"))))
			run := func(ws, input string, args ...string) host.Outcome {
				spec := authority.Spec{
					Invocation: "01J0000000000000000000TEST", Org: "acme", Digest: digest, Biome: "wasi", Export: abi.ExportStart, Capability: "test:it.run@1",
					Face: abi.FaceWASI, Arguments: args, InputEncoding: abi.EncodingText, OutputEncoding: abi.EncodingText, Session: "s", Workspace: ws,
					Reach: abi.ReachOwner, Start: abi.Public, Ceiling: abi.Regulated, Clearance: abi.Regulated, Limits: abi.DefaultLimits(),
				}
				spec.Limits[abi.LimitMemoryBytes] = 64 << 20
				spec.Limits[abi.LimitWall] = 60_000 // machines under load
				return r.host.Run(patience(t), boundary.New(boundary.Spec{
					Authority: authority.New(spec, func() *abi.Error { return nil }), Input: []byte(fmt.Sprintf("%q", input)),
					Services: boundary.Services{Files: service, Journal: unwritten{}},
				}))
			}
			lines := func(o host.Outcome) []string {
				t.Helper()
				var text string
				if o.Err != nil {
					t.Fatalf("%v %+v", o.Err, o.Receipt.Logs)
				}
				if err := json.Unmarshal(o.Output, &text); err != nil {
					t.Fatal(err)
				}
				all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
				slices.Sort(all)
				return slices.DeleteFunc(all, func(s string) bool { return s == "./." || s == "./.." || s == "" })
			}
			for round := range 3 {
				is := func(got []string, want ...string) {
					t.Helper()
					if !slices.Equal(got, want) {
						t.Errorf("round %d: %q, want %q", round, got, want)
					}
				}
				is(lines(run("few", "", "ls", "./a-")))
				is(lines(run("few", "", "ls", "-")), "ENOTDIR")
				is(lines(run("few", "", "ls", ".")), "./-", "./a-", "./ab-")
				if name != "tinygo" { // which does not rewind
					is(lines(run("few", "", "ls", ".", "repeat")), "./-", "./-", "./a-", "./a-", "./ab-", "./ab-")
				}
				is(lines(run("few", "", "stat")), "/ isatty: false", "stderr isatty: false", "stdin isatty: false", "stdout isatty: false")
				switch name {
				case "zig":
					is(lines(run("few", "", "preopen")), "0: stdin", "1: stdout", "2: stderr", "3: /")
				case "zig-cc":
					is(lines(run("few", "x", "poll", "0", "500")), "STDIN")
					is(lines(run("few", "", "sleepmillis", "1")), "OK")
					is(lines(run("few", "", "open-rdonly")), "OK")
					is(lines(run("few", "", "open-wronly")), "OK")
				case "go":
					is(lines(run("few", "", "stdout")), "test")
					if got := lines(run("few", "", "largestdout")); len(got) < 5000 {
						t.Errorf("%d lines", len(got))
					}
				}
			}
			if got := lines(run("many", "", "ls", ".")); len(got) != many {
				t.Errorf("%d of %d names", len(got), many)
			}
		})
	}
}

// A program that does not end is ended, whatever it does, and the next invocation is as the first.
func TestHostileWASIProgram(t *testing.T) { // PF-D3, PF-D6, PF-E2: wasi_sleep_hour, cpu_loop, trap_second_call, state_global
	r := newRig(t, 0)
	digest := r.admit(programs.Biome("tool", programs.Tool, programs.Command("test:it.run@1")))
	run := func(wall int64, args ...string) host.Outcome {
		return r.run("acme", digest, abi.ExportStart, `{}`, func(s *authority.Spec) {
			s.Face, s.Biome, s.Arguments = abi.FaceWASI, "tool", args
			s.Limits[abi.LimitWall] = wall
		})
	}
	for range 2 {
		for _, c := range []struct {
			what string
			wall int64
			want abi.Code
		}{{"sleep", 50, abi.CodeDeadline}, {"spin", 50, abi.CodeDeadline}, {"abort", 60_000, abi.CodeGuestTrap}, {"upper", 60_000, ""}} {
			o := run(c.wall, c.what)
			if abi.CodeOf(o.Err) != c.want && c.want != "" || c.want == "" && o.Err != nil {
				t.Errorf("%s: %v", c.what, o.Err)
			}
			if o := run(60_000, "count"); string(o.Output) != "1" {
				t.Errorf("after %s: %s, %v", c.what, o.Output, o.Err)
			}
		}
	}
}

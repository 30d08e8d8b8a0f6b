package servertest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
	programs "github.com/ecotone-dev/ecotone/testdata/wasi"
)

// functionsOf are the host calls of an invocation's receipt, in order.
func functionsOf(g *servertest.Gateway, r servertest.Response) (names []string) {
	g.T.Helper()
	for _, l := range row(g, r).Ended.Lines {
		names = append(names, l.Function)
	}
	return names
}

// toolIn admits the tool with the capabilities that tests use, in an environment.
func toolIn(g *servertest.Gateway, environments ...string) {
	g.T.Helper()
	var provides []abi.Descriptor
	for name, args := range map[string]string{
		"args": "args", "exit-none": "exit 0", "exit-some": "exit 7", "abort": "abort", "count": "count", "spin": "spin", "sleep": "sleep",
		"ls": "ls .", "stat": "stat kept.txt", "mkdir": "mkdir made", "rm": "rm kept.txt", "mv": "mv kept.txt moved.txt",
		"ln": "ln kept.txt link", "symlink": "symlink kept.txt link", "out": "stat ../..",
	} {
		provides = append(provides, programs.Command("tool:"+name+".do@1", strings.Fields(args)...))
	}
	for name, args := range map[string]string{
		"upper": "upper", "cat": "cat kept.txt", "put": "put kept.txt", "append": "append kept.txt", "new": "new kept.txt", "left": "left kept.txt",
	} {
		provides = append(provides, programs.Text(programs.Command("tool:"+name+".do@1", strings.Fields(args)...)))
	}
	admit(g, "tool", programs.Biome("tool", programs.Tool, provides...), environments, nil)
}

// A program that was written for WASI alone is uploaded as it is: its input is stdin, its output stdout,
// its arguments the manifest's, its environment empty, and nothing of it is left for the next.
func TestWASICommand(t *testing.T) { // PF-E2, H15
	t.Parallel()
	g := servertest.Start(t)
	toolIn(g, "project", "sandbox")
	for _, slug := range []string{"project", "sandbox"} {
		s := g.Open("user:alice", slug, nil)
		if r := s.Invoke("tool:upper.do@1", "größe <a&b>\n"); string(r.Want(200).Body) != `"GRößE <A&B>\n"` {
			t.Errorf("%s", r.Body)
		}
		if r := s.Invoke("tool:args.do@1", none); string(r.Want(200).Body) != `["tool","args"]` {
			t.Errorf("%s", r.Body)
		}
		for range 3 {
			if r := s.Invoke("tool:count.do@1", none); string(r.Want(200).Body) != `1` {
				t.Errorf("%s", r.Body)
			}
			if r := s.Invoke("tool:exit-none.do@1", none); string(r.Want(200).Body) != `1` {
				t.Errorf("%s", r.Body)
			}
		}
		if r := s.Invoke("tool:exit-some.do@1", none).Refused(abi.CodeGuestExit); strings.Contains(string(r.Body), `"output"`) {
			t.Errorf("%s", r.Body)
		}
		s.Invoke("tool:abort.do@1", none).Refused(abi.CodeGuestTrap)
		s.Invoke("tool:upper.do@1", 7).Refused(abi.CodeInputSchema)
		// Without a workspace there is no descriptor to begin a path with.
		if r := s.Invoke("tool:ls.do@1", none).Refused(abi.CodeGuestExit); row(g, r).Ended == nil {
			t.Errorf("%s", r.Body)
		}
	}
}

// Files are the session's workspace, through the host calls that native biomes make, with their receipt.
func TestWASIFiles(t *testing.T) { // PF-C1, PF-C2
	t.Parallel()
	g := servertest.Start(t)
	toolIn(g, "project")
	s := g.Open("user:alice", "project", map[string]any{"files": true})
	is := func(name string, input any, want string) servertest.Response {
		t.Helper()
		r := s.Invoke("tool:"+name+".do@1", input)
		if got := string(r.Want(200).Body); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		return r
	}
	fails := func(name string, input any, errno string) {
		t.Helper()
		r := s.Invoke("tool:"+name+".do@1", input).Refused(abi.CodeGuestExit)
		if !strings.Contains(string(r.Body), "with code "+errno+`"`) {
			t.Errorf("%s: %s", name, r.Body)
		}
	}
	fails("cat", "", "44")
	r := is("put", "hello", `"true"`)
	if calls := functionsOf(g, r); !slices.Equal(calls, []string{"file_stat", "file_create", "file_replace"}) {
		t.Errorf("%v", calls)
	}
	is("cat", "", `"hello"`)
	is("append", ", again", `"true"`)
	is("cat", "", `"hello, again"`)
	fails("new", "x", "20")
	is("left", "never closed", `"true"`) // the end of the run closes it
	is("cat", "", `"never closed"`)
	is("stat", none, `{"size":12,"dir":false}`)
	is("mkdir", none, `true`)
	is("ls", none, `["kept.txt","made/"]`)
	fails("ln", none, "58")
	fails("symlink", none, "58")
	fails("out", none, "76")
	is("mv", none, `true`)
	is("ls", none, `["made/","moved.txt"]`)
	fails("rm", none, "44")
}

// What POSIX programs expect of open, truncation, offsets, directories, names and descriptors.
func TestWASIManyFiles(t *testing.T) { // PF-C1, PF-C2
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "many", programs.Biome("many", programs.ManyFiles, programs.Command("many:files.do@1")), []string{"project"}, nil)
	s := g.Open("user:alice", "project", map[string]any{"files": true})
	for range 2 {
		if r := s.Invoke("many:files.do@1", none).Want(200); string(r.Body) != "72" {
			t.Errorf("%s", r.Body)
		}
	}
}

// A module that takes from two interfaces is refused, and told which.
func TestCodeFaceMixed(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	b := w.New()
	b.Host("output")
	b.Capability("run")
	m := w.Manifest("mixed", w.Provide("mixed:a.do@1", "run", abi.ReachOwner))
	m.ABI = abi.FaceWASI
	r := g.Upload(b.Memory(1).ExportMemory().Manifest(m).Bytes()).Refused(abi.CodeModuleRefused)
	if p := problems(t, r); len(p) != 1 || p[0].Code != abi.CodeFaceMixed || !strings.Contains(p[0].Message, "an Ecotone biome") {
		t.Errorf("%s", r.Body)
	}
}

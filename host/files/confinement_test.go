package files_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/files"
)

// outside makes a directory with a canary that no guest may reach.
func outside(t *testing.T) (dir string, check func()) {
	t.Helper()
	dir = t.TempDir()
	canary := filepath.Join(dir, "canary")
	must(t, os.WriteFile(canary, []byte("CANARY"), 0o600))
	return dir, func() {
		t.Helper()
		got, err := os.ReadFile(canary)
		must(t, err)
		entries, err := os.ReadDir(dir)
		must(t, err)
		if string(got) != "CANARY" || len(entries) != 1 {
			t.Errorf("outside: %q, %d entries", got, len(entries))
		}
	}
}

// M15, PF-C1, PF-C2, PF-C3: what stands in a workspace and is not a plain file or directory
// of it is refused by every function, wherever on the path it stands, and is never shown.
func TestLinksAreRefusedEverywhere(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs links and sockets")
	}
	b := newBench(t)
	out, intact := outside(t)
	g := b.guest()
	g.ok(g.create("real/file", "inside CANARY"))
	g.ok(g.create("mine", "mine"))
	in := b.host(".")
	for name, plant := range map[string]func(at string) error{
		"absolute-file":  func(at string) error { return os.Symlink(filepath.Join(out, "canary"), at) },
		"absolute-dir":   func(at string) error { return os.Symlink(out, at) },
		"relative-dir":   func(at string) error { rel, _ := filepath.Rel(in, out); return os.Symlink(rel, at) },
		"inside-file":    func(at string) error { return os.Symlink("real/file", at) },
		"inside-dir":     func(at string) error { return os.Symlink("real", at) },
		"dangling":       func(at string) error { return os.Symlink("nowhere", at) },
		"self":           func(at string) error { return os.Symlink(filepath.Base(at), at) },
		"hard-link":      func(at string) error { return os.Link(filepath.Join(out, "canary"), at) },
		"socket":         func(at string) error { return listen(t, at) },
		"link-to-device": func(at string) error { return os.Symlink("/dev/zero", at) },
	} {
		t.Run(name, func(t *testing.T) {
			b := *b
			b.T = t
			g := b.guest()
			at := b.host(name)
			must(t, plant(at))
			defer os.Remove(at)
			version := strings.Repeat("A", 26)
			for _, p := range []string{name, "./" + name, name + "/canary", name + "/file", name + "/new", name + "/deep/new"} {
				for _, a := range []answer{
					g.stat(p), g.read(p), g.list(p), g.write(p, "x"), g.replace(p, version, "x"), g.edit(p, "C", "x", true),
					g.copy(p, "copied"), g.move(p, "moved"), g.remove(p),
				} {
					g.refused(a, abi.CodeNotRegular)
				}
				taken := abi.CodeNotRegular // a part of the path
				if filepath.Clean(p) == name {
					taken = abi.CodeFileExists
				}
				for _, a := range []answer{g.create(p, "x"), g.copy("mine", p), g.move("mine", p)} {
					g.refused(a, taken)
				}
			}
			for _, a := range []answer{g.list("."), g.glob("**"), g.grep("CANARY", "**"), g.glob(name + "/**"), g.grep(".", name)} {
				if strings.Contains(a.Body, name) || strings.Contains(a.Body, "canary") {
					t.Errorf("%s shows %s", a.Call, a.Body)
				}
			}
			if _, err := os.Lstat(at); err != nil {
				t.Errorf("it is gone: %v", err)
			}
			intact()
		})
	}
	if diff := cmp.Diff([]string{"mine", "real", "real/file"}, b.tree()); diff != "" {
		t.Errorf("on the disk:\n%s", diff)
	}
}

func listen(t *testing.T, at string) error {
	// A socket's path is short, so it is made elsewhere and moved.
	short := filepath.Join(os.TempDir(), fmt.Sprint("s", os.Getpid()))
	l, err := net.Listen("unix", short)
	if err != nil {
		return err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	t.Cleanup(func() { l.Close() })
	return os.Rename(short, at)
}

// PF-C2: a file of the workspace that gets a second name is refused from then on.
func TestAFileWithASecondNameIsRefused(t *testing.T) {
	b := newBench(t)
	g := b.guest()
	g.ok(g.create("f", "mine"))
	g.ok(g.read("f"))
	must(t, os.Link(b.host("f"), filepath.Join(t.TempDir(), "second")))
	g.refused(g.read("f"), abi.CodeNotRegular)
	g.refused(g.write("f", "x"), abi.CodeNotRegular)
	g.refused(g.move("f", "g"), abi.CodeNotRegular)
	if a := g.list("."); a.Body != "[]" {
		t.Errorf("listed: %s", a.Body)
	}
}

// M15: somebody swaps a directory for a link while guests walk through it. Whatever is
// answered, nothing comes from or goes to the other side.
func TestASwappedDirectoryIsNotWalkedThrough(t *testing.T) {
	b := newBench(t)
	out, intact := outside(t)
	maker := b.guest(session("maker"))
	maker.ok(maker.create("d/canary", "inside"))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.Rename(b.host("d"), b.host("../aside"))
			os.Symlink(out, b.host("d"))
			os.Remove(b.host("d"))
			os.Rename(b.host("../aside"), b.host("d"))
		}
	})
	for i := range 60 {
		g := b.guest(session(fmt.Sprint(i)))
		for _, a := range []answer{g.read("d/canary"), g.grep("CANARY", "**"), g.list("d")} {
			if strings.Contains(a.Body, "CANARY") {
				t.Fatalf("%s: %s", a.Call, a.Body)
			}
		}
		g.create(fmt.Sprint("d/new", i), "x")
		g.write("d/canary", "x")
		g.remove("d/canary")
		g.move("d/canary", "d/else")
	}
	close(stop)
	wg.Wait()
	intact()
}

// The host's temporary files have no name a guest can say or see, and what a crash left of
// them is gone after the next start.
func TestTemporaryFilesAreNotGuests(t *testing.T) {
	b := newBench(t)
	b.plant("d/.ecotone-LEFT", "half a file")
	b.plant(".ecotone-LEFT", "half a file")
	g := b.guest()
	for _, a := range g.calls("d/.ecotone-LEFT", "x") {
		g.refused(a, abi.CodePathInvalid)
	}
	b.restart()
	for _, a := range []answer{g.list("."), g.list("d"), g.glob("**"), g.grep("half", "**")} {
		if g.ok(a); strings.Contains(a.Body, "ecotone") {
			t.Errorf("%s: %s", a.Call, a.Body)
		}
	}
	if diff := cmp.Diff([]string{"d"}, b.tree()); diff != "" {
		t.Errorf("on the disk:\n%s", diff)
	}
}

// Names that are no paths cannot be reached, so they are not shown.
func TestUnspeakableNamesAreNotShown(t *testing.T) {
	b := newBench(t)
	for _, n := range []string{"a\nb", "a:b", "con", "\xff", "a "} {
		b.plant(n, "needle")
	}
	b.plant("fine", "needle")
	g := b.guest()
	if a := g.ok(g.list(".")); a.Body != `[{"name":"fine","kind":"file","size":6}]` {
		t.Errorf("list: %s", a.Body)
	}
	if a := g.ok(g.grep("needle", "**")); a.Meta.Count != 1 {
		t.Errorf("grep: %s", a.Body)
	}
}

// What changes behind the gateway's back is a new version under the import label (S5).
func TestChangesBehindTheBack(t *testing.T) {
	for name, change := range map[string]func(p string) error{
		"rewritten": func(p string) error { return os.WriteFile(p, []byte("theirs"), 0o600) },
		"same size and time": func(p string) error {
			info, err := os.Stat(p)
			if err != nil {
				return err
			}
			if err := os.WriteFile(p, []byte("thei"), 0o600); err != nil {
				return err
			}
			return os.Chtimes(p, info.ModTime(), info.ModTime())
		},
		"replaced": func(p string) error {
			if err := os.WriteFile(p+"2", []byte("theirs"), 0o600); err != nil {
				return err
			}
			return os.Rename(p+"2", p)
		},
	} {
		for _, down := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", while down: ", down), func(t *testing.T) {
				b := newBench(t, files.WithImportLabel(abi.Confidential))
				g := b.guest()
				v := g.ok(g.create("f", "mine")).Meta.Version
				if down {
					must(t, b.svc.Close())
				}
				must(t, change(b.host("f")))
				if down {
					b.start() // the workspace keeps the import label it was made with
				} else {
					g.refused(g.write("f", "x"), abi.CodeVersionMismatch)
				}
				if low := b.guest(ceiling(abi.Internal)); low.read("f").Code != abi.CodeFileNotFound {
					t.Error("below the import label it can be read")
				}
				a := g.ok(g.read("f"))
				if a.Meta.Version == v || a.Meta.Classification != "confidential" || !strings.HasPrefix(a.Body, "thei") {
					t.Errorf("%+v", a)
				}
				if g.last.Label() != abi.Confidential {
					t.Errorf("label %s", g.last.Label())
				}
				if again := g.ok(g.read("f")); again.Meta.Version != a.Meta.Version {
					t.Error("another version without another change")
				}
				g.ok(g.write("f", "mine again"))
				if a := g.stat("f"); !strings.Contains(a.Body, `"confidential"`) {
					t.Errorf("a write changed the label: %s", a.Body)
				}
			})
		}
	}
}

// What is new behind the gateway's back is regulated unless set.
func TestImportsAreRegulated(t *testing.T) {
	b := newBench(t)
	b.plant("d/f", "planted")
	g := b.guest()
	if a := g.ok(g.read("d/f")); a.Meta.Classification != "regulated" || g.last.Label() != abi.Regulated {
		t.Errorf("%+v at %s", a, g.last.Label())
	}
	low := b.guest(ceiling(abi.Secret))
	for _, a := range []answer{low.read("d/f"), low.stat("d"), low.list("d"), low.edit("d/f", "a", "b", false), low.remove("d/f")} {
		low.refused(a, abi.CodeFileNotFound)
	}
	// A hidden name in a visible directory takes no part in anything.
	b.plant("z", "planted")
	low.ok(low.create("a", "planted"))
	for _, a := range []answer{low.stat("z"), low.read("z"), low.replace("z", "v", "x"), low.edit("z", "p", "q", true), low.copy("z", "c"), low.move("z", "c"), low.remove("z")} {
		low.refused(a, abi.CodeFileNotFound)
	}
	low.refused(low.create("z", "x"), abi.CodeFileExists)
	low.refused(low.write("z", "x"), abi.CodeReadRequired)
	low.refused(low.move("a", "z"), abi.CodeFileExists)
	if b.content("z") != "planted" {
		t.Error("it is changed")
	}
	for _, a := range []answer{low.listAfter(".", "", 1), low.search("glob", 1), low.search("grep", 1)} {
		if low.ok(a); a.Meta.Count != 1 || a.Meta.More {
			t.Errorf("%s: %+v", a.Call, a.Meta)
		}
	}
	low.ok(low.remove("a"))
	if a := low.ok(low.list(".")); a.Body != "[]" || low.last.Label() != abi.Public {
		t.Errorf("listed: %s at %s", a.Body, low.last.Label())
	}
}

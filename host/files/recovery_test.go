package files_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/files"
)

// crash goes on with records as they were at a moment and the disk as it is now: what was
// only in memory is lost.
func (b *bench) crash(at *records) {
	b.Helper()
	must(b, b.svc.Close()) // writes to the records that are given up
	b.labels = at
	b.start()
}

// After an acknowledged change nothing is missing that memory alone knew: content, label
// and version are found again.
func TestWhatIsAcknowledgedSurvives(t *testing.T) {
	b := newBench(t)
	g := b.guest(ceiling(abi.Public)) // an imported file would be absent
	check := func(p, want, version string) {
		t.Helper()
		b.crash(b.labels.copy())
		if a := g.ok(g.read(p)); a.Body != want || a.Meta.Version != version {
			t.Errorf("%s: %q, version kept: %v", p, a.Body, a.Meta.Version == version)
		}
	}
	check("d/e/f", "1", g.ok(g.create("d/e/f", "1")).Meta.Version)
	check("d/e/f", "22", g.ok(g.write("d/e/f", "22")).Meta.Version)
	check("d/e/f", "33", g.ok(g.edit("d/e/f", "22", "33", false)).Meta.Version)
	check("c/f", "33", g.ok(g.copy("d/e/f", "c/f")).Meta.Version)
	check("m/f", "33", g.ok(g.move("d/e/f", "m/f")).Meta.Version)
	g.refused(g.read("d/e/f"), abi.CodeFileNotFound)
	g.ok(g.remove("c/f"))
	b.crash(b.labels.copy())
	g.refused(g.read("c/f"), abi.CodeFileNotFound)
	g.ok(g.create("c/f", "new"))
}

// A crash after the intent and before the change leaves the old file, and no trace of the
// new one.
func TestACrashBeforeTheChange(t *testing.T) {
	b := newBench(t)
	g := b.guest(ceiling(abi.Public))
	v := g.ok(g.create("f", "old")).Meta.Version
	for name, change := range map[string]func() answer{
		"write":  func() answer { return g.write("f", "new") },
		"create": func() answer { return g.create("n", "new") },
		"deep":   func() answer { return g.create("x/y/n", "new") },
		"move":   func() answer { return g.move("f", "n") },
	} {
		// The intent becomes durable and its answer never arrives.
		lost := &lostAnswer{records: b.labels}
		must(t, b.svc.Close())
		svc, err := files.New(b.dir, lost)
		must(t, err)
		b.svc = svc
		g.ok(g.read("f"))
		lost.lose = true
		g.refused(change(), abi.CodeNotReady)
		lost.lose = false
		b.crash(b.labels.copy())
		if a := g.ok(g.read("f")); a.Body != "old" || a.Meta.Version != v {
			t.Errorf("%s: %+v", name, a)
		}
		if diff := cmp.Diff([]string{"f"}, b.tree()); diff != "" {
			t.Errorf("%s left on the disk:\n%s", name, diff)
		}
		g.ok(g.create("n", "x"))
		g.ok(g.create("x/y/n", "x"))
		for _, p := range []string{"n", "x/y/n", "x/y", "x"} {
			g.ok(g.remove(p))
		}
	}
}

// lostAnswer applies changes and says that it did not.
type lostAnswer struct {
	*records
	lose bool
}

func (l *lostAnswer) Apply(ctx context.Context, ws string, changes []files.Change) error {
	if err := l.records.Apply(ctx, ws, changes); err != nil || !l.lose {
		return err
	}
	return errors.New("the connection broke")
}

// A crash between the two names of a move: the file has both for a moment, and is found
// under the new one.
func TestACrashInTheMiddleOfAMove(t *testing.T) {
	b := newBench(t)
	g := b.guest(ceiling(abi.Public))
	g.ok(g.create("f", "moving"))
	before := b.host("f")
	moved := g.ok(g.move("f", "d/g"))
	at := b.labels.copy() // the intent; what became of it is only in memory
	must(t, os.Link(b.host("d/g"), before))
	b.crash(at)
	if a := g.ok(g.read("d/g")); a.Body != "moving" || a.Meta.Version != moved.Meta.Version {
		t.Errorf("%+v", a)
	}
	g.refused(g.read("f"), abi.CodeFileNotFound)
	if diff := cmp.Diff([]string{"d", "d/g"}, b.tree()); diff != "" {
		t.Errorf("on the disk:\n%s", diff)
	}
}

// Without records nothing changes, and the process goes on when they are back.
func TestRecordsThatCannotBeWritten(t *testing.T) {
	b := newBench(t)
	g := b.guest()
	g.ok(g.create("f", "old"))
	b.labels.break_(errors.New("disk on fire in /var/lib/ecotone"))
	for _, a := range []answer{g.write("f", "x"), g.create("d/n", "x"), g.copy("f", "n"), g.move("f", "n"), g.edit("f", "old", "x", false)} {
		g.refused(a, abi.CodeNotReady)
		if strings.Contains(a.Text, "fire") || strings.Contains(a.Text, "/var") {
			t.Errorf("%s tells %q", a.Call, a.Text)
		}
	}
	if diff := cmp.Diff([]string{"f"}, b.tree()); diff != "" || b.content("f") != "old" {
		t.Errorf("changed: %q\n%s", b.content("f"), diff)
	}
	g.ok(g.read("f"))
	b.labels.break_(nil)
	g.ok(g.write("f", "new"))
	g.ok(g.create("d/n", "x"))
}

// More workspaces than may stay open: each is closed, opened again, and is what it was.
func TestWorkspacesAreClosedAndOpenedAgain(t *testing.T) {
	b := newBench(t, files.WithOpenWorkspaces(2))
	const n = 8
	versions := map[string]string{}
	for round := range 3 {
		for i := range n {
			id := fmt.Sprint("w", i)
			must(t, b.svc.Ensure(t.Context(), id, abi.Public))
			g := b.guest(ceiling(abi.Public))
			g.spec.Workspace = id
			if round == 0 {
				versions[id] = g.ok(g.create("f", id)).Meta.Version
				continue
			}
			if a := g.ok(g.read("f")); a.Body != id || a.Meta.Version != versions[id] {
				t.Errorf("%s: %+v", id, a)
			}
			versions[id] = g.ok(g.write("f", id)).Meta.Version
		}
	}
	if err := b.svc.Close(); err != nil {
		t.Error(err)
	}
	g := b.guest()
	g.refused(g.read("f"), abi.CodeNotReady)
}

// S5: directories above the ceiling, and creating above a directory's label.
func TestFlowOfDirectories(t *testing.T) {
	b := newBench(t, files.WithImportLabel(abi.Secret))
	must(t, os.Mkdir(b.host("vault"), 0o700))
	high := b.guest(start(abi.Secret), session("high"))
	high.ok(high.create("vault/plan", "secret"))
	high.ok(high.create("vault/deep/plan", "secret"))
	high.refused(high.create("low", "x"), abi.CodeClassificationFlow)
	high.refused(high.create("new/low", "x"), abi.CodeClassificationFlow)
	high.refused(high.move("vault/plan", "plan"), abi.CodeClassificationFlow)
	high.refused(high.copy("vault/plan", "plan"), abi.CodeClassificationFlow)

	low := b.guest(ceiling(abi.Internal))
	low.ok(low.create("note", "low"))
	high.ok(high.read("note"))
	high.refused(high.write("note", "x"), abi.CodeClassificationFlow)
	high.refused(high.edit("note", "low", "x", false), abi.CodeClassificationFlow)
	high.refused(high.replace("note", low.stat("note").version(t), "x"), abi.CodeClassificationFlow)
	high.refused(high.remove("note"), abi.CodeClassificationFlow)
	high.refused(high.move("note", "vault/note"), abi.CodeClassificationFlow)
	high.ok(high.copy("note", "vault/note"))
	if a := high.ok(high.stat("vault/note")); !strings.Contains(a.Body, `"secret"`) {
		t.Errorf("the copy is %s", a.Body)
	}

	for _, p := range []string{"vault", "vault/plan", "vault/none", "vault/deep/plan"} {
		for _, a := range []answer{low.stat(p), low.read(p), low.list(p), low.edit(p, "a", "b", true), low.copy(p, "x"), low.move(p, "x"), low.remove(p)} {
			low.refused(a, abi.CodeFileNotFound)
			if low.last.Label() > abi.Internal {
				t.Errorf("raised to %s", low.last.Label())
			}
		}
		low.refused(low.create(p, "x"), abi.CodeFileExists)
		low.refused(low.copy("note", p), abi.CodeFileExists)
	}

	// Within the ceiling every look raises.
	for name, look := range map[string]func(g *guest) answer{
		"stat":    func(g *guest) answer { return g.stat("vault/plan") },
		"read":    func(g *guest) answer { return g.read("vault/plan") },
		"absence": func(g *guest) answer { return g.read("vault/none") },
		"list":    func(g *guest) answer { return g.list(".") },
		"glob":    func(g *guest) answer { return g.glob("**") },
		"grep":    func(g *guest) answer { return g.grep("no such text", "**") },
		"exists":  func(g *guest) answer { return g.create("vault/plan", "x") },
	} {
		g := b.guest()
		look(g)
		if g.last.Label() != abi.Secret {
			t.Errorf("%s raised to %s", name, g.last.Label())
		}
	}
	// A search that cannot lead there does not.
	g := b.guest()
	g.ok(g.glob("note"))
	g.ok(g.grep("low", "no*"))
	if g.last.Label() != abi.Public {
		t.Errorf("raised to %s", g.last.Label())
	}
}

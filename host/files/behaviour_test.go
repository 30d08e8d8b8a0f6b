package files_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/files"
)

// M1: the workspace is the authority's, and no path leads out of it.
func TestWorkspaceIsNotTheGuestsChoice(t *testing.T) {
	b := newBench(t)
	must(t, b.svc.Ensure(t.Context(), "other", abi.Public))
	must(t, os.WriteFile(b.host("../other/secret"), []byte("theirs"), 0o600))
	g := b.guest()
	for _, p := range []string{"../other/secret", "/etc/passwd", b.host("../other/secret"), "x/../../other/secret"} {
		for _, a := range g.calls(p, "q") {
			g.refused(a, abi.CodePathInvalid)
		}
	}
	none := b.guest(func(s *authority.Spec) { s.Workspace = "" })
	none.refused(none.read("a"), abi.CodeNotFound)
	strange := b.guest(func(s *authority.Spec) { s.Workspace = "../other" })
	strange.refused(strange.read("secret"), abi.CodeNotFound)
	unmade := b.guest(func(s *authority.Spec) { s.Workspace = "unmade" })
	unmade.refused(unmade.create("a", "x"), abi.CodeNotFound)
}

// M2
func TestEveryFunctionOnce(t *testing.T) {
	b := newBench(t)
	g := b.guest()
	made := g.ok(g.create("docs/a.txt", "one two\nthree\n"))
	read := g.ok(g.read("./docs/x/../a.txt"))
	if read.Body != "one two\nthree\n" || !read.Meta.EOF || read.Meta.Size != 14 || read.Target != "docs/a.txt" ||
		read.Meta.Version != made.Meta.Version || read.Meta.Classification != "public" {
		t.Errorf("read: %+v", read)
	}
	if a := g.ok(g.stat("docs/a.txt")); a.Body != fmt.Sprintf(`{"kind":"file","size":14,"version":%q,"classification":"public"}`, made.Meta.Version) {
		t.Errorf("stat: %s", a.Body)
	}
	if a := g.ok(g.stat("docs")); a.Body != `{"kind":"directory","size":0,"classification":"public"}` {
		t.Errorf("stat: %s", a.Body)
	}
	g.ok(g.write("b.txt", "B"))
	if a := g.ok(g.list(".")); a.Body != `[{"name":"b.txt","kind":"file","size":1},{"name":"docs","kind":"directory","size":0}]` || a.Meta.Count != 2 {
		t.Errorf("list: %+v", a)
	}
	g.ok(g.replace("b.txt", g.stat("b.txt").version(t), "BB"))
	if a := g.ok(g.edit("docs/a.txt", "two", "2", false)); a.Value != 1 || a.Meta.Count != 1 {
		t.Errorf("edit: %+v", a)
	}
	g.ok(g.copy("docs/a.txt", "copies/deep/c.txt"))
	g.ok(g.move("b.txt", "moved.txt"))
	if a := g.ok(g.grep(`^th\w+$`, "**")); a.Body != `[{"path":"copies/deep/c.txt","line":2,"text":"three"},{"path":"docs/a.txt","line":2,"text":"three"}]` {
		t.Errorf("grep: %s", a.Body)
	}
	if a := g.ok(g.glob("**/*.txt")); a.Body != `["copies/deep/c.txt","docs/a.txt","moved.txt"]` {
		t.Errorf("glob: %s", a.Body)
	}
	g.ok(g.remove("moved.txt"))
	if a := g.ok(g.mkdir("./new/x/../inner")); a.Target != "new/inner" {
		t.Errorf("mkdir: %+v", a)
	}
	want := []string{"copies", "copies/deep", "copies/deep/c.txt", "docs", "docs/a.txt", "new", "new/inner"}
	if diff := cmp.Diff(want, b.tree()); diff != "" {
		t.Errorf("on the disk:\n%s", diff)
	}
}

// version of a stat document.
func (a answer) version(t *testing.T) string {
	t.Helper()
	var d doc
	must(t, abi.DecodeStrict([]byte(a.Body), &d))
	return d.Version
}

// M3
func TestOverwriteNeedsARead(t *testing.T) {
	b := newBench(t)
	b.plant("old", "theirs")
	g := b.guest()
	g.refused(g.write("old", "mine"), abi.CodeReadRequired)
	if b.content("old") != "theirs" {
		t.Error("written all the same")
	}
	g.ok(g.write("new", "no read needed"))

	maker := b.guest(session("maker"))
	maker.ok(maker.create("shared", "1"))
	g.refused(g.write("shared", "2"), abi.CodeReadRequired)
	g.ok(g.read("shared"))
	g.ok(g.write("shared", "2"))
	if b.content("shared") != "2" {
		t.Error("not written")
	}
}

// M4
func TestAWriteReplacesTheVersionThatWasRead(t *testing.T) {
	b := newBench(t)
	first, second := b.guest(session("a")), b.guest(session("b"))
	v1 := first.ok(first.create("f", "v1")).Meta.Version
	second.ok(second.read("f"))
	v2 := first.ok(first.write("f", "by a")).Meta.Version
	second.refused(second.write("f", "by b"), abi.CodeVersionMismatch)
	second.refused(second.edit("f", "by", "BY", false), abi.CodeVersionMismatch)
	for _, v := range []string{"", v1, strings.Repeat("0", len(v2)), "0", "*", "any", strings.ToLower(v2)} {
		second.refused(second.replace("f", v, "by b"), abi.CodeVersionMismatch)
	}
	if b.content("f") != "by a" {
		t.Error("the first writer's bytes are gone")
	}
	second.ok(second.replace("f", v2, "by b"))
	if v1 == v2 || b.content("f") != "by b" {
		t.Error("the named version was not replaced")
	}
	second.refused(second.replace("absent", v2, "x"), abi.CodeFileNotFound)
}

// S5: equal content, different versions.
func TestVersionsSayNothingOfTheContent(t *testing.T) {
	b := newBench(t)
	g := b.guest()
	seen := map[string]bool{}
	for i := range 20 {
		seen[g.ok(g.create(fmt.Sprint("f", i), "same")).Meta.Version] = true
	}
	if len(seen) != 20 {
		t.Errorf("%d versions of 20 files", len(seen))
	}
}

// M5
func TestOneOfManyCreatorsWins(t *testing.T) {
	b := newBench(t)
	var wg sync.WaitGroup
	answers := make([]answer, 100)
	for i := range answers {
		wg.Go(func() {
			g := b.guest(session(fmt.Sprint("s", i)))
			answers[i] = g.create("deep/er/f", fmt.Sprint(i))
		})
	}
	wg.Wait()
	winner := -1
	for i, a := range answers {
		switch {
		case a.Code == "" && winner < 0:
			winner = i
		case a.Code != abi.CodeFileExists:
			t.Errorf("creator %d: %q", i, a.Code)
		}
	}
	if winner < 0 || b.content("deep/er/f") != fmt.Sprint(winner) {
		t.Errorf("winner %d, content %q", winner, b.content("deep/er/f"))
	}
	if diff := cmp.Diff([]string{"deep", "deep/er", "deep/er/f"}, b.tree()); diff != "" {
		t.Errorf("left on the disk:\n%s", diff)
	}
}

// M6
func TestEditMatchesExactly(t *testing.T) {
	b := newBench(t)
	g := b.guest()
	g.ok(g.create("f", "aa b aa c"))
	g.refused(g.edit("f", "", "x", false), abi.CodeEditEmpty)
	g.refused(g.edit("f", "b", "b", false), abi.CodeEditIdentical)
	if a := g.refused(g.edit("f", "zz", "x", false), abi.CodeEditNoMatch); a.Meta.Count != 0 {
		t.Errorf("%+v", a.Meta)
	}
	if a := g.refused(g.edit("f", "aa", "x", false), abi.CodeEditAmbiguous); a.Meta.Count != 2 {
		t.Errorf("%+v", a.Meta)
	}
	if b.content("f") != "aa b aa c" {
		t.Error("a refused edit wrote")
	}
	g.ok(g.edit("f", "b", "B", false))
	if a := g.ok(g.edit("f", "aa", "x", true)); a.Meta.Count != 2 || a.Value != 2 {
		t.Errorf("%+v", a)
	}
	if b.content("f") != "x B x c" {
		t.Errorf("content %q", b.content("f"))
	}
	// Occurrences that overlap are more than one place.
	g.ok(g.create("g", "xaxax"))
	g.refused(g.edit("g", "xax", "y", false), abi.CodeEditAmbiguous)
	g.refused(g.edit("absent", "a", "b", false), abi.CodeFileNotFound)
}

// M7
func TestDeletedIsNotChanged(t *testing.T) {
	b := newBench(t)
	g, other := b.guest(), b.guest(session("other"))
	g.ok(g.create("f", "a"))
	g.ok(g.create("h", "a"))
	other.ok(other.remove("f"))
	g.refused(g.edit("f", "a", "b", false), abi.CodeDeletedSinceRead)
	g.refused(g.write("f", "b"), abi.CodeDeletedSinceRead)
	other.ok(other.read("h"))
	other.ok(other.write("h", "other"))
	g.refused(g.edit("h", "a", "b", false), abi.CodeVersionMismatch)
	// Having seen that it is gone, the session makes it anew.
	g.refused(g.read("f"), abi.CodeFileNotFound)
	g.ok(g.write("f", "again"))
}

// M8
func TestAWriteIsARead(t *testing.T) {
	b := newBench(t)
	g := b.guest()
	g.ok(g.write("f", "1"))
	g.ok(g.write("f", "2"))
	g.ok(g.edit("f", "2", "3", false))
	g.ok(g.edit("f", "3", "4", false))
	g.ok(g.replace("f", g.stat("f").version(t), "5"))
	g.ok(g.edit("f", "5", "6", false))
	if b.content("f") != "6" {
		t.Errorf("content %q", b.content("f"))
	}
}

// M9
func TestReadsBelongToTheLiveProcess(t *testing.T) {
	b := newBench(t)
	g := b.guest()
	v := g.ok(g.create("f", "kept")).Meta.Version
	b.restart()
	g.refused(g.write("f", "x"), abi.CodeReadRequired)
	if a := g.ok(g.read("f")); a.Body != "kept" || a.Meta.Version != v || a.Meta.Classification != "public" {
		t.Errorf("after a restart: %+v", a)
	}
	g.ok(g.write("f", "x"))
	b.svc.CloseSession("session-1")
	g.refused(g.write("f", "y"), abi.CodeReadRequired)
}

// brokenLedger answers as told.
type brokenLedger struct {
	files.Ledger
	outcome files.Outcome
	records bool
}

func (l *brokenLedger) Lookup(files.Reader, string) (string, files.Outcome) { return "", l.outcome }
func (l *brokenLedger) Record(files.Reader, string, string) bool            { return l.records }

// M10
func TestALedgerThatCannotAnswerIsNotNeverRead(t *testing.T) {
	b := newBench(t, files.WithLedger(&brokenLedger{Ledger: files.NewLedger(0, 0)}))
	g := b.guest()
	b.plant("f", "theirs")
	g.refused(g.edit("f", "theirs", "mine", false), abi.CodeLedgerUnavailable)
	g.refused(g.write("f", "mine"), abi.CodeLedgerUnavailable)
	g.refused(g.write("new", "mine"), abi.CodeLedgerUnavailable)
	g.refused(g.read("f"), abi.CodeLedgerUnavailable)
	if b.content("f") != "theirs" {
		t.Error("written without knowing")
	}
	if _, o := files.NewLedger(0, 0).Lookup(files.Reader{}, "f"); o != files.Unavailable {
		t.Errorf("a reader without a session: %v", o)
	}
}

func TestTheLedgerIsBounded(t *testing.T) {
	l := files.NewLedger(2, 2)
	r := files.Reader{Session: "a", Workspace: ws}
	for _, p := range []string{"1", "2", "3"} {
		l.Record(r, p, "v"+p)
	}
	if _, o := l.Lookup(r, "1"); o != files.NeverRead {
		t.Error("the path unused for longest is kept")
	}
	if v, o := l.Lookup(r, "3"); o != files.Known || v != "v3" {
		t.Error("the newest is dropped")
	}
	l.Record(files.Reader{Session: "b"}, "1", "v")
	l.Record(files.Reader{Session: "c"}, "1", "v")
	if _, o := l.Lookup(r, "3"); o != files.NeverRead {
		t.Error("the session unused for longest is kept")
	}
}

// M11
func TestOneFileHasOneEntryInTheLedger(t *testing.T) {
	b := newBench(t)
	other := b.guest(session("other"))
	other.ok(other.create("a", "1"))
	g := b.guest()
	g.ok(g.read("./a/../a"))
	g.ok(g.write("a", "2"))
	g.ok(g.edit("x/../a", "2", "3", false))
}

// M12
func TestRemoveIsNotRecursive(t *testing.T) {
	b := newBench(t)
	g, other := b.guest(), b.guest(session("other"))
	other.ok(other.create("d/e/f", "x"))
	g.refused(g.remove("d"), abi.CodeDirectoryNotEmpty)
	g.refused(g.remove("d/e"), abi.CodeDirectoryNotEmpty)
	if b.content("d/e/f") != "x" {
		t.Error("the tree is not intact")
	}
	g.ok(g.remove("d/e/f")) // unread
	g.ok(g.remove("d/e"))
	g.ok(g.remove("d"))
	g.refused(g.remove("d"), abi.CodeFileNotFound)
	g.refused(g.remove("."), abi.CodeNotRegular)
	if len(b.tree()) != 0 {
		t.Errorf("left: %v", b.tree())
	}
	g.ok(g.write("d", "a file now"))
}

// M13
func TestCopyNeverOverwrites(t *testing.T) {
	b := newBench(t)
	maker, g := b.guest(session("maker")), b.guest()
	maker.ok(maker.create("src", "bytes"))
	maker.ok(maker.create("dst", "kept"))
	maker.ok(maker.create("dir/x", ""))
	g.refused(g.copy("dir", "copy"), abi.CodeNotRegular)
	g.refused(g.copy("src", "dst"), abi.CodeFileExists)
	g.refused(g.copy("src", "dir"), abi.CodeFileExists)
	g.refused(g.copy("src", "src"), abi.CodeFileExists)
	g.refused(g.copy("src", "src/below"), abi.CodeNotRegular)
	g.refused(g.copy("absent", "copy"), abi.CodeFileNotFound)
	if b.content("dst") != "kept" {
		t.Error("overwritten")
	}
	g.ok(g.copy("src", "new/copy"))
	if b.content("new/copy") != "bytes" || b.content("src") != "bytes" {
		t.Error("not a copy")
	}
	// No trace in the ledger, of either.
	g.refused(g.write("new/copy", "x"), abi.CodeReadRequired)
	g.refused(g.write("src", "x"), abi.CodeReadRequired)
}

// M14
func TestMoveNeverOverwrites(t *testing.T) {
	b := newBench(t)
	maker, g := b.guest(session("maker")), b.guest()
	maker.ok(maker.create("src", "bytes"))
	maker.ok(maker.create("dst", "kept"))
	maker.ok(maker.create("dir/x", ""))
	g.refused(g.move("dir", "elsewhere"), abi.CodeNotRegular)
	g.refused(g.move("src", "dst"), abi.CodeFileExists)
	g.refused(g.move("src", "dir"), abi.CodeFileExists)
	g.refused(g.move("src", "src"), abi.CodeFileExists)
	g.refused(g.move("absent", "x"), abi.CodeFileNotFound)
	if b.content("dst") != "kept" || b.content("src") != "bytes" {
		t.Error("overwritten")
	}
	maker.ok(maker.move("src", "new/name"))
	if b.content("new/name") != "bytes" {
		t.Error("the destination is not the source")
	}
	maker.refused(maker.read("src"), abi.CodeFileNotFound)
	maker.ok(maker.write("src", "a new file, not one deleted since it was read"))
	maker.refused(maker.write("new/name", "x"), abi.CodeReadRequired)
}

// M16: a large file pages without gaps, and no page is above the cap.
func TestReadPages(t *testing.T) {
	b := newBench(t)
	var want strings.Builder
	for i := 0; want.Len() < 10<<20; i++ {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	b.plant("big", want.String())
	g := b.guest()
	var got strings.Builder
	for {
		a := g.ok(g.readAt("big", int64(got.Len()), 1<<30))
		if len(a.Body) > files.MaxReadBytes {
			t.Fatalf("%d bytes at once", len(a.Body))
		}
		got.WriteString(a.Body)
		if a.Meta.EOF {
			break
		}
	}
	if got.String() != want.String() {
		t.Error("the pages are not the file")
	}
	if a := g.ok(g.readAt("big", 1<<40, 10)); a.Body != "" || !a.Meta.EOF {
		t.Errorf("past the end: %d bytes, %+v", len(a.Body), a.Meta)
	}
	if a := g.ok(g.readAt("big", 5, 0)); a.Body != "" || a.Meta.EOF {
		t.Errorf("nothing: %+v", a.Meta)
	}
	g.refused(g.readAt("big", -1, 1), abi.CodeArgumentInvalid)
	g.refused(g.readAt("big", 0, -1), abi.CodeArgumentInvalid)
}

// X39
func TestTheGrantNamesFiles(t *testing.T) {
	b := newBench(t)
	all := b.guest(session("all"))
	for _, p := range []string{"reports/a.md", "reports/q/b.md", "other/c.md", "d.md"} {
		all.ok(all.create(p, "needle"))
	}
	g := b.guest(globs("reports/**"))
	g.ok(g.read("reports/a.md"))
	g.ok(g.create("reports/new", "x"))
	for _, p := range []string{"other/c.md", "reports/../d.md", "reports%2f..%2fd.md", "absent"} {
		for _, a := range g.calls(p, "reports/q2") {
			if a.Code != abi.CodeResourceNotInGlob {
				t.Errorf("%s %s: %q", a.Call, p, a.Code)
			}
		}
	}
	if a := g.ok(g.list(".")); a.Body != `[{"name":"reports","kind":"directory","size":0}]` {
		t.Errorf("list: %s", a.Body)
	}
	if a := g.ok(g.glob("**/*.md")); a.Body != `["reports/a.md","reports/q/b.md"]` {
		t.Errorf("glob: %s", a.Body)
	}
	if a := g.ok(g.grep("needle", "**")); a.Meta.Count != 2 {
		t.Errorf("grep: %s", a.Body)
	}
	for _, set := range [][]string{{"\x00"}, {"{"}, {"../**"}} {
		g := b.guest(globs(set...))
		g.refused(g.read("d.md"), abi.CodeResourceNotInGlob)
		g.refused(g.list("."), abi.CodeResourceNotInGlob)
		g.refused(g.glob("**"), abi.CodeResourceNotInGlob)
		g.refused(g.grep("needle", "**"), abi.CodeResourceNotInGlob)
	}
}

func TestAnAuthorityThatFellChangesNothing(t *testing.T) {
	b := newBench(t)
	g := b.guest()
	g.ok(g.create("f", "kept"))
	g.gone = abi.Errorf(abi.CodeGrantRevoked, "revoked")
	for _, a := range []answer{
		g.create("x/y", ""), g.write("f", "x"), g.edit("f", "kept", "x", false), g.copy("f", "x"), g.move("f", "x"), g.remove("f"),
		g.replace("f", g.stat("f").version(t), "x"),
	} {
		g.refused(a, abi.CodeGrantRevoked)
	}
	if diff := cmp.Diff([]string{"f"}, b.tree()); diff != "" || b.content("f") != "kept" {
		t.Errorf("changed:\n%s", diff)
	}
}

func TestEnsure(t *testing.T) {
	b := newBench(t)
	for _, id := range []string{"", "..", "a/b", ".hidden", "CON", strings.Repeat("a", 65), "a b"} {
		if err := b.svc.Ensure(t.Context(), id, abi.Public); abi.CodeOf(err) != abi.CodeInvalidRequest {
			t.Errorf("%q: %v", id, err)
		}
	}
	if err := b.svc.Ensure(t.Context(), "x", 0); abi.CodeOf(err) != abi.CodeInvalidRequest {
		t.Errorf("without a label: %v", err)
	}
	must(t, b.svc.Ensure(t.Context(), ws, abi.Public))
	if err := b.svc.Ensure(t.Context(), ws, abi.Secret); abi.CodeOf(err) != abi.CodeConflict {
		t.Errorf("another label: %v", err)
	}
	if ok, err := b.svc.Exists(t.Context(), ws); !ok || err != nil {
		t.Errorf("exists: %v, %v", ok, err)
	}
	if ok, err := b.svc.Exists(t.Context(), "never"); ok || err != nil {
		t.Errorf("exists: %v, %v", ok, err)
	}
	// A directory that somebody made is not a workspace, and a link is none either.
	must(t, os.Mkdir(b.host("../made"), 0o700))
	must(t, os.Symlink(b.host("."), b.host("../link")))
	for _, id := range []string{"made", "link"} {
		if ok, err := b.svc.Exists(t.Context(), id); ok || err != nil {
			t.Errorf("%s exists: %v, %v", id, ok, err)
		}
	}
}

// A directory is made where nothing is, under the flow rules of every name that is made.
func TestMkdir(t *testing.T) {
	b := newBench(t)
	g := b.guest()
	g.ok(g.create("f", "x"))
	g.ok(g.mkdir("d/e"))
	for _, taken := range []string{".", "d", "d/e", "f"} {
		g.refused(g.mkdir(taken), abi.CodeFileExists)
	}
	g.refused(g.mkdir("f/below"), abi.CodeNotRegular)
	g.refused(g.mkdir("../out"), abi.CodePathInvalid)
	if a := g.ok(g.stat("d/e")); a.Body != `{"kind":"directory","size":0,"classification":"public"}` {
		t.Errorf("stat: %s", a.Body)
	}
	// S5: a name is a write to the directory that has it, and what is made has the label of its maker.
	high := b.guest(start(abi.Secret))
	high.refused(high.mkdir("told"), abi.CodeClassificationFlow)
	high.refused(high.mkdir("new/told"), abi.CodeClassificationFlow)
	// The grant names directories as it names files.
	named := b.guest(globs("d/**"))
	named.ok(named.mkdir("d/mine"))
	named.refused(named.mkdir("other"), abi.CodeResourceNotInGlob)
	g.ok(g.remove("d/mine"))
	b.restart()
	g = b.guest()
	g.ok(g.create("d/e/f", "below")) // after a restart they are what they were
	if diff := cmp.Diff([]string{"d", "d/e", "d/e/f", "f"}, b.tree()); diff != "" {
		t.Errorf("on the disk:\n%s", diff)
	}
}

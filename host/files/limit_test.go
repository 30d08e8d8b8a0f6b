package files_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/files"
)

// M17, PF-D1: the default, and an environment's smaller one.
func TestFileBytes(t *testing.T) {
	b := newBench(t)
	g := b.guest()
	g.ok(g.create("full", strings.Repeat("x", 5<<20)))
	for _, a := range []answer{g.create("over", strings.Repeat("x", 5<<20+1)), g.write("over", strings.Repeat("x", 5<<20+1)), g.edit("full", "x", "yy", true)} {
		g.refused(a, abi.CodeFileTooLarge)
	}
	small := b.guest(limit("fileBytes", 1<<10))
	small.ok(small.create("small", strings.Repeat("x", 1<<10)))
	small.refused(small.create("over", strings.Repeat("x", 1<<10+1)), abi.CodeFileTooLarge)
	small.refused(small.write("small", strings.Repeat("x", 1<<10+1)), abi.CodeFileTooLarge)
	small.refused(small.copy("full", "copy"), abi.CodeFileTooLarge)
	small.ok(small.read("full"))
	small.refused(small.edit("full", "x", "y", true), abi.CodeFileTooLarge)
	if diff := cmp.Diff([]string{"full", "small"}, b.tree()); diff != "" {
		t.Errorf("on the disk:\n%s", diff)
	}
}

// PF-D1
func TestWorkspaceBytes(t *testing.T) {
	b := newBench(t)
	g := b.guest(limit("workspaceBytes", 100))
	g.ok(g.create("a", strings.Repeat("x", 60)))
	g.refused(g.create("b", strings.Repeat("x", 41)), abi.CodeWorkspaceFull)
	g.ok(g.create("b", strings.Repeat("x", 40)))
	g.refused(g.write("b", strings.Repeat("x", 41)), abi.CodeWorkspaceFull)
	g.refused(g.copy("b", "c"), abi.CodeWorkspaceFull)
	g.refused(g.edit("a", "x", "xy", true), abi.CodeWorkspaceFull)
	g.ok(g.write("b", "smaller"))
	g.ok(g.write("b", strings.Repeat("x", 40)))
	g.ok(g.remove("a"))
	g.ok(g.create("c", strings.Repeat("x", 60)))
	b.restart() // counted again
	g.refused(g.create("d", "x"), abi.CodeWorkspaceFull)
	b.plant("e", "")
	g.ok(g.remove("c"))
	b.plant("planted", strings.Repeat("x", 60)) // counted once it is seen
	g.ok(g.list("."))
	g.refused(g.create("d", "x"), abi.CodeWorkspaceFull)
	if again := b.guest(); again.create("d", "x").Code != "" {
		t.Error("the limit is the invocation's")
	}
}

// PF-D1
func TestWorkspaceEntries(t *testing.T) {
	b := newBench(t)
	g := b.guest(limit("workspaceEntries", 4))
	g.ok(g.create("d/e/f", ""))
	g.refused(g.create("x/y", ""), abi.CodeWorkspaceFull)
	g.refused(g.copy("d/e/f", "x/y"), abi.CodeWorkspaceFull)
	g.ok(g.create("y", ""))
	g.refused(g.create("z", ""), abi.CodeWorkspaceFull)
	g.ok(g.move("y", "z"))
	g.refused(g.move("z", "x/z"), abi.CodeWorkspaceFull)
	g.refused(g.mkdir("x"), abi.CodeWorkspaceFull)
	g.ok(g.remove("d/e/f"))
	g.ok(g.remove("d/e"))
	g.ok(g.move("z", "x/z"))
	if diff := cmp.Diff([]string{"d", "x", "x/z"}, b.tree()); diff != "" {
		t.Errorf("on the disk:\n%s", diff)
	}
}

func names(t *testing.T, a answer) []string {
	t.Helper()
	var items []struct{ Name, Kind, Path string }
	if a.Call == "glob" {
		var paths []string
		must(t, json.Unmarshal([]byte(a.Body), &paths))
		return paths
	}
	var raw []map[string]any
	must(t, json.Unmarshal([]byte(a.Body), &raw))
	for _, r := range raw {
		n, _ := r["name"].(string)
		items = append(items, struct{ Name, Kind, Path string }{Name: n})
	}
	out := make([]string, len(items))
	for i := range items {
		out[i] = items[i].Name
	}
	return out
}

func TestListingsArePaged(t *testing.T) {
	b := newBench(t)
	var want []string
	for i := range 1100 {
		n := fmt.Sprintf("f%04d", i)
		b.plant(n, "")
		want = append(want, n)
	}
	g := b.guest()
	if a := g.ok(g.listAfter(".", "", 1<<20)); a.Meta.Count != files.MaxItems || !a.Meta.More {
		t.Errorf("%+v", a.Meta)
	}
	if a := g.ok(g.glob("**")); a.Meta.Count != files.MaxItems || !a.Meta.More {
		t.Errorf("%+v", a.Meta)
	}
	var got []string
	for after := ""; ; {
		a := g.ok(g.listAfter(".", after, 300))
		page := names(t, a)
		got = append(got, page...)
		if !a.Meta.More {
			break
		}
		after = page[len(page)-1]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages:\n%s", diff)
	}
}

func TestListingsAreBoundedInBytes(t *testing.T) {
	b := newBench(t)
	long := strings.Repeat("n", 240)
	for i := range 30 {
		b.plant(fmt.Sprintf("%s/%s/%s/%s%03d", long, long, long, long, i), strings.Repeat(strings.Repeat("z", 600)+"\n", 20))
	}
	g := b.guest()
	a := g.ok(g.grep("z", "**"))
	if len(a.Body) > files.MaxReadBytes || !a.Meta.More || a.Meta.Count == 0 {
		t.Errorf("%d bytes, %+v", len(a.Body), a.Meta)
	}
}

func TestGrep(t *testing.T) {
	b := newBench(t)
	g := b.guest()
	g.ok(g.create("text", "first\r\nsecond line\n\nlast"))
	g.ok(g.create("binary", "first\x00"))
	long := strings.Repeat("é", 400) + strings.Repeat("y", 100_000) + "needle" + strings.Repeat("z", 5000)
	g.ok(g.create("long", "a\n"+long+"\nend needle\n"))
	g.ok(g.create("latin", "caf\xe9 needle"))
	for _, c := range []struct{ pattern, glob, want string }{
		{"^first$", "*", `[{"path":"text","line":1,"text":"first"}]`},
		{"^$", "text", `[{"path":"text","line":3,"text":""}]`},
		{"last", "text", `[{"path":"text","line":4,"text":"last"}]`},
		{"nothing", "*", `[]`},
		{"^éé+y+needlez+$", "long", `[{"path":"long","line":2,"text":"` + strings.Repeat("é", 256) + `"}]`},
		{"^y", "long", `[]`}, // a piece of a long line is not a line
		{"end", "long", `[{"path":"long","line":3,"text":"end needle"}]`},
		{"needle", "latin", `[{"path":"latin","line":1,"text":"caf` + "\ufffd" + ` needle"}]`},
	} {
		if a := g.ok(g.grep(c.pattern, c.glob)); a.Body != c.want {
			t.Errorf("%s in %s: %.300s", c.pattern, c.glob, a.Body)
		}
	}
}

// S10
func TestPatternsAreBounded(t *testing.T) {
	b := newBench(t)
	g := b.guest()
	for _, p := range []string{
		"", strings.Repeat("a", 257), "(", "a**", `\1`, "(?=x)", "((a{30}){30}){2}", strings.Repeat("(a|b){20}", 28), `(\pL{500}){1,2}`,
	} {
		g.refused(g.grep(p, "**"), abi.CodePatternInvalid)
	}
	for _, p := range []string{"", "../*", "/*", "[", strings.Repeat("*", 300)} {
		g.refused(g.grep("a", p), abi.CodePatternInvalid)
		g.refused(g.glob(p), abi.CodePatternInvalid)
	}
}

// S10: the worst allowed pattern on the worst line ends with the deadline, not with the
// file. Without looks at the context it would take minutes.
func TestASearchEndsWithItsDeadline(t *testing.T) {
	b := newBench(t)
	g := b.guest()
	for i, text := range []string{strings.Repeat("x", 5<<20), strings.Repeat(strings.Repeat("x", 4000)+"\n", 1300)} {
		g.ok(g.create(fmt.Sprint("f", i), text))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		g.ctx = ctx
		begun := time.Now()
		g.refused(g.grep("(x+x+){100}y", fmt.Sprint("f", i)), abi.CodeDeadline)
		if d := time.Since(begun); d > 5*time.Second {
			t.Errorf("took %s", d)
		}
		cancel()
		g.ctx = t.Context()
	}
}

// A call that waits for another's workspace waits no longer than its context.
func TestWaitingEndsWithTheContext(t *testing.T) {
	b := newBench(t)
	g := b.guest()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(abi.Errorf(abi.CodeGrantRevoked, "revoked"))
	g.ctx = ctx
	for _, a := range []answer{g.read("a"), g.create("a", "x"), g.list(".")} {
		g.refused(a, abi.CodeGrantRevoked)
	}
	if len(b.tree()) != 0 {
		t.Error("written after the end")
	}
}

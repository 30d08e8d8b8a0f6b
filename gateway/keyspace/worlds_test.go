package keyspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/files"
)

// world is a data directory with a workspace and a key space, low and high side by side.
type world struct {
	testing.TB
	dir   string
	files *files.Service
	kv    *KV
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	st := openStore(t, dir)
	f, err := files.New(dir, NewLabels(st), files.WithImportLabel(abi.Secret))
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	must(t, f.Ensure(t.Context(), "WS1", abi.Public))
	w := &world{TB: t, dir: dir, files: f, kv: New(st)}
	must(t, os.Mkdir(w.host("vault"), 0o700))
	return w
}

func (w *world) host(p string) string { return filepath.Join(w.dir, "workspaces", "WS1", p) }

// as runs fn in an invocation of its own.
func (w *world) as(change func(*authority.Spec), fn func(boundary.Scope) (boundary.Result, error)) string {
	spec := someSpec()
	change(&spec)
	sc, inv := scope(spec)
	r, err := fn(sc)
	if err != nil {
		var e *abi.Error
		if !errors.As(err, &e) {
			w.Fatalf("an error without a code: %v", err)
		}
		return fmt.Sprintf("%s %q %q target=%q label=%s", e.Code, e.Message, e.Hint, r.Target, inv.Label())
	}
	return fmt.Sprintf("%q %s %s value=%d,%v target=%q label=%s", r.Body, r.Meta, r.Code, r.Value, r.HasValue, r.Target, inv.Label())
}

func asHigh(s *authority.Spec) {
	s.Start, s.Floor, s.Session = abi.Secret, abi.Secret, "high"
}

func asLow(s *authority.Spec) { s.Ceiling, s.Session = abi.Internal, "low" }

// secretly does what a world has and others have not.
func (w *world) secretly(fn func(boundary.Scope) (boundary.Result, error)) {
	w.Helper()
	if got := w.as(asHigh, fn); !strings.Contains(got, "label=secret") || strings.HasPrefix(got, "FILE") || strings.HasPrefix(got, "CLASS") {
		w.Fatalf("the secret was not made: %s", got)
	}
}

// calls is every file and key call a low guest can think of.
func (w *world) calls(t *testing.T) []string {
	ctx := t.Context()
	f, k := w.files, w.kv
	var out []string
	do := func(name string, fn func(boundary.Scope) (boundary.Result, error)) {
		out = append(out, name+": "+w.as(asLow, fn))
	}
	paths := []string{".", "hint", "vault", "vault/plan", "vault/plan/x", "vault/spare", "vault/deep", "vault/deep/plan", "vault/new", "note", "d/note"}
	for _, p := range paths {
		do("stat "+p, func(s boundary.Scope) (boundary.Result, error) { return f.Stat(ctx, s, p) })
		do("read "+p, func(s boundary.Scope) (boundary.Result, error) { return f.Read(ctx, s, p, 0, 100) })
		do("read on "+p, func(s boundary.Scope) (boundary.Result, error) { return f.Read(ctx, s, p, 7, 1) })
		do("list "+p, func(s boundary.Scope) (boundary.Result, error) { return f.List(ctx, s, p, "", 1) })
		do("list after "+p, func(s boundary.Scope) (boundary.Result, error) { return f.List(ctx, s, p, "note", 0) })
		do("create "+p, func(s boundary.Scope) (boundary.Result, error) { return f.Create(ctx, s, p, []byte("low")) })
		do("write "+p, func(s boundary.Scope) (boundary.Result, error) { return f.Write(ctx, s, p, []byte("low")) })
		do("replace "+p, func(s boundary.Scope) (boundary.Result, error) { return f.Replace(ctx, s, p, "", []byte("low")) })
		do("edit "+p, func(s boundary.Scope) (boundary.Result, error) {
			return f.Edit(ctx, s, p, []byte("o"), []byte("oo"), true)
		})
		do("read again "+p, func(s boundary.Scope) (boundary.Result, error) { return f.Read(ctx, s, p, 0, 100) })
		do("copy from "+p, func(s boundary.Scope) (boundary.Result, error) { return f.Copy(ctx, s, p, "d/copy") })
		do("copy to "+p, func(s boundary.Scope) (boundary.Result, error) { return f.Copy(ctx, s, "note", p) })
		do("move from "+p, func(s boundary.Scope) (boundary.Result, error) { return f.Move(ctx, s, p, "d/moved") })
		do("move to "+p, func(s boundary.Scope) (boundary.Result, error) { return f.Move(ctx, s, "d/moved", p) })
		do("remove "+p, func(s boundary.Scope) (boundary.Result, error) { return f.Remove(ctx, s, p) })
	}
	for _, g := range []string{"**", "*", "vault/**", "**/plan", "hint"} {
		for _, n := range []int{0, 1} {
			do("glob "+g, func(s boundary.Scope) (boundary.Result, error) { return f.Glob(ctx, s, g, n) })
			do("grep "+g, func(s boundary.Scope) (boundary.Result, error) { return f.Grep(ctx, s, "a|o", g, n) })
		}
	}
	for _, key := range []string{"plan", "low", "plan/x"} {
		do("get "+key, func(s boundary.Scope) (boundary.Result, error) { return k.Get(ctx, s, key) })
		do("list "+key, func(s boundary.Scope) (boundary.Result, error) { return k.List(ctx, s, key, "", 1) })
		do("delete "+key, func(s boundary.Scope) (boundary.Result, error) { return k.Delete(ctx, s, key) })
		do("put "+key, func(s boundary.Scope) (boundary.Result, error) { return k.Put(ctx, s, key, []byte("low")) })
		do("list all", func(s boundary.Scope) (boundary.Result, error) { return k.List(ctx, s, "", "", 0) })
	}
	return out
}

// versionToken is a version in a transcript. They are random, so two runs of one world
// differ in them; the order in which equal ones appear must not.
var versionToken = regexp.MustCompile(`[A-Z2-7]{26}`)

func masked(lines []string) []string {
	seen := map[string]string{}
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = versionToken.ReplaceAllStringFunc(l, func(v string) string {
			if seen[v] == "" {
				seen[v] = fmt.Sprint("version-", len(seen))
			}
			return seen[v]
		})
	}
	return out
}

// S5: worlds that differ in what is secret, and one low script of every file and key call.
// The transcripts are the same to the byte.
func TestLowSeesOneWorld(t *testing.T) {
	ctx := context.Background()
	create := func(p, data string) func(*world) {
		return func(w *world) {
			w.secretly(func(s boundary.Scope) (boundary.Result, error) { return w.files.Create(ctx, s, p, []byte(data)) })
		}
	}
	remove := func(p string) func(*world) {
		return func(w *world) {
			w.secretly(func(s boundary.Scope) (boundary.Result, error) { return w.files.Remove(ctx, s, p) })
		}
	}
	move := func(from, to string) func(*world) {
		return func(w *world) {
			w.secretly(func(s boundary.Scope) (boundary.Result, error) { return w.files.Move(ctx, s, from, to) })
		}
	}
	put := func(key, value string) func(*world) {
		return func(w *world) {
			w.secretly(func(s boundary.Scope) (boundary.Result, error) { return w.kv.Put(ctx, s, key, []byte(value)) })
		}
	}
	plant := func(p, data string) func(*world) {
		return func(w *world) { must(w, os.WriteFile(w.host(p), []byte(data), 0o600)) }
	}
	// A planted name and a key that is there take their name in every world; see the
	// package comments. What is in them is in one only.
	worlds := map[string][]func(*world){
		"empty vault":  {plant("hint", ""), put("plan", "")},
		"a plan":       {plant("hint", "attack at dawn, or not"), create("vault/plan", "attack at dawn"), put("plan", "attack")},
		"another":      {plant("hint", "o"), create("vault/deep/plan", strings.Repeat("a\n", 5000)), put("plan", strings.Repeat("o", 1000))},
		"given up":     {plant("hint", "a"), create("vault/plan", "a"), remove("vault/plan"), put("plan", "a"), put("plan", "b")},
		"moved":        {plant("hint", "aa"), create("vault/plan", "a"), move("vault/plan", "vault/spare"), put("plan", "c")},
		"a plan as is": {plant("hint", "x\x00"), create("vault/plan/x", "a"), create("vault/new", "oo"), put("plan", "d")},
	}
	var first string
	var want []string
	for name, secrets := range worlds {
		w := newWorld(t)
		for _, s := range secrets {
			s(w)
		}
		got := masked(w.calls(t))
		if want == nil {
			first, want = name, got
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q is not %q:\n%s", name, first, diff)
		}
	}
	// The script is not one of refusals only.
	text := strings.Join(want, "\n")
	for _, expected := range []string{
		`read again note: "loow" {"size":4,"version":"version-`, `grep **: "[{\"path\":\"d/copy\"`, `get low: KEY_NOT_FOUND`, `list all: "[\"low\",`,
	} {
		if !strings.Contains(text, expected) {
			t.Errorf("nothing like %s in\n%s", expected, text)
		}
	}
}

package glob

import (
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"**", "", true},
		{"**", "a/b/c", true},
		{"*", "a", true},
		{"*", "a/b", false},
		{"*", "", false},
		{"reports/**", "reports", true},
		{"reports/**", "reports/2026/q1.md", true},
		{"reports/**", "reportsx", false},
		{"reports/**", "x/reports/a", false},
		{"**/*.md", "a.md", true},
		{"**/*.md", "x/y/a.md", true},
		{"**/*.md", "x/y/a.mdx", false},
		{"a/**/b", "a/b", true},
		{"a/**/b", "a/x/y/b", true},
		{"a/**/b", "ab", false},
		{"a?c", "abc", true},
		{"a?c", "a/c", false},
		{"[a-c]x", "bx", true},
		{"[^a-c]x", "bx", false},
		{"[^a-c]", "/", false},
		{"*.{go,md}", "x.md", true},
		{"*.{go,{m,t}d}", "x.td", true},
		{"*.{go,md}", "x.txt", false},
		{"a.b", "axb", false}, // what regular expressions give meaning to is literal
		{"(a)+", "(a)+", true},
	} {
		p, err := Compile(c.pattern)
		if err != nil {
			t.Fatalf("%s: %v", c.pattern, err)
		}
		if got := p.Match(c.path); got != c.want {
			t.Errorf("%q matches %q: %v, want %v", c.pattern, c.path, got, c.want)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, pattern := range []string{
		"", "/a", "a/", "a//b", "./a", "../a", "a/../b", `a\*`, "a\x00", "a\n", "\xff", "{a", "a}", "{a/b,c}",
		"[a", "[]", "[z-a]", "[.-0]", "[!]", "[[:alpha:]]", strings.Repeat("a", 257), strings.Repeat("a/", 32) + "a",
	} {
		if _, err := Compile(pattern); abi.CodeOf(err) != abi.CodePatternInvalid {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

// A negated class stays inside its component: doublestar lets it match the slash.
func TestClassesStayInside(t *testing.T) {
	p, err := Compile("a[^a]b")
	if err != nil || p.Match("a/b") || !p.Match("acb") {
		t.Errorf("a[^a]b: %v", err)
	}
}

// The language is doublestar's, on what both accept, but for one thing more: x/** also matches what x
// matches, whatever x is. Doublestar says so of a/** and not of a*/** or a/**/**.
func TestAgreesWithDoublestar(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "b", "*", "?", "[ab]", "{a,b}", "{a,*b}", "ab"})
	name := rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 3).Draw(t, "rest") == 0 {
			return "**"
		}
		return strings.Join(rapid.SliceOfN(piece, 1, 3).Draw(t, "pieces"), "")
	})
	word := rapid.StringMatching(`[abc]{1,3}`)
	rapid.Check(t, func(t *rapid.T) {
		pattern := strings.Join(rapid.SliceOfN(name, 1, 4).Draw(t, "names"), "/")
		path := strings.Join(rapid.SliceOfN(word, 1, 4).Draw(t, "words"), "/")
		p, err := Compile(pattern)
		if err != nil {
			t.Fatal(err)
		}
		want := false
		for x, more := pattern, true; more && !want; x, more = strings.CutSuffix(x, "/**") {
			if want, err = doublestar.Match(x, path); err != nil {
				t.Fatal(err)
			}
		}
		if got := p.Match(path); got != want {
			t.Fatalf("%q matches %q: %v, doublestar says %v", pattern, path, got, want)
		}
	})
}

// Whatever is below a directory and matches, Above says so of the directory.
func TestAboveNeverPrunesAMatch(t *testing.T) {
	name := rapid.SampledFrom([]string{"a", "b", "*", "**", "{a,b}", "?"})
	word := rapid.SampledFrom([]string{"a", "b", "ab"})
	rapid.Check(t, func(t *rapid.T) {
		p, err := Compile(strings.Join(rapid.SliceOfN(name, 1, 4).Draw(t, "names"), "/"))
		if err != nil {
			t.Fatal(err)
		}
		words := rapid.SliceOfN(word, 1, 4).Draw(t, "words")
		if !p.Match(strings.Join(words, "/")) {
			return
		}
		for i := range words {
			if dir := strings.Join(words[:i], "/"); !p.Above(dir) {
				t.Fatalf("%q matches %q and is not above %q", p, strings.Join(words, "/"), dir)
			}
		}
	})
	p, _ := Compile("reports/*/x")
	for dir, want := range map[string]bool{"": true, "reports": true, "reports/a": true, "reports/a/x": false, "other": false} {
		if p.Above(dir) != want {
			t.Errorf("above %q: %v", dir, !want)
		}
	}
}

func TestSet(t *testing.T) {
	s := NewSet([]string{"reports/**", "note/*", "\x00", "../x", "{a/b,c}"})
	for name, want := range map[string]bool{
		"reports": true, "reports/a": true, "note/1": true, "note/1/2": false, "other": false, "x": false, "a/b": false, "\x00": false,
	} {
		if got := s.Match(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !s.Above("") || !s.Above("reports/q") || s.Above("other") {
		t.Error("above")
	}
	// What is not understood names nothing; only no globs at all name everything.
	for _, none := range []*Set{{}, NewSet([]string{"\x00"}), NewSet([]string{""})} {
		if none.Match("a") || none.Above("") || none.Any() {
			t.Error("it names something")
		}
	}
	if all := NewSet(nil); !all.Match("a") || !all.Above("") || !all.Any() {
		t.Error("the empty list names every resource")
	}
}

// S4: several sets name what each of them names; none is no restriction, and one that is missing names
// nothing.
func TestSets(t *testing.T) {
	a, b := NewSet([]string{"reports/**", "a"}), NewSet([]string{"*/x", "a"})
	for name, want := range map[string]bool{"reports/x": true, "a": true, "reports/y": false, "other/x": false} {
		if got := (Sets{a, b}).Match(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if both := (Sets{a, b}); !both.Above("reports") || both.Above("other") || !both.Any() {
		t.Error("above")
	}
	if all := Sets(nil); !all.Match("x") || !all.Above("x") || !all.Any() {
		t.Error("without any set it is everything")
	}
	for _, none := range []Sets{{nil}, {a, nil}, {a, {}}} {
		if none.Match("a") || none.Above("") || none.Any() {
			t.Error("it names something")
		}
	}
}

// S10
func TestAlternativesAreNotABomb(t *testing.T) {
	p, err := Compile(strings.Repeat("{a,aa}", 42))
	if err != nil {
		t.Fatal(err)
	}
	if p.Match(strings.Repeat("a", 200)) {
		t.Error("matched more than it can")
	}
}

func FuzzCompile(f *testing.F) {
	f.Add("reports/**/*.{md,txt}", "reports/a.md")
	f.Add("[^a-z]?", "Ab")
	f.Add("**/**/x", "x")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		p, err := Compile(pattern)
		if err != nil {
			if abi.CodeOf(err) != abi.CodePatternInvalid {
				t.Fatal(err)
			}
			return
		}
		p.Match(path)
		p.Above(path)
	})
}

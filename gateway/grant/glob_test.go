package grant

import (
	"slices"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/egress"
	"github.com/ecotone-dev/ecotone/host/files/glob"
)

// PF-A1, PF-B7: absent is everything of one's own; empty is refused, and so is what could
// never match.
func TestParseGlobs(t *testing.T) {
	if got, err := ParseGlobs(nil); err != nil || !slices.Equal(got, []string{Everything}) {
		t.Errorf("absent: %q %v", got, err)
	}
	if got, err := ParseGlobs([]string{"b", "a/**", "b"}); err != nil || !slices.Equal(got, []string{"a/**", "b"}) {
		t.Errorf("%q %v", got, err)
	}
	for _, bad := range [][]string{
		{},
		{""},
		{"/a"},
		{"a/"},
		{"a//b"},
		{"../a"},
		{"a/../b"},
		{"./a"},
		{"a/."},
		{"["},
		{"{a"},
		{`a\*`},
		{"a\x00"},
		{"{a/b,c}"},
		{"a}"},
		{"ok", ""},
		make([]string, MaxGlobs+1),
		{strings.Repeat("a", glob.MaxBytes+1)},
	} {
		if got, err := ParseGlobs(bad); err == nil || err.Code != abi.CodeUnsupportedRule {
			t.Errorf("%q: %q %v", bad, got, err)
		}
	}
}

// X39: what a grant names is what it was given, compiled once; and everything is no restriction. A grant
// that was not compiled names nothing.
func TestResources(t *testing.T) {
	g := Grant{Globs: []string{"reports/**", "note/*"}}
	if g.Resources().Any() {
		t.Error("before it was compiled it names something")
	}
	if err := g.Compile(); err != nil {
		t.Fatal(err)
	}
	if r := g.Resources(); !r.Match("reports/a/b") || r.Match("reportsx/a") || r.Match("note/a/b") || g.Resources() != r {
		t.Error("it does not name what it was given, or is compiled again")
	}
	all := Grant{Globs: []string{Everything}}
	if err := all.Compile(); err != nil || all.Resources() != nil {
		t.Errorf("everything is a restriction: %v", err)
	}
}

// X39: URLs are compiled when the grant is given; a list that is there is not empty.
func TestURLs(t *testing.T) {
	target, err := egress.ParseURL("https://api.example.org/v1/a")
	if err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]bool{"https://api.example.org/v1/**": true, "https://api.example.org/v2/**": false, "https://other.example.org/v1/**": false} {
		g := Grant{Globs: []string{Everything}, URLs: []string{pattern}}
		if err := g.Compile(); err != nil {
			t.Fatal(err)
		}
		if lists := g.Asks().Egress; len(lists) != 1 || lists[0].Admits(target) != want {
			t.Errorf("%s admits it: %v", pattern, !want)
		}
	}
	for at, bad := range map[string][]string{
		"/urls": {}, "/urls/0": {"https://api.example.org"}, "/urls/1": {"https://api.example.org/**", "ftp://api.example.org/**"},
	} {
		if _, err := CompileURLs(bad); abi.CodeOf(err) != abi.CodeUnsupportedRule || abi.AsError(err).Pointer != at {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := CompileURLs(make([]string, MaxURLs+1)); err == nil {
		t.Error("there is no bound")
	}
}

// X70: where a grant holds. Nothing that lies around a space, and nothing named beside it, holds there.
func TestHoldsIn(t *testing.T) {
	for _, c := range []struct {
		spaces   []string
		space    string
		personal bool
		want     bool
	}{
		{nil, "default", false, true},
		{nil, "ada", true, false},
		{[]string{"ada"}, "ada", true, true},
		{[]string{"ada"}, "ada-session", true, false},
		{[]string{"ada"}, "default", false, false},
		{[]string{"default", "ada"}, "default", false, true},
	} {
		if got := (&Grant{Spaces: c.spaces}).HoldsIn(c.space, c.personal); got != c.want {
			t.Errorf("%q in %s: %v", c.spaces, c.space, got)
		}
	}
}

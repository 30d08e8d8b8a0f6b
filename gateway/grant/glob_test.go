package grant

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
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

func matches(globs []string, path string) bool {
	return glob.NewSet(globs).Match(path)
}

// S4: an intersection matches only what both match, is never empty, and keeps what it can.
func TestMeetGlobs(t *testing.T) {
	segment := rapid.SampledFrom([]string{"a", "b", "*", "**", "a*", "{a,b}", "[ab]", "?"})
	glob := rapid.Custom(func(t *rapid.T) string {
		g := segment.Draw(t, "segment")
		for range rapid.IntRange(0, 2).Draw(t, "more") {
			g += "/" + segment.Draw(t, "segment")
		}
		return g
	})
	list := rapid.SliceOfN(glob, 1, 3)
	part := rapid.StringMatching(`[ab]{1,2}(/[ab]{1,2}){0,3}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := list.Draw(t, "a"), list.Draw(t, "b")
		meet := MeetGlobs(a, b)
		if len(meet) == 0 {
			t.Fatalf("%q and %q: nothing at all, which would be everything", a, b)
		}
		if diff := cmp.Diff(meet, MeetGlobs(b, a)); diff != "" {
			t.Fatalf("it depends on the order: %s", diff)
		}
		for range 10 {
			if path := part.Draw(t, "path"); matches(meet, path) && !(matches(a, path) && matches(b, path)) {
				t.Fatalf("%q and %q meet in %q, which matches %s", a, b, meet, path)
			}
		}
	})
	for _, c := range []struct{ a, b, want []string }{
		{[]string{"**"}, []string{"a/*", "b"}, []string{"a/*", "b"}},
		{[]string{"a/**"}, []string{"a/b/**", "c"}, []string{"a/b/**"}},
		{[]string{"a/b"}, []string{"a/?"}, []string{"a/b"}},
		{[]string{"a/**"}, []string{"b/**"}, []string{Nothing}},
		{nil, []string{"**"}, []string{Nothing}},
	} {
		if got := MeetGlobs(c.a, c.b); !slices.Equal(got, c.want) {
			t.Errorf("%q and %q: %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

// What is left of grants that share nothing names nothing, where it is enforced.
func TestNothing(t *testing.T) {
	if glob.NewSet([]string{Nothing}).Any() {
		t.Error("it could name something")
	}
}

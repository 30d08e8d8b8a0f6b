package grant

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/host/files/glob"
)

// A name that is made a glob names itself and nothing else.
func TestExactly(t *testing.T) {
	for _, name := range []string{"a", "reports/a.md", "a*b", "what?", "]x", "{a,b}", "a}b", "**", "a/**/b", "x,y", "-", "^"} {
		if g, ok := Exactly(name); !ok {
			t.Errorf("%q has no glob: %q", name, g)
		}
	}
	for _, name := range []string{"", "/", "a//b", "../a", "a\\b", "[x]", "\xff"} {
		if g, ok := Exactly(name); ok {
			t.Errorf("%q has the glob %q", name, g)
		}
	}
	names := rapid.StringMatching(`[ab*?\[\]{},^-]{1,6}(/[ab*?\[\]{},^-]{1,6})?`)
	rapid.Check(t, func(rt *rapid.T) {
		name, other := names.Draw(rt, "name"), names.Draw(rt, "other")
		g, ok := Exactly(name)
		if !ok {
			return
		}
		p, err := glob.Compile(g)
		if err != nil || !p.Match(name) || p.Match(other) != (name == other) {
			rt.Fatalf("%q for %q: %v, and %q is matched: %v", g, name, err, other, p.Match(other))
		}
	})
}

package egress

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// oracle writes a pattern as a regular expression.
func oracle(p string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString("^")
	segments := strings.Split(p[1:], "/")
	for i, s := range segments {
		last := i == len(segments)-1
		switch {
		case s == "**" && last:
			b.WriteString("/.*")
		case s == "**":
			b.WriteString("(/[^/]*)*")
		default:
			b.WriteString("/" + strings.ReplaceAll(regexp.QuoteMeta(s), `\*`, "[^/]*"))
		}
	}
	return regexp.MustCompile(b.String() + "$")
}

func TestPathsAgainstRegexp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.StringMatching(`(/(a|b|a\*|\*b|\*|\*\*)){1,5}/?`).Draw(t, "pattern")
		path := rapid.StringMatching(`(/[ab]{0,3}){1,6}`).Draw(t, "path")
		compiled, problem := compilePath(p)
		if problem != "" {
			t.Skip()
		}
		if got, want := compiled.match(path), oracle(p).MatchString(path); got != want {
			t.Fatalf("%s on %s: %v, want %v", p, path, got, want)
		}
	})
}

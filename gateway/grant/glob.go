package grant

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/ecotone-dev/ecotone/abi"
)

// Everything is the glob of a grant that names no resources: all that the session's own
// workspace and keys hold.
const Everything = "**"

// Bounds of the globs of one grant.
const (
	MaxGlobs     = 64
	MaxGlobBytes = 256
)

// ParseGlobs returns the globs a grant holds. A list that is absent (nil) is [Everything]; one
// that is given must not be empty, and each member must be a pattern that can match a canonical
// path: what could never match is refused, not stored (PF-A1, PF-B7).
func ParseGlobs(globs []string) ([]string, *abi.Error) {
	if globs == nil {
		return []string{Everything}, nil
	}
	if len(globs) == 0 || len(globs) > MaxGlobs {
		return nil, abi.Errorf(abi.CodeUnsupportedRule, "a grant names 1 to %d globs", MaxGlobs).At("/globs").
			WithHint("leave the field out to grant every resource of the session's own workspace and keys")
	}
	for _, g := range globs {
		if !globCanMatch(g) {
			return nil, abi.Errorf(abi.CodeUnsupportedRule, "%s is not a pattern that could match a path", abi.Quote(g)).At("/globs").
				WithHint("relative, without empty, . or .. segments, as in reports/** or notes/*.md")
		}
	}
	out := slices.Clone(globs)
	slices.Sort(out)
	return slices.Compact(out), nil
}

func globCanMatch(g string) bool {
	if g == "" || len(g) > MaxGlobBytes || strings.ContainsAny(g, "\x00\\") || !doublestar.ValidatePattern(g) {
		return false
	}
	for _, segment := range strings.Split(g, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// Nothing is a glob that no path and no key matches: neither has a zero byte.
const Nothing = "\x00"

// MeetGlobs returns globs that match only what both a and b match. It may match less than
// that, never more: of two patterns neither of which is seen to lie within the other, nothing
// is kept. Where nothing is left the result is [Nothing], so that it is never empty. An empty
// operand is nothing, too.
func MeetGlobs(a, b []string) []string {
	var out []string
	for _, x := range a {
		for _, y := range b {
			switch {
			case globWithin(x, y):
				out = append(out, x)
			case globWithin(y, x):
				out = append(out, y)
			}
		}
	}
	if len(out) == 0 {
		return []string{Nothing}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// globWithin reports whether everything x matches is surely matched by y.
func globWithin(x, y string) bool {
	if x == y || y == Everything {
		return true
	}
	if !isPattern(x) {
		return doublestar.MatchUnvalidated(y, x)
	}
	// Every path that x matches begins with x's literal head; y = head/** takes them all.
	dir, ok := strings.CutSuffix(y, "/**")
	return ok && !isPattern(dir) && strings.HasPrefix(x, dir+"/")
}

func isPattern(s string) bool { return strings.ContainsAny(s, `*?[{\`) }

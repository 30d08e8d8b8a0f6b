package grant

import (
	"slices"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/files/glob"
)

// Everything is the glob of a grant that names no resources: all that the session's own
// workspace and keys hold.
const Everything = "**"

// MaxGlobs bounds the globs of one grant.
const MaxGlobs = 64

// ParseGlobs returns the globs a grant holds. A list that is absent (nil) is [Everything]; one
// that is given must not be empty, and each member must be of the one language that is enforced,
// package glob's: what would never match is refused, not stored (PF-A1, PF-B7).
func ParseGlobs(globs []string) ([]string, *abi.Error) {
	if globs == nil {
		return []string{Everything}, nil
	}
	if len(globs) == 0 || len(globs) > MaxGlobs {
		return nil, abi.Errorf(abi.CodeUnsupportedRule, "a grant names 1 to %d globs", MaxGlobs).At("/globs").
			WithHint("leave the field out to grant every resource of the session's own workspace and keys")
	}
	for _, g := range globs {
		if _, err := glob.Compile(g); err != nil {
			e := abi.AsError(err)
			return nil, abi.Errorf(abi.CodeUnsupportedRule, "%s", e.Message).At("/globs").WithHint(e.Hint)
		}
	}
	out := slices.Clone(globs)
	slices.Sort(out)
	return slices.Compact(out), nil
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
		p, err := glob.Compile(y)
		return err == nil && p.Match(x)
	}
	// Every path that x matches begins with x's literal head; y = head/** takes them all.
	dir, ok := strings.CutSuffix(y, "/**")
	return ok && !isPattern(dir) && strings.HasPrefix(x, dir+"/")
}

func isPattern(s string) bool { return strings.ContainsAny(s, `*?[{`) }

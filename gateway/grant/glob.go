package grant

import (
	"slices"
	"sync"

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

// compiled is what a grant asks for and names. The globs are compiled when they are first asked for and
// kept as long as the grant: of a million grants few are used, and what they name was checked when they
// were given.
type compiled struct {
	asks  Obligations
	once  sync.Once
	globs []string
	names *glob.Set
}

// Resources is what the grant names, or nil when that is [Everything]. Safe for concurrent use. It is
// nothing, before the grant was compiled.
func (g *Grant) Resources() *glob.Set {
	switch {
	case slices.Contains(g.Globs, Everything):
		return nil
	case g.more == nil:
		return &glob.Set{}
	}
	g.more.once.Do(func() { g.more.names = glob.NewSet(g.more.globs) })
	return g.more.names
}

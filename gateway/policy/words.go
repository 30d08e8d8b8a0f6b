package policy

import (
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/grant"
)

// words keeps one copy of each string that many grants have in common: capabilities,
// environments, organisations, who made them. A million grants are made of few words.
type words map[string]string

func (w words) of(s string) string {
	if have, ok := w[s]; ok {
		return have
	}
	w[s] = s
	return s
}

var everything = []string{grant.Everything}

// grant returns a copy of a grant that shares its words.
func (w words) grant(g grant.Grant) *grant.Grant {
	g.Org, g.CreatedBy, g.Install = w.of(g.Org), w.of(g.CreatedBy), w.of(g.Install)
	g.Capability, g.Environment = abi.CapabilityRef(w.of(string(g.Capability))), abi.EnvironmentRef(w.of(string(g.Environment)))
	if slices.Equal(g.Globs, everything) {
		g.Globs = everything
	}
	return &g
}

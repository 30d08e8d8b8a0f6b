package glob

import (
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
)

// Kind says what a resource is.
type Kind string

const (
	File Kind = "file"
	Key  Kind = "kv"
)

// Resource renders the name grants are matched against: file:<path> or kv:<key>.
func Resource(kind Kind, name string) string { return string(kind) + ":" + name }

// Parse reads one resource glob of a grant, <kind>:<pattern>. What would not be enforced
// exactly as it is written is UNSUPPORTED_RULE, so that it is refused when the grant is
// made and never stored (PF-B7).
func Parse(s string) (Kind, *Pattern, error) {
	kind, pattern, ok := strings.Cut(s, ":")
	if !ok || (Kind(kind) != File && Kind(kind) != Key) {
		return "", nil, abi.Errorf(abi.CodeUnsupportedRule, "%s is not a resource glob", abi.Quote(s)).
			WithHint("a resource glob looks like file:reports/** or kv:note/*")
	}
	p, err := Compile(pattern)
	if err != nil {
		e := abi.AsError(err)
		return "", nil, &abi.Error{Code: abi.CodeUnsupportedRule, Message: e.Message, Hint: e.Hint}
	}
	return Kind(kind), p, nil
}

// Set is the resource globs of an authority.
type Set struct {
	all   bool
	globs map[Kind][]*Pattern
}

// NewSet compiles the globs of an authority. An empty list means every resource of the
// session's own workspace and keys, as the authority defines it. A glob that [Parse]
// refuses names nothing: a set never widens because a part of it is not understood.
func NewSet(globs []string) *Set {
	if len(globs) == 0 {
		return &Set{all: true}
	}
	s := &Set{globs: map[Kind][]*Pattern{}}
	for _, g := range globs {
		if kind, p, err := Parse(g); err == nil {
			s.globs[kind] = append(s.globs[kind], p)
		}
	}
	return s
}

// Match reports whether the set names the resource. The zero Set names nothing.
func (s *Set) Match(kind Kind, name string) bool {
	if s.all {
		return true
	}
	for _, p := range s.globs[kind] {
		if p.Match(name) {
			return true
		}
	}
	return false
}

// Above reports whether the set may name something below the directory dir; "" is the root.
func (s *Set) Above(kind Kind, dir string) bool {
	if s.all {
		return true
	}
	for _, p := range s.globs[kind] {
		if p.Above(dir) {
			return true
		}
	}
	return false
}

// Any reports whether the set names any resource of a kind.
func (s *Set) Any(kind Kind) bool { return s.all || len(s.globs[kind]) > 0 }

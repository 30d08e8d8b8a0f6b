package glob

// Set is the resource globs of an authority. The zero Set names nothing.
type Set struct {
	all   bool
	globs []*Pattern
}

// NewSet compiles the globs of an authority. An empty list means every resource of the
// session's own workspace and keys, as the authority defines it. A glob that [Compile]
// refuses names nothing: a set never widens because a part of it is not understood.
func NewSet(globs []string) *Set {
	s := &Set{all: len(globs) == 0}
	for _, g := range globs {
		if p, err := Compile(g); err == nil {
			s.globs = append(s.globs, p)
		}
	}
	return s
}

// Any reports whether the set can name anything.
func (s *Set) Any() bool { return s.all || len(s.globs) > 0 }

// Match reports whether the set names a canonical path or a key.
func (s *Set) Match(name string) bool {
	if s.all {
		return true
	}
	for _, p := range s.globs {
		if p.Match(name) {
			return true
		}
	}
	return false
}

// Above reports whether the set may name something below the directory dir; "" is the root.
func (s *Set) Above(dir string) bool {
	if s.all {
		return true
	}
	for _, p := range s.globs {
		if p.Above(dir) {
			return true
		}
	}
	return false
}

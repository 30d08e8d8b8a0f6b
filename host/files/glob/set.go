package glob

// Sets is the resources of an authority: what every one of them names. Without any it is every
// resource of the session's own workspace and keys. It is immutable and safe for concurrent use.
type Sets []*Set

// Any reports whether the sets may have something in common.
func (s Sets) Any() bool { return s.each((*Set).Any) }

// Match reports whether every set names a canonical path or a key.
func (s Sets) Match(name string) bool {
	return s.each(func(one *Set) bool { return one.Match(name) })
}

// Above reports whether every set may name something below the directory dir; "" is the root.
func (s Sets) Above(dir string) bool {
	return s.each(func(one *Set) bool { return one.Above(dir) })
}

func (s Sets) each(fn func(*Set) bool) bool {
	for _, one := range s {
		if one == nil || !fn(one) {
			return false
		}
	}
	return true
}

// Set is the resource globs of one grant. The zero Set names nothing. It is immutable and safe for
// concurrent use.
type Set struct {
	all   bool
	globs []*Pattern
}

// NewSet compiles the globs of a grant. An empty list means every resource of the
// session's own workspace and keys. A glob that [Compile]
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

package abi

// scan reads a JSON document once, without making anything of it: the common case of [CheckJSON],
// which every input and every output passes. It accepts only what the walker accepts. What it does
// not accept the walker judges again, and gives the reason: malformed documents, and good ones
// whose keys are written with escapes.
//
// It allocates nothing unless an object has more than scanMany keys, or all that are open at the
// same time have more than scanKeys. BenchmarkCheckJSON is beside it.
type scan struct {
	data  []byte
	at    int
	depth int               // levels that may still be opened
	keys  [scanKeys]keySpan // of all open objects, the outermost first
	open  int               // of them
}

// keySpan is where a key is. Spans and not slices: without pointers the whole scan stays on the stack.
type keySpan struct{ from, to int }

const (
	scanKeys = 32
	scanMany = 16 // keys of one object past which they are looked up, not compared one by one
)

// document reports whether the data is exactly one value.
func (s *scan) document() bool {
	s.space()
	if !s.value() {
		return false
	}
	s.space()
	return s.at == len(s.data)
}

func (s *scan) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// take moves past c, if that comes next.
func (s *scan) take(c byte) bool {
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scan) value() bool {
	if s.at == len(s.data) {
		return false
	}
	switch s.data[s.at] {
	case '{':
		return s.object()
	case '[':
		return s.array()
	case '"':
		_, _, ok := s.text()
		return ok
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

func (s *scan) word(w string) bool {
	end := s.at + len(w)
	if end > len(s.data) || string(s.data[s.at:end]) != w {
		return false
	}
	s.at = end
	return true
}

func (s *scan) array() bool {
	if s.depth == 0 {
		return false
	}
	s.depth--
	s.at++
	s.space()
	for first := true; !s.take(']'); first = false {
		if !first {
			if !s.take(',') {
				return false
			}
			s.space()
		}
		if !s.value() {
			return false
		}
		s.space()
	}
	s.depth++
	return true
}

func (s *scan) object() bool {
	if s.depth == 0 {
		return false
	}
	s.depth--
	s.at++
	s.space()
	base := s.open
	var many map[string]struct{}
	for first := true; !s.take('}'); first = false {
		if !first {
			if !s.take(',') {
				return false
			}
			s.space()
		}
		if s.at == len(s.data) || s.data[s.at] != '"' {
			return false
		}
		key, plain, ok := s.text()
		if !ok || !plain || !s.fresh(base, key, &many) {
			return false
		}
		s.space()
		if !s.take(':') {
			return false
		}
		s.space()
		if !s.value() {
			return false
		}
		s.space()
	}
	s.open = base
	s.depth++
	return true
}

// fresh records a key of the object whose keys begin at base, and reports whether it is its first.
func (s *scan) fresh(base int, key keySpan, many *map[string]struct{}) bool {
	text := s.data[key.from:key.to]
	if *many == nil && s.open < scanKeys && s.open-base < scanMany {
		for _, k := range s.keys[base:s.open] {
			if string(s.data[k.from:k.to]) == string(text) {
				return false
			}
		}
		s.keys[s.open] = key
		s.open++
		return true
	}
	if *many == nil {
		*many = make(map[string]struct{}, 2*scanMany)
		for _, k := range s.keys[base:s.open] {
			(*many)[string(s.data[k.from:k.to])] = struct{}{}
		}
	}
	before := len(*many)
	(*many)[string(text)] = struct{}{}
	return len(*many) > before
}

// ordinary are the bytes that stand for themselves in a string.
var ordinary = func() (t [256]bool) {
	for c := 0x20; c < len(t); c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// text reads a string. plain is false when it has an escape.
func (s *scan) text() (content keySpan, plain, ok bool) {
	s.at++
	from := s.at
	plain = true
	for {
		for s.at < len(s.data) && ordinary[s.data[s.at]] {
			s.at++
		}
		if s.at == len(s.data) {
			return keySpan{}, false, false
		}
		switch s.data[s.at] {
		case '"':
			s.at++
			return keySpan{from, s.at - 1}, plain, true
		case '\\':
			plain = false
			if !s.escape() {
				return keySpan{}, false, false
			}
		default:
			return keySpan{}, false, false // a control character
		}
	}
}

func (s *scan) escape() bool {
	s.at++
	if s.at == len(s.data) {
		return false
	}
	c := s.data[s.at]
	s.at++
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			if s.at == len(s.data) || !hexDigit(s.data[s.at]) {
				return false
			}
			s.at++
		}
		return true
	}
	return false
}

func hexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// digits moves past digits, of which there is at least one.
func (s *scan) digits() bool {
	from := s.at
	for s.at < len(s.data) && s.data[s.at] >= '0' && s.data[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}

func (s *scan) number() bool {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return false
	}
	if s.take('.') && !s.digits() {
		return false
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		return s.digits()
	}
	return true
}

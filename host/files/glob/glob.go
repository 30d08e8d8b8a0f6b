// Package glob compiles the patterns that name files and keys.
//
// The language is the one of doublestar: `*` and `?` stay inside one path component, a
// component `**` stands for any number of components, `[a-z]` and `[^a-z]` are classes,
// `{a,b}` are alternatives. Patterns are relative and written with forward slashes. Two
// things are left out, so that a pattern means exactly what it looks like: the backslash,
// because no path of the gateway has one or any other byte that would need it, and
// alternatives that span components.
//
// A pattern is turned into one RE2 program, so matching takes time linear in the path
// whatever the pattern is; a matcher that backtracks over alternatives takes exponential
// time on 256 bytes of them (S10).
package glob

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/ecotone-dev/ecotone/abi"
)

// Bounds of a pattern.
const (
	MaxBytes      = 256
	MaxComponents = 32
)

// Pattern is a compiled glob. It is immutable and safe for concurrent use.
type Pattern struct {
	text  string
	whole *regexp.Regexp
	parts []part
}

// part is one component; rest is `**`.
type part struct {
	rest bool
	re   *regexp.Regexp
}

// String returns the pattern's text.
func (p *Pattern) String() string { return p.text }

// Match reports whether the pattern names path, a canonical relative path. "" is the root.
func (p *Pattern) Match(path string) bool {
	if path == "" { // the root has no name that `*` could stand for
		return len(p.parts) == 1 && p.parts[0].rest
	}
	return p.whole.MatchString(path)
}

// Above reports whether the pattern may name something below the directory dir.
// "" is the root.
func (p *Pattern) Above(dir string) bool {
	// at[i]: the components of dir so far can be consumed with part i next.
	at := make([]bool, len(p.parts)+1)
	at[0] = true
	p.skipRest(at)
	for dir != "" {
		var name string
		name, dir, _ = strings.Cut(dir, "/")
		next := make([]bool, len(at))
		for i := range p.parts {
			switch {
			case !at[i]:
			case p.parts[i].rest:
				next[i] = true
			case p.parts[i].re.MatchString(name):
				next[i+1] = true
			}
		}
		p.skipRest(next)
		at = next
	}
	for i := range p.parts {
		if at[i] {
			return true
		}
	}
	return false
}

// skipRest adds the states reached because `**` may stand for nothing.
func (p *Pattern) skipRest(at []bool) {
	for i := range p.parts {
		if at[i] && p.parts[i].rest {
			at[i+1] = true
		}
	}
}

// cache holds compiled patterns; grants name the same few on every call. When it is full
// it is emptied, which bounds it and costs a recompilation.
var cache = struct {
	sync.RWMutex
	m map[string]*Pattern
}{m: map[string]*Pattern{}}

const cacheMax = 4096

// Compile compiles a pattern. A pattern that is not of the language, longer than
// [MaxBytes] or deeper than [MaxComponents] is PATTERN_INVALID.
func Compile(pattern string) (*Pattern, error) {
	cache.RLock()
	p := cache.m[pattern]
	cache.RUnlock()
	if p != nil {
		return p, nil
	}
	p, err := compile(pattern)
	if err != nil {
		return nil, err
	}
	cache.Lock()
	defer cache.Unlock()
	if len(cache.m) >= cacheMax {
		clear(cache.m)
	}
	cache.m[p.text] = p
	return p, nil
}

func invalid(pattern, why string) error {
	return abi.Errorf(abi.CodePatternInvalid, "%s is not a glob: %s", abi.Quote(pattern), why).
		WithHint("globs are relative, like reports/**/*.md, with * ? [a-z] {a,b} and ** as a component of its own")
}

func compile(pattern string) (*Pattern, error) {
	switch {
	case pattern == "":
		return nil, invalid(pattern, "it is empty")
	case len(pattern) > MaxBytes:
		return nil, invalid(pattern, "it is longer than 256 bytes")
	case !utf8.ValidString(pattern):
		return nil, invalid(pattern, "it is not valid UTF-8")
	case strings.ContainsFunc(pattern, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return nil, invalid(pattern, "it has control bytes")
	}
	names := strings.Split(strings.Clone(pattern), "/")
	if len(names) > MaxComponents {
		return nil, invalid(pattern, "it has more than 32 components")
	}
	p := &Pattern{text: strings.Clone(pattern)}
	var whole strings.Builder
	first := true // nothing before the next component, so no slash either
	for i, name := range names {
		last := i == len(names)-1
		if name == "**" {
			if len(p.parts) > 0 && p.parts[len(p.parts)-1].rest && !last {
				continue // `**/**` is `**`
			}
			p.parts = append(p.parts, part{rest: true})
			switch {
			case first && last:
				whole.WriteString(`(?:[^/]+(?:/[^/]+)*)?`)
			case first:
				whole.WriteString(`(?:[^/]+/)*`)
			default:
				whole.WriteString(`(?:/[^/]+)*`)
			}
			continue
		}
		src, why := component(name)
		if why != "" {
			return nil, invalid(pattern, why)
		}
		if !first {
			whole.WriteByte('/')
		}
		first = false
		whole.WriteString(src)
		re, err := regexp.Compile(`^(?s:` + src + `)$`)
		if err != nil {
			return nil, invalid(pattern, "it has a class without members")
		}
		p.parts = append(p.parts, part{re: re})
	}
	re, err := regexp.Compile(`^(?s:` + whole.String() + `)$`)
	if err != nil {
		return nil, invalid(pattern, "it does not compile")
	}
	p.whole = re
	return p, nil
}

// component translates one component to a regular expression, or says why it cannot.
func component(name string) (src, why string) {
	if name == "" {
		return "", "it has an empty component"
	}
	if name == "." || name == ".." {
		return "", "it has the component " + name
	}
	var b strings.Builder
	depth := 0
	for i := 0; i < len(name); {
		r, w := utf8.DecodeRuneInString(name[i:])
		switch r {
		case '\\':
			return "", "it has a backslash"
		case '*':
			for i+w < len(name) && name[i+w] == '*' {
				w++
			}
			b.WriteString(`[^/]*`)
		case '?':
			b.WriteString(`[^/]`)
		case '[':
			class, n, why := class(name[i:])
			if why != "" {
				return "", why
			}
			b.WriteString(class)
			w = n
		case '{':
			depth++
			b.WriteString(`(?:`)
		case ',':
			if depth > 0 {
				b.WriteByte('|')
			} else {
				b.WriteByte(',')
			}
		case '}':
			if depth == 0 {
				return "", "it closes a brace that is not open in its component"
			}
			depth--
			b.WriteByte(')')
		default:
			b.WriteString(regexp.QuoteMeta(name[i : i+w]))
		}
		i += w
	}
	if depth > 0 {
		return "", "it does not close a brace in its component"
	}
	return b.String(), ""
}

// class translates the class that s begins with and returns its length.
func class(s string) (src string, n int, why string) {
	const open = "it does not close a class in its component"
	var b strings.Builder
	b.WriteByte('[')
	i := 1
	if i < len(s) && (s[i] == '^' || s[i] == '!') {
		b.WriteString(`^/`)
		i++
	}
	members := 0
	for {
		if i >= len(s) {
			return "", 0, open
		}
		if s[i] == ']' {
			break
		}
		lo, w := utf8.DecodeRuneInString(s[i:])
		i += w
		hi := lo
		if i+1 < len(s) && s[i] == '-' && s[i+1] != ']' {
			hi, w = utf8.DecodeRuneInString(s[i+1:])
			i += 1 + w
		}
		switch {
		case lo == '\\' || hi == '\\':
			return "", 0, "it has a backslash"
		case lo == '[' || hi == '[' || (lo == '-' && hi == '-'):
			return "", 0, "a class has [ or - as a member"
		case lo > hi:
			return "", 0, "it has a range that runs backwards"
		case lo < '/' && hi > '/':
			return "", 0, "it has a range across the slash"
		}
		writeRune(&b, lo)
		b.WriteByte('-')
		writeRune(&b, hi)
		members++
	}
	if members == 0 {
		return "", 0, "it has a class without members"
	}
	b.WriteByte(']')
	return b.String(), i + 1, ""
}

func writeRune(b *strings.Builder, r rune) {
	if r < utf8.RuneSelf && !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
		b.WriteByte('\\')
	}
	b.WriteRune(r)
}

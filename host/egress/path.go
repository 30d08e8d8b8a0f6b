package egress

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	maxPatternBytes = 1024
	maxWildcards    = 8 // keeps matching cheap on hostile paths
)

// pathPattern matches paths as [ParseURL] leaves them.
type pathPattern struct{ glob string }

// compilePath accepts the closed form [Compile] documents.
func compilePath(p string) (pathPattern, string) {
	if p == "" || p[0] != '/' {
		return pathPattern{}, "must begin with /"
	}
	if len(p) > maxPatternBytes {
		return pathPattern{}, "is longer than 1024 bytes"
	}
	if strings.Count(p, "*") > maxWildcards {
		return pathPattern{}, "has more than 8 asterisks"
	}
	segments := strings.Split(p[1:], "/")
	for i, s := range segments {
		switch {
		case s == "" && i < len(segments)-1:
			return pathPattern{}, "has an empty segment"
		case dotSegment(s):
			return pathPattern{}, "has a dot segment"
		case s != "**" && strings.Contains(s, "**"):
			return pathPattern{}, "has ** inside a segment; it must be a segment of its own"
		}
		for j := range len(s) {
			if !pchar(s[j]) {
				return pathPattern{}, "has a character that is not supported: segments are letters, digits and -._~!$&'()+,;=:@, with * and ** as wildcards"
			}
		}
	}
	// doublestar lets a final ** stand for nothing at all, and would admit /v1 under /v1/**.
	if base, ok := strings.CutSuffix(p, "/**"); ok {
		p = base + "/**/*"
	}
	return pathPattern{glob: p}, ""
}

func (p pathPattern) match(path string) bool {
	ok, err := doublestar.Match(p.glob, path)
	return ok && err == nil
}

// dotSegment also finds a dot segment before path parameters (/..;x/), which some servers
// strip before they resolve it.
func dotSegment(s string) bool {
	name, _, _ := strings.Cut(s, ";")
	return name == "." || name == ".."
}

// pchar is RFC 3986's class of that name, without percent encoding.
func pchar(c byte) bool {
	return unreserved(c) || strings.IndexByte("!$&'()*+,;=:@", c) >= 0
}

func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

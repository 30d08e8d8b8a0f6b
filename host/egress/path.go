package egress

import "strings"

const (
	maxPatternBytes = 1024
	maxWildcards    = 8 // keeps matching cheap on hostile paths
)

// pathPattern matches paths as [ParseURL] leaves them, segment by segment.
//
// It is not doublestar, which lets a final ** stand for nothing and so admits /v1 under
// /v1/**, and whose classes and alternatives are refused here anyway.
type pathPattern []string

// compilePath accepts the closed form [Compile] documents.
func compilePath(p string) (pathPattern, string) {
	if p == "" || p[0] != '/' {
		return nil, "must begin with /"
	}
	if len(p) > maxPatternBytes {
		return nil, "is longer than 1024 bytes"
	}
	if strings.Count(p, "*") > maxWildcards {
		return nil, "has more than 8 asterisks"
	}
	segments := strings.Split(p[1:], "/")
	for i, s := range segments {
		switch {
		case s == "" && i < len(segments)-1:
			return nil, "has an empty segment"
		case dotSegment(s):
			return nil, "has a dot segment"
		case s != "**" && strings.Contains(s, "**"):
			return nil, "has ** inside a segment; it must be a segment of its own"
		}
		for j := range len(s) {
			if !pchar(s[j]) {
				return nil, "has a character that is not supported: segments are letters, digits and -._~!$&'()+,;=:@, with * and ** as wildcards"
			}
		}
	}
	return segments, ""
}

// match takes time proportional to len(p) × len(path): a failed match is resumed only at the
// latest **, which is enough because the earlier ones already matched as little as they can.
func (p pathPattern) match(path string) bool {
	if len(p) == 0 || path == "" || path[0] != '/' {
		return false
	}
	segments := strings.Split(path[1:], "/")
	i, j := 0, 0 // next of segments, next of p
	resume, from := -1, 0
	for i < len(segments) {
		switch {
		case j < len(p) && p[j] == "**":
			if j == len(p)-1 {
				return true // and at least one segment is left for it
			}
			j++
			resume, from = j, i
		case j < len(p) && matchSegment(p[j], segments[i]):
			i++
			j++
		case resume >= 0:
			from++
			i, j = from, resume
		default:
			return false
		}
	}
	return j == len(p)
}

// matchSegment is the same with * over bytes.
func matchSegment(pattern, s string) bool {
	i, j := 0, 0
	resume, from := -1, 0
	for i < len(s) {
		switch {
		case j < len(pattern) && pattern[j] == '*':
			j++
			resume, from = j, i
		case j < len(pattern) && pattern[j] == s[i]:
			i++
			j++
		case resume >= 0:
			from++
			i, j = from, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[j:], "*") == ""
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

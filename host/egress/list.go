package egress

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
)

// MaxPatterns bounds each half of a [List].
const MaxPatterns = 64

// List is patterns of URLs that narrow what endpoints admit; it never admits by itself. It is
// immutable and safe for concurrent use. nil and the zero value admit nothing.
type List struct {
	allow, block []*matcher
}

// CompileList makes a list of patterns: a URL is admitted when one of allow matches it and none
// of block does (X45). A pattern is scheme://host[:port]/path, each part as [Compile] takes it; it
// is about every method. allow is not empty, because an empty list that admits nothing and one that
// admits everything look alike. Refusals are UNSUPPORTED_RULE and point at the pattern.
func CompileList(allow, block []string) (*List, error) {
	l := &List{}
	for _, half := range []struct {
		name     string
		patterns []string
		to       *[]*matcher
	}{{"allow", allow, &l.allow}, {"block", block, &l.block}} {
		if len(half.patterns) > MaxPatterns || half.name == "allow" && len(half.patterns) == 0 {
			return nil, abi.Errorf(abi.CodeUnsupportedRule, "%s must have from 1 to %d patterns", half.name, MaxPatterns).At("/" + half.name)
		}
		for i, p := range half.patterns {
			m, problem := compilePattern(p)
			if problem != "" {
				return nil, abi.Errorf(abi.CodeUnsupportedRule, "%s has %s, which %s", half.name, abi.Quote(p), problem).
					At("/" + half.name + "/" + strconv.Itoa(i)).WithHint("a pattern is written as https://host/path/**")
			}
			*half.to = append(*half.to, m)
		}
	}
	return l, nil
}

func compilePattern(p string) (m *matcher, problem string) {
	if len(p) > MaxURLBytes {
		return nil, "is too long"
	}
	scheme, rest, _ := strings.Cut(p, "://")
	slash := strings.IndexByte(rest, '/')
	switch {
	case DefaultPort(scheme) == 0:
		return nil, "does not begin with http:// or https://"
	case slash < 0:
		return nil, "has no path; /** stands for all of them but /"
	}
	m = &matcher{scheme: scheme}
	host, port, problem := splitPort(rest[:slash])
	if problem != "" {
		return nil, problem
	}
	if m.port = port; port == 0 {
		m.port = DefaultPort(scheme)
	}
	// A pattern only narrows: whether a loopback address may be dialled is the endpoint's to say.
	if err := m.compileHost(host, !strings.HasPrefix(host, "*.")); err != nil {
		return nil, "is not supported: its " + err.Message
	}
	if m.path, problem = compilePath(rest[slash:]); problem != "" {
		return nil, "has a path that " + problem
	}
	return m, ""
}

// splitPort splits host[:port] of a pattern; 0 is no port. An IPv6 address is in brackets.
func splitPort(s string) (host string, port int, problem string) {
	host = s
	if i := strings.LastIndexByte(s, ':'); i > strings.LastIndexByte(s, ']') {
		n, err := strconv.ParseUint(s[i+1:], 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != s[i+1:] {
			return "", 0, "has a port that is not a plain number from 1 to 65535"
		}
		host, port = s[:i], int(n)
	}
	inner, open := strings.CutPrefix(host, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	addr, err := netip.ParseAddr(inner)
	if six := err == nil && addr.Is6(); open != closed || open != six {
		return "", 0, "has a host that is neither a name nor an address; an IPv6 address is in brackets"
	}
	return inner, port, ""
}

// Admits reports whether the list lets a request to u through.
func (l *List) Admits(u *Target) bool {
	return l != nil && u != nil && anyMatches(l.allow, u) && !anyMatches(l.block, u)
}

func anyMatches(ms []*matcher, u *Target) bool {
	for _, m := range ms {
		if m.scheme == u.Scheme && m.port == u.Port && m.matchHost(u.Host) && m.path.match(u.Path) {
			return true
		}
	}
	return false
}

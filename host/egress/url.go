package egress

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ecotone-dev/ecotone/abi"
)

// MaxURLBytes bounds a guest's URL.
const MaxURLBytes = 8 << 10

// Target is a guest's URL, parsed once and in canonical form. Nothing downstream parses
// the text again.
type Target struct {
	Scheme string     // http or https
	Host   string     // a name in lower case, or an address without brackets
	Addr   netip.Addr // valid when Host is an address
	Port   int        // 1 to 65535
	Path   string     // as it is sent: begins with /, percent encoding in upper case
	Query  string     // as it is sent, without the question mark
}

func badURL(format string, args ...any) *abi.Error {
	return abi.Errorf(abi.CodeURLInvalid, "the URL "+format, args...)
}

// ParseURL is the one parser of URLs that guests give. It accepts
// scheme://host[:port][/path][?query] with scheme http or https in any case, and refuses
// with URL_INVALID everything two parsers could read differently: user information,
// fragments, backslashes, bytes outside printable ASCII, addresses in any but their
// canonical spelling, zones, names that end in a dot, empty and dot segments, percent
// encoding of what needs none or of separators, dots, percent signs and control characters.
// Messages never repeat the URL, because queries carry credentials (PF-F6).
func ParseURL(s string) (*Target, error) {
	if len(s) > MaxURLBytes {
		return nil, badURL("is longer than %d bytes", MaxURLBytes)
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 0x80:
			return nil, badURL("has characters outside ASCII").WithHint("use punycode in the host and percent encoding elsewhere")
		case c <= ' ' || c == 0x7f:
			return nil, badURL("has spaces or control characters")
		case c == '\\':
			return nil, badURL("has a backslash")
		case c == '#':
			return nil, badURL("has a fragment, which is never sent")
		}
	}
	scheme, rest, ok := strings.Cut(s, "://")
	u := &Target{Scheme: strings.ToLower(scheme)}
	if !ok || DefaultPort(u.Scheme) == 0 {
		return nil, badURL("must begin with http:// or https://")
	}
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	if err := u.parseAuthority(authority); err != nil {
		return nil, err
	}
	path, query, _ := strings.Cut(path, "?")
	if err := u.parsePath(path); err != nil {
		return nil, err
	}
	var problem string
	if u.Query, problem = canonicalQuery(query); problem != "" {
		return nil, badURL("%s", problem)
	}
	return u, nil
}

func (u *Target) parseAuthority(a string) *abi.Error {
	if strings.Contains(a, "@") {
		return badURL("has user information").WithHint("name a secret in the request; the host puts it in")
	}
	host, port := a, ""
	hasPort, bracketed := false, strings.HasPrefix(a, "[")
	if bracketed {
		end := strings.IndexByte(a, ']')
		if end < 0 || end+1 < len(a) && a[end+1] != ':' {
			return badURL("has brackets that do not enclose an IPv6 address")
		}
		host = a[1:end]
		if end+1 < len(a) {
			hasPort, port = true, a[end+2:]
		}
	} else {
		host, port, hasPort = strings.Cut(a, ":")
	}
	host = strings.ToLower(host)
	addr, problem := checkHost(host)
	if problem != "" {
		return badURL("has a host that %s", problem)
	}
	if bracketed != addr.Is6() {
		return badURL("has brackets around something that is not an IPv6 address")
	}
	u.Host, u.Addr, u.Port = host, addr, DefaultPort(u.Scheme)
	if hasPort {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || port != strconv.FormatUint(n, 10) {
			return badURL("has a port that is not a plain number from 1 to 65535")
		}
		u.Port = int(n)
	}
	return nil
}

func (u *Target) parsePath(p string) *abi.Error {
	if p == "" {
		u.Path = "/"
		return nil
	}
	segments := strings.Split(p[1:], "/")
	for i, s := range segments {
		switch {
		case s == "" && i < len(segments)-1:
			return badURL("has an empty path segment")
		case dotSegment(s):
			return badURL("has a dot segment in its path")
		}
		c, problem := canonicalSegment(s)
		if problem != "" {
			return badURL("%s", problem)
		}
		segments[i] = c
	}
	u.Path = "/" + strings.Join(segments, "/")
	return nil
}

// canonicalSegment returns one path segment with its percent encoding in upper case.
func canonicalSegment(s string) (string, string) {
	if !strings.Contains(s, "%") {
		for i := range len(s) {
			if !pchar(s[i]) {
				return "", "has a character in its path that must be percent-encoded"
			}
		}
		return s, ""
	}
	out, decoded := make([]byte, 0, len(s)), make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			if !pchar(s[i]) {
				return "", "has a character in its path that must be percent-encoded"
			}
			out, decoded = append(out, s[i]), append(decoded, s[i])
			continue
		}
		c, ok := unhex(s[i:])
		switch {
		case !ok:
			return "", "has broken percent encoding"
		case c < 0x20 || c == 0x7f:
			return "", "has an encoded control character in its path"
		case c == '/' || c == '\\' || c == '%' || c == '.':
			return "", "has an encoded slash, backslash, dot or percent sign in its path"
		case unreserved(c):
			return "", "encodes characters of its path that need no encoding"
		}
		out, decoded = append(out, '%', upper(s[i+1]), upper(s[i+2])), append(decoded, c)
		i += 2
	}
	// Overlong and broken sequences are how encoded dots and slashes get past a check.
	if !utf8.Valid(decoded) {
		return "", "does not decode to valid UTF-8"
	}
	return string(out), ""
}

// canonicalQuery checks characters and well-formedness only: a query is data, no rule
// looks at it.
func canonicalQuery(q string) (string, string) {
	out := []byte(q)
	for i := 0; i < len(q); i++ {
		switch c := q[i]; {
		case c == '%':
			if _, ok := unhex(q[i:]); !ok {
				return "", "has broken percent encoding in its query"
			}
			out[i+1], out[i+2] = upper(q[i+1]), upper(q[i+2])
			i += 2
		case !pchar(c) && c != '/' && c != '?':
			return "", "has a character in its query that must be percent-encoded"
		}
	}
	return string(out), ""
}

func unhex(s string) (byte, bool) {
	if len(s) < 3 {
		return 0, false
	}
	n, err := strconv.ParseUint(s[1:3], 16, 8)
	if err != nil {
		return 0, false
	}
	return byte(n), true
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'f' {
		return c - 'a' + 'A'
	}
	return c
}

// Authority is the host and port as the Host header names them: brackets around IPv6, the
// port only when it is not the scheme's own.
func (u *Target) Authority() string {
	if u.Port != DefaultPort(u.Scheme) {
		return net.JoinHostPort(u.Host, strconv.Itoa(u.Port))
	}
	if u.Addr.Is6() {
		return "[" + u.Host + "]"
	}
	return u.Host
}

// String is what logs, receipts and the audit name: everything but the query, which
// carries credentials (PF-F6).
func (u *Target) String() string { return u.Scheme + "://" + u.Authority() + u.Path }

// RequestURI is the path and query as they are sent.
func (u *Target) RequestURI() string {
	if u.Query == "" {
		return u.Path
	}
	return u.Path + "?" + u.Query
}

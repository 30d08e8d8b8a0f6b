package egress

import "strings"

// setter says who may set a request header.
type setter uint8

const (
	setByGuest  setter = iota
	setBySecret        // carries a credential: only a secret the host puts in
	setByHost          // framing, identity and routing: only the host, or nobody
)

// headerTable names the headers that are not a guest's to set. Header names that end in *
// are prefixes.
var headerTable = map[string]setter{
	"authorization": setBySecret, "cookie": setBySecret,

	// Framing and hop-by-hop (RFC 9110 §7.6.1): a guest that sets them speaks for the connection.
	"host": setByHost, "connection": setByHost, "content-length": setByHost, "transfer-encoding": setByHost,
	"te": setByHost, "trailer": setByHost, "upgrade": setByHost, "keep-alive": setByHost, "expect": setByHost,
	"http2-settings": setByHost, "cookie2": setByHost,

	// What the host says about itself.
	"user-agent": setByHost, "accept-encoding": setByHost, "via": setByHost, "forwarded": setByHost, "x-real-ip": setByHost,

	// Headers by which some servers let a request become another one than the rule admitted.
	"x-http-method": setByHost, "x-http-method-override": setByHost, "x-method-override": setByHost,
	"x-original-url": setByHost, "x-rewrite-url": setByHost, "x-original-host": setByHost, "x-host": setByHost,
}

var headerPrefixes = []string{"proxy-", "ecotone-", "sec-", "x-forwarded-"}

func whoSets(name string) setter {
	// Gateways that hand headers on as variables make one name of - and _.
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	for _, p := range headerPrefixes {
		if strings.HasPrefix(name, p) {
			return setByHost
		}
	}
	return headerTable[name]
}

// GuestHeader reports whether a guest may set the request header.
func GuestHeader(name string) bool { return headerToken(name) && whoSets(name) == setByGuest }

// SecretHeader reports whether a secret may be sent in the request header.
func SecretHeader(name string) bool { return headerToken(name) && whoSets(name) != setByHost }

// SameHeader reports whether an origin may take a for b.
func SameHeader(a, b string) bool {
	return strings.EqualFold(strings.ReplaceAll(a, "_", "-"), strings.ReplaceAll(b, "_", "-"))
}

// maxHeaderName bounds a header name, in bytes.
const maxHeaderName = 128

func headerToken(s string) bool {
	if s == "" || len(s) > maxHeaderName {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return true
}

// HeaderValue reports whether s may be the value of a header: printable ASCII, with spaces
// and tabs inside only. Line breaks never pass.
func HeaderValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' && c != '\t') || c >= 0x7f {
			return false
		}
	}
	return s == strings.Trim(s, " \t")
}

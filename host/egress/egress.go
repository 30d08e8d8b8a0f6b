// Package egress decides about requests that leave the gateway: which scheme, host, port,
// method and path an endpoint admits, what a guest's URL means, which headers a guest may
// set, and which addresses are never dialled.
//
// It is the one parser and the one matcher: what it accepts has exactly one spelling, and
// what it would not enforce it refuses when the rule is written (PF-B7). It resolves no
// name and opens no connection.
package egress

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
)

// Endpoint is one named rule of an organisation, compiled. It is immutable by convention
// and safe for concurrent use. An Endpoint that [Compile] did not make matches nothing.
type Endpoint struct {
	Name      string
	Rule      Rule               // canonical: the port is filled in, the methods are in table order
	Clearance abi.Classification // what may be sent to it; wildcard hosts are public (S16)
	Label     abi.Classification // what comes back from it
	Loopback  bool               // may be dialled on loopback addresses, if the server allows that too (PF-A25)

	match *matcher
}

// Rule is the textual form of an endpoint; see [Compile] for what each field may hold.
type Rule struct {
	Scheme  string   `json:"scheme"`
	Host    string   `json:"host"`
	Port    int      `json:"port,omitempty"`
	Methods []string `json:"methods"`
	Path    string   `json:"path"`
}

// matcher is the compiled rule. It has copies of its own, so that later changes to
// Endpoint.Rule cannot widen what is matched.
type matcher struct {
	scheme  string
	host    string // exact name or address, or with suffix set the part after the wildcard label
	suffix  bool
	port    int
	methods uint // bit i: methodTable[i]
	path    pathPattern
}

// methodTable is closed: CONNECT would make a tunnel and TRACE echoes credentials.
var methodTable = [...]string{"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"}

// Methods lists every method a rule may name.
func Methods() []string { return slices.Clone(methodTable[:]) }

func methodBit(m string) uint {
	for i, known := range methodTable {
		if known == m {
			return 1 << i
		}
	}
	return 0
}

// DefaultPort is the port a URL or rule of the scheme means when it names none; 0 for an
// unknown scheme.
func DefaultPort(scheme string) int {
	switch scheme {
	case "http":
		return 80
	case "https":
		return 443
	}
	return 0
}

func unsupported(field, format string, args ...any) *abi.Error {
	return abi.Errorf(abi.CodeUnsupportedRule, field+" "+format, args...).At("/" + field)
}

// Compile checks a rule and makes it matchable. Every refusal is UNSUPPORTED_RULE and its
// Pointer names the field.
//
//   - scheme: http or https.
//   - host: a DNS name in lower-case ASCII without a final dot; an IPv4 or IPv6 address in
//     its canonical spelling, without brackets; or *. before a name of at least two labels,
//     which matches exactly one more label on the left and never the name itself (PF-B6).
//   - port: 1 to 65535; 0 means the scheme's own (PF-B8).
//   - methods: one or more of [Methods], each once.
//   - path: / and literal segments; * matches any bytes within one segment, a segment **
//     any number of segments. At the end ** needs at least one more slash than the text
//     before it, so /v1/** matches /v1/ and /v1/a/b and not /v1. Matching is on the path as
//     it is sent, query excluded.
//
// A wildcard host has clearance public whatever is asked for, because the name itself
// carries data to whoever answers its queries (S16). loopback permits the endpoint to be
// dialled on loopback addresses; address literals that could never be dialled are refused.
func Compile(name string, r Rule, clearance, label abi.Classification, loopback bool) (*Endpoint, error) {
	if !abi.ValidSlug(name) {
		return nil, unsupported("name", "%s is not an endpoint name: lower case letters, digits and inner hyphens, at most 63 bytes", abi.Quote(name))
	}
	if DefaultPort(r.Scheme) == 0 {
		return nil, unsupported("scheme", "must be exactly http or https, not %s", abi.Quote(r.Scheme))
	}
	m := &matcher{scheme: r.Scheme, port: r.Port}
	if err := m.compileHost(r.Host, loopback); err != nil {
		return nil, err
	}
	if m.port == 0 {
		m.port = DefaultPort(r.Scheme)
	}
	if m.port < 1 || m.port > 65535 {
		return nil, unsupported("port", "must be from 1 to 65535, not %d", r.Port)
	}
	if len(r.Methods) == 0 {
		return nil, unsupported("methods", "must name at least one method; an empty list admits nothing")
	}
	for _, method := range r.Methods {
		bit := methodBit(method)
		if bit == 0 {
			return nil, unsupported("methods", "has %s, which is not one of %s", abi.Quote(method), strings.Join(methodTable[:], ", "))
		}
		if m.methods&bit != 0 {
			return nil, unsupported("methods", "names %s twice", method)
		}
		m.methods |= bit
	}
	var problem string
	if m.path, problem = compilePath(r.Path); problem != "" {
		return nil, unsupported("path", "%s", problem)
	}
	if !clearance.Valid() {
		return nil, unsupported("clearance", "is missing: say what may be sent to the endpoint")
	}
	if !label.Valid() {
		return nil, unsupported("label", "is missing: say how what comes back is classified")
	}
	if m.suffix {
		clearance = abi.Public
	}
	return &Endpoint{Name: name, Rule: m.rule(r), Clearance: clearance, Label: label, Loopback: loopback, match: m}, nil
}

func (m *matcher) compileHost(s string, loopback bool) *abi.Error {
	if base, ok := strings.CutPrefix(s, "*."); ok {
		addr, problem := checkHost(base)
		switch {
		case problem != "":
			return unsupported("host", "after the wildcard label: %s", problem)
		case addr.IsValid():
			return unsupported("host", "has a wildcard before an address")
		case !strings.Contains(base, "."):
			return unsupported("host", "has a wildcard over a whole top-level domain").WithHint("a wildcard stands before a name of two labels or more, as in *.example.com")
		case loopback:
			return unsupported("host", "is a wildcard, which cannot be dialled on loopback").WithHint("name the host exactly")
		}
		m.host, m.suffix = "."+base, true
		return nil
	}
	if strings.Contains(s, "*") {
		return unsupported("host", "has a wildcard in a place where it is not supported").WithHint("the one form is *.example.com; the name without the label needs a rule of its own")
	}
	addr, problem := checkHost(s)
	if problem != "" {
		return unsupported("host", "%s", problem)
	}
	// A rule that could never be dialled is refused when it is written, not when it is used.
	switch class := Classify(addr); {
	case !addr.IsValid():
		if !loopback && (s == "localhost" || strings.HasSuffix(s, ".localhost")) {
			return unsupported("host", "is always on loopback, and the rule does not permit loopback")
		}
	case class == Loopback && !loopback:
		return unsupported("host", "is a loopback address, and the rule does not permit loopback")
	case class != Global && class != Loopback:
		return unsupported("host", "is an address of a range that is never dialled (%s)", class)
	}
	m.host = s
	return nil
}

// rule is the canonical text of what was compiled.
func (m *matcher) rule(r Rule) Rule {
	out := Rule{Scheme: m.scheme, Host: r.Host, Port: m.port, Path: r.Path}
	for i, method := range methodTable {
		if m.methods&(1<<i) != 0 {
			out.Methods = append(out.Methods, method)
		}
	}
	return out
}

// Match reports whether the endpoint admits the request. A nil endpoint, a nil target and an
// endpoint that [Compile] did not make admit nothing.
func (e *Endpoint) Match(method string, u *Target) bool {
	if e == nil || e.match == nil || u == nil {
		return false
	}
	m := e.match
	return m.methods&methodBit(method) != 0 &&
		m.scheme == u.Scheme && m.port == u.Port &&
		m.matchHost(u.Host) && m.path.match(u.Path)
}

func (m *matcher) matchHost(host string) bool {
	if !m.suffix {
		return m.host == host
	}
	label, ok := strings.CutSuffix(host, m.host)
	return ok && label != "" && !strings.Contains(label, ".")
}

// Wildcard reports whether the rule's host is a wildcard.
func (e *Endpoint) Wildcard() bool { return e != nil && e.match != nil && e.match.suffix }

// Document is an endpoint on the wire and in the store.
type Document struct {
	Name      string             `json:"name"`
	Rule      Rule               `json:"rule"`
	Clearance abi.Classification `json:"clearance"`
	Label     abi.Classification `json:"label"`
	Loopback  bool               `json:"loopback,omitempty"`
}

// MarshalJSON writes {name, rule, clearance, label, loopback}.
func (e *Endpoint) MarshalJSON() ([]byte, error) {
	return json.Marshal(Document{Name: e.Name, Rule: e.Rule, Clearance: e.Clearance, Label: e.Label, Loopback: e.Loopback})
}

// UnmarshalJSON reads the document strictly and compiles it: an endpoint read back from
// anywhere is held to the same rules as a new one.
func (e *Endpoint) UnmarshalJSON(data []byte) error {
	var d Document
	if err := abi.DecodeStrict(data, &d); err != nil {
		return err
	}
	c, err := Compile(d.Name, d.Rule, d.Clearance, d.Label, d.Loopback)
	if err != nil {
		return err
	}
	*e = *c
	return nil
}

var (
	_ json.Marshaler   = (*Endpoint)(nil)
	_ json.Unmarshaler = (*Endpoint)(nil)
)

package network

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// Bounds of the headers of a guest's request and of an origin's response.
const (
	MaxRequestHeaders      = 64
	MaxRequestHeaderBytes  = 16 << 10
	MaxResponseHeaders     = 256
	MaxResponseHeaderBytes = 64 << 10
)

const userAgent = "ecotone"

func headerRefused(name, why string) *abi.Error {
	return abi.Errorf(abi.CodeHeaderRefused, "the header %s %s", abi.Quote(name), why)
}

// checkHeaders looks at the guest's headers by name in sorted order, so that the same
// request is always refused for the same reason. Values are never repeated.
func checkHeaders(req boundary.FetchRequest) error {
	if len(req.Headers) > MaxRequestHeaders {
		return abi.Errorf(abi.CodeHeaderRefused, "a request has at most %d headers", MaxRequestHeaders)
	}
	names := make([]string, 0, len(req.Headers))
	for name := range req.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	total, seen := 0, make(map[string]bool, len(names))
	for _, name := range names {
		value := req.Headers[name]
		folded := strings.ReplaceAll(strings.ToLower(name), "_", "-")
		switch total += len(name) + len(value); {
		case !egress.GuestHeader(name):
			return headerRefused(name, "is not one that a guest may set").
				WithHint("credentials are named as secret; the host sets framing, identity and routing itself")
		case !egress.HeaderValue(value):
			return headerRefused(name, "has a value that is not printable ASCII without spaces at its ends")
		case seen[folded]:
			return headerRefused(name, "is there twice")
		case total > MaxRequestHeaderBytes:
			return abi.Errorf(abi.CodeHeaderRefused, "the request's headers have more than %d bytes", MaxRequestHeaderBytes)
		}
		seen[folded] = true
	}
	if req.Secret != "" {
		if name, ok := bearsRange(req.Headers); ok {
			return headerRefused(name, "cannot go with a secret")
		}
	}
	return nil
}

// outgoing is the complete header of the request: the guest's, the host's, the secret.
func (p *plan) outgoing() http.Header {
	h := make(http.Header, len(p.headers)+4)
	for name, value := range p.headers {
		h.Set(name, value)
	}
	h.Set("User-Agent", userAgent)
	// Asked for always: what is compressed could hide an echo and would be counted compressed.
	h.Set("Accept-Encoding", "identity")
	h.Set(NonceHeader, Nonce())
	if p.secret != nil {
		p.secret.Set(h)
	}
	return h
}

// hidden are response headers that concern the connection, or are credentials between the
// origin and the gateway; a guest has no use for them.
var hidden = map[string]bool{
	"connection": true, "keep-alive": true, "proxy-authenticate": true, "proxy-authentication-info": true,
	"proxy-connection": true, "te": true, "trailer": true, "transfer-encoding": true, "upgrade": true,
	"set-cookie": true, "set-cookie2": true,
}

// meta is the document result_meta shows. Names are in lower case; several lines of one
// name are joined with ", " (RFC 9110 §5.2).
type meta struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
}

func describe(r *http.Response) (json.RawMessage, error) {
	m := meta{Status: r.StatusCode, Headers: make(map[string]string, len(r.Header))}
	for name, values := range r.Header {
		name = strings.ToLower(name)
		if !hidden[name] {
			m.Headers[name] = strings.Join(values, ", ")
		}
	}
	return json.Marshal(m)
}

func headerLines(h http.Header) (n int) {
	for _, values := range h {
		n += len(values)
	}
	return n
}

package guest

import (
	"encoding/json"
	"errors"

	"github.com/ecotone-dev/ecotone/guest/internal/call"
	"github.com/ecotone-dev/ecotone/guest/internal/imports"
)

// ChildError is a child invocation that failed. It is ECHILD.
type ChildError struct {
	Code      string          `json:"code"` // of the catalogue
	Kind      string          `json:"kind"`
	Detail    string          `json:"detail"`
	AuditID   string          `json:"auditId"`
	Retryable bool            `json:"retryable"`
	Problem   json.RawMessage `json:"-"` // the whole problem document (RFC 9457)
}

func (e *ChildError) Error() string {
	if e.Code == "" {
		return ECHILD.Error()
	}
	return "the child invocation failed: " + e.Code + ": " + e.Detail
}

// Unwrap returns ECHILD.
func (e *ChildError) Unwrap() error { return ECHILD }

// Invoke invokes another capability with input, one JSON value, and returns its output. The
// manifest must require it and the install grant allow it: EDENIED otherwise. A child that
// ran and failed is a [*ChildError].
func Invoke(ref string, input []byte) ([]byte, error) {
	r, err := call.Body(func() int64 { return imports.CapabilityInvoke(ref, input) })
	if errors.Is(err, ECHILD) {
		child := &ChildError{Problem: r.Body}
		_ = describe(r.Body, child) // without a readable document the error says ECHILD, no more
		return nil, child
	}
	return r.Body, err
}

// InvokeJSON is [Invoke] with the JSON form of in, its output decoded into Out.
func InvokeJSON[Out any](ref string, in any) (out Out, err error) {
	input, err := encode(in)
	if err != nil {
		return out, err
	}
	output, err := Invoke(ref, input)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(output, &out)
}

// Request is one HTTP request. The host checks it against the endpoint rules before it even
// resolves the name.
type Request struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"` // absolute
	Headers map[string]string `json:"headers,omitempty"`
	Secret  string            `json:"secret,omitempty"` // name of a secret that the host puts in
	Body    []byte            `json:"-"`
}

// Response is what came back, with everything that looked like the secret removed.
type Response struct {
	Status  int     `json:"status"`
	Headers Headers `json:"headers"`
	Body    []byte  `json:"-"`
}

// Headers are the fields of a response by name in lower case; several lines of one name are
// joined with ", ".
type Headers map[string]string

// Get returns the field called name in any case, or "".
func (h Headers) Get(name string) string {
	for k, v := range h {
		if equalFold(k, name) {
			return v
		}
	}
	return ""
}

// equalFold compares the ASCII that field names are made of.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// Fetch sends one HTTP request and returns the response, whatever its status. EDENIED: no
// endpoint rule allows it; ESECRET: the secret is not there or not for this use; EQUOTA: the
// invocation used up its requests; ETIMEOUT, EIO: the origin failed; ETOOBIG: the response is
// over its limit.
func Fetch(req Request) (*Response, error) {
	document, err := encode(req)
	if err != nil {
		return nil, err
	}
	r, err := call.Both(func() int64 { return imports.HTTPFetch(document, req.Body) })
	if err != nil {
		return nil, err
	}
	resp := &Response{Body: r.Body}
	return resp, describe(r.Meta, resp)
}

// HMAC returns HMAC-SHA-256, keyed with the named secret, of the secret's fixed prefix and
// message. ESECRET: the secret is not there or not for this use.
func HMAC(name string, message []byte) ([]byte, error) {
	r, err := call.Body(func() int64 { return imports.SecretHMAC(name, message) })
	return r.Body, err
}

// Query asks for audit rows of the caller's own organisation. Empty fields do not restrict.
type Query struct {
	Invocation string `json:"invocation,omitempty"`
	Capability string `json:"capability,omitempty"`
	After      string `json:"after,omitempty"` // cursor: the last invocation already seen
	Limit      int    `json:"limit,omitempty"`
}

// AuditQuery returns rows as the host's JSON document. It needs reach platform.
func AuditQuery(q Query) (json.RawMessage, error) {
	document, err := encode(q)
	if err != nil {
		return nil, err
	}
	r, err := call.Body(func() int64 { return imports.AuditQuery(document) })
	return r.Body, err
}

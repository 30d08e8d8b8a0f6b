// Package problem renders refusals as RFC 9457 problem documents.
//
// It promises that what leaves the gateway is made from the catalogue and the public
// parts of an [abi.Error] only: never a Go error text, a host path, a stack or another
// tenant's name (M60, PF-H4). It refuses to know which face the document is sent on.
package problem

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
)

// ContentType is the media type of a [Document].
const ContentType = "application/problem+json"

// Document is one problem (RFC 9457) with the project's extensions. A denial of an
// invocation carries the members from Subject on (X46).
type Document struct {
	Type      string   `json:"type"`
	Title     string   `json:"title"`
	Status    int      `json:"status"`
	Detail    string   `json:"detail,omitempty"`
	Code      abi.Code `json:"code"`
	Kind      abi.Kind `json:"kind"`
	Retryable bool     `json:"retryable"`
	Hint      string   `json:"hint,omitempty"`
	Pointer   string   `json:"pointer,omitempty"`
	AuditID   string   `json:"auditId,omitempty"`
	Retry     int64    `json:"retryAfter,omitempty"` // seconds; the header of the same name says it too

	Subject     *Subject     `json:"subject,omitempty"`
	Capability  string       `json:"capability,omitempty"`
	Environment string       `json:"environment,omitempty"`
	Decision    string       `json:"decision,omitempty"`
	Reasons     []Reason     `json:"reasons,omitempty"`
	Suggestions []Suggestion `json:"suggestions,omitempty"`
	ReplacedBy  string       `json:"replacedBy,omitempty"` // what to invoke instead of a capability that is deprecated or retired (X61)

	// Problems lists everything an upload was refused for.
	Problems any `json:"problems,omitempty"`
	// Guest is what the capability itself said, marked as its words (H14).
	Guest *Guest `json:"guest,omitempty"`
}

// Subject is who was refused.
type Subject struct {
	Kind abi.SubjectKind `json:"kind"`
	Ref  string          `json:"ref"`
}

// Reason is one failed check.
type Reason struct {
	Code   abi.Code `json:"code"`
	Detail string   `json:"detail,omitempty"`
}

// Guest is an error that a capability reported of itself.
type Guest struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// TypeURI is the stable problem type of a code.
func TypeURI(c abi.Code) string { return "urn:ecotone:code:" + string(c) }

// From makes the document of err. An error that is not an [abi.Error] becomes INTERNAL with
// nothing of its text.
func From(err error, auditID string) Document {
	e := abi.AsError(err)
	info, _ := e.Code.Info()
	d := Document{
		Type: TypeURI(e.Code), Title: info.Meaning, Status: info.Status, Detail: e.Message,
		Code: e.Code, Kind: info.Kind, Retryable: info.Kind.Retryable(),
		Hint: e.Hint, Pointer: e.Pointer, AuditID: auditID, Retry: e.Retry,
	}
	if d.Retry == 0 && (d.Status == http.StatusServiceUnavailable || d.Status == http.StatusTooManyRequests) {
		d.Retry = 1
	}
	var many interface{ Problems() any }
	if errors.As(err, &many) {
		d.Problems = many.Problems()
	}
	return d
}

// Withheld is the one constant document a receiver gets that is not cleared for what an
// invocation made: nothing in it depends on the invocation but its id (S6).
func Withheld(auditID string) Document {
	return From(abi.Errorf(abi.CodeClassificationFlow, "the answer is classified above what this session is cleared for"), auditID)
}

// Send answers a request of net/http with the document.
func (d Document) Send(w http.ResponseWriter) {
	h := w.Header()
	if d.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="ecotone"`)
	}
	if d.Retry > 0 {
		h.Set("Retry-After", strconv.FormatInt(d.Retry, 10))
	}
	h.Set("Content-Type", ContentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(d.Status)
	_, _ = w.Write(d.Encode())
}

// Encode renders the document. It cannot fail: every member is plain data.
func (d Document) Encode() []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(true)
	if err := enc.Encode(d); err != nil {
		return []byte(`{"type":"urn:ecotone:code:INTERNAL","title":"internal","status":500,"code":"INTERNAL","kind":"internal","retryable":false}` + "\n")
	}
	return []byte(b.String())
}

package data

import (
	"bytes"
	"net"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/data/line"
	"github.com/ecotone-dev/ecotone/gateway/guard"
	"github.com/ecotone-dev/ecotone/gateway/invoke"
)

// The headers that mean something here, beside those of the guard.
const (
	headerAuthorization  = "Authorization"
	headerClassification = "Ecotone-Classification"
	headerDeadline       = "Ecotone-Deadline-Ms"
	headerDeclassified   = "Ecotone-Declassification"
	headerDeclassifyTo   = "Ecotone-Declassify-To"
	headerDeclassifySink = "Ecotone-Declassify-Sink"
	headerIdempotency    = "Idempotency-Key"
	headerTrace          = "Traceparent"
	headerOurs           = "Ecotone-"
)

// once is a header that may be there once: its first value, and how often it is there.
type once struct {
	value string
	count int
}

func (o *once) add(v []byte) {
	if o.count++; o.count == 1 {
		o.value = string(v)
	}
}

// head is what a handler needs of a request's head, copied out of the server's buffers. Only what is
// used is copied: a caller's other headers cost a look at their names.
type head struct {
	facts          guard.Facts
	authorization  once
	classification once
	deadline       once
	declassified   once
	declassifyTo   once
	declassifySink once
	contentTypes   int  // Content-Type headers
	json           bool // the only one is JSON's
	idempotency    bool
	trace          string
	route          *route // that matched, or nil
	unknown        string // an Ecotone-* header that the contract does not name
	version1       bool   // HTTP/1.1 or 1.0
}

func (s *Server) readHead(ctx *fasthttp.RequestCtx, h *head) {
	in := &ctx.Request.Header
	h.facts.Host = string(ctx.Host())
	h.version1 = string(in.Protocol()) == "HTTP/1.1" || string(in.Protocol()) == "HTTP/1.0"
	for k, v := range in.All() {
		switch {
		case named(k, headerAuthorization):
			h.authorization.add(v)
		case named(k, "Origin"):
			h.facts.Origin = append(h.facts.Origin, string(v))
		case named(k, "Sec-Fetch-Site"):
			h.facts.FetchSite = string(v)
		case named(k, s.o.NonceHeader):
			h.facts.Nonce = append(h.facts.Nonce, string(v))
		case named(k, headerClassification):
			h.classification.add(v)
		case named(k, headerDeadline):
			h.deadline.add(v)
		case named(k, headerDeclassified):
			h.declassified.add(v)
		case named(k, headerDeclassifyTo):
			h.declassifyTo.add(v)
		case named(k, headerDeclassifySink):
			h.declassifySink.add(v)
		case named(k, headerIdempotency):
			h.idempotency = true
		case named(k, headerTrace):
			h.trace = string(v)
		case named(k, fasthttp.HeaderHost), named(k, fasthttp.HeaderContentLength), named(k, fasthttp.HeaderContentType), named(k, fasthttp.HeaderUserAgent):
		default:
			if len(k) >= len(headerOurs) && named(k[:len(headerOurs)], headerOurs) {
				h.unknown = string(k)
			}
			h.facts.Forwarded = h.facts.Forwarded || guard.Forwards(string(k))
		}
	}
	var last []byte
	h.contentTypes, last = contentTypes(in.RawHeaders())
	h.json = h.contentTypes == 1 && (string(last) == "application/json" || guard.IsJSON(string(last))) // as most say it: no copy is made
}

// named reports whether k is the header of that name, in whatever case.
func named(k []byte, name string) bool {
	return len(k) == len(name) && strings.EqualFold(string(k), name)
}

// contentTypes counts the Content-Type headers and finds the last: the parsed head knows only that one.
func contentTypes(raw []byte) (n int, last []byte) {
	for len(raw) > 0 {
		var line []byte
		line, raw, _ = bytes.Cut(raw, []byte("\n"))
		name, value, found := bytes.Cut(line, []byte(":"))
		if found && named(name, fasthttp.HeaderContentType) {
			n, last = n+1, bytes.TrimSpace(value)
		}
	}
	return n, last
}

// checkHead refuses what this operation would otherwise ignore: an unknown header of ours
// (X27: the environment cannot be named), a query, a doubled credential, a foreign body type.
func (s *Server) checkHead(ctx *fasthttp.RequestCtx, h *head, r *route) *abi.Error {
	switch {
	case !h.version1:
		return abi.Errorf(abi.CodeInvalidRequest, "the data plane speaks HTTP/1.1")
	case h.idempotency:
		return abi.Errorf(abi.CodeIdempotencyUnbuilt, "Idempotency-Key is not supported yet")
	case h.unknown != "":
		return abi.Errorf(abi.CodeInvalidRequest, "unknown header %s", abi.Quote(h.unknown)).
			WithHint("the headers are Ecotone-Classification and Ecotone-Deadline-Ms; the environment comes from the session")
	case h.declassified.count > 0 && r.pattern != invokePattern, (h.declassifyTo.count > 0 || h.declassifySink.count > 0) && r.pattern != declassifyPattern:
		return abi.Errorf(abi.CodeInvalidRequest, "a header is of another operation").
			WithHint("Ecotone-Declassify-To and -Sink ask, at /v1/declassify/{ref}; Ecotone-Declassification uses what was approved, at /v1/invoke/{ref}")
	case len(ctx.URI().QueryString()) > 0:
		return abi.Errorf(abi.CodeInvalidRequest, "the data plane takes no query")
	case h.authorization.count > 1, h.contentTypes > 1, h.classification.count > 1, h.deadline.count > 1,
		h.declassified.count > 1, h.declassifyTo.count > 1, h.declassifySink.count > 1:
		return abi.Errorf(abi.CodeInvalidRequest, "a header is there more than once")
	case !r.body && len(ctx.Request.Body()) > 0:
		return abi.Errorf(abi.CodeInvalidRequest, "this operation takes no body")
	case r.body && len(ctx.Request.Header.ContentEncoding()) > 0:
		return abi.Errorf(abi.CodeUnsupportedMedia, "bodies are sent without a content encoding")
	case r.body && !h.json:
		return abi.Errorf(abi.CodeUnsupportedMedia, "the body must be application/json").
			WithHint("send Content-Type: application/json")
	}
	return nil
}

// caller is the other end of a connection. The connection is no part of what the server uses again for
// another one, and is asked nothing that needs the handler to be there still (S7).
type caller struct{ conn net.Conn }

// Gone implements [invoke.Caller].
func (c caller) Gone() bool { return line.Gone(c.conn) }

// Address implements [invoke.Caller].
func (c caller) Address() string { return c.conn.RemoteAddr().String() }

// request is what the pipeline is given: nothing in it is a view of the server's buffers (S7).
func (s *Server) request(ctx *fasthttp.RequestCtx, h *head, ref string) invoke.Request {
	r := invoke.Request{
		Face: "http", Authorization: h.authorization.value, Ref: ref,
		Input:          bytes.Clone(ctx.Request.Body()),
		Classification: h.classification.value, HasClassification: h.classification.count > 0,
		DeadlineMS: h.deadline.value, HasDeadline: h.deadline.count > 0,
		Declassification: h.declassified.value, HasDeclassification: h.declassified.count > 0, To: h.declassifyTo.value, Sink: h.declassifySink.value,
		Proxied: h.facts.Forwarded, Trace: h.trace, Caller: caller{ctx.Conn()},
	}
	if h.route != nil {
		r.Method, r.Route = h.route.method, h.route.pattern
	} else {
		r.Method = string(ctx.Method())
	}
	return r
}

// Package data is the data plane: the fasthttp listener on which capabilities are invoked
// and explained, and nothing else.
//
// It promises that a request is read once, copied out of the server's buffers, and judged
// by the same guard as every other listener; that each answer is a capability's output or a
// problem document; and that no slice over a request outlives its handler (S7). It refuses to
// know what a session or a grant is: that is [invoke.Pipeline]'s.
package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/guard"
	"github.com/ecotone-dev/ecotone/gateway/invoke"
	"github.com/ecotone-dev/ecotone/gateway/problem"
)

// Limits of the listener itself. They hold before anyone is authenticated (PF-D17, PF-D18).
const (
	headBytes    = 16 << 10
	readTimeout  = 20 * time.Second // head and body together: a drip is cut
	writeTimeout = 30 * time.Second
	idleTimeout  = 90 * time.Second
)

// Options configure a [Server].
type Options struct {
	Pipeline    *invoke.Pipeline
	Guard       *guard.Guard
	NonceHeader string
	MaxBody     func() int64 // the largest input any environment admits now, in bytes
	MaxConns    int          // connections served at once
}

// Server is the data plane's listener. Serve and Shutdown are each called once.
type Server struct {
	o   Options
	srv *fasthttp.Server
}

// New makes the server; it does not listen.
func New(o Options) *Server {
	s := &Server{o: o}
	s.srv = &fasthttp.Server{
		Handler:                      s.handle,
		ErrorHandler:                 s.transportError,
		Name:                         "",
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
		ReadBufferSize:               headBytes,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		HeaderReceived:               s.bodyLimit,
		Concurrency:                  o.MaxConns,
		CloseOnShutdown:              true,
		SecureErrorLogMessage:        true,
		Logger:                       silent{},
	}
	return s
}

// anonymousBody bounds the body of a request that shows no token of an open session: enough for
// a mistake, too little to fill memory with (PF-D17).
const anonymousBody = 64 << 10

// bodyLimit is asked when a request's head is there, before any of its body is read.
func (s *Server) bodyLimit(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	most := s.o.MaxBody()
	if !s.o.Pipeline.Recognises(string(h.Peek("Authorization"))) {
		most = min(most, anonymousBody)
	}
	return fasthttp.RequestConfig{MaxRequestBodySize: int(most)}
}

// silent drops the server library's own log lines: they may quote request bytes, and what
// matters of a failed request is in the audit.
type silent struct{}

func (silent) Printf(string, ...any) {}

// Serve accepts on ln until Shutdown; it closes ln.
func (s *Server) Serve(ln net.Listener) error { return s.srv.Serve(ln) }

// Shutdown stops accepting and waits for running handlers until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error { return s.srv.ShutdownWithContext(ctx) }

// head is what a handler needs of a request's head, copied out of the server's buffers.
type head struct {
	facts          guard.Facts
	authorization  []string
	contentType    []string
	classification []string
	deadline       []string
	idempotency    bool
	trace          string
	route          string // the pattern that matched
	unknown        string // an Ecotone-* header that the contract does not name
	version        string // of HTTP
}

func (s *Server) readHead(ctx *fasthttp.RequestCtx) head {
	h := head{facts: guard.Facts{Host: string(ctx.Host())}, version: string(ctx.Request.Header.Protocol())}
	for k, v := range ctx.Request.Header.All() {
		key, value := string(k), string(v)
		switch strings.ToLower(key) {
		case "authorization":
			h.authorization = append(h.authorization, value)
		case "origin":
			h.facts.Origin = append(h.facts.Origin, value)
		case "sec-fetch-site":
			h.facts.FetchSite = value
		case strings.ToLower(s.o.NonceHeader):
			h.facts.Nonce = append(h.facts.Nonce, value)
		case "ecotone-classification":
			h.classification = append(h.classification, value)
		case "ecotone-deadline-ms":
			h.deadline = append(h.deadline, value)
		case "idempotency-key":
			h.idempotency = true
		case "traceparent":
			h.trace = value
		default:
			if strings.HasPrefix(strings.ToLower(key), "ecotone-") {
				h.unknown = key
			}
			h.facts.Forwarded = h.facts.Forwarded || guard.Forwards(key)
		}
	}
	h.contentType = contentTypes(ctx.Request.Header.RawHeaders())
	return h
}

// contentTypes finds every Content-Type: the parsed head knows only the last one.
func contentTypes(raw []byte) []string {
	var out []string
	for line := range bytes.Lines(raw) {
		name, value, found := bytes.Cut(line, []byte(":"))
		if found && bytes.EqualFold(name, []byte("Content-Type")) {
			out = append(out, string(bytes.TrimSpace(value)))
		}
	}
	return out
}

// route is one operation of the data plane. The table is the whole surface: everything not
// in it is 404, everything in it needs a session token (PF-A13).
type route struct {
	method string
	prefix string
	suffix string
	body   bool
	run    func(s *Server, ctx *fasthttp.RequestCtx, h *head, arg string)
}

var routes = []route{
	{"POST", "/v1/invoke/", "", true, (*Server).invoke},
	{"POST", "/v1/explain/", "", true, (*Server).explain},
	{"POST", "/v1/invocations/", ":cancel", false, (*Server).cancel},
	{"GET", "/v1/invocations/", "", false, (*Server).invocation},
	{"GET", "/v1/capabilities", "", false, (*Server).capabilities},
}

func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	h := s.readHead(ctx)
	// The library does not recover: one broken request would take every other one along.
	defer func() {
		if p := recover(); p != nil {
			s.refuse(ctx, &h, abi.Errorf(abi.CodeInternal, "the request could not be served: %w", fmt.Errorf("panic: %v\n%s", p, debug.Stack())))
		}
	}()
	if err := s.o.Guard.Check(h.facts); err != nil {
		s.refuse(ctx, &h, err)
		return
	}
	path := string(ctx.URI().PathOriginal())
	var r *route
	var arg string
	known := false
	for i := range routes {
		a, ok := routes[i].match(path)
		if !ok {
			continue
		}
		known = true
		if routes[i].method == string(ctx.Method()) {
			r, arg, h.route = &routes[i], a, routes[i].pattern()
			break
		}
	}
	switch {
	case r == nil && known:
		s.refuse(ctx, &h, abi.Errorf(abi.CodeMethodNotAllowed, "%s is not a method of this path", abi.Quote(string(ctx.Method()))))
	case r == nil:
		s.refuse(ctx, &h, abi.Errorf(abi.CodeNotFound, "there is no such path on the data plane").
			WithHint("the data plane has /v1/invoke/{ref}, /v1/explain/{ref}, /v1/invocations/{id} and /v1/capabilities"))
	default:
		if err := s.checkHead(ctx, &h, r); err != nil {
			s.refuse(ctx, &h, err)
			return
		}
		r.run(s, ctx, &h, arg)
	}
}

func (r *route) pattern() string {
	if strings.HasSuffix(r.prefix, "/") {
		return r.prefix + "{}" + r.suffix
	}
	return r.prefix
}

func (r *route) match(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, r.prefix)
	if !ok {
		return "", false
	}
	if r.suffix != "" {
		if rest, ok = strings.CutSuffix(rest, r.suffix); !ok {
			return "", false
		}
	}
	if strings.HasSuffix(r.prefix, "/") == (rest == "") {
		return "", false
	}
	if strings.Contains(rest, "/") {
		return "", false
	}
	arg, err := url.PathUnescape(rest)
	return arg, err == nil
}

// checkHead refuses what this operation would otherwise ignore: an unknown header of ours
// (X27: the environment cannot be named), a query, a doubled credential, a foreign body type.
func (s *Server) checkHead(ctx *fasthttp.RequestCtx, h *head, r *route) *abi.Error {
	switch {
	case h.version != "HTTP/1.1" && h.version != "HTTP/1.0":
		return abi.Errorf(abi.CodeInvalidRequest, "the data plane speaks HTTP/1.1")
	case h.idempotency:
		return abi.Errorf(abi.CodeIdempotencyUnbuilt, "Idempotency-Key is not supported yet")
	case h.unknown != "":
		return abi.Errorf(abi.CodeInvalidRequest, "unknown header %s", abi.Quote(h.unknown)).
			WithHint("the headers are Ecotone-Classification and Ecotone-Deadline-Ms; the environment comes from the session")
	case len(ctx.URI().QueryString()) > 0:
		return abi.Errorf(abi.CodeInvalidRequest, "the data plane takes no query")
	case len(h.authorization) > 1, len(h.contentType) > 1, len(h.classification) > 1, len(h.deadline) > 1:
		return abi.Errorf(abi.CodeInvalidRequest, "a header is there more than once")
	case !r.body && len(ctx.Request.Body()) > 0:
		return abi.Errorf(abi.CodeInvalidRequest, "this operation takes no body")
	case r.body && len(ctx.Request.Header.ContentEncoding()) > 0:
		return abi.Errorf(abi.CodeUnsupportedMedia, "bodies are sent without a content encoding")
	}
	if r.body {
		return jsonContentType(h.contentType)
	}
	return nil
}

func jsonContentType(values []string) *abi.Error {
	refused := abi.Errorf(abi.CodeUnsupportedMedia, "the body must be application/json").
		WithHint("send Content-Type: application/json")
	if len(values) != 1 {
		return refused
	}
	media, params, err := mime.ParseMediaType(values[0])
	if err != nil || media != "application/json" {
		return refused
	}
	for k, v := range params {
		if k != "charset" || !strings.EqualFold(v, "utf-8") {
			return refused
		}
	}
	return nil
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

func (s *Server) request(ctx *fasthttp.RequestCtx, h *head, ref string) invoke.Request {
	return invoke.Request{
		Face: "http", Authorization: first(h.authorization), Ref: ref,
		Input:          bytes.Clone(ctx.Request.Body()),
		Classification: first(h.classification), HasClassification: len(h.classification) > 0,
		DeadlineMS: first(h.deadline), HasDeadline: len(h.deadline) > 0,
		Proxied: h.facts.Forwarded, Trace: h.trace,
		Method: string(ctx.Method()), Route: h.route, Remote: ctx.RemoteAddr().String(),
	}
}

func (s *Server) invoke(ctx *fasthttp.RequestCtx, h *head, ref string) {
	a := s.o.Pipeline.Invoke(context.Background(), s.request(ctx, h, ref))
	s.answer(ctx, a)
}

func (s *Server) explain(ctx *fasthttp.RequestCtx, h *head, ref string) {
	s.answer(ctx, s.o.Pipeline.Explain(context.Background(), s.request(ctx, h, ref)))
}

func (s *Server) cancel(ctx *fasthttp.RequestCtx, h *head, id string) {
	s.answer(ctx, s.o.Pipeline.Cancel(context.Background(), s.request(ctx, h, ""), id))
}

func (s *Server) invocation(ctx *fasthttp.RequestCtx, h *head, id string) {
	s.answer(ctx, s.o.Pipeline.Invocation(context.Background(), s.request(ctx, h, ""), id))
}

func (s *Server) capabilities(ctx *fasthttp.RequestCtx, h *head, _ string) {
	s.answer(ctx, s.o.Pipeline.Capabilities(context.Background(), s.request(ctx, h, "")))
}

func (s *Server) answer(ctx *fasthttp.RequestCtx, a invoke.Answer) {
	if a.Invocation != "" {
		ctx.Response.Header.Set("Ecotone-Invocation", a.Invocation)
	}
	if a.Label.Valid() {
		ctx.Response.Header.Set("Ecotone-Classification", a.Label.String())
	}
	if a.Fuel > 0 {
		ctx.Response.Header.Set("Ecotone-Fuel", strconv.FormatInt(a.Fuel, 10))
	}
	if a.Problem != nil {
		s.problem(ctx, *a.Problem)
		return
	}
	status := a.Status
	if status == 0 {
		status = fasthttp.StatusOK
	}
	s.write(ctx, status, "application/json", a.Output)
}

func (s *Server) problem(ctx *fasthttp.RequestCtx, d problem.Document) {
	if d.Status == fasthttp.StatusUnauthorized {
		ctx.Response.Header.Set("WWW-Authenticate", `Bearer realm="ecotone"`)
	}
	if d.Status == fasthttp.StatusServiceUnavailable || d.Status == fasthttp.StatusTooManyRequests {
		ctx.Response.Header.Set("Retry-After", "1")
	}
	s.write(ctx, d.Status, problem.ContentType, d.Encode())
}

// write fixes every header: nothing of a guest's text reaches one.
func (s *Server) write(ctx *fasthttp.RequestCtx, status int, contentType string, body []byte) {
	ctx.Response.SetStatusCode(status)
	ctx.Response.Header.SetContentType(contentType)
	ctx.Response.Header.Set("X-Content-Type-Options", "nosniff")
	ctx.Response.Header.Set("Cache-Control", "no-store")
	ctx.Response.SetBody(body)
}

// refuse answers and records a request that never reached the pipeline (PF-G1).
func (s *Server) refuse(ctx *fasthttp.RequestCtx, h *head, err *abi.Error) {
	s.problem(ctx, s.o.Pipeline.Refused(context.Background(), s.request(ctx, h, ""), err))
}

// transportError answers what the server library refused before a handler ran.
func (s *Server) transportError(ctx *fasthttp.RequestCtx, err error) {
	var small *fasthttp.ErrSmallBuffer
	var timeout net.Error
	e := abi.Errorf(abi.CodeInvalidRequest, "the request is not well-formed HTTP: %w", err)
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		e = abi.Errorf(abi.CodePayloadTooLarge, "the body is larger than this operation takes: %d bytes", s.o.MaxBody())
	case errors.As(err, &small):
		e = abi.Errorf(abi.CodePayloadTooLarge, "the request's head is larger than %d bytes", headBytes)
	case errors.As(err, &timeout) && timeout.Timeout():
		e = abi.Errorf(abi.CodeInvalidRequest, "the request did not arrive in time")
	}
	d := s.o.Pipeline.Refused(context.Background(), invoke.Request{Face: "http"}, e)
	s.problem(ctx, d)
	ctx.SetConnectionClose()
}

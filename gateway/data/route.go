package data

import (
	"context"
	"fmt"
	"net/url"
	"runtime/debug"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/ecotone-dev/ecotone/abi"
)

// route is one operation of the data plane. The table is the whole surface: everything not
// in it is 404, everything in it but the document needs a session token (PF-A13).
type route struct {
	method  string
	pattern string // as records name it: one {} where the argument is, if it has one
	body    bool
	open    bool // needs no token
	run     func(s *Server, ctx *fasthttp.RequestCtx, h *head, arg string)
}

// The operations that take headers of their own.
const (
	invokePattern     = "/v1/invoke/{}"
	declassifyPattern = "/v1/declassify/{}"
	documentPattern   = "/openapi.json" // of nobody's making: it is the same for everyone
)

var routes = []route{
	{method: "POST", pattern: invokePattern, body: true, run: (*Server).invoke},
	{method: "POST", pattern: "/v1/explain/{}", body: true, run: (*Server).explain},
	{method: "POST", pattern: declassifyPattern, body: true, run: (*Server).declassify},
	{method: "POST", pattern: "/v1/invocations/{}:cancel", run: (*Server).cancel},
	{method: "GET", pattern: "/v1/invocations/{}", run: (*Server).invocation},
	{method: "GET", pattern: "/v1/capabilities", run: (*Server).capabilities},
	{method: "GET", pattern: documentPattern, open: true, run: (*Server).document},
}

// match reports whether a path is the route's, and takes the argument out of it.
func (r *route) match(path string) (arg string, ok bool) {
	prefix, suffix, takes := strings.Cut(r.pattern, "{}")
	if !takes {
		return "", path == r.pattern
	}
	rest, ok := strings.CutPrefix(path, prefix)
	if !ok {
		return "", false
	}
	if rest, ok = strings.CutSuffix(rest, suffix); !ok || rest == "" || strings.Contains(rest, "/") {
		return "", false
	}
	arg, err := url.PathUnescape(rest)
	return arg, err == nil
}

// find finds the operation of a request. known says that the path is one with another method.
func find(method []byte, path string) (r *route, arg string, known bool) {
	for i := range routes {
		if arg, ok := routes[i].match(path); ok {
			if known = true; routes[i].method == string(method) {
				return &routes[i], arg, true
			}
		}
	}
	return nil, "", known
}

func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	var h head
	s.readHead(ctx, &h)
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
	r, arg, known := find(ctx.Method(), string(ctx.URI().PathOriginal()))
	h.route = r
	switch {
	case r == nil && known:
		s.refuse(ctx, &h, abi.Errorf(abi.CodeMethodNotAllowed, "%s is not a method of this path", abi.Quote(string(ctx.Method()))))
	case r == nil:
		s.refuse(ctx, &h, abi.Errorf(abi.CodeNotFound, "there is no such path on the data plane").
			WithHint("the data plane has /v1/invoke/{ref}, /v1/explain/{ref}, /v1/declassify/{ref}, /v1/invocations/{id}, /v1/capabilities and /openapi.json"))
	default:
		if err := s.checkHead(ctx, &h, r); err != nil {
			s.refuse(ctx, &h, err)
			return
		}
		r.run(s, ctx, &h, arg)
	}
}

func (s *Server) invoke(ctx *fasthttp.RequestCtx, h *head, ref string) {
	a := s.o.Pipeline.Invoke(context.Background(), s.request(ctx, h, ref))
	s.answer(ctx, a)
}

func (s *Server) explain(ctx *fasthttp.RequestCtx, h *head, ref string) {
	s.answer(ctx, s.o.Pipeline.Explain(context.Background(), s.request(ctx, h, ref)))
}

func (s *Server) declassify(ctx *fasthttp.RequestCtx, h *head, ref string) {
	s.answer(ctx, s.o.Pipeline.Declassify(context.Background(), s.request(ctx, h, ref)))
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

func (s *Server) document(ctx *fasthttp.RequestCtx, _ *head, _ string) {
	s.write(ctx, fasthttp.StatusOK, "application/json", s.doc())
}

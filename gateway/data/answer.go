package data

import (
	"context"
	"errors"
	"net"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/invoke"
	"github.com/ecotone-dev/ecotone/gateway/problem"
)

// The headers of answers, spelled as the library keeps them, so that it need not.
var (
	nameInvocation     = []byte("Ecotone-Invocation")
	nameClassification = []byte("Ecotone-Classification")
	nameFuel           = []byte("Ecotone-Fuel")
	nameReplacedBy     = []byte("Ecotone-Replaced-By")
	nameNoSniff        = []byte("X-Content-Type-Options")
	noSniff            = []byte("nosniff")
	nameCacheControl   = []byte("Cache-Control")
	noStore            = []byte("no-store")
)

func (s *Server) answer(ctx *fasthttp.RequestCtx, a invoke.Answer) {
	var text [26]byte // a ULID, or a number
	out := &ctx.Response.Header
	if a.Invocation != "" {
		out.SetCanonical(nameInvocation, append(text[:0], a.Invocation...))
	}
	if a.Label.Valid() {
		out.SetCanonical(nameClassification, append(text[:0], a.Label.String()...))
	}
	if a.Fuel > 0 {
		out.SetCanonical(nameFuel, strconv.AppendInt(text[:0], a.Fuel, 10))
	}
	if a.Location != "" {
		out.Set("Location", a.Location)
	}
	if a.ReplacedBy != "" {
		out.SetCanonical(nameReplacedBy, []byte(a.ReplacedBy))
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
	if d.Retry > 0 {
		ctx.Response.Header.Set("Retry-After", strconv.FormatInt(d.Retry, 10))
	}
	s.write(ctx, d.Status, problem.ContentType, d.Encode())
}

// write fixes every header: nothing of a guest's text reaches one. The body is the answer's own, which
// nobody changes any more, and is not copied once more.
func (s *Server) write(ctx *fasthttp.RequestCtx, status int, contentType string, body []byte) {
	ctx.Response.SetStatusCode(status)
	ctx.Response.Header.SetContentType(contentType)
	ctx.Response.Header.SetCanonical(nameNoSniff, noSniff)
	ctx.Response.Header.SetCanonical(nameCacheControl, noStore)
	ctx.Response.SetBodyRaw(body)
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

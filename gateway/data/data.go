// Package data is the data plane: the fasthttp listener on which capabilities are invoked
// and explained, and nothing else.
//
// It promises that a request is read once, copied out of the server's buffers, and judged
// by the same guard as every other listener; that each answer is a capability's output or a
// problem document; and that no slice over a request outlives its handler (S7). It refuses to
// know what a session or a grant is: that is [invoke.Pipeline]'s.
package data

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ecotone-dev/ecotone/gateway/guard"
	"github.com/ecotone-dev/ecotone/gateway/invoke"
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
	doc func() []byte // made when it is first asked for
}

// New makes the server; it does not listen.
func New(o Options) *Server {
	s := &Server{o: o, doc: sync.OnceValue(func() []byte { return Contract().Encode() })}
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

// bodyLimit is asked when a request's head is there, before any of its body is read. What says that it
// is small is held to that by the library, and need not be recognised yet.
func (s *Server) bodyLimit(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	most := s.o.MaxBody()
	small := h.ContentLength() >= 0 && h.ContentLength() <= anonymousBody
	if most > anonymousBody && !small && !s.o.Pipeline.Recognises(string(h.Peek(headerAuthorization))) {
		most = anonymousBody
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

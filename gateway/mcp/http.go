package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/guard"
	"github.com/ecotone-dev/ecotone/gateway/invoke"
	"github.com/ecotone-dev/ecotone/gateway/problem"
)

// exchange is one HTTP request, as those behind it need it.
type exchange struct {
	session       string // id
	authorization string
	trace         string
	remote        string
	proxied       bool
	path          string
	version       string          // of the protocol, as the header says; "" is not said
	http          context.Context // ends with the connection, or the request
	flight        *flight         // a tool call's; nil otherwise
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// Gone implements [invoke.Caller]: the connection was closed, which is how a call is cancelled in the newer
// version of the protocol, or the call was cancelled by a notification, as in the older one.
func (x *exchange) Gone() bool {
	return x.http.Err() != nil || x.flight != nil && x.flight.cancelled.Load()
}

// Address implements [invoke.Caller].
func (x *exchange) Address() string { return x.remote }

// request is what the pipeline is asked with.
func (x *exchange) request() invoke.Request {
	return invoke.Request{
		Face: "mcp", Authorization: x.authorization, Proxied: x.proxied, Trace: x.trace, Caller: x, Method: http.MethodPost, Route: x.path,
	}
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{
		remote: r.RemoteAddr, path: r.URL.Path, trace: r.Header.Get("Traceparent"), version: r.Header.Get("Mcp-Protocol-Version"), http: r.Context(),
	}
	facts := guard.FromHTTP(r, s.o.NonceHeader)
	x.proxied = facts.Forwarded
	if err := s.o.Guard.Check(facts); err != nil {
		s.refuse(w, r, x, err)
		return
	}
	if err := s.admit(r, x); err != nil {
		s.refuse(w, r, x, err)
		return
	}
	rt := s.routes[r.URL.Path]
	if err := checkHead(r, rt != nil); err != nil {
		if err.Code == abi.CodeMethodNotAllowed {
			w.Header().Set("Allow", http.MethodPost)
		}
		s.refuse(w, r, x, err)
		return
	}
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		s.refuse(w, r, x, full())
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // where the listener's own is another
	body, err := s.readBody(w, r)
	if err != nil {
		s.refuse(w, r, x, err)
		return
	}
	s.serve(w, r, x, rt, body)
}

// admit finds the session that a request speaks for. It comes before everything that tells one path, method
// or body from another (PF-A13).
func (s *Server) admit(r *http.Request, x *exchange) (err *abi.Error) {
	values := r.Header.Values("Authorization")
	if len(values) > 1 {
		return abi.Errorf(abi.CodeInvalidRequest, "a header is there more than once")
	}
	if len(values) == 1 {
		x.authorization = values[0]
	}
	x.session, err = s.o.Pipeline.Admit(x.request())
	return err
}

// checkHead refuses what would otherwise be ignored, as the data plane does.
func checkHead(r *http.Request, known bool) *abi.Error {
	switch {
	case !known || r.URL.RawPath != "":
		return abi.Errorf(abi.CodeNotFound, "there is no such path on this face").WithHint("the paths are " + PathDirect + " and " + PathMeta)
	case r.Method != http.MethodPost:
		return abi.Errorf(abi.CodeMethodNotAllowed, "%s is not a method of this path", abi.Quote(r.Method)).
			WithHint("the face is stateless: messages are sent with POST, and there is no stream to be had with GET")
	case r.URL.RawQuery != "":
		return abi.Errorf(abi.CodeInvalidRequest, "this face takes no query")
	case r.Header.Get("Idempotency-Key") != "":
		return abi.Errorf(abi.CodeIdempotencyUnbuilt, "Idempotency-Key is not supported yet")
	case len(r.Header.Values("Content-Encoding")) > 0:
		return abi.Errorf(abi.CodeUnsupportedMedia, "bodies are sent without a content encoding")
	case len(r.Header.Values("Content-Type")) != 1 || !guard.IsJSON(r.Header.Get("Content-Type")): // PF-A4
		return abi.Errorf(abi.CodeUnsupportedMedia, "the body must be application/json").WithHint("send Content-Type: application/json")
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "Ecotone-") {
			return abi.Errorf(abi.CodeInvalidRequest, "unknown header %s", abi.Quote(name)).
				WithHint("on this face a classification and a deadline are members of _meta; the environment comes from the session")
		}
	}
	return nil
}

func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *abi.Error) {
	most := s.o.MaxInput() + envelope
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, abi.Errorf(abi.CodePayloadTooLarge, "the body is larger than this face takes: %d bytes", most)
	case err != nil:
		return nil, abi.Errorf(abi.CodeInvalidRequest, "the body did not arrive whole: %w", err)
	}
	return body, nil
}

// refuse answers, and records, a request that is no message yet.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, x *exchange, why *abi.Error) {
	s.refused(r, x, why).Send(w)
}

func (s *Server) refused(r *http.Request, x *exchange, why *abi.Error) problem.Document {
	req := x.request()
	if req.Method = r.Method; s.routes[x.path] == nil {
		req.Route = ""
	}
	return s.o.Pipeline.RefusedCaller(context.WithoutCancel(r.Context()), req, why)
}

// serve reads the message in a body and gives it to the protocol's own server.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, x *exchange, rt *route, body []byte) {
	m, fault := readMessage(body, x.version)
	if fault != nil {
		d := s.refused(r, x, fault.why)
		writeFault(w, fault, &d)
		return
	}
	switch {
	case m.Method == "notifications/cancelled":
		s.flights.cancel(x.session, m.cancels())
		w.WriteHeader(http.StatusAccepted)
		return
	case m.notification():
		w.WriteHeader(http.StatusAccepted) // nothing that is kept depends on one
		return
	case m.Method == "tools/call":
		x.flight = s.flights.begin(x.session, m.ID)
		defer s.flights.end(x.flight)
	}
	handler := rt.json
	if m.progress {
		handler = rt.events
	}
	r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	handler.ServeHTTP(&answerWriter{ResponseWriter: w, id: m.ID}, r)
}

// answerWriter keeps an answer from being stored on its way, and what the protocol's server says of itself
// in plain text from being said: it may quote what it could not read.
type answerWriter struct {
	http.ResponseWriter
	id       json.RawMessage
	began    bool
	replaced bool
}

func (w *answerWriter) WriteHeader(status int) {
	if w.began {
		return
	}
	w.began = true
	h := w.Header()
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Content-Type-Options", "nosniff")
	if status >= http.StatusBadRequest && h.Get("Content-Type") != "application/json" {
		w.replaced = true
		writeFault(w.ResponseWriter, &fault{
			id: w.id, status: status, code: codeInvalidRequest, message: "the request is not one of this version of the protocol",
		}, nil)
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *answerWriter) Write(b []byte) (int, error) {
	if !w.began {
		w.WriteHeader(http.StatusOK)
	}
	if w.replaced {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets an [http.ResponseController] find what flushes.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

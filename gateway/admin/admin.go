// Package admin is the control plane: the net/http listener on which operators, authors and
// auditors administer.
//
// It promises that every route is in one table and needs a principal's token unless the table
// says otherwise (PF-A13); that bodies are read strictly and bounded; that what can change
// carries an ETag and wants If-Match; and that every refusal is a problem document and a row of
// the audit. It refuses to know the rules of the permission plane: those are policy's.
package admin

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/guard"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/gateway/problem"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// Limits of the listener.
const (
	readTimeout   = 60 * time.Second
	headerTimeout = 10 * time.Second
	writeTimeout  = 90 * time.Second // an upload is compiled within its request
	idleTimeout   = 90 * time.Second
	maxHeadBytes  = 16 << 10
)

// call is one authenticated request on its way through a handler.
type call struct {
	ctx       context.Context
	r         *http.Request
	principal session.Principal
	org       string // whose; checked for form, not for being there
	body      []byte
	manifest  []byte // that came beside the module in body
}

// reply is what a handler answers. A nil Body with Status 0 is 204.
type reply struct {
	status int
	body   any
	etag   string
	header map[string]string
}

// ok, okTagged and created answer what policy gave, or why it did not.
func ok(body any, err error) (*reply, error) {
	return answer(&reply{status: http.StatusOK, body: body}, err)
}

func okTagged(revision uint64, body any, err error) (*reply, error) {
	return answer(&reply{status: http.StatusOK, body: body, etag: etag(revision)}, err)
}

func created(location string, body any, err error) (*reply, error) {
	return answer(&reply{status: http.StatusCreated, body: body, header: map[string]string{"Location": location}}, err)
}

// gone answers what was removed.
func gone(err error) (*reply, error) { return answer(&reply{}, err) }

func answer(r *reply, err error) (*reply, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// HTTPServer wraps h with the listener's timeouts. The caller serves and shuts it down.
func HTTPServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadTimeout: readTimeout, ReadHeaderTimeout: headerTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeadBytes, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// handler builds the mux from the route table.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range s.routes() {
		mux.Handle(rt.method+" "+rt.path, s.endpoint(rt))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.o.Guard.Check(guard.FromHTTP(r, s.o.NonceHeader)); err != nil {
			s.refuse(w, r, "", nil, err)
			return
		}
		if r.URL.RawPath != "" || strings.Contains(r.URL.Path, "//") || strings.Contains(r.URL.Path, "/.") {
			s.refuse(w, r, "", nil, abi.Errorf(abi.CodeNotFound, "paths of the control plane are spelled plainly"))
			return
		}
		if _, pattern := mux.Handler(r); pattern == "" {
			s.notRouted(w, r, mux)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// methods are those the route table uses.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}

// notRouted tells a path that is not there from a method that is not.
func (s *Server) notRouted(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	var allowed []string
	for _, m := range methods {
		other := *r
		other.Method = m
		if _, pattern := mux.Handler(&other); pattern != "" {
			allowed = append(allowed, m)
		}
	}
	if allowed == nil {
		s.refuse(w, r, "", nil, abi.Errorf(abi.CodeNotFound, "there is no such path on the control plane").WithHint("GET /openapi.json lists them"))
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	s.refuse(w, r, "", nil, abi.Errorf(abi.CodeMethodNotAllowed, "%s is not a method of this path", abi.Quote(r.Method)))
}

func (s *Server) endpoint(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{ctx: r.Context(), r: r}
		if !rt.open {
			p, err := s.authenticate(r)
			if err != nil {
				s.refuse(w, r, rt.path, c, err)
				return
			}
			c.principal = p
			if c.org, err = organisation(r, p); err != nil {
				s.refuse(w, r, rt.path, c, err)
				return
			}
			if err := s.allowed(rt, c); err != nil { // before a body is read (PF-A11)
				s.refuse(w, r, rt.path, c, err)
				return
			}
		}
		if err := s.readBody(w, rt, c); err != nil {
			s.refuse(w, r, rt.path, c, err)
			return
		}
		if err := rt.checkQuery(r); err != nil {
			s.refuse(w, r, rt.path, c, err)
			return
		}
		out, err := rt.handle(s, c)
		if err != nil {
			s.refuse(w, r, rt.path, c, err)
			return
		}
		write(w, out)
	})
}

func (s *Server) authenticate(r *http.Request) (session.Principal, error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return session.Principal{}, abi.Errorf(abi.CodeUnauthenticated, "exactly one Authorization header is needed")
	}
	token, found := strings.CutPrefix(values[0], "Bearer ")
	if !found {
		return session.Principal{}, abi.Errorf(abi.CodeUnauthenticated, "the credential must be a bearer token")
	}
	return s.o.Policy.Principal(token)
}

// allowed holds the principal's role to what the route needs. Policy asks the same again for
// each change; this keeps the body of a request that cannot succeed from being read.
func (s *Server) allowed(rt route, c *call) error {
	if rt.op == "" || (rt.op == policy.OpRead && rt.path == "/v1/orgs") {
		return nil // policy decides, and lists what the principal may see
	}
	return policy.Allowed(c.principal, rt.op, c.org)
}

// decode reads the JSON body strictly into v.
func (c *call) decode(v any) error { return abi.DecodeStrict(c.body, v) }

// ifMatch is the revision named by If-Match, which a change of an existing object needs.
func (c *call) ifMatch() (uint64, error) {
	v := c.r.Header.Get("If-Match")
	if v == "" {
		return 0, abi.Errorf(abi.CodePreconditionNeeded, "this change needs an If-Match header").
			WithHint("send the ETag that GET answered")
	}
	n, err := strconv.ParseUint(strings.Trim(v, `"`), 10, 64)
	if err != nil || len(v) < 3 || v[0] != '"' {
		return 0, abi.Errorf(abi.CodeInvalidRequest, "If-Match must be one ETag as GET answered it")
	}
	return n, nil
}

func etag(revision uint64) string { return `"` + strconv.FormatUint(revision, 10) + `"` }

// organisation is the one a request is about: that in the path, that named by ?org=, or the
// principal's own.
func organisation(r *http.Request, p session.Principal) (string, error) {
	for _, named := range []string{r.PathValue("org"), r.URL.Query().Get("org")} {
		if named != "" {
			return abi.ParseSlug("an organisation", named)
		}
	}
	if p.Org != "" {
		return p.Org, nil
	}
	return "default", nil
}

func write(w http.ResponseWriter, out *reply) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	for k, v := range out.header {
		h.Set(k, v)
	}
	if out.etag != "" {
		h.Set("ETag", out.etag)
	}
	if out.body == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if raw, isRaw := out.body.(rawBody); isRaw {
		h.Set("Content-Type", raw.contentType)
		w.WriteHeader(out.status)
		_, _ = w.Write(raw.data)
		return
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(out.status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(true)
	_ = enc.Encode(out.body)
}

// rawBody is answered as it is.
type rawBody struct {
	contentType string
	data        []byte
}

// refuse answers and records a request that was refused, whether a handler saw it or not
// (PF-G1). Policy records its own refusals of changes too, with what was asked for.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, pattern string, c *call, err error) {
	e := abi.AsError(err)
	ev := audit.Refused{Code: e.Code, Listener: "admin", Method: r.Method, Route: pattern, Remote: r.RemoteAddr, Detail: e.Message}
	org := ""
	if c != nil && c.principal.ID != "" {
		org = c.principal.Org
		ev.Subject = &audit.SubjectRef{Kind: "principal", ID: c.principal.ID}
	}
	id := s.o.Refusals.Record(r.Context(), org, ev)
	if e.Code == abi.CodeInternal {
		s.o.Log.Error("a request failed inside", "auditId", id, "route", pattern, "error", err)
	}
	problem.From(err, id).Send(w)
}

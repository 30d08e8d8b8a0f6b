package mcp

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/guard"
	"github.com/ecotone-dev/ecotone/gateway/invoke"
	"github.com/ecotone-dev/ecotone/gateway/version"
)

// The paths, one for each shape. There are no others.
const (
	PathDirect = "/mcp"
	PathMeta   = "/mcp/meta"
)

// The protocol's versions that are spoken.
const (
	versionStateless = "2026-07-28"
	versionSessions  = "2025-11-25"
)

// Limits of the listener itself. They hold before anyone is authenticated.
const (
	headBytes    = 16 << 10
	headTimeout  = 10 * time.Second
	readTimeout  = 20 * time.Second // head and body together: a drip is cut
	writeTimeout = 11 * time.Minute // longer than any invocation may take
	idleTimeout  = 90 * time.Second

	maxRequests = 1024     // served at once
	envelope    = 64 << 10 // of a request's body beside the input
)

// Options configure a [Server]. All are required.
type Options struct {
	Pipeline    *invoke.Pipeline
	Guard       *guard.Guard // of the listener that it is served on
	NonceHeader string
	Key         []byte       // authenticates what a client carries from one request to the next
	MaxInput    func() int64 // the largest input any environment admits now, in bytes
	Log         *slog.Logger
}

// Server is the face as an [http.Handler]. It is safe for concurrent use.
type Server struct {
	o       Options
	places  chan struct{}
	waiting *waiting
	flights flights
	routes  map[string]*route
}

// route is one path, with what serves it: answers as one JSON document, or as a stream of events for a call
// whose progress is wanted.
type route struct {
	shape        shape
	json, events http.Handler
}

// New makes the face; it does not listen.
func New(o Options) *Server {
	s := &Server{o: o, places: make(chan struct{}, maxRequests), waiting: newWaiting(), flights: flights{of: map[string][]*flight{}}}
	s.routes = map[string]*route{PathDirect: s.route(direct{s}), PathMeta: s.route(meta{s})}
	return s
}

func (s *Server) route(sh shape) *route {
	server := sdk.NewServer(
		&sdk.Implementation{Name: "ecotone", Title: "Ecotone", Version: version.Version},
		&sdk.ServerOptions{
			Instructions:              sh.instructions(),
			Capabilities:              &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
			SupportedProtocolVersions: []string{versionStateless, versionSessions},
			SetCacheable:              private,
		},
	)
	server.AddTool(&sdk.Tool{Name: dispatched, InputSchema: map[string]string{"type": "object"}}, s.dispatch(sh))
	server.AddReceivingMiddleware(s.intercept(sh))
	handler := func(events bool) http.Handler {
		return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
			Stateless: true, JSONResponse: !events,
			MaxRequestBodyBytes: -1, // it was read, and bounded, before
		})
	}
	return &route{shape: sh, json: handler(false), events: handler(true)}
}

// private keeps what one caller was told from being told to another by a cache between: the protocol's
// default is that anybody may have it.
func private(_ context.Context, _ sdk.Request, c *sdk.Cacheable) {
	*c = sdk.Cacheable{CacheScope: "private"}
}

// mac authenticates parts, each of which is told apart from the others.
func (s *Server) mac(parts ...[]byte) []byte {
	h := hmac.New(sha256.New, s.o.Key)
	var length [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write(p)
	}
	return h.Sum(nil)
}

// HTTPServer is an [http.Server] with the face's limits.
func HTTPServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadTimeout: readTimeout, ReadHeaderTimeout: headTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: headBytes, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// Beside serves the face on a listener that serves something else too.
func Beside(face, other http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case PathDirect, PathMeta:
			face.ServeHTTP(w, r)
		default:
			other.ServeHTTP(w, r)
		}
	})
}

// full is the refusal of a request past what is served at once.
func full() *abi.Error {
	return abi.Errorf(abi.CodeOverloaded, "%d requests are served already", maxRequests).After(1)
}

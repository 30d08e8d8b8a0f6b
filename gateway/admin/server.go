package admin

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/guard"
	"github.com/ecotone-dev/ecotone/gateway/invoke"
	"github.com/ecotone-dev/ecotone/gateway/modules"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/gateway/refusal"
	"github.com/ecotone-dev/ecotone/host"
	"github.com/ecotone-dev/ecotone/host/vault"
)

// Options are the parts the control plane drives. All are required.
type Options struct {
	Policy      *policy.Service
	Host        *host.Host
	Modules     *modules.Dir
	Audit       *audit.Log
	Refusals    *refusal.Recorder
	Keyring     *vault.Keyring
	Pipeline    *invoke.Pipeline // does what follows from a person's word
	Guard       *guard.Guard
	NonceHeader string
	MaxUpload   int64 // bytes
	Log         *slog.Logger
}

// Server is the control plane. It is an http.Handler and safe for concurrent use.
type Server struct {
	o    Options
	http http.Handler
	doc  func() []byte // made when it is first asked for

	storing sync.Mutex // held while an admitted upload is stored; no other lock is taken with it but policy's
}

// New makes the server.
func New(o Options) *Server {
	s := &Server{o: o, doc: sync.OnceValue(func() []byte { return Contract().Encode() })}
	s.http = s.handler()
	return s
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A refusal does not wait for a body that nobody will read (PF-D18). Where this is not
	// supported it waits at most for the read timeout.
	_ = http.NewResponseController(w).EnableFullDuplex()
	s.http.ServeHTTP(w, r)
}

// Auditor records policy's changes in the audit log. It implements [policy.Auditor].
type Auditor struct{ Log *audit.Log }

// Admin records one change before it is made.
func (a Auditor) Admin(ctx context.Context, e policy.Event) error {
	kind, _, _ := cutDot(e.Name)
	_, err := a.Log.Append(context.WithoutCancel(ctx), audit.Event{Org: e.Org, Body: audit.Admin{
		Operation: e.Name, Actor: e.Principal, Role: e.Role, ObjectKind: kind, Object: e.Target, Fields: e.Fields, Code: e.Code,
	}})
	return err
}

var _ policy.Auditor = Auditor{}

// Package server puts the gateway together: it opens the data directory, starts the three
// listeners and takes them down again.
//
// It promises one order. Opening: schema, store, keys, audit, recovery, policy, host, faces;
// whatever fails closes what was opened. Serving starts only when all of it stands. Stopping:
// not ready, no new invocations, running ones end or are told to, listeners, then the parts in
// reverse. It refuses to know any rule: it only hands parts to each other.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/approval"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/catalogue"
	"github.com/ecotone-dev/ecotone/gateway/data"
	"github.com/ecotone-dev/ecotone/gateway/invoke"
	"github.com/ecotone-dev/ecotone/gateway/listen"
	"github.com/ecotone-dev/ecotone/gateway/metrics"
	"github.com/ecotone-dev/ecotone/gateway/modules"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/gateway/rate"
	"github.com/ecotone-dev/ecotone/gateway/refusal"
	"github.com/ecotone-dev/ecotone/gateway/schema"
	"github.com/ecotone-dev/ecotone/gateway/store"
	"github.com/ecotone-dev/ecotone/gateway/store/badger"
	"github.com/ecotone-dev/ecotone/gateway/trace"
	"github.com/ecotone-dev/ecotone/host"
	"github.com/ecotone-dev/ecotone/host/files"
	"github.com/ecotone-dev/ecotone/host/network"
	"github.com/ecotone-dev/ecotone/host/share"
	"github.com/ecotone-dev/ecotone/host/vault"
)

// Options configure a [Server].
type Options struct {
	Dir            string
	Dev            bool // only on loopback, and on a directory made under --dev
	Listen         string
	AdminListen    string
	OpsListen      string
	MCPListen      string            // "": MCP is there only under Dev, on the listener of the control plane
	TLSCert        string            // PEM file; with it every listener speaks TLS
	TLSKey         string            // PEM file
	TLSOldest      listen.MinVersion // the zero value is 1.3
	HostNames      []string          // other names the listeners answer to
	EgressLoopback bool              // the server's key to loopback endpoints (PF-A25)
	KeyFile        string            // master key; "" is DIR/keys/master
	Limits         abi.Limits
	SubjectRate    rate.Limit       // invocations an hour of a subject, in organisations made from now on; 0 is [rate.DefaultSubject]
	ClientRate     rate.Limit       // the same of a client; 0 is [rate.DefaultClient]
	Durability     audit.Durability // what an audited event survives; the zero value survives power loss
	PolicyMark     string           // file of the policy's mark, best on another disk; "" is DIR/policy.mark
	AcceptPolicy   bool             // take the policy records as they are, though the mark says otherwise; see [policy.Options]
	MemoryBudget   int64            // for what is kept loaded and ready, in bytes; see [host.Options]
	DrainTimeout   time.Duration
	Trace          trace.Options    // where spans go; without an endpoint there are none
	Weights        map[string]int64 // of organisations when processors are scarce; see [share.Options]
	Log            *slog.Logger

	// Store wraps the store; nil leaves it as it is. Tests break it here.
	Store func(store.Store) store.Store
	// Limiter wraps the rate limiter; nil leaves it as it is. Tests break it here.
	Limiter func(rate.Limiter) rate.Limiter
	// Catalogue wraps the catalogue; nil leaves it as it is. Tests stop and slow it here.
	Catalogue func(catalogue.Catalogue) catalogue.Catalogue
	// Ledger wraps the ledger of what sessions have read; nil leaves it as it is. Tests break it here.
	Ledger func(files.Ledger) files.Ledger
	// Clock replaces the machine's clock where policy asks it; nil is [time.Now]. For tests: a clock that
	// was set forward or back.
	Clock func() time.Time
	// Resolver replaces the network's name resolution; nil asks the system. For tests.
	Resolver network.Resolver
	// DiskFree says how many bytes are free below a directory; nil asks the system. For tests: a
	// disk that is full is how the audit log breaks.
	DiskFree func(dir string) (uint64, error)
}

// Server is an opened gateway. Run it once; Close it if it is not run.
type Server struct {
	o       Options
	closers []func() error // in the order of opening

	store    store.Store
	policy   *policy.Service
	audit    *audit.Log
	host     *host.Host
	pipeline *invoke.Pipeline
	metrics  *metrics.Metrics
	refusals *refusal.Recorder
	doors    [numDoors]*listen.Listener
	certs    *listen.Certificates // nil without TLS
	data     *data.Server
	admin    *http.Server
	ops      *http.Server
	mcp      *http.Server // nil: it has no listener of its own
	draining atomic.Bool
}

// drainGrace is how long invocations have to stop once they are told to.
const drainGrace = 2 * time.Second

// processors is how many guests compute at once: one on each processor the process has. The Go
// scheduler gets three more. A guest is not interrupted within a slice, so without the first of them requests
// would be read, decided and recorded only between the slices of the guests, and network events seen
// every ten milliseconds; with it they have a thread that the kernel puts before those that compute. The
// other two are for the audit's two writers, of entries and of heads: while one is inside the kernel to
// synchronise a file, its place is taken from it only when somebody looks, every ten milliseconds at worst.
var processors = sync.OnceValue(func() int {
	n := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(n + 3)
	return n
})

// schemasKept bounds the compiled input and output schemas in memory.
const schemasKept = 2048

// maxConnections bounds the data plane's connections at once.
const maxConnections = 4096

// Open opens the data directory and the listeners. Nothing is served before [Server.Run].
func Open(ctx context.Context, o Options) (_ *Server, err error) {
	s := &Server{o: o, metrics: metrics.New()}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	if s.o.DrainTimeout <= 0 {
		s.o.DrainTimeout = 10 * time.Second
	}
	if err := s.bind(); err != nil {
		return nil, err
	}
	st, err := badger.Open(o.Dir, o.Dev)
	if err != nil {
		return nil, err
	}
	s.store = st
	if o.Store != nil {
		s.store = o.Store(st)
	}
	s.closing(st.Close)
	if o.Dev && !st.Dev() {
		return nil, abi.Errorf(abi.CodeEnvironmentUnusable, "--dev works only on a data directory that was made under --dev").
			WithHint("give another --data, or leave --dev out")
	}
	keyFile := o.KeyFile
	if keyFile == "" {
		keyFile = filepath.Join(o.Dir, "keys", "master")
	}
	keyring, err := vault.LoadKeyring(keyFile, o.KeyFile == "")
	if err != nil {
		return nil, err
	}
	cacheKey, err := loadKey(filepath.Join(o.Dir, "keys", "cache"))
	if err != nil {
		return nil, err
	}
	if err := s.openAudit(ctx); err != nil {
		return nil, err
	}
	if err := s.openPolicy(ctx); err != nil {
		return nil, err
	}
	originals, err := modules.Open(filepath.Join(o.Dir, "modules"))
	if err != nil {
		return nil, err
	}
	if err := originals.Sweep(); err != nil {
		return nil, err
	}
	s.host, err = host.New(ctx, host.Options{
		Dir: o.Dir, Key: cacheKey, Limits: o.Limits, Source: originals.Get, Memory: o.MemoryBudget, Log: o.Log,
		Schema: func(raw json.RawMessage) error { return schema.Check(raw) },
	})
	if err != nil {
		return nil, err
	}
	s.closing(s.host.Close)
	s.closing(newWarmer(s.host, s.policy, o.Log).close)
	s.closing(collect(s.policy, o.Log))
	services, workspaces, err := s.services(keyring)
	if err != nil {
		return nil, err
	}
	cat := catalogue.Catalogue(catalogue.NewKept(catalogue.Stored{Store: s.store}, func() uint64 { return s.policy.Snapshot().Generation }))
	if o.Catalogue != nil {
		cat = o.Catalogue(cat)
	}
	var limiter rate.Limiter = rate.NewLocal()
	if o.Limiter != nil {
		limiter = o.Limiter(limiter)
	}
	tracer, err := s.tracer(ctx)
	if err != nil {
		return nil, err
	}
	s.pipeline = invoke.New(invoke.Options{
		Policy: s.policy, Catalogue: cat, Host: s.host, Audit: s.audit, Refusals: s.refusals,
		Schemas: schema.NewCache(schemasKept), Limiter: limiter, Services: services, Workspace: workspaces.Ensure, Limits: o.Limits, Log: o.Log,
		Shares: share.New(share.Options{Tokens: processors(), Weights: o.Weights}), Box: approval.NewBox(keyring), Versions: workspaces.Versions,
		Meter: s.metrics, Tracer: tracer,
	})
	if err := s.pipeline.Settle(ctx); err != nil {
		return nil, err
	}
	s.measure()
	return s, s.faces(originals, keyring, cat)
}

func (s *Server) closing(f func() error) { s.closers = append(s.closers, f) }

// Started counts the invocations for which guest code was entered.
func (s *Server) Started() int64 { return s.host.Started() }

// Close closes what Open opened, in reverse. It is for a server that was not run; Run closes by
// itself.
func (s *Server) Close() error {
	var err error
	for i := len(s.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, s.closers[i]())
	}
	s.closers = nil
	return err
}

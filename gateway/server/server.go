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
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/admin"
	"github.com/ecotone-dev/ecotone/gateway/approval"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/catalogue"
	"github.com/ecotone-dev/ecotone/gateway/data"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/guard"
	"github.com/ecotone-dev/ecotone/gateway/invoke"
	"github.com/ecotone-dev/ecotone/gateway/keyspace"
	"github.com/ecotone-dev/ecotone/gateway/listen"
	"github.com/ecotone-dev/ecotone/gateway/metrics"
	"github.com/ecotone-dev/ecotone/gateway/modules"
	"github.com/ecotone-dev/ecotone/gateway/ops"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/gateway/rate"
	"github.com/ecotone-dev/ecotone/gateway/refusal"
	"github.com/ecotone-dev/ecotone/gateway/schema"
	"github.com/ecotone-dev/ecotone/gateway/store"
	"github.com/ecotone-dev/ecotone/gateway/store/badger"
	"github.com/ecotone-dev/ecotone/gateway/trace"
	"github.com/ecotone-dev/ecotone/gateway/version"
	"github.com/ecotone-dev/ecotone/host"
	"github.com/ecotone-dev/ecotone/host/boundary"
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

// The doors, in the order in which they are opened.
const (
	doorData = iota
	doorAdmin
	doorOps
	doorMCP // optional: it may be nil
	numDoors
)

// certificatesEvery is how often the certificate's files are looked at.
const certificatesEvery = 10 * time.Second

// bind takes the addresses first: a second server must fail before it touches the data.
func (s *Server) bind() error {
	o := listen.Options{OnlyLoopback: s.o.Dev}
	if s.o.TLSCert != "" || s.o.TLSKey != "" {
		certs, err := listen.Load(s.o.TLSCert, s.o.TLSKey, s.o.TLSOldest)
		if err != nil {
			return err
		}
		s.certs, o.Certificates = certs, certs
		watched, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			certs.Watch(watched, certificatesEvery, s.o.Log)
		}()
		s.closing(func() error { stop(); <-ended; return nil })
	}
	for i, door := range [numDoors]struct{ name, address string }{
		doorData: {"data", s.o.Listen}, doorAdmin: {"admin", s.o.AdminListen}, doorOps: {"ops", s.o.OpsListen},
		doorMCP: {"mcp", s.o.MCPListen},
	} {
		if i == doorMCP && door.address == "" {
			continue
		}
		ln, err := listen.Open(door.name, door.address, o)
		if err != nil {
			return err
		}
		s.doors[i] = ln
		s.closing(ln.Close)
	}
	return nil
}

// Reload reads again what may change while the server runs: the certificate. What is not good stays as it was.
func (s *Server) Reload() error {
	if s.certs == nil {
		return nil
	}
	_, err := s.certs.Reload()
	return err
}

func (s *Server) openAudit(ctx context.Context) error {
	log, err := audit.Open(audit.Options{
		Dir: s.o.Dir, Durability: s.o.Durability, Reserve: s.o.Limits.Get(abi.LimitDiskReserve), Free: s.o.DiskFree,
	})
	if err != nil {
		return err
	}
	s.audit = log
	s.closing(log.Close)
	n, err := log.Recover(ctx)
	if err != nil {
		return err
	}
	if n > 0 {
		s.o.Log.Warn("invocations were interrupted by the end of the process before", "count", n)
	}
	s.refusals = refusal.New(log, s.o.Log)
	s.closing(func() error { s.refusals.Close(); return nil })
	_, err = log.Append(ctx, audit.Event{Body: audit.System{
		Event: "started", Version: version.Version, Durability: log.Durability().String(),
	}})
	return err
}

// openPolicy loads policy, holds it to its mark, and makes what the first start makes.
func (s *Server) openPolicy(ctx context.Context) error {
	path := s.o.PolicyMark
	if path == "" {
		path = filepath.Join(s.o.Dir, "policy.mark")
	}
	key, err := loadKey(filepath.Join(s.o.Dir, "keys", "mark"))
	if err != nil {
		return err
	}
	mark, err := policy.OpenMark(path, key)
	if err != nil {
		return err
	}
	if s.o.AcceptPolicy {
		if _, err := s.audit.Append(ctx, audit.Event{Body: audit.System{Event: "policy accepted", Detail: "the policy records are taken as they are, whatever the mark says"}}); err != nil {
			return err
		}
	}
	s.policy, err = policy.Open(ctx, s.store, policy.Options{
		Dev: s.o.Dev, Auditor: admin.Auditor{Log: s.audit}, Sessions: s.o.Limits.Get(abi.LimitSessions), Keep: s.keep,
		Uploads:   s.o.Limits.Get(abi.LimitUploads),
		Approvals: s.o.Limits.Get(abi.LimitPendingApprovals),
		Rates:     gate.Rates{Subject: s.o.SubjectRate, Client: s.o.ClientRate},
		Clock:     s.o.Clock, Mark: mark, AcceptMark: s.o.AcceptPolicy, Seen: s.audit.Seen(),
	})
	if err != nil {
		return err
	}
	if _, err = s.policy.Bootstrap(ctx); err != nil {
		return err
	}
	watched, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.policy.Watch(watched)
	}()
	s.closing(func() error { stop(); <-ended; return nil })
	return nil
}

// keep leaves the first tokens in the data directory, before they are good for anything.
func (s *Server) keep(first policy.First) error {
	for name, token := range map[string]string{"operator.token": first.OperatorToken, "dev.token": first.DevToken} {
		if token == "" {
			continue
		}
		if err := writeToken(filepath.Join(s.o.Dir, name), token); err != nil {
			return err
		}
	}
	return nil
}

// sealed shows the vault the sealed records of policy, and nothing else of it.
type sealed struct{ policy *policy.Service }

// Lookup implements [vault.Records].
func (r sealed) Lookup(_ context.Context, org, name string) (vault.Record, error) {
	rec, ok := r.policy.SealedSecret(org, name)
	if !ok || rec.Removed {
		return vault.Record{}, abi.Errorf(abi.CodeNotFound, "there is no such secret")
	}
	return recordOf(rec)
}

func recordOf(rec grant.Secret) (vault.Record, error) {
	out := vault.Record{Version: rec.Version}
	if err := json.Unmarshal(rec.Uses, &out.Uses); err != nil {
		return vault.Record{}, abi.Errorf(abi.CodeInternal, "a secret's uses do not decode: %w", err)
	}
	if err := json.Unmarshal(rec.Sealed, &out.Sealed); err != nil {
		return vault.Record{}, abi.Errorf(abi.CodeInternal, "a sealed secret does not decode: %w", err)
	}
	return out, nil
}

func (s *Server) services(keyring *vault.Keyring) (boundary.Services, *files.Service, error) {
	secrets := vault.New(keyring, sealed{s.policy})
	client := network.New(network.Options{
		AllowLoopback: s.o.EgressLoopback, Listeners: s.addresses, Resolver: s.o.Resolver, Secrets: secrets,
	})
	s.closing(func() error { client.Close(); return nil })
	ledger := files.NewLedger(0, 0)
	if s.o.Ledger != nil {
		ledger = s.o.Ledger(ledger)
	}
	workspaces, err := files.New(s.o.Dir, keyspace.NewLabels(s.store), files.WithLedger(ledger))
	if err != nil {
		return boundary.Services{}, nil, err
	}
	s.closing(workspaces.Close)
	return boundary.Services{Files: workspaces, KV: keyspace.New(s.store), HTTP: client, Signer: secrets}, workspaces, nil
}

func (s *Server) addresses() []netip.AddrPort {
	var out []netip.AddrPort
	for _, ln := range s.doors {
		if ln == nil {
			continue
		}
		if a, ok := ln.AddrPort(); ok {
			out = append(out, a)
		}
	}
	return out
}

func (s *Server) faces(originals *modules.Dir, keyring *vault.Keyring, cat catalogue.Catalogue) error {
	guardOf := func(i int) *guard.Guard { return guard.New(s.doors[i].Addr(), s.o.HostNames, network.Nonce()) }
	s.data = data.New(data.Options{
		Pipeline: s.pipeline, Guard: guardOf(doorData), NonceHeader: network.NonceHeader,
		MaxBody: s.largestInput, MaxConns: maxConnections,
	})
	control := admin.New(admin.Options{
		Policy: s.policy, Host: s.host, Modules: originals, Audit: s.audit, Refusals: s.refusals, Keyring: keyring,
		Pipeline: s.pipeline, Guard: guardOf(doorAdmin), NonceHeader: network.NonceHeader, MaxUpload: s.o.Limits.Get(abi.LimitUploadBytes), Log: s.o.Log,
	})
	besides, err := s.openMCP(control)
	if err != nil {
		return err
	}
	s.admin = admin.HTTPServer(besides, s.o.Log)
	s.ops = admin.HTTPServer(ops.Handler(guardOf(doorOps), network.NonceHeader, s.checks(cat), s.metrics.Handler()), s.o.Log)
	return nil
}

// tracer is where spans go, or nil.
func (s *Server) tracer(ctx context.Context) (invoke.Tracer, error) {
	if s.o.Trace.Endpoint == "" {
		return nil, nil
	}
	s.o.Trace.Log = s.o.Log
	t, err := trace.Open(ctx, s.o.Trace)
	if err != nil {
		return nil, err
	}
	s.closing(func() error {
		if err := t.Close(); err != nil { // a collector that is gone is no reason to end badly
			s.o.Log.Warn("the last spans were not sent", "error", err)
		}
		return nil
	})
	return t, nil
}

// largestInput is the most that any environment takes as input now.
func (s *Server) largestInput() int64 {
	var most int64
	environments := s.policy.Snapshot().Environments
	for i := range environments { // not copied: this is asked with every request
		most = max(most, environments[i].Limits.Get(abi.LimitInputBytes))
	}
	return most
}

// Addresses returns where the data plane, the control plane and the ops listener are.
func (s *Server) Addresses() (invoke, admin, ops string) {
	return s.doors[doorData].Addr().String(), s.doors[doorAdmin].Addr().String(), s.doors[doorOps].Addr().String()
}

// Started counts the invocations for which guest code was entered.
func (s *Server) Started() int64 { return s.host.Started() }

// ready is the line that says that the server serves.
type ready struct {
	Event  string `json:"event"`
	Invoke string `json:"invoke"`
	Admin  string `json:"admin"`
	Ops    string `json:"ops"`
	MCP    string `json:"mcp,omitempty"`
	Dev    bool   `json:"dev"`
}

// Run serves until ctx ends, prints the ready line to out when it does, and closes everything.
func (s *Server) Run(ctx context.Context, out io.Writer) error {
	s.closing(s.pipeline.Watch())
	failed := make(chan error, numDoors)
	go func() { failed <- s.data.Serve(s.doors[doorData]) }()
	go func() { failed <- ignoreClosed(s.admin.Serve(s.doors[doorAdmin])) }()
	go func() { failed <- ignoreClosed(s.ops.Serve(s.doors[doorOps])) }()
	if s.mcp != nil {
		go func() { failed <- ignoreClosed(s.mcp.Serve(s.doors[doorMCP])) }()
	}
	line := ready{Event: "ready", MCP: s.MCP(), Dev: s.o.Dev}
	line.Invoke, line.Admin, line.Ops = s.doors[doorData].URL(), s.doors[doorAdmin].URL(), s.doors[doorOps].URL()
	if err := json.NewEncoder(out).Encode(line); err != nil {
		return errors.Join(err, s.stop())
	}
	select {
	case <-ctx.Done():
		return s.stop()
	case err := <-failed:
		return errors.Join(err, s.stop())
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// stop drains: /readyz goes red, new invocations are refused, running ones end or are told to,
// then the listeners and the parts are closed.
func (s *Server) stop() error {
	s.draining.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), s.o.DrainTimeout)
	defer cancel()
	err := s.pipeline.Drain(ctx, drainGrace)
	closeCtx, cancelClose := context.WithTimeout(context.Background(), drainGrace)
	defer cancelClose()
	err = errors.Join(err, s.data.Shutdown(closeCtx), s.admin.Shutdown(closeCtx), s.ops.Shutdown(closeCtx), s.closeMCP(closeCtx))
	if _, auditErr := s.audit.Append(context.Background(), audit.Event{Body: audit.System{Event: "stopped", Version: version.Version}}); auditErr != nil {
		err = errors.Join(err, auditErr)
	}
	return errors.Join(err, s.Close())
}

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

// checks are the parts that /readyz asks (M58).
func (s *Server) checks(cat catalogue.Catalogue) []ops.Check {
	return []ops.Check{
		{Name: "serving", Probe: func(context.Context) error {
			if s.draining.Load() {
				return abi.Errorf(abi.CodeDraining, "the server is shutting down")
			}
			return nil
		}},
		{Name: "audit", Probe: func(context.Context) error { return s.audit.Err() }},
		{Name: "policy", Probe: s.policy.Probe},
		{Name: "store", Probe: func(ctx context.Context) error {
			return s.store.View(ctx, func(store.Tx) error { return nil })
		}},
		{Name: "data", Probe: func(context.Context) error {
			_, err := os.Stat(filepath.Join(s.o.Dir, "SCHEMA"))
			return err
		}},
		{Name: "catalogue", Probe: func(ctx context.Context) error {
			_, _, err := cat.Reach(ctx, "default", "", "ready:probe.read@1")
			return err
		}},
	}
}

package server

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/admin"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/invoke"
	"github.com/ecotone-dev/ecotone/gateway/keyspace"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/gateway/refusal"
	"github.com/ecotone-dev/ecotone/gateway/trace"
	"github.com/ecotone-dev/ecotone/gateway/version"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/files"
	"github.com/ecotone-dev/ecotone/host/network"
	"github.com/ecotone-dev/ecotone/host/vault"
)

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

package server

import (
	"context"
	"os"
	"path/filepath"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/admin"
	"github.com/ecotone-dev/ecotone/gateway/catalogue"
	"github.com/ecotone-dev/ecotone/gateway/data"
	"github.com/ecotone-dev/ecotone/gateway/guard"
	"github.com/ecotone-dev/ecotone/gateway/modules"
	"github.com/ecotone-dev/ecotone/gateway/ops"
	"github.com/ecotone-dev/ecotone/gateway/store"
	"github.com/ecotone-dev/ecotone/host/network"
	"github.com/ecotone-dev/ecotone/host/vault"
)

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

// largestInput is the most that any environment takes as input now.
func (s *Server) largestInput() int64 {
	var most int64
	environments := s.policy.Snapshot().Environments
	for i := range environments { // not copied: this is asked with every request
		most = max(most, environments[i].Limits.Get(abi.LimitInputBytes))
	}
	return most
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

package main

import (
	"io"
	"log"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/rate"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/host/share"
)

// ServeCmd runs the gateway.
type ServeCmd struct {
	Dev             bool          `help:"Development mode: trusted-dev is available, on loopback only, in a data directory made for it."`
	Data            string        `help:"Data directory." default:"data" type:"path" env:"ECOTONE_DATA"`
	Listen          string        `help:"Address of the data plane." default:"127.0.0.1:8180" env:"ECOTONE_LISTEN"`
	AdminListen     string        `help:"Address of the control plane." default:"127.0.0.1:8181" env:"ECOTONE_ADMIN_LISTEN"`
	OpsListen       string        `help:"Address of /livez, /readyz and /metrics." default:"127.0.0.1:8182" env:"ECOTONE_OPS_LISTEN"`
	MCPListen       string        `name:"mcp-listen" help:"Address of the Model Context Protocol, for agents. Without it there is none, but under --dev at /mcp of the control plane." placeholder:"ADDRESS" env:"ECOTONE_MCP_LISTEN"`
	HostName        []string      `help:"Another name the listeners answer to; may be repeated."`
	EgressLoopback  bool          `help:"Let endpoints that say so reach loopback addresses."`
	KeyFile         string        `help:"File of the master key, 32 bytes; by default DIR/keys/master." type:"path"`
	PolicyMark      string        `help:"File that remembers the newest change of policy, so that a store of yesterday is noticed; best on another disk. By default DIR/policy.mark." type:"path" env:"ECOTONE_POLICY_MARK"`
	AcceptPolicy    bool          `name:"accept-policy-mark" help:"Once, after a store was put back on purpose: take its policy, and the machine's clock, as they are."`
	AuditDurability string        `help:"What an audited event survives: power (the loss of it), or process (the end of the process, kill -9 included; cheaper)." enum:"power,process" default:"power" env:"ECOTONE_AUDIT_DURABILITY"`
	SubjectRate     int64         `help:"Invocations an hour of one subject, in organisations made from now on; see ecotone rate." default:"600"`
	ClientRate      int64         `help:"Invocations an hour of one client, in organisations made from now on." default:"6000"`
	MemoryBudget    Size          `help:"Memory for modules kept loaded and instances kept ready, as 2GiB; by default a quarter of the machine's. Running guests take what their limits allow on top." placeholder:"SIZE" env:"ECOTONE_MEMORY_BUDGET"`
	DrainTimeout    time.Duration `help:"How long running invocations may go on after SIGTERM." default:"10s"`

	OrgWeight map[string]int64 `help:"An organisation's weight when processors are scarce, 1 to 10000; all others have 100. May be repeated." placeholder:"ORG=N"`
}

// Run serves until the context ends.
func (c *ServeCmd) Run(e *Env) error {
	// Libraries write what an origin or a client sent into the standard logger, quoted. None of it
	// is ours to keep: it may hold what somebody else wanted kept secret (PF-F5).
	log.SetOutput(io.Discard)
	durability, err := audit.ParseDurability(c.AuditDurability)
	if err != nil {
		return err
	}
	for org, weight := range c.OrgWeight {
		if weight < share.MinWeight || weight > share.MaxWeight {
			return usagef("--org-weight %s must be from %d to %d", org, share.MinWeight, share.MaxWeight)
		}
	}
	s, err := server.Open(e.ctx, server.Options{
		Dir: c.Data, Dev: c.Dev, Listen: c.Listen, AdminListen: c.AdminListen, OpsListen: c.OpsListen, MCPListen: c.MCPListen, HostNames: c.HostName,
		EgressLoopback: c.EgressLoopback, KeyFile: c.KeyFile, PolicyMark: c.PolicyMark, AcceptPolicy: c.AcceptPolicy, Limits: abi.DefaultLimits(), Durability: durability, MemoryBudget: int64(c.MemoryBudget),
		SubjectRate: rate.Limit(c.SubjectRate), ClientRate: rate.Limit(c.ClientRate), DrainTimeout: c.DrainTimeout, Weights: c.OrgWeight, Log: e.logger(),
	})
	if err != nil {
		return err
	}
	return s.Run(e.ctx, e.stdout)
}

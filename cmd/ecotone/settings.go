package main

import (
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/listen"
	"github.com/ecotone-dev/ecotone/gateway/logs"
	"github.com/ecotone-dev/ecotone/gateway/rate"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/trace"
	"github.com/ecotone-dev/ecotone/host/share"
)

// Settings are all that `serve` can be told. This struct is the one table: the flags, the variables, the
// file's keys, its schema and docs/configuration.md are made from it. A key is the flag without its
// dashes, a variable is ECOTONE_ and the key in capitals.
//
// Beside kong's, a field may have the tags `only:"flag"` (it is for one start, and in no file and no
// variable), `only:"outside"` (in no file), and `reload:"value"` or `reload:"content"`: SIGHUP takes a new value,
// or what the named file holds now.
type Settings struct {
	Config string `help:"File of settings, YAML or JSON. See docs/configuration.md." type:"path" placeholder:"FILE" only:"outside"`

	Data string `help:"Data directory; made on the first start, with operator.token in it." default:"data" type:"path" placeholder:"DIR"`
	Dev  bool   `help:"Development mode: trusted-dev is available, on loopback only, in a data directory made for it; leaves dev.token too."`

	Listen      string `help:"Address of the data plane; port 0 takes a free one." default:"127.0.0.1:8180" placeholder:"ADDRESS"`
	AdminListen string `help:"Address of the control plane." default:"127.0.0.1:8181" placeholder:"ADDRESS"`
	OpsListen   string `help:"Address of /livez, /readyz and /metrics." default:"127.0.0.1:8182" placeholder:"ADDRESS"`
	MCPListen   string `name:"mcp-listen" help:"Address of the Model Context Protocol, for agents. Without it there is none, but under --dev at /mcp of the control plane." placeholder:"ADDRESS"`

	TLSCert string `help:"Certificate of all listeners, PEM, with its intermediates. With it every listener speaks TLS; without it only loopback is listened on." name:"tls-cert" type:"path" placeholder:"FILE" reload:"content"`
	TLSKey  string `help:"The certificate's key, PEM; not readable by everybody." name:"tls-key" type:"path" placeholder:"FILE" reload:"content"`
	TLSMin  string `help:"The oldest TLS that is spoken." name:"tls-min" enum:"1.2,1.3" default:"1.3"`

	LogFormat string `help:"How the log is written on standard error." enum:"json,text" default:"json"`
	LogLevel  string `help:"The least that is logged." enum:"debug,info,warn,error" default:"info" reload:"value"`

	TraceEndpoint  string `help:"URL of an OpenTelemetry collector, OTLP over HTTP, as https://collector:4318/v1/traces; plain HTTP on loopback only. Without it there are no traces." placeholder:"URL"`
	TraceTokenFile string `help:"File of the bearer token for the collector." type:"path" placeholder:"FILE"`
	TracePercent   int64  `help:"How many of a hundred traces are sent that no caller decided about; a caller's traceparent decides about its own." default:"100" placeholder:"N"`

	HostName        []string      `help:"Another name the listeners answer to; may be repeated." placeholder:"NAME"`
	EgressLoopback  bool          `help:"Let endpoints that say so reach loopback addresses."`
	KeyFile         string        `help:"File of the master key, 32 bytes; by default DIR/keys/master." type:"path" placeholder:"FILE"`
	PolicyMark      string        `help:"File that remembers the newest change of policy, so that a store of yesterday is noticed (POLICY_STALE); best on another disk. By default DIR/policy.mark." type:"path" placeholder:"FILE"`
	AcceptPolicy    bool          `name:"accept-policy-mark" help:"Once, after a store was put back on purpose: take its policy, and the machine's clock, as they are. The audit log says so." only:"flag"`
	AuditDurability string        `help:"What an audited event survives before its caller is answered: power (the loss of it), or process (the end of the process, kill -9 included; at a loss of power some 100 ms of rows are gone)." enum:"power,process" default:"power"`
	SubjectRate     int64         `help:"Invocations an hour of one subject, in organisations made from now on; see ecotone rate." default:"600" placeholder:"N"`
	ClientRate      int64         `help:"Invocations an hour of one client, in organisations made from now on." default:"6000" placeholder:"N"`
	MemoryBudget    Size          `help:"Memory for modules kept loaded and instances kept ready, as 512MiB or 2GiB; by default a quarter of the machine's, or of its control group's. What was used least goes first; running guests take what their limits allow on top." placeholder:"SIZE"`
	DrainTimeout    time.Duration `help:"How long running invocations may go on after SIGTERM." default:"10s"`

	OrgWeight map[string]int64 `help:"An organisation's weight when processors are scarce, 1 to 10000; all others have 100. May be repeated." placeholder:"ORG=N"`
}

// check finds what no single value shows.
func (c *Settings) check() error {
	for org, weight := range c.OrgWeight {
		if weight < share.MinWeight || weight > share.MaxWeight {
			return usagef("--org-weight %s must be from %d to %d", org, share.MinWeight, share.MaxWeight)
		}
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return usagef("--tls-cert and --tls-key go together")
	}
	if c.TracePercent < 0 || c.TracePercent > 100 {
		return usagef("--trace-percent must be from 0 to 100")
	}
	return nil
}

// level is the log's.
func (c *Settings) level() slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(c.LogLevel)) // one of the enum
	return l
}

// options are the settings as the server takes them.
func (c *Settings) options(log *slog.Logger) (server.Options, error) {
	durability, err := audit.ParseDurability(c.AuditDurability)
	if err != nil {
		return server.Options{}, err
	}
	oldest := listen.TLS13
	if c.TLSMin == "1.2" {
		oldest = listen.TLS12
	}
	spans := trace.Options{Endpoint: c.TraceEndpoint, Percent: int(c.TracePercent)}
	if c.TraceTokenFile != "" {
		token, err := os.ReadFile(c.TraceTokenFile)
		if err != nil {
			return server.Options{}, err
		}
		spans.Token = logs.Secret(strings.TrimSpace(string(token)))
	}
	return server.Options{
		Dir: c.Data, Dev: c.Dev, Listen: c.Listen, AdminListen: c.AdminListen, OpsListen: c.OpsListen, MCPListen: c.MCPListen, HostNames: c.HostName,
		TLSCert: c.TLSCert, TLSKey: c.TLSKey, TLSOldest: oldest, Trace: spans,
		EgressLoopback: c.EgressLoopback, KeyFile: c.KeyFile, PolicyMark: c.PolicyMark, AcceptPolicy: c.AcceptPolicy,
		Limits: abi.DefaultLimits(), Durability: durability, MemoryBudget: int64(c.MemoryBudget),
		SubjectRate: rate.Limit(c.SubjectRate), ClientRate: rate.Limit(c.ClientRate), DrainTimeout: c.DrainTimeout, Weights: c.OrgWeight, Log: log,
	}, nil
}

package peer

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/space"
	"github.com/ecotone-dev/ecotone/gateway/trie"
	"github.com/ecotone-dev/ecotone/host"
	"github.com/ecotone-dev/ecotone/host/admission"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// Host is this project's host, alone: no gateway, no network, no audit.
type Host struct {
	host *host.Host

	mu      sync.Mutex
	modules map[string][]byte // by digest
	reports map[*byte]*admission.Report
}

// NewHost starts a host whose compiled modules live in dir.
func NewHost(ctx context.Context, dir string) (*Host, error) {
	h := &Host{modules: map[string][]byte{}, reports: map[*byte]*admission.Report{}}
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	var err error
	limits := abi.DefaultLimits()
	limits[abi.LimitCompileWall] *= 4 // a busy machine compiles slowly, and compiling is not measured
	h.host, err = host.New(ctx, host.Options{Dir: dir, Key: key, Limits: limits, Source: h.source})
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (h *Host) source(_ context.Context, digest string) (wasm.Original, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m, ok := h.modules[digest]
	if !ok {
		return wasm.Original{}, abi.Errorf(abi.CodeNotFound, "no such module")
	}
	return wasm.Original{Module: m}, nil
}

// Close stops the host.
func (h *Host) Close() { _ = h.host.Close() }

// Admit has a module inspected, compiled in the confined child, and loaded.
func (h *Host) Admit(ctx context.Context, module []byte) error {
	report, err := h.host.Admit(ctx, wasm.Original{Module: module})
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.modules[report.Digest], h.reports[&module[0]] = module, report
	h.mu.Unlock()
	return h.host.Warm(ctx, org, report.Digest)
}

// Fresh returns the contender that invokes a guest, whose module was admitted: each call is a whole
// invocation of the host, with its state, its limits, its receipt and an instance as it was
// right after initialisation. The authority is one that the gate made; deciding again for
// each call is the gate's work and has a row of its own.
func (h *Host) Fresh(g *Guest) (Contender, error) {
	h.mu.Lock()
	report := h.reports[&g.Ecotone[0]]
	h.mu.Unlock()
	if report == nil {
		return nil, fmt.Errorf("the guest %s was not admitted", g.Name)
	}
	for i := range report.Manifest.Provides {
		d := &report.Manifest.Provides[i]
		if d.Export != g.Export {
			continue
		}
		p := NewPolicy(report.Digest, d)
		a := p.Authority()
		if a == nil {
			return nil, fmt.Errorf("the gate does not allow %s", d.Ref)
		}
		return &fresh{h.host, a}, nil
	}
	return nil, fmt.Errorf("the guest does not provide %s", g.Export)
}

type fresh struct {
	host      *host.Host
	authority *authority.Authority
}

func (c *fresh) Call(ctx context.Context, input []byte) ([]byte, error) {
	o := c.host.Invoke(ctx, boundary.Spec{Authority: c.authority, Input: input})
	if o.Err != nil {
		return nil, o.Err
	}
	return o.Output, nil
}

func (c *fresh) Close() {}

// Policy is the smallest policy that allows one capability to one subject.
type Policy struct {
	Snapshot *gate.Snapshot
	Facts    gate.Facts
}

const (
	org     = "acme"
	subject = abi.Subject("user:ada")
)

// validFor is how long an authority of a benchmark stands.
const validFor = time.Hour

// NewPolicy installs a capability in the environment project and grants it.
func NewPolicy(digest string, d *abi.Descriptor) *Policy {
	env := abi.MakeEnvironmentRef(environment.Project)
	admission := &gate.Admission{
		Install: "install", Digest: digest, Environments: []abi.EnvironmentRef{env},
		Capabilities: map[abi.CapabilityRef]*abi.Descriptor{d.Ref: d},
	}
	biome := &gate.Biome{Org: org, Name: "bench", Subject: "biome:bench", Installed: admission, Newest: admission}
	o := &gate.Org{
		ID: org, Generation: 1,
		Spaces: trie.From(map[string]space.Effective{"main": {Kind: space.Project, Floor: abi.Public, Clearance: abi.Regulated}}),
		Biomes: trie.From(map[string]*gate.Biome{biome.Name: biome}),
		Routes: trie.From(map[abi.CapabilityRef]*gate.Biome{d.Ref: biome}),
		Grants: trie.From(map[gate.Holder]gate.Held{{Subject: subject, Capability: d.Ref}: {{
			ID: "grant", Org: org, Subject: subject, Capability: d.Ref, Environment: env, Globs: []string{grant.Everything},
		}}}),
	}
	return &Policy{
		Snapshot: &gate.Snapshot{Generation: 1, Environments: environment.BuiltIns(), Orgs: trie.From(map[string]*gate.Org{org: o})},
		// An authority ends a wall limit after the decision's time: a benchmark outlasts that,
		// so it decides in the future.
		Facts: gate.Facts{
			Now: time.Now().Add(validFor), Org: org, Session: "session", Space: "main", Subject: subject, Environment: env,
			Clearance: abi.Regulated, Mark: abi.Public, Capability: d.Ref, Reach: d.Reach, Rate: gate.Within, Schema: gate.Satisfied,
		},
	}
}

// Authority decides and makes the authority, or nil when the gate refuses.
func (p *Policy) Authority() *authority.Authority {
	d := gate.Decide(p.Snapshot, &p.Facts)
	return gate.Authorize(p.Snapshot, &p.Facts, &d, gate.Terms{
		Invocation: "01J0000000000000000000TEST",
		Latest:     func() *gate.Snapshot { return p.Snapshot },
		Stands:     func() *abi.Error { return nil },
		Clock:      time.Now,
	})
}

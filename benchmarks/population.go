package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/benchmarks/load"
	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/gateway/admin"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/gateway/store/badger"
)

// population is how much a gateway knows: grant n is the subject's n/modules for module n mod
// modules, and sessions belong to the subjects in turn, so that every session may call every
// module as soon as there are as many grants for it.
type population struct {
	g        *gateway
	modules  int
	grants   int
	sessions int
	subjects int      // who hold grants for all modules
	tokens   []string // of the sessions
	mix      []load.Request
}

const (
	small0  = 10    // grants and sessions of the small gateway
	mixed   = 4_000 // different requests
	uploads = 4     // at the same time
)

var growthEnvironment = abi.MakeEnvironmentRef("project")

func growthSubject(i int) abi.Subject { return abi.Subject(fmt.Sprintf("user:s%d", i)) }

// addModules uploads and admits more modules through the control plane.
func (p *population) addModules(ctx context.Context, to int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(uploads)
	for n := p.modules; n < to; n++ {
		group.Go(func() error {
			biome, ref := numbered(n)
			return p.g.install(ctx, "default", biome, peer.Echo(biome, ref, 60<<10))
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	p.modules = max(p.modules, to)
	return nil
}

// fill stops the gateway, makes grants and sessions by its own policy service, a thousand in one
// change, and starts it again: one by one over the control plane a million take longer than a
// benchmark has. Grants are made anew when there are more modules than before. It answers how
// long the start took.
func (p *population) fill(ctx context.Context, grants, sessions int) (time.Duration, error) {
	if err := p.g.stop(); err != nil {
		return 0, err
	}
	if err := p.write(ctx, grants, sessions); err != nil {
		return 0, err
	}
	begin := time.Now()
	g, err := startGateway(ctx, p.g.dir)
	if err != nil {
		return 0, err
	}
	p.g = g
	return time.Since(begin), nil
}

func (p *population) write(ctx context.Context, grants, sessions int) (err error) {
	st, err := badger.Open(p.g.dir, false)
	if err != nil {
		return err
	}
	defer st.Close()
	log, err := openLog(p.g.dir, modes[0])
	if err != nil {
		return err
	}
	defer log.Close()
	key, err := os.ReadFile(filepath.Join(p.g.dir, "keys", "mark"))
	if err != nil {
		return err
	}
	mark, err := policy.OpenMark(filepath.Join(p.g.dir, "policy.mark"), key)
	if err != nil {
		return err
	}
	service, err := policy.Open(ctx, st, policy.Options{Auditor: admin.Auditor{Log: log}, Sessions: int64(sessions) + 1, Mark: mark, Seen: log.Seen()})
	if err != nil {
		return err
	}
	operator, err := service.Principal(p.g.operator)
	if err != nil {
		return err
	}
	held := service.Snapshot().Orgs.At("default")
	for n := 0; n < grants; {
		var rs []policy.GrantRequest
		for ; n < grants && len(rs) < policy.MaxTogether; n++ {
			_, ref := numbered(n % p.modules)
			subject := growthSubject(n / p.modules)
			if held.Held(subject, abi.CapabilityRef(ref)) == nil {
				rs = append(rs, policy.GrantRequest{Org: "default", Subject: subject, Capability: abi.CapabilityRef(ref), Environment: growthEnvironment})
			}
		}
		if len(rs) == 0 {
			continue
		}
		if _, err := service.CreateGrants(ctx, operator, "default", rs); err != nil {
			return err
		}
	}
	p.grants, p.subjects = service.Snapshot().Orgs.At("default").Grants.Len(), max(1, p.subjects, grants/p.modules)
	for p.sessions < sessions {
		var rs []policy.SessionRequest
		for n := p.sessions; n < sessions && len(rs) < policy.MaxTogether; n++ {
			rs = append(rs, policy.SessionRequest{Org: "default", Subject: growthSubject(n % p.subjects), Environment: growthEnvironment})
		}
		opened, err := service.OpenSessions(ctx, operator, "default", rs)
		if err != nil {
			return err
		}
		for _, o := range opened {
			p.tokens = append(p.tokens, o.Token)
		}
		p.sessions += len(opened)
	}
	return nil
}

// requests draws modules and sessions at random, uniformly, and calls each module once, so that
// what is measured is not loading.
func (p *population) requests(ctx context.Context) error {
	r := rand.New(rand.NewPCG(1, 2))
	p.mix = p.mix[:0]
	for i := range p.modules + mixed {
		module := i
		if i >= p.modules {
			module = r.IntN(p.modules)
		}
		_, ref := numbered(module)
		p.mix = append(p.mix, p.g.post(ref, p.tokens[r.IntN(len(p.tokens))], []byte(`{"n":1}`)))
	}
	_, err := drive(ctx, load.Plan{Address: p.g.Invoke, Connections: uploads, For: time.Minute, Next: func(worker, n int) load.Request {
		if i := worker + uploads*n; i < p.modules {
			return p.mix[i]
		}
		return nil
	}})
	if err != nil {
		return fmt.Errorf("calling each of %d modules once: %w", p.modules, err)
	}
	p.mix = p.mix[p.modules:]
	return nil
}

func (p *population) next(worker, n int) load.Request { return p.mix[(worker*397+n)%len(p.mix)] }

// writes is what some policy changes took.
func (p *population) writes(ctx context.Context, tag string, n int) ([]float64, error) {
	var took []float64
	for i := range n {
		begin := time.Now()
		if err := p.g.grant(ctx, "default", fmt.Sprintf("user:%s%d", tag, i), "bench:echo0.run@1"); err != nil {
			return nil, err
		}
		took = append(took, float64(time.Since(begin)))
	}
	p.grants += n
	return took, nil
}

// populate starts a gateway with one module and a few grants and sessions.
func populate(ctx context.Context, dir string) (*population, error) {
	g, err := startGateway(ctx, dir)
	if err != nil {
		return nil, err
	}
	p := &population{g: g}
	if err := p.addModules(ctx, 1); err != nil {
		_ = p.g.stop()
		return nil, err
	}
	if _, err := p.fill(ctx, small0, small0); err != nil {
		return nil, err
	}
	return p, p.requests(ctx)
}

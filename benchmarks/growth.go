package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/benchmarks/load"
	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/store"
	"github.com/ecotone-dev/ecotone/gateway/store/badger"
)

const groupGrowth = "Growth: modules, grants, sessions"

// population is how much a gateway knows. Subject n/modules holds grant n, for module
// n mod modules; sessions belong to the subjects in turn.
type population struct {
	g        *gateway
	modules  int
	grants   int
	sessions int
	tokens   []string // of some sessions
	mix      []load.Request
}

const (
	small0    = 10    // grants and sessions of the small gateway
	keptToken = 2_000 // tokens that requests are made with
)

func growthSubject(i int) abi.Subject { return abi.Subject(fmt.Sprintf("user:s%d", i)) }

var growthEnvironment = abi.MakeEnvironmentRef("project")

// addModules uploads, admits and grants more modules, to the first subject.
func (p *population) addModules(ctx context.Context, to int) error {
	for ; p.modules < to; p.modules++ {
		biome, ref := numbered(p.modules)
		if err := p.g.install(ctx, "default", biome, peer.Echo(biome, ref, 60<<10)); err != nil {
			return err
		}
		if err := p.g.grant(ctx, "default", string(growthSubject(0)), ref); err != nil {
			return err
		}
	}
	p.grants = max(p.grants, p.modules)
	return nil
}

// fill stops the gateway, writes grants and sessions into its store as the gateway would
// have, and starts it again: a million changes through the control plane take longer than a
// benchmark has. It answers how long the start took.
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

func (p *population) write(ctx context.Context, grants, sessions int) error {
	st, err := badger.Open(p.g.dir, false)
	if err != nil {
		return err
	}
	defer st.Close()
	now := time.Now().UTC()
	put := func(tx store.Tx, kind, id string, rec any) error {
		raw, err := json.Marshal(rec)
		if err != nil {
			return err
		}
		return tx.Set(store.Key("policy", kind, "default", id), raw)
	}
	const batch = 4000
	for p.grants < grants {
		err := st.Update(ctx, func(tx store.Tx) error {
			for n := p.grants; n < min(p.grants+batch, grants); n++ {
				_, ref := numbered(n % p.modules)
				g := grant.Grant{
					ID: session.NewID(now), Org: "default", Subject: growthSubject(n / p.modules), Capability: abi.CapabilityRef(ref), Environment: growthEnvironment,
					Globs: []string{grant.Everything}, CreatedBy: "principal:default/operator", CreatedAt: now,
				}
				if err := put(tx, "grant", g.ID, g); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		p.grants = min(p.grants+batch, grants)
	}
	subjects := max(1, p.grants/p.modules)
	for p.sessions < sessions {
		to := min(p.sessions+batch/2, sessions)
		var tokens []string
		err := st.Update(ctx, func(tx store.Tx) error {
			tokens = tokens[:0]
			for n := p.sessions; n < to; n++ {
				s := session.Session{
					ID: session.NewID(now), Org: "default", Subject: growthSubject(n % subjects), Space: "default", Environment: growthEnvironment,
					Clearance: abi.Regulated, Expires: now.Add(12 * time.Hour), OpenedBy: "principal:default/operator", OpenedAt: now, Mark: abi.Public,
				}
				t, text := session.NewToken(session.KindSession, now)
				t.Org, t.Session, t.Expires, t.CreatedBy = "default", s.ID, &s.Expires, s.OpenedBy
				if err := put(tx, "session", s.ID, s); err != nil {
					return err
				}
				if err := put(tx, "token", t.ID, t); err != nil {
					return err
				}
				tokens = append(tokens, text)
			}
			return nil
		})
		if err != nil {
			return err
		}
		p.tokens = append(p.tokens, tokens...)
		p.sessions = to
	}
	return nil
}

// requests draws modules and sessions at random, uniformly.
func (p *population) requests() {
	r := rand.New(rand.NewPCG(1, 2))
	p.mix = p.mix[:0]
	for range keptToken {
		_, ref := numbered(r.IntN(p.modules))
		p.mix = append(p.mix, p.g.post(ref, p.tokens[r.IntN(len(p.tokens))], []byte(`{"n":1}`)))
	}
}

func (p *population) next(worker, n int) load.Request { return p.mix[(worker*397+n)%len(p.mix)] }

// writes is the median time of a policy change.
func (p *population) writes(ctx context.Context, tag string, n int) (float64, error) {
	var took []float64
	for i := range n {
		begin := time.Now()
		if err := p.g.grant(ctx, "default", fmt.Sprintf("user:%s%d", tag, i), "bench:echo0.run@1"); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(begin)))
	}
	return median(took), nil
}

func newPopulation(ctx context.Context, dir string) (*population, error) {
	g, err := startGateway(ctx, dir)
	if err != nil {
		return nil, err
	}
	p := &population{g: g}
	if err := p.addModules(ctx, 1); err != nil {
		_ = g.stop()
		return nil, err
	}
	if _, err := p.fill(ctx, small0, small0); err != nil {
		return nil, err
	}
	p.requests()
	return p, nil
}

func measureGrowth(ctx context.Context, b *bench) (err error) {
	target := &report.Target{Better: report.AtMost, Bound: 1.5}
	const name = "p50 with 1,000 modules, 1,000,000 grants, 100,000 sessions against 1, 10, 10"
	if b.quick {
		b.Add(report.Row{Group: groupGrowth, Name: name, Target: target, Status: report.FullOnly})
	}
	little, err := newPopulation(ctx, filepath.Join(b.dir, "little"))
	if err != nil {
		return err
	}
	defer func() { _ = little.g.stop() }()
	// The first subject holds grant 0 to modules-1 of the large one, so it starts with one.
	g, err := startGateway(ctx, filepath.Join(b.dir, "large"))
	if err != nil {
		return err
	}
	large := &population{g: g}
	defer func() { _ = large.g.stop() }()
	if err := large.addModules(ctx, 1); err != nil {
		return err
	}
	if _, err := large.fill(ctx, 1, small0); err != nil {
		return err
	}
	series := map[string]*report.Series{}
	compare := func(what string, x float64) error {
		large.requests()
		lp50, sp50, lp99, sp99, note, err := sideBySide(ctx, b, large, little)
		if err != nil {
			return err
		}
		if large.modules > 64 {
			note += "Modules are drawn uniformly; a gateway keeps 64 loaded by default. "
		}
		b.Add(report.Row{
			Group: groupGrowth, Name: fmt.Sprintf("p50 with %s (now %d modules, %d grants, %d sessions)", what, large.modules, large.grants, large.sessions), Value: lp50, Unit: "ns",
			Reference: "1 module, 10 grants, 10 sessions", Ratio: lp50 / sp50, Reads: "times", Note: strings.TrimSpace(note),
		})
		b.Add(report.Row{
			Group: groupGrowth, Name: fmt.Sprintf("p99 with %s", what), Value: lp99, Unit: "ns",
			Reference: "1 module, 10 grants, 10 sessions", Ratio: lp99 / sp99, Reads: "times",
		})
		kind := what[strings.LastIndexByte(what, ' ')+1:]
		s := series[kind]
		if s == nil {
			s = &report.Series{Name: kind, Points: []report.Point{{X: map[string]float64{"modules": 1, "grants": 10, "sessions": 10}[kind], Y: sp50}}}
			series[kind] = s
		}
		s.Points = append(s.Points, report.Point{X: x, Y: lp50})
		return nil
	}
	for _, n := range pick(b, []int{20}, []int{10, 100, 1000}) {
		if err := large.addModules(ctx, n); err != nil {
			return fmt.Errorf("%d modules: %w", n, err)
		}
		if err := compare(fmt.Sprintf("%d modules", n), float64(n)); err != nil {
			return err
		}
	}
	base, err := little.writes(ctx, "w", 20)
	if err != nil {
		return err
	}
	b.Add(report.Row{Group: groupGrowth, Name: fmt.Sprintf("policy write with %d grants", little.grants), Value: base, Unit: "ns"})
	for _, n := range pick(b, []int{10_000}, []int{10_000, 100_000, 1_000_000}) {
		took, err := large.fill(ctx, n, large.sessions)
		if err != nil {
			return fmt.Errorf("%d grants: %w", n, err)
		}
		if err := compare(fmt.Sprintf("%d grants", n), float64(n)); err != nil {
			return err
		}
		w, err := large.writes(ctx, fmt.Sprintf("w%d-", n), pick(b, 10, 20))
		if err != nil {
			return err
		}
		b.Add(report.Row{
			Group: groupGrowth, Name: fmt.Sprintf("policy write with %d grants", n), Value: w, Unit: "ns",
			Reference: fmt.Sprintf("%d grants", little.grants), Ratio: w / base, Reads: "times",
		})
		b.Add(report.Row{Group: groupGrowth, Name: fmt.Sprintf("start with %d grants", n), Value: float64(took), Unit: "ns"})
	}
	for _, n := range pick(b, []int{1000}, []int{1000, 10_000, 100_000}) {
		if _, err := large.fill(ctx, large.grants, n); err != nil {
			return fmt.Errorf("%d sessions: %w", n, err)
		}
		if err := compare(fmt.Sprintf("%d sessions", n), float64(n)); err != nil {
			return err
		}
	}
	if !b.quick {
		last := series["sessions"].Points[len(series["sessions"].Points)-1].Y
		row := b.Rows[len(b.Rows)-2]
		b.Add(report.Row{Group: groupGrowth, Name: name, Value: last, Unit: "ns", Reference: "1, 10, 10", Ratio: row.Ratio, Reads: "times", Target: target, Note: row.Note})
	}
	var lines []report.Series
	for _, kind := range []string{"modules", "grants", "sessions"} {
		lines = append(lines, *series[kind])
	}
	b.Series["growth"] = lines
	b.Plot("growth.svg", "p50 as a gateway grows", report.Lines("p50 as a gateway grows (each kind on top of those before it)", "how many", "p50", "ns", lines))
	return nil
}

// sideBySide drives both at a fixed low rate, in turn.
func sideBySide(ctx context.Context, b *bench, large, little *population) (lp50, sp50, lp99, sp99 float64, note string, err error) {
	var l50, s50, l99, s99 []float64
	for round := range pick(b, 2, 6) {
		order := []*population{little, large}
		if round%2 == 1 {
			order[0], order[1] = large, little
		}
		for _, p := range order {
			r, err := load.Run(ctx, load.Plan{Address: p.g.Invoke, Next: p.next, Connections: 8, Rate: 200, For: pick(b, 400*time.Millisecond, 2*time.Second)})
			if err != nil {
				return 0, 0, 0, 0, "", err
			}
			if r.Bad() > len(r.Latency)/100 {
				return 0, 0, 0, 0, "", fmt.Errorf("refused: %v", r.Status)
			}
			if p == large {
				l50, l99 = append(l50, r.At(50)), append(l99, r.At(99))
				if r.Bad() > 0 {
					note = fmt.Sprintf("%d of %d were refused. ", r.Bad(), len(r.Latency))
				}
			} else {
				s50, s99 = append(s50, r.At(50)), append(s99, r.At(99))
			}
		}
	}
	return median(l50), median(s50), median(l99), median(s99), note, nil
}

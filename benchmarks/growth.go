package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/ecotone-dev/ecotone/benchmarks/load"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
)

const (
	groupGrowth = "Growth: modules, grants, sessions"
	smallWorld  = "1 module, 10 grants, 10 sessions"
)

// size is how much a gateway knows. What has grown since the one before is what is looked at.
type size struct{ modules, grants, sessions int }

func (s size) String() string {
	return fmt.Sprintf("%d modules, %d grants, %d sessions", s.modules, s.grants, s.sessions)
}

var (
	// Each is a stop, an opening to write, a start, and a call of every module: a minute at the end.
	grownSizes = []size{
		{100, 1_000, small0},
		{1000, 10_000, small0},
		{1000, 1_000_000, small0},
		{1000, 1_000_000, 100_000},
	}
	quickSizes = []size{{5, 10_000, 1_000}}
	whole      = grownSizes[len(grownSizes)-1]
)

// measureGrowth grows one gateway beside another that stays small, and drives both in turn.
func measureGrowth(ctx context.Context, b *bench) error {
	if b.quick {
		b.Add(report.Unmeasured(groupGrowth, "p50 with "+whole.String(), report.FullOnly, "").Aim(atMost(1.5)))
		for _, name := range []string{"policy write with 1000000 grants", "start with 1000000 grants", "decision among 1000000 grants"} {
			b.Add(report.Unmeasured(groupGrowth, name, report.FullOnly, ""))
		}
	}
	if err := decisionsAmongGrants(ctx, b); err != nil {
		return err
	}
	little, err := populate(ctx, filepath.Join(b.dir, "little"))
	if err != nil {
		return err
	}
	defer func() { _ = little.g.stop() }()
	large, err := populate(ctx, filepath.Join(b.dir, "large"))
	if err != nil {
		return err
	}
	defer func() { _ = large.g.stop() }()
	g := growth{b: b, little: little, large: large, now: size{1, small0, small0}, lines: map[string]*report.Series{}}
	if g.base, err = little.writes(ctx, "w", pick(b, 8, 30)); err != nil {
		return err
	}
	b.Add(report.Measured(groupGrowth, "policy write with 10 grants", "ns", g.base))
	for _, to := range pick(b, quickSizes, grownSizes) {
		if err := g.to(ctx, to); err != nil {
			return fmt.Errorf("%s: %w", to, err)
		}
	}
	var lines []report.Series
	for _, kind := range []string{"modules", "grants", "sessions"} {
		if s := g.lines[kind]; s != nil {
			lines = append(lines, *s)
		}
	}
	b.Series["growth"] = lines
	b.Plot("growth.svg", "p50 as a gateway grows", report.Lines("p50 as a gateway grows (each kind on top of those before it)", "how many", "p50", "ns", lines))
	return nil
}

type growth struct {
	b             *bench
	little, large *population
	now           size
	base          []float64 // policy writes in the small one
	started       stats     // of the large one, after its last start
	lines         map[string]*report.Series
}

// to grows the large gateway and adds the rows of what it is then.
func (g *growth) to(ctx context.Context, to size) error {
	from := g.now
	g.now = to
	if err := g.large.addModules(ctx, to.modules); err != nil {
		return err
	}
	took, err := g.large.fill(ctx, to.grants, to.sessions)
	if err != nil {
		return err
	}
	before := g.started
	if g.started, err = g.large.g.ask("settle"); err != nil {
		return err
	}
	if err := g.compare(ctx, from, to); err != nil {
		return err
	}
	add := func(format string, n int, unit string, rounds ...float64) report.Row {
		return report.Measured(groupGrowth, fmt.Sprintf(format, n), unit, rounds)
	}
	each := func(more int) float64 { return (float64(g.started.Heap) - float64(before.Heap)) / float64(more) }
	if to.grants > from.grants {
		w, err := g.large.writes(ctx, fmt.Sprintf("w%d-", to.grants), pick(g.b, 8, 30))
		if err != nil {
			return err
		}
		g.b.Add(add("policy write with %d grants", to.grants, "ns", w...).Against("10 grants", "times", quotients(w, g.base)))
		g.b.Add(add("start with %d grants", to.grants, "ns", float64(took)))
	}
	switch {
	case to.sessions == from.sessions && to.modules == from.modules:
		g.b.Add(add("memory for each of %d grants", to.grants, "B", each(to.grants-from.grants)).Noting("Heap in use after the start, garbage collected."))
	case to.sessions > from.sessions && to.grants == from.grants:
		g.b.Add(add("memory for each of %d sessions", to.sessions, "B", each(to.sessions-from.sessions)).Noting("Heap in use after the start, garbage collected."))
	}
	return nil
}

// compare adds the rows of the large gateway beside the small one.
func (g *growth) compare(ctx context.Context, from, to size) error {
	if err := g.large.requests(ctx); err != nil {
		return err
	}
	rounds := pick(g.b, 2, 5)
	if to == whole { // which has a target
		rounds = 9
	}
	at, err := sideBySide(ctx, rounds, pick(g.b, 300*time.Millisecond, time.Second), g.large, g.little)
	if err != nil {
		return err
	}
	p50 := report.Measured(groupGrowth, "p50 with "+to.String(), "ns", at.large50).Against(smallWorld, "times", quotients(at.large50, at.small50))
	if to == whole {
		p50 = p50.Aim(atMost(1.5))
	}
	g.b.Add(p50)
	g.b.Add(report.Measured(groupGrowth, "p99 with "+to.String(), "ns", at.large99).Against(smallWorld, "times", quotients(at.large99, at.small99)))
	for _, k := range []struct {
		kind     string
		to, from int
	}{{"modules", to.modules, from.modules}, {"grants", to.grants, from.grants}, {"sessions", to.sessions, from.sessions}} {
		if k.to == k.from {
			continue
		}
		s := g.lines[k.kind]
		if s == nil {
			s = &report.Series{Name: k.kind, Points: []report.Point{{X: float64(k.from), Y: median(at.small50)}}}
			g.lines[k.kind] = s
		}
		s.Points = append(s.Points, report.Point{X: float64(k.to), Y: p50.Value})
	}
	return nil
}

// sides is what each round measured of both.
type sides struct{ large50, small50, large99, small99 []float64 }

// sideBySide drives both at a fixed low rate, in turn.
func sideBySide(ctx context.Context, rounds int, each time.Duration, large, little *population) (out sides, err error) {
	for round := range rounds {
		order := []*population{little, large}
		if round%2 == 1 {
			order[0], order[1] = large, little
		}
		for _, p := range order {
			r, err := drive(ctx, load.Plan{Address: p.g.Invoke, Next: p.next, Connections: 8, Rate: 200, For: each})
			if err != nil {
				return out, err
			}
			if p == large {
				out.large50, out.large99 = append(out.large50, r.At(50)), append(out.large99, r.At(99))
			} else {
				out.small50, out.small99 = append(out.small50, r.At(50)), append(out.small99, r.At(99))
			}
		}
	}
	return out, nil
}

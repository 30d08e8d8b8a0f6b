package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ecotone-dev/ecotone/benchmarks/load"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
)

const groupSteps = "What each guarantee costs, switched on in turn: processor time of the server for a request"

// stage is one step of the comparison: a server, and the request it gets.
type stage struct {
	name    string
	plot    string // as the plot has it
	note    string
	serving *serving
	request load.Request

	cpu, rate []float64 // of each round
}

// measureSteps switches the guarantees on one after the other. Every step is a process of its
// own that answers the same request bytes; all of them are there all the time, and are driven
// in turn.
func measureSteps(ctx context.Context, b *bench) error {
	stages, closeAll, err := startStages(ctx, b)
	defer closeAll()
	if err != nil {
		return err
	}
	plan := func(s *stage, d time.Duration) load.Plan {
		return load.Plan{Address: s.serving.Invoke, Next: always(s.request), Connections: 16, For: d}
	}
	for _, s := range stages {
		if _, err := drive(ctx, plan(s, 50*time.Millisecond)); err != nil { // pools and caches fill
			return fmt.Errorf("%s: %w: %s", s.name, err, s.serving.errs.String())
		}
	}
	for round, begin := 0, time.Now(); round < pick(b, 3, 9) && fits(ctx, round, begin); round++ {
		for i := range stages {
			s := stages[i]
			if round%2 == 1 {
				s = stages[len(stages)-1-i]
			}
			r, cpu, err := s.serving.costs(ctx, plan(s, pick(b, 120*time.Millisecond, 700*time.Millisecond)))
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			s.cpu, s.rate = append(s.cpu, cpu), append(s.rate, r.Rate())
		}
	}
	var bars []report.Stage
	for i, s := range stages {
		row := report.Measured(groupSteps, s.name, "ns", s.cpu)
		if i > 0 {
			row = row.Against("the step before", "times", quotients(s.cpu, stages[i-1].cpu))
		}
		b.Add(row.Noting("%s", s.note))
		bars = append(bars, report.Stage{Name: s.plot, Total: row.Value})
	}
	for i, s := range stages {
		row := report.Measured(groupSteps, "throughput, 16 connections: "+s.name, "requests/s", s.rate)
		if i > 0 {
			row = row.Against("bare echo", "times", quotients(s.rate, stages[0].rate))
		}
		b.Add(row)
	}
	b.Plot("guarantees.svg", "What each guarantee adds to the server's processor time for a request", report.Waterfall("Processor time of the server for one request, guarantees switched on in turn", bars))
	return nil
}

// startStages starts the servers, all at the same time.
func startStages(ctx context.Context, b *bench) (stages []*stage, closeAll func(), err error) {
	dir := func(name string) string { return filepath.Join(b.dir, "steps-"+name) }
	closeAll = func() {
		var all []*serving
		for _, s := range stages {
			all = append(all, s.serving)
		}
		stopAll(all)
	}
	var group errgroup.Group
	add := func(s *stage, start func(*stage) error) {
		stages = append(stages, s)
		group.Go(func() error {
			if err := start(s); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			return nil
		})
	}
	child := func(kind string, args ...string) func(*stage) error {
		return func(s *stage) (err error) {
			if s.serving, err = serve(ctx, kind, args...); err == nil {
				s.request = s.serving.post(echoRef, "none", b.built.small.Input)
			}
			return err
		}
	}
	step := func(name string) func(*stage) error {
		return child("step", "-step", name, "-dir", dir(name))
	}
	add(&stage{name: "a bare echo", plot: "bare fasthttp echo"}, child("echo"))
	add(&stage{name: "+ a guest, its state kept, no deadline", plot: "+ guest, state kept"}, step(stepGuest))
	add(&stage{name: "+ metering", plot: "+ metering"}, step(stepMetered))
	add(&stage{name: "+ the boundary: budgets, labels, receipt", plot: "+ boundary, labels, receipt"}, step(stepBoundary))
	add(&stage{name: "+ restoring: state as after initialisation", plot: "+ restored state"}, step(stepRestored))
	add(&stage{name: "+ policy: token, session, gate, schema, authority", plot: "+ token, gate, schema"}, func(s *stage) error {
		// The records are a gateway's, which made them and ended.
		g, token, err := echoGateway(ctx, dir(stepPolicy), b)
		if err != nil {
			return err
		}
		if err := g.stop(); err != nil {
			return err
		}
		if err := step(stepPolicy)(s); err != nil {
			return err
		}
		s.request = s.serving.post(echoRef, token, b.built.small.Input)
		return nil
	})
	whole := func(m mode, header ...string) func(*stage) error {
		return func(s *stage) error {
			g, token, err := echoGateway(ctx, dir(m.name+fmt.Sprint(len(header))), b, "-audit", m.name)
			if err != nil {
				return err
			}
			s.serving = g.serving
			s.request = g.post(echoRef, token, b.built.small.Input, header...)
			return nil
		}
	}
	for i := len(modes) - 1; i >= 0; i-- { // the cheaper one first
		m := modes[i]
		add(&stage{name: "+ the rest of the gateway, " + m.String(), plot: "+ gateway, " + m.String(), note: m.note}, whole(m))
	}
	add(&stage{
		name: "+ labels above public, " + modes[0].String(), plot: "+ labels above public",
		note: "The caller declares its input confidential: the invocation starts there, and the session's mark with it.",
	}, whole(modes[0], "Ecotone-Classification", "confidential"))
	return stages, closeAll, group.Wait()
}

// echoGateway starts a gateway with the small guest and a session that may call it.
func echoGateway(ctx context.Context, dir string, b *bench, args ...string) (*gateway, string, error) {
	g, err := startGateway(ctx, dir, args...)
	if err != nil {
		return nil, "", err
	}
	token, err := g.allow(ctx, "default", "echo", echoRef, b.built.small.Ecotone)
	if err != nil {
		_ = g.stop()
		return nil, "", err
	}
	return g, token, nil
}

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
)

// Names of the contenders, as rows and plots have them.
const (
	nameOurs         = "this host, fresh state"
	nameWazeroNew    = "wazero, new instance"
	nameWazeroChecks = "wazero, reused, context checks (unsafe: state kept)"
	nameWazeroPlain  = "wazero, reused, no deadline (unsafe: state kept)"
	nameExtismNew    = "extism/go-sdk, new instance"
	nameExtismReused = "extism/go-sdk, reused (unsafe: state kept)"
	nameWtNew        = "wasmtime-go, new instance"
	nameWtReused     = "wasmtime-go, reused (unsafe: state kept)"
)

const (
	groupFresh = "Fresh state per invocation: "
	nameWithin = "this host against wazero reused, state kept, no deadline"
)

type entrant struct {
	name string
	c    peer.Contender
}

// hosts is one guest module compiled by every host.
type hosts struct {
	ours           *peer.Host
	plain, checked *peer.Wazero
	extism         *peer.Extism
	wasmtime       *peer.Wasmtime
}

// compileAll has all hosts compile a module, the peers at the same time: none of it is timed.
func compileAll(ctx context.Context, ours *peer.Host, g *peer.Guest) (*hosts, error) {
	h := &hosts{ours: ours}
	// First and alone: the confined child has a low priority and a limit on its time.
	begin := time.Now()
	if err := ours.Admit(ctx, g.Ecotone); err != nil {
		return nil, err
	}
	// The peers cannot be interrupted while they compile, and together take a few times as long.
	if end, bounded := ctx.Deadline(); bounded && time.Until(end) < 4*time.Since(begin) {
		return nil, errLate
	}
	var group errgroup.Group
	group.Go(func() (err error) { h.plain, err = peer.NewWazero(ctx, g.Bare(), false); return err })
	group.Go(func() (err error) { h.checked, err = peer.NewWazero(ctx, g.Bare(), true); return err })
	group.Go(func() (err error) { h.extism, err = peer.NewExtism(ctx, g.Extism); return err })
	if peer.WasmtimeMissing == "" {
		group.Go(func() (err error) { h.wasmtime, err = peer.NewWasmtime(g.Bare()); return err })
	}
	if err := group.Wait(); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *hosts) close() {
	if h.plain != nil {
		h.plain.Close()
	}
	if h.checked != nil {
		h.checked.Close()
	}
	if h.extism != nil {
		h.extism.Close()
	}
	if h.wasmtime != nil {
		h.wasmtime.Close()
	}
}

// lineUp makes the contenders of one guest. The caller closes them, also after an error.
func (h *hosts) lineUp(ctx context.Context, g *peer.Guest) (list []entrant, err error) {
	add := func(name string, make func() (peer.Contender, error)) {
		if err != nil {
			return
		}
		var c peer.Contender
		if c, err = make(); err == nil {
			list = append(list, entrant{name, c})
		}
	}
	add(nameOurs, func() (peer.Contender, error) { return h.ours.Fresh(g) })
	add(nameWazeroNew, func() (peer.Contender, error) { return h.plain.New(g.Export), nil })
	add(nameWazeroChecks, func() (peer.Contender, error) { return h.checked.Reused(ctx, g.Export) })
	add(nameWazeroPlain, func() (peer.Contender, error) { return h.plain.Reused(ctx, g.Export) })
	add(nameExtismNew, func() (peer.Contender, error) { return h.extism.New(g.Export), nil })
	add(nameExtismReused, func() (peer.Contender, error) { return h.extism.Reused(ctx, g.Export) })
	if h.wasmtime != nil {
		add(nameWtNew, func() (peer.Contender, error) { return h.wasmtime.New(g.Export), nil })
		add(nameWtReused, func() (peer.Contender, error) { return h.wasmtime.Reused(g.Export) })
	}
	return list, err
}

func measureFresh(ctx context.Context, b *bench) error {
	ours, err := peer.NewHost(ctx, filepath.Join(b.dir, "host"))
	if err != nil {
		return err
	}
	defer ours.Close()
	compiled := map[*byte]*hosts{} // guests that are exports of one module share what was compiled
	defer func() {
		for _, h := range compiled {
			h.close()
		}
	}()
	bars := map[string][]report.Bar{}
	var groups []string
	for _, g := range b.built.all() {
		h := compiled[&g.Ecotone[0]]
		if h == nil {
			if h, err = compileAll(ctx, ours, g); err != nil {
				return fmt.Errorf("%s: %w", g.Name, err)
			}
			compiled[&g.Ecotone[0]] = h
		}
		if err := freshGuest(ctx, b, h, g, bars); err != nil {
			return fmt.Errorf("%s: %w", g.Name, err)
		}
		groups = append(groups, g.Name)
	}
	b.Plot("fresh.svg", "Time for one call, by guest and host", report.Bars("Time for one call, log scale; “reused” keeps state between callers", groups, bars))
	return nil
}

func freshGuest(ctx context.Context, b *bench, h *hosts, g *peer.Guest, bars map[string][]report.Bar) error {
	list, err := h.lineUp(ctx, g)
	defer func() {
		for _, e := range list {
			e.c.Close()
		}
	}()
	if err != nil {
		return err
	}
	var all []*timed
	by := map[string]*timed{}
	// The checked engine needs a context that can end, or it checks nothing.
	checkable, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, e := range list {
		if err := peer.Check(ctx, e.c, g); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		t := &timed{name: e.name, run: loop(func() error { _, err := e.c.Call(checkable, g.Input); return err })}
		all, by[e.name] = append(all, t), t
	}
	if err := alternate(ctx, pick(b, 6, 15), pick(b, 20*time.Millisecond, 200*time.Millisecond), all...); err != nil {
		return err
	}
	ours := by[nameOurs]
	group := groupFresh + g.Name
	targets := map[string]*report.Target{}
	if g == b.built.json {
		targets = jsonTargets
	}
	for _, t := range all {
		bars[g.Name] = append(bars[g.Name], report.Bar{Name: shorten(t.name), Value: t.median(), Ours: t.name == nameOurs})
		row := t.row(group)
		if t != ours {
			row = row.Against("this host", "times the time of", t.ratios(ours)).Aim(targets[t.name])
		}
		b.Add(row)
	}
	if peer.WasmtimeMissing != "" {
		for _, name := range []string{nameWtNew, nameWtReused} {
			b.Add(report.Unmeasured(group, name, report.Skipped, "wasmtime-go: "+peer.WasmtimeMissing).Aim(targets[name]))
		}
	}
	within := ours.row(group).Against("wazero reused, no deadline", "times the time of", ours.ratios(by[nameWazeroPlain])).Aim(targets[nameWithin])
	within.Name = nameWithin
	b.Add(within)
	return nil
}

// shorten makes a contender's name fit a plot.
func shorten(name string) string {
	switch name {
	case nameWazeroChecks:
		return "wazero, reused, context checks"
	case nameWazeroPlain:
		return "wazero, reused, no deadline"
	case nameExtismReused:
		return "extism/go-sdk, reused"
	case nameWtReused:
		return "wasmtime-go, reused"
	}
	return name
}

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"time"

	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
	"github.com/ecotone-dev/ecotone/host/boundary"
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

type entrant struct {
	name string
	c    peer.Contender
}

// line-up of one guest; what it compiled is closed by the returned function.
func lineUp(ctx context.Context, h *peer.Host, g *peer.Guest) (list []entrant, closeAll func(), err error) {
	var closers []func()
	closeAll = func() {
		for i := len(closers) - 1; i >= 0; i-- {
			closers[i]()
		}
	}
	add := func(name string, c peer.Contender, e error) {
		if err != nil {
			return
		}
		if err = e; err == nil {
			closers = append(closers, c.Close)
			list = append(list, entrant{name, c})
		}
	}
	ours, e := h.Fresh(ctx, g)
	add(nameOurs, ours, e)

	plain, e := peer.NewWazero(ctx, g.Ecotone, g.Export, false)
	if e != nil {
		return nil, closeAll, e
	}
	closers = append(closers, plain.Close)
	add(nameWazeroNew, plain.New(), nil)
	checked, e := peer.NewWazero(ctx, g.Ecotone, g.Export, true)
	if e != nil {
		return nil, closeAll, e
	}
	closers = append(closers, checked.Close)
	c, e := checked.Reused(ctx)
	add(nameWazeroChecks, c, e)
	c, e = plain.Reused(ctx)
	add(nameWazeroPlain, c, e)

	ext, e := peer.NewExtism(ctx, g)
	if e != nil {
		return nil, closeAll, e
	}
	closers = append(closers, ext.Close)
	add(nameExtismNew, ext.New(), nil)
	c, e = ext.Reused(ctx)
	add(nameExtismReused, c, e)

	if peer.WasmtimeMissing == "" {
		wt, e := peer.NewWasmtime(g)
		if e != nil {
			return nil, closeAll, e
		}
		closers = append(closers, wt.Close)
		add(nameWtNew, wt.New(), nil)
		c, e = wt.Reused(ctx)
		add(nameWtReused, c, e)
	}
	return list, closeAll, err
}

// metered reports whether invocations of this build are charged fuel.
func metered() bool {
	_, ok := reflect.TypeFor[boundary.Receipt]().FieldByName("Fuel")
	return ok
}

func measureFresh(ctx context.Context, b *bench) error {
	h, err := peer.NewHost(ctx, filepath.Join(b.dir, "host"))
	if err != nil {
		return err
	}
	defer h.Close()
	bars := map[string][]report.Bar{}
	var groups []string
	for _, g := range b.built.all() {
		if err := freshGuest(ctx, b, h, g, bars); err != nil {
			return fmt.Errorf("%s: %w", g.Name, err)
		}
		groups = append(groups, g.Name)
	}
	b.Plot("fresh.svg", "Time for one call, by guest and host", report.Bars("Time for one call (log scale); grey: peers, “reused” keeps state between callers", groups, bars))
	return nil
}

func freshGuest(ctx context.Context, b *bench, h *peer.Host, g *peer.Guest, bars map[string][]report.Bar) error {
	list, closeAll, err := lineUp(ctx, h, g)
	defer closeAll()
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
	if err := alternate(pick(b, 5, 15), pick(b, 20*time.Millisecond, 200*time.Millisecond), all...); err != nil {
		return err
	}
	ours := by[nameOurs].median()
	group := "Fresh state per invocation: " + g.Name
	first := report.Row{Group: group, Name: nameOurs, Value: ours, Unit: "ns"}
	if !metered() {
		first.Note = "This build does not meter guests yet: it runs under the engine's context checks."
	}
	b.Add(first)
	targets := map[string]*report.Target{}
	if g == b.built.json {
		hundred := &report.Target{Better: report.AtLeast, Bound: 100}
		targets = map[string]*report.Target{
			nameWazeroNew: hundred, nameExtismNew: hundred, nameWtNew: hundred,
			nameWazeroChecks: {Better: report.AtLeast, Bound: 2},
		}
	}
	for _, t := range all {
		bars[g.Name] = append(bars[g.Name], report.Bar{Name: shorten(t.name), Value: t.median(), Ours: t.name == nameOurs})
		if t.name != nameOurs {
			b.Add(report.Row{
				Group: group, Name: t.name, Value: t.median(), Unit: "ns",
				Reference: "this host", Ratio: t.median() / ours, Reads: "times the time of", Target: targets[t.name],
			})
		}
	}
	if peer.WasmtimeMissing != "" {
		for _, name := range []string{nameWtNew, nameWtReused} {
			b.Add(report.Row{Group: group, Name: name, Target: targets[name], Status: report.Skipped, Note: "wasmtime-go: " + peer.WasmtimeMissing})
		}
	}
	within := report.Row{
		Group: group, Name: "this host against wazero reused, state kept, no deadline", Value: ours, Unit: "ns",
		Reference: "wazero reused, no deadline", Ratio: ours / by[nameWazeroPlain].median(), Reads: "times the time of",
	}
	if g == b.built.json {
		within.Target = &report.Target{Better: report.AtMost, Bound: 1.6}
	}
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

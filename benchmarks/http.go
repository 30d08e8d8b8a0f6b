package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/ecotone-dev/ecotone/benchmarks/load"
	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
)

const groupHTTP = "Over HTTP, everything on, against a bare fasthttp echo"

// pair is the two servers under comparison and the request both get.
type pair struct {
	gateway *gateway
	echo    *serving
	ours    load.Request
	bare    load.Request
}

func startPair(ctx context.Context, b *bench) (p *pair, closeAll func(), err error) {
	p = &pair{}
	closeAll = func() {
		if p.gateway != nil {
			_ = p.gateway.stop()
		}
		if p.echo != nil {
			_ = p.echo.stop()
		}
	}
	if p.gateway, err = startGateway(ctx, filepath.Join(b.dir, "http")); err != nil {
		return p, closeAll, err
	}
	if p.echo, err = serve(ctx, "echo"); err != nil {
		return p, closeAll, err
	}
	token, err := p.gateway.allow(ctx, "default", "echo", echoRef, b.built.small.Ecotone)
	if err != nil {
		return p, closeAll, err
	}
	p.ours = p.gateway.post(echoRef, token, b.built.small.Input)
	p.bare = p.echo.post(echoRef, token, b.built.small.Input) // the same bytes, to another port
	return p, closeAll, nil
}

func measureHTTP(ctx context.Context, b *bench) error {
	p, closeAll, err := startPair(ctx, b)
	defer closeAll()
	if err != nil {
		return err
	}
	if err := closedLoop(ctx, b, p); err != nil {
		return err
	}
	if err := openLoop(ctx, b, p); err != nil {
		return err
	}
	return callers(ctx, b, p)
}

func closedLoop(ctx context.Context, b *bench, p *pair) error {
	const connections = 32
	each := pick(b, 500*time.Millisecond, 3*time.Second)
	var ours, bare, cpuOurs, cpuBare, cpuHost []float64
	h, err := peer.NewHost(ctx, filepath.Join(b.dir, "http-host"))
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.Admit(ctx, b.built.small.Ecotone); err != nil {
		return err
	}
	small, err := h.Fresh(b.built.small)
	if err != nil {
		return err
	}
	one := func(s *serving, r load.Request, rate, cpu *[]float64) error {
		before, err := s.ask("stats")
		if err != nil {
			return err
		}
		res, err := drive(ctx, load.Plan{Address: s.Invoke, Next: always(r), Connections: connections, For: each})
		if err != nil {
			return err
		}
		after, err := s.ask("stats")
		if err != nil {
			return err
		}
		*rate = append(*rate, res.Rate())
		*cpu = append(*cpu, float64(after.CPU-before.CPU)/float64(len(res.Latency)))
		return nil
	}
	invocations := func() error {
		const n = 2000
		before := processCPU()
		for range n {
			if _, err := small.Call(ctx, b.built.small.Input); err != nil {
				return err
			}
		}
		cpuHost = append(cpuHost, float64(processCPU()-before)/n)
		return nil
	}
	for range pick(b, 3, 9) {
		if err := one(p.echo, p.bare, &bare, &cpuBare); err != nil {
			return fmt.Errorf("bare echo: %w", err)
		}
		if err := one(p.gateway.serving, p.ours, &ours, &cpuOurs); err != nil {
			return fmt.Errorf("gateway: %w", err)
		}
		if err := invocations(); err != nil {
			return err
		}
	}
	name := fmt.Sprintf("throughput, closed loop, %d connections", connections)
	b.Add(report.Row{Group: groupHTTP, Name: "bare fasthttp echo: " + name, Value: median(bare), Unit: "requests/s"})
	b.Add(report.Row{
		Group: groupHTTP, Name: "gateway, everything on: " + name, Value: median(ours), Unit: "requests/s",
		Reference: "bare echo", Ratio: median(ours) / median(bare), Reads: "times", Target: &report.Target{Better: report.AtLeast, Bound: 0.5},
		Note: "Token, gate, schema, intent and outcome in the audit, fresh guest. The driver shares the machine with the server in both cases.",
	})
	b.Add(report.Row{Group: groupHTTP, Name: "bare fasthttp echo: the server's processor time for a request", Value: median(cpuBare), Unit: "ns"})
	b.Add(report.Row{
		Group: groupHTTP, Name: "gateway: the server's processor time for a request", Value: median(cpuOurs), Unit: "ns",
		Reference: "bare echo", Ratio: median(cpuOurs) / median(cpuBare), Reads: "times",
	})
	b.Add(report.Row{
		Group: groupHTTP, Name: "small guest, whole host invocation: processor time", Value: median(cpuHost), Unit: "ns",
		Reference: "bare echo", Ratio: median(cpuHost) / median(cpuBare), Reads: "times the processor time of a request to", Target: &report.Target{Better: report.AtMost, Bound: 0.25},
	})
	return nil
}

func openLoop(ctx context.Context, b *bench, p *pair) error {
	const connections = 64
	rates := pick(b, []float64{250, 1000}, []float64{250, 500, 1000, 2000, 4000, 8000})
	each := pick(b, 700*time.Millisecond, 5*time.Second)
	percentiles := []float64{50, 99, 99.9}
	var series []report.Series
	for _, s := range []struct {
		name    string
		address string
		request load.Request
	}{{"bare echo", p.echo.Invoke, p.bare}, {"gateway", p.gateway.Invoke, p.ours}} {
		lines := make([]report.Series, len(percentiles))
		for _, rate := range rates {
			got := make([][]float64, len(percentiles))
			note := ""
			for range pick(b, 1, 3) {
				r, err := load.Run(ctx, load.Plan{Address: s.address, Next: always(s.request), Connections: connections, For: each, Rate: rate})
				if err != nil {
					return err
				}
				for i, at := range percentiles {
					got[i] = append(got[i], r.At(at))
				}
				if r.Late > 0 || r.Bad() > 0 {
					note = fmt.Sprintf("Over its capacity at this rate: %.0f/s were answered, %d not sent in time, %d refused.", r.Rate(), r.Late, r.Bad())
				}
			}
			for i, at := range percentiles {
				b.Add(report.Row{Group: groupHTTP, Name: fmt.Sprintf("%s: p%g, open loop at %.0f requests/s", s.name, at, rate), Value: median(got[i]), Unit: "ns", Note: note})
				lines[i].Name = fmt.Sprintf("%s p%g", s.name, at)
				lines[i].Points = append(lines[i].Points, report.Point{X: rate, Y: median(got[i])})
			}
		}
		series = append(series, lines...)
	}
	b.Series["open loop"] = series
	b.Plot("open-loop.svg", "Latency at fixed rates", report.Lines("Latency at fixed rates (open loop, from the moment a request was due)", "requests a second", "latency", "ns", series))
	return nil
}

// callers: one to 64 connections, and inputs of 100 B to 1 MiB.
func callers(ctx context.Context, b *bench, p *pair) error {
	const group = "Growth: callers and input"
	each := pick(b, 250*time.Millisecond, 2*time.Second)
	rate := report.Series{Name: "gateway"}
	bare := report.Series{Name: "bare echo"}
	for _, n := range pick(b, []int{1, 8, 64}, []int{1, 2, 4, 8, 16, 32, 64}) {
		e, err := drive(ctx, load.Plan{Address: p.echo.Invoke, Next: always(p.bare), Connections: n, For: each})
		if err != nil {
			return err
		}
		g, err := drive(ctx, load.Plan{Address: p.gateway.Invoke, Next: always(p.ours), Connections: n, For: each})
		if err != nil {
			return err
		}
		b.Add(report.Row{
			Group: group, Name: fmt.Sprintf("gateway, %d callers: throughput", n), Value: g.Rate(), Unit: "requests/s",
			Reference: "bare echo with as many", Ratio: g.Rate() / e.Rate(), Reads: "times",
		})
		b.Add(report.Row{Group: group, Name: fmt.Sprintf("gateway, %d callers: p50", n), Value: g.At(50), Unit: "ns"})
		rate.Points = append(rate.Points, report.Point{X: float64(n), Y: g.Rate()})
		bare.Points = append(bare.Points, report.Point{X: float64(n), Y: e.Rate()})
	}
	b.Series["callers"] = []report.Series{bare, rate}
	b.Plot("callers.svg", "Throughput by callers", report.Lines("Throughput by callers (closed loop)", "callers", "requests a second", "/s", []report.Series{bare, rate}))

	token, err := p.gateway.allow(ctx, "default", "echobig", bigRef, peer.Echo("echobig", bigRef, 2<<20))
	if err != nil {
		// The subject has a grant for another capability already; only the session is new.
		return err
	}
	first := 0.0
	for _, size := range []int{100, 1 << 10, 10 << 10, 100 << 10, 1<<20 - 16} {
		body := append(append([]byte(`"`), make([]byte, size-2)...), '"')
		for i := 1; i < len(body)-1; i++ {
			body[i] = 'a' + byte(i%26)
		}
		r, err := drive(ctx, load.Plan{Address: p.gateway.Invoke, Next: always(p.gateway.post(bigRef, token, body)), Connections: 1, For: each})
		if err != nil {
			return fmt.Errorf("input of %d bytes: %w", size, err)
		}
		row := report.Row{Group: group, Name: fmt.Sprintf("gateway, input and output of %d bytes: p50, one caller", size), Value: r.At(50), Unit: "ns"}
		if first == 0 {
			first = r.At(50)
		} else {
			row.Reference, row.Ratio, row.Reads = "100 bytes", r.At(50)/first, "times"
		}
		b.Add(row)
	}
	return nil
}

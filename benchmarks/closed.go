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

// judgedConnections is the number of connections at which the throughput has a target.
const judgedConnections = 32

const (
	groupCallers   = "Growth: callers"
	nameInvocation = "small guest, whole host invocation with restore: processor time"
)

func throughputName(m mode, connections int) string {
	return fmt.Sprintf("gateway, everything on, %s: throughput, %d connections", m, connections)
}

// closedLoop measures throughput with several numbers of connections, and beside it, in the same
// rounds, what a request and a bare invocation of the host cost in processor time.
func closedLoop(ctx context.Context, b *bench, l line) error {
	alone, closeHost, err := invocations(ctx, b)
	if err != nil {
		return err
	}
	defer closeHost()
	var cpuHost []float64
	rates, p50s := map[int]map[*target][]float64{}, map[int]map[*target][]float64{}
	cpu := map[*target][]float64{}
	counts := pick(b, []int{1, judgedConnections}, []int{1, 2, 4, 8, 16, judgedConnections, 64})
	for round, begin := 0, time.Now(); round < pick(b, 3, 7) && fits(ctx, round, begin); round++ {
		for _, n := range counts {
			if rates[n] == nil {
				rates[n], p50s[n] = map[*target][]float64{}, map[*target][]float64{}
			}
			for _, t := range l.inTurn(round) {
				r, took, err := t.serving.costs(ctx, load.Plan{Address: t.serving.Invoke, Next: always(t.request), Connections: n, For: pick(b, 200*time.Millisecond, time.Second/2)})
				if err != nil {
					return fmt.Errorf("%s: %w", t.name, err)
				}
				rates[n][t], p50s[n][t] = append(rates[n][t], r.Rate()), append(p50s[n][t], r.At(50))
				if n == judgedConnections {
					cpu[t] = append(cpu[t], took)
				}
			}
		}
		took, err := alone()
		if err != nil {
			return err
		}
		cpuHost = append(cpuHost, took)
	}
	for _, t := range l {
		got := rates[judgedConnections][t]
		if t.gateway == nil {
			b.Add(report.Measured(groupHTTP, fmt.Sprintf("bare fasthttp echo: throughput, %d connections", judgedConnections), "requests/s", got))
			continue
		}
		b.Add(report.Measured(groupHTTP, throughputName(t.mode, judgedConnections), "requests/s", got).
			Against("bare echo", "times", quotients(got, rates[judgedConnections][l[0]])).Aim(atLeast(0.5)).
			Noting("Token, gate, schema, intent and outcome in the audit, a fresh guest. The driver shares the processors with the server in both cases. %s", t.mode.note))
	}
	echo := cpu[l[0]]
	for _, t := range l {
		row := report.Measured(groupHTTP, t.name+": the server's processor time for a request", "ns", cpu[t])
		if t.gateway != nil {
			row = row.Against("bare echo", "times", quotients(cpu[t], echo))
		}
		b.Add(row)
	}
	b.Add(report.Measured(groupHTTP, nameInvocation, "ns", cpuHost).
		Against("a request to bare echo", "times the processor time of", quotients(cpuHost, echo)).Aim(atMost(0.25)))
	addCallers(b, l, counts, rates, p50s)
	return nil
}

// addCallers adds the rows and the plot of how throughput follows the number of callers.
func addCallers(b *bench, l line, counts []int, rates, p50s map[int]map[*target][]float64) {
	lines := make([]report.Series, len(l))
	for i, t := range l {
		lines[i].Name = t.name
		for _, n := range counts {
			row := report.Measured(groupCallers, fmt.Sprintf("%s, %d callers: throughput", t.name, n), "requests/s", rates[n][t])
			if t.gateway != nil {
				row = row.Against("bare echo with as many", "times", quotients(rates[n][t], rates[n][l[0]]))
			}
			b.Add(row)
			b.Add(report.Measured(groupCallers, fmt.Sprintf("%s, %d callers: p50", t.name, n), "ns", p50s[n][t]))
			lines[i].Points = append(lines[i].Points, report.Point{X: float64(n), Y: row.Value})
		}
	}
	b.Series["callers"] = lines
	b.Plot("callers.svg", "Throughput by callers", report.Lines("Throughput by callers, closed loop", "callers", "requests a second", "/s", lines))
}

// invocations answers a function that measures the processor time of one invocation of the host
// alone, restoring included: no gateway and no network.
func invocations(ctx context.Context, b *bench) (func() (float64, error), func(), error) {
	h, err := peer.NewHost(ctx, filepath.Join(b.dir, "http-host"))
	if err != nil {
		return nil, nil, err
	}
	if err := h.Admit(ctx, b.built.small.Ecotone); err != nil {
		h.Close()
		return nil, nil, err
	}
	small, err := h.Fresh(b.built.small)
	if err != nil {
		h.Close()
		return nil, nil, err
	}
	return func() (float64, error) {
		const n = 4000
		before := processCPU()
		for range n {
			if _, err := small.Call(ctx, b.built.small.Input); err != nil {
				return 0, err
			}
		}
		return float64(processCPU()-before) / n, nil
	}, h.Close, nil
}

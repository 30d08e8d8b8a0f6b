package main

import (
	"context"
	"path/filepath"
	"time"

	"github.com/ecotone-dev/ecotone/benchmarks/load"
	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
)

const (
	groupNoisy = "A noisy neighbour"
	spinRef    = "bench:cpu.spin@1"
	// oneSlice is what a running guest may hold a processor for before it is asked.
	oneSlice = 500 * time.Microsecond
)

// measureNoisy has another organisation burn all it may, and looks at the first one's p99.
func measureNoisy(ctx context.Context, b *bench) error {
	target := &report.Target{Better: report.AtMost, Bound: 1}
	const name = "others' p99 while another organisation spins"
	if b.quick {
		b.Add(report.Row{Group: groupNoisy, Name: name, Target: target, Status: report.FullOnly})
		return nil
	}
	g, err := startGateway(ctx, filepath.Join(b.dir, "noisy"))
	if err != nil {
		return err
	}
	defer g.stop()
	quietToken, err := g.allow(ctx, "default", "echo", echoRef, b.built.small.Ecotone)
	if err != nil {
		return err
	}
	if err := g.do(ctx, "POST", "/v1/orgs", map[string]string{"id": "noisy"}, nil); err != nil {
		return err
	}
	spinToken, err := g.allow(ctx, "noisy", "spin", spinRef, peer.Spin("spin", spinRef))
	if err != nil {
		return err
	}
	const window = 4 * time.Second
	others := load.Plan{Address: g.Invoke, Next: always(g.post(echoRef, quietToken, b.built.small.Input)), Connections: 16, Rate: 200, For: window}
	// Each spinner runs until its deadline and begins again.
	spin := load.Plan{
		Address: g.Invoke, Next: always(g.post(spinRef, spinToken, []byte(`{}`), "Ecotone-Deadline-Ms", "1000")), Connections: 16, For: window + time.Second,
	}
	var quiet, noisy, ratios []float64
	answered := 0
	for range 5 {
		r, err := load.Run(ctx, others)
		if err != nil {
			return err
		}
		spun := make(chan error, 1)
		go func() { _, err := load.Run(ctx, spin); spun <- err }()
		time.Sleep(time.Second / 2)
		n, err := load.Run(ctx, others)
		if spinErr := <-spun; err == nil {
			err = spinErr
		}
		if err != nil {
			return err
		}
		answered += len(n.Latency) - n.Bad()
		quiet, noisy = append(quiet, r.At(99)), append(noisy, n.At(99))
		ratios = append(ratios, n.At(99)/(r.At(99)*1.5+float64(oneSlice)))
	}
	b.Add(report.Row{Group: groupNoisy, Name: "p99 alone, 200 requests/s, open loop", Value: median(quiet), Unit: "ns"})
	b.Add(report.Row{
		Group: groupNoisy, Name: name, Value: median(noisy), Unit: "ns",
		Reference: "1.5 × quiet p99 + 500 µs", Ratio: median(ratios), Reads: "times", Target: target,
		Note: "Median of five pairs; 16 spinning callers, each until a deadline of 1 s. The driver shares the processors.",
	})
	return nil
}

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ecotone-dev/ecotone/benchmarks/load"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
)

const groupOpen = "Latency at fixed rates, open loop, from the moment a request was due"

// percentiles and the fewest requests in a round that they can be taken of.
var percentiles = []struct {
	at     float64
	fewest float64
}{{50, 20}, {99, 300}, {99.9, 3000}}

// openLoop measures latency at fixed rates, of each server in turn.
func openLoop(ctx context.Context, b *bench, l line) error {
	const connections = 64
	rates := pick(b, []float64{1000}, []float64{500, 1000, 2000, 4000, 8000})
	each := pick(b, 320*time.Millisecond, 3*time.Second)
	lines := map[*target][]report.Series{}
	for i, t := range l {
		for k, p := range percentiles {
			lines[t] = append(lines[t], report.Series{Name: fmt.Sprintf("%s p%g", short(t), p.at), Style: report.Styled(i, k)})
		}
	}
	for _, rate := range rates {
		got, over := map[*target][]*load.Result{}, map[*target]*load.Result{}
		for round := range 3 {
			for _, t := range l.inTurn(round) {
				r, err := load.Run(ctx, load.Plan{Address: t.serving.Invoke, Next: always(t.request), Connections: connections, For: each, Rate: rate})
				if err != nil {
					return err
				}
				if got[t] = append(got[t], r); r.Late > 0 || r.Bad() > 0 {
					over[t] = r
				}
			}
		}
		for _, t := range l {
			for k, p := range percentiles {
				name := fmt.Sprintf("%s: p%g at %.0f requests/s", t.name, p.at, rate)
				if rate*each.Seconds() < p.fewest && b.quick {
					b.Add(report.Unmeasured(groupOpen, name, report.FullOnly, ""))
					continue
				}
				var v []float64
				for _, r := range got[t] {
					v = append(v, r.At(p.at))
				}
				row := report.Measured(groupOpen, name, "ns", v)
				if r := over[t]; r != nil {
					row = row.Noting("Over its capacity at this rate: %.0f/s were answered, %d not sent in time, %d refused.", r.Rate(), r.Late, r.Bad())
				} else if rate*each.Seconds() < p.fewest {
					row = row.Noting("Of few requests: %.0f in a round.", rate*each.Seconds())
				}
				b.Add(row)
				lines[t][k].Points = append(lines[t][k].Points, report.Point{X: rate, Y: row.Value})
			}
		}
	}
	var series []report.Series
	for _, t := range l {
		series = append(series, lines[t]...)
	}
	b.Series["open loop"] = series
	b.Plot("latency.svg", "Latency at fixed rates", report.Lines("Latency at fixed rates, open loop, from the moment a request was due", "requests a second", "latency", "ns", series))
	return nil
}

// short makes a server's name fit a legend.
func short(t *target) string {
	if t.gateway == nil {
		return t.name
	}
	return "gateway, " + t.mode.name
}

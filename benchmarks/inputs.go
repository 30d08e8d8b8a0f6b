package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ecotone-dev/ecotone/benchmarks/load"
	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
)

const groupInputs = "Growth: input"

// inputSizes measures what 100 B to 1 MiB, in and out again, take one caller of the first gateway.
func inputSizes(ctx context.Context, b *bench, l line) error {
	g := l[1].gateway
	token, err := g.allow(ctx, "default", "echobig", bigRef, peer.Echo("echobig", bigRef, 2<<20))
	if err != nil {
		return err
	}
	sizes := []int{100, 1 << 10, 10 << 10, 100 << 10, 1<<20 - 16}
	requests := make([]load.Request, len(sizes))
	for i, size := range sizes {
		body := make([]byte, size) // one JSON string
		for k := range body {
			body[k] = 'a' + byte(k%26)
		}
		body[0], body[size-1] = '"', '"'
		requests[i] = g.post(bigRef, token, body)
	}
	p50 := make([][]float64, len(sizes))
	for round, begin := 0, time.Now(); round < pick(b, 3, 7) && fits(ctx, round, begin); round++ {
		for i, r := range requests {
			got, err := drive(ctx, load.Plan{Address: g.Invoke, Next: always(r), Connections: 1, For: pick(b, 60*time.Millisecond, time.Second/2)})
			if err != nil {
				return fmt.Errorf("input of %d bytes: %w", sizes[i], err)
			}
			p50[i] = append(p50[i], got.At(50))
		}
	}
	points := report.Series{Name: "gateway p50"}
	for i, size := range sizes {
		row := report.Measured(groupInputs, fmt.Sprintf("gateway, input and output of %d bytes: p50, one caller", size), "ns", p50[i])
		if i > 0 {
			row = row.Against("100 bytes", "times", quotients(p50[i], p50[0]))
		}
		b.Add(row)
		points.Points = append(points.Points, report.Point{X: float64(size), Y: row.Value})
	}
	b.Series["input"] = []report.Series{points}
	return nil
}

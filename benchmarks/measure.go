package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/ecotone-dev/ecotone/benchmarks/report"
)

// timed is something that is measured beside others.
type timed struct {
	name string
	run  func(n int) error // does it n times

	n  int
	ns []float64 // per operation, one for each round
}

func (t *timed) median() float64 { return report.Median(t.ns) }

// ratios are how many times as long t takes as ref: of each round, whose two batches ran soon
// after one another.
func (t *timed) ratios(ref *timed) []float64 { return quotients(t.ns, ref.ns) }

// over is the median of the ratios.
func (t *timed) over(ref *timed) float64 { return report.Median(t.ratios(ref)) }

// row is what t took for one operation.
func (t *timed) row(group string) report.Row { return report.Measured(group, t.name, "ns", t.ns) }

// quotients divides round by round.
func quotients(a, b []float64) []float64 {
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		out[i] = a[i] / b[i]
	}
	return out
}

// alternate measures all of list round by round, forward and backward in turn, so that a
// machine that gets slower or faster meanwhile does it to all alike. Each batch takes about
// each; what belongs to no batch (calibration, collecting garbage) is not timed. There are fewer
// rounds when the time is nearly over.
func alternate(ctx context.Context, rounds int, each time.Duration, list ...*timed) error {
	for _, t := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.run(1); err != nil { // caches, code and pools are filled
			return fmt.Errorf("%s: %w", t.name, err)
		}
		begin := time.Now()
		t.n = 1
		for {
			b := time.Now()
			if err := t.run(t.n); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			took := time.Since(b)
			if took > each/4 || time.Since(begin) > 2*each {
				t.n = max(1, int(float64(t.n)*float64(each)/float64(max(took, time.Microsecond))))
				break
			}
			t.n *= 4
		}
	}
	for round, begin := 0, time.Now(); round < rounds && fits(ctx, round, begin); round++ {
		order := slices.Clone(list)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, t := range order {
			if err := ctx.Err(); err != nil {
				return err
			}
			runtime.GC()
			begin := time.Now()
			if err := t.run(t.n); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			t.ns = append(t.ns, float64(time.Since(begin))/float64(t.n))
		}
	}
	return nil
}

// fits reports whether there is time for another round, after some that began then. Three are
// always worth trying.
func fits(ctx context.Context, rounds int, begin time.Time) bool {
	end, bounded := ctx.Deadline()
	if rounds < 3 || !bounded {
		return true
	}
	return time.Until(end) > 3*time.Since(begin)/time.Duration(2*rounds)
}

// loop makes a batch of something that is done once.
func loop(f func() error) func(int) error {
	return func(n int) error {
		for range n {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	}
}

// quantile is the value below which a share of v lies.
func quantile(v []float64, share float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(v))[min(len(v)-1, int(share*float64(len(v))))]
}

func median(v []float64) float64 { return report.Median(v) }

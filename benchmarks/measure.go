package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// timed is something that is measured beside others.
type timed struct {
	name string
	run  func(n int) error // does it n times

	n  int
	ns []float64 // per operation, one for each round
}

func (t *timed) median() float64 { return median(t.ns) }

// over is how many times as long t takes as ref: the median of the rounds' ratios, each of two
// batches that ran soon after one another.
func (t *timed) over(ref *timed) float64 {
	ratios := make([]float64, min(len(t.ns), len(ref.ns)))
	for i := range ratios {
		ratios[i] = t.ns[i] / ref.ns[i]
	}
	return median(ratios)
}

// alternate measures all of list round by round, forward and backward in turn, so that a
// machine that gets slower or faster meanwhile does it to all alike. Each batch takes about
// each; what belongs to no batch (calibration, collecting garbage) is not timed.
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
	for round := range rounds {
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

// processCPU is the processor time of this process, all threads.
func processCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	if len(s)%2 == 1 {
		return s[len(s)/2]
	}
	return (s[len(s)/2-1] + s[len(s)/2]) / 2
}

// pick chooses by the kind of run.
func pick[T any](b *bench, quick, full T) T {
	if b.quick {
		return quick
	}
	return full
}

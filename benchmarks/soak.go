package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// bound is what there may be more of at the end of a soak than after its warm-up: so little that
// one thing kept for every hundred invocations breaks it within two minutes.
type bound struct {
	name string
	of   func(stats) int64
	more int64
	item int64 // what one leaked thing is at least; 1 for what is counted
}

var bounds = []bound{
	// Resident bytes as a whole are not here: a write buffer of the store is there from the first byte, and
	// becomes resident as it fills, up to its size, which the heap has counted all along.
	{"beside the heap", func(s stats) int64 { return int64(s.Beside) }, 16 << 20, 128 << 10}, // an instance
	{"kept for the heap", func(s stats) int64 { return int64(s.Kept) }, 16 << 20, 16 << 10},
	{"heap bytes", func(s stats) int64 { return int64(s.Heap) }, 4 << 20, 16 << 10}, // an invocation's state
	{"goroutines", func(s stats) int64 { return int64(s.Goroutines) }, 8, 1},
	{"descriptors", func(s stats) int64 { return int64(s.Descriptors) }, 32, 1}, // a kept instance has two
	{"mappings", func(s stats) int64 { return int64(s.Mappings) }, 96, 1},
	{"threads", func(s stats) int64 { return int64(s.Threads) }, 16, 1},
}

// check compares what was with what is. It prints every bound, and which could not have been broken
// by one thing kept for every hundred of so many invocations.
func check(before, after stats, invocations int) (failed error) {
	for _, b := range bounds {
		was, is := b.of(before), b.of(after)
		verdict := "flat"
		if is > was+b.more {
			verdict = "GROWN"
			failed = errors.Join(failed, fmt.Errorf("%s grew from %d to %d, by more than %d", b.name, was, is, b.more))
		}
		seen := float64(invocations) * float64(b.item) / float64(b.more)
		fmt.Printf("  %-16s %12d → %12d   %+d of at most %+d: %s\n", b.name, was, is, is-was, b.more, verdict)
		if seen < 100 {
			fmt.Printf("  %-16s too few invocations: a leak of %d would be seen only in every %.0f of them\n", "", b.item, seen)
		}
	}
	return failed
}

// runSoak loads a gateway with good and hostile invocations and with changes of all kinds, and
// compares what the process holds afterwards with what it held after a warm-up.
func runSoak(ctx context.Context, d time.Duration) error {
	dir, err := os.MkdirTemp("", "ecotone-soak-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	g, err := startGateway(ctx, filepath.Join(dir, "data"))
	if err != nil {
		return err
	}
	defer g.stop()
	fmt.Println("soak: uploading the guests, good and hostile")
	t, err := newTraffic(ctx, g)
	if err != nil {
		return err
	}
	// Everything has been done a few times before it counts.
	warm := min(max(d/3, 20*time.Second), 2*time.Minute)
	fmt.Printf("soak: %s or more of warm-up, then %s; %d good capabilities, %d hostile ones, %d modules to be refused\n", warm, d, len(t.good), len(t.hostile), len(t.refused))
	if _, err := t.drive(ctx, warm, 3*len(t.hostile), "warm-up"); err != nil {
		return err
	}
	before, err := settled(ctx, g)
	if err != nil {
		return err
	}
	n, err := t.drive(ctx, d, 0, "load")
	if err != nil {
		return err
	}
	after, err := settled(ctx, g)
	if err != nil {
		return err
	}
	fmt.Printf("soak: %d invocations, %v\n", n, t.did)
	if err := check(before, after, n); err != nil {
		return err
	}
	fmt.Println("soak: memory, goroutines, descriptors, mappings and threads are flat")
	return nil
}

// settling is longer than anything idle is kept: instances and their images for a minute and a quarter,
// connections to origins for half a minute, workers without a connection for ten seconds. What is left
// then is left for good.
const settling = 80 * time.Second

// settled is what the gateway holds when nothing has run for a while.
func settled(ctx context.Context, g *gateway) (stats, error) {
	control.CloseIdleConnections()
	select {
	case <-time.After(settling):
	case <-ctx.Done():
		return stats{}, ctx.Err()
	}
	if _, err := g.ask("settle"); err != nil {
		return stats{}, err
	}
	return g.ask("settle")
}

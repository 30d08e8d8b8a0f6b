package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ecotone-dev/ecotone/benchmarks/load"
	"github.com/ecotone-dev/ecotone/benchmarks/peer"
)

// bound is what may be more at the end of a soak than after its warm-up.
type bound struct {
	name  string
	of    func(stats) int64
	times float64
	plus  int64
}

var bounds = []bound{
	{"resident bytes", func(s stats) int64 { return int64(s.Resident) }, 1.25, 64 << 20},
	{"heap bytes", func(s stats) int64 { return int64(s.Heap) }, 1.25, 32 << 20},
	{"goroutines", func(s stats) int64 { return int64(s.Goroutines) }, 1, 8},
	{"descriptors", func(s stats) int64 { return int64(s.Descriptors) }, 1, 8},
	{"mappings", func(s stats) int64 { return int64(s.Mappings) }, 1.1, 64},
	{"threads", func(s stats) int64 { return int64(s.Threads) }, 1, 16},
}

// runSoak loads a gateway with good and hostile invocations and with policy changes for a
// while, and compares what the process holds afterwards with what it held after a warm-up.
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
	requests, err := soakRequests(ctx, g)
	if err != nil {
		return err
	}
	warm := min(max(d/5, 10*time.Second), 2*time.Minute)
	fmt.Printf("soak: %s of warm-up, then %s\n", warm, d)
	if err := soakFor(ctx, g, requests, warm, "warm-up"); err != nil {
		return err
	}
	before, err := settled(ctx, g)
	if err != nil {
		return err
	}
	if err := soakFor(ctx, g, requests, d, "load"); err != nil {
		return err
	}
	after, err := settled(ctx, g)
	if err != nil {
		return err
	}
	var failed error
	for _, b := range bounds {
		was, is := b.of(before), b.of(after)
		limit := int64(float64(was)*b.times) + b.plus
		verdict := "flat"
		if is > limit {
			verdict = "GROWN"
			failed = errors.Join(failed, fmt.Errorf("%s grew from %d to %d, over %d", b.name, was, is, limit))
		}
		fmt.Printf("  %-16s %14d → %14d   %s\n", b.name, was, is, verdict)
	}
	if failed == nil {
		fmt.Println("soak: memory, goroutines, descriptors and mappings are flat")
	}
	return failed
}

// settled is what the gateway holds when nothing runs.
func settled(ctx context.Context, g *gateway) (stats, error) {
	select {
	case <-time.After(6 * time.Second): // deadlines pass, connections end, memory is given back
	case <-ctx.Done():
		return stats{}, ctx.Err()
	}
	if _, err := g.ask("settle"); err != nil {
		return stats{}, err
	}
	return g.ask("settle")
}

type soakLoad struct {
	good, hostile []load.Request
}

func soakRequests(ctx context.Context, g *gateway) (*soakLoad, error) {
	if err := g.do(ctx, "POST", "/v1/orgs", map[string]string{"id": "hostile"}, nil); err != nil {
		return nil, err
	}
	token, err := g.allow(ctx, "default", "echo", echoRef, peer.Echo("echo", echoRef, 60<<10))
	if err != nil {
		return nil, err
	}
	l := &soakLoad{good: []load.Request{
		g.post(echoRef, token, []byte(`{"n":1}`)),
		g.post(echoRef, token, append(append([]byte(`"`), make32k()...), '"')),
	}}
	for name, module := range map[string]func(string, string) []byte{"spin": peer.Spin, "trap": peer.Trap, "grow": peer.Grow} {
		ref := "bench:" + name + ".run@1"
		token, err := g.allow(ctx, "hostile", name, ref, module(name, ref))
		if err != nil {
			return nil, err
		}
		l.hostile = append(l.hostile, g.post(ref, token, []byte(`{}`), "Ecotone-Deadline-Ms", "200"))
	}
	l.hostile = append(l.hostile,
		g.post(echoRef, token+"x", []byte(`{}`)),
		g.post(echoRef, token, []byte(`{"a":`)),
		g.post("bench:nothing.run@1", token, []byte(`{}`)),
	)
	return l, nil
}

func make32k() []byte {
	b := make([]byte, 32<<10)
	for i := range b {
		b[i] = 'x'
	}
	return b
}

func soakFor(ctx context.Context, g *gateway, l *soakLoad, d time.Duration, phase string) error {
	cycle := func(list []load.Request) func(int, int) load.Request {
		return func(worker, n int) load.Request { return list[(worker+n)%len(list)] }
	}
	// In pieces, so that connections come and go too.
	const piece = 10 * time.Second
	for end := time.Now().Add(d); time.Now().Before(end); {
		rest := min(piece, time.Until(end))
		var wg sync.WaitGroup
		var good, hostile *load.Result
		var goodErr, hostileErr, churnErr error
		wg.Go(func() {
			good, goodErr = load.Run(ctx, load.Plan{Address: g.Invoke, Next: cycle(l.good), Connections: 8, Rate: 200, For: rest})
		})
		wg.Go(func() {
			hostile, hostileErr = load.Run(ctx, load.Plan{Address: g.Invoke, Next: cycle(l.hostile), Connections: 4, Rate: 20, For: rest})
		})
		wg.Go(func() { churnErr = churn(ctx, g, rest) })
		wg.Wait()
		if err := errors.Join(goodErr, hostileErr, churnErr); err != nil {
			return err
		}
		s, err := g.ask("stats")
		if err != nil {
			return err
		}
		fmt.Printf("  %s: good %v, hostile %v; %d MiB, %d goroutines, %d descriptors, %d mappings\n",
			phase, good.Status, hostile.Status, s.Resident>>20, s.Goroutines, s.Descriptors, s.Mappings)
		if good.Status[200] == 0 {
			return errors.New("no good request was answered")
		}
	}
	return nil
}

// churn opens and closes a session about once a second.
func churn(ctx context.Context, g *gateway, d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end) && ctx.Err() == nil; {
		var out struct {
			Of struct{ ID string } `json:"of"`
		}
		if err := g.do(ctx, "POST", "/v1/sessions", map[string]any{"subject": "user:churn", "environment": "environment:project"}, &out); err != nil {
			return err
		}
		if err := g.do(ctx, "DELETE", "/v1/sessions/"+out.Of.ID, nil, nil); err != nil {
			return err
		}
		time.Sleep(min(time.Second, max(0, time.Until(end))))
	}
	return ctx.Err()
}

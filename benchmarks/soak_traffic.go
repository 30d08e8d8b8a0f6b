package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ecotone-dev/ecotone/benchmarks/load"
	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/testdata/hostile"
)

// Organisations of the soak beside default.
var soakOrgs = []string{"stores", "churn", "hostile"}

// traffic is all that a soak does to a gateway.
type traffic struct {
	g       *gateway
	good    []load.Request
	hostile []load.Request
	refused []hostile.Module // at upload
	churn   []churned
	spin    string // token of the session that cancels and leaves

	mu  sync.Mutex
	did map[string]int // changes, by kind

	list []*change // see changes
}

// deadline of each hostile invocation: what does not end by itself is ended.
var hostileDeadline = []string{"Ecotone-Deadline-Ms", "200"}

func newTraffic(ctx context.Context, g *gateway) (*traffic, error) {
	t := &traffic{g: g, did: map[string]int{}, refused: slices.Concat(hostile.At(hostile.Upload), hostile.At(hostile.Probe))}
	for _, org := range soakOrgs {
		if err := g.do(ctx, "POST", "/v1/orgs", map[string]string{"id": org}, nil); err != nil {
			return nil, err
		}
	}
	for _, add := range []func(context.Context) error{t.addGood, t.addHostile, t.addSpin, t.addChurn} {
		if err := add(ctx); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// addGood adds what must always be answered: echoes of two sizes, a key and a file, of two
// organisations.
func (t *traffic) addGood(ctx context.Context) error {
	echo, err := t.g.allow(ctx, "default", "echo", echoRef, peer.Echo("echo", echoRef, 60<<10))
	if err != nil {
		return err
	}
	large := slices.Concat([]byte(`"`), bytes.Repeat([]byte("x"), 32<<10), []byte(`"`))
	t.good = append(t.good, t.g.post(echoRef, echo, []byte(`{"n":1}`)), t.g.post(echoRef, echo, large))
	for name, module := range map[string]func(name, ref string) []byte{"keeper": peer.Keeper, "filer": peer.Filer} {
		ref := "bench:" + name + ".run@1"
		token, err := t.g.allow(ctx, "stores", name, ref, module(name, ref))
		if err != nil {
			return err
		}
		t.good = append(t.good, t.g.post(ref, token, []byte(`{"stored":[1,2,3]}`)))
	}
	return nil
}

// addHostile adds every module of the hostile collection that is admitted, each call of each, and
// requests that are wrong in themselves.
func (t *traffic) addHostile(ctx context.Context) error {
	token := ""
	for _, m := range hostile.At(hostile.Invoke) {
		if err := t.g.install(ctx, "hostile", m.Biome(), m.Bytes()); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		if err := t.g.grant(ctx, "hostile", "user:bench", string(m.Ref())); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		if token == "" {
			var err error
			if token, err = t.g.open(ctx, "hostile", "user:bench"); err != nil {
				return err
			}
		}
		for _, c := range m.Calls {
			input := c.Input
			if input == "" {
				input = "{}"
			}
			t.hostile = append(t.hostile, t.g.post(string(m.Ref()), token, []byte(input), hostileDeadline...))
		}
	}
	t.hostile = append(t.hostile,
		t.g.post(echoRef, token+"x", []byte(`{}`)),
		t.g.post(echoRef, token, []byte(`{"a":`)),
		t.g.post("bench:nothing.run@1", token, []byte(`{}`)),
	)
	return nil
}

// counted are invocations that were answered, by status.
func counted(s map[int]int) (n int, list string) {
	for _, status := range slices.Sorted(maps.Keys(s)) {
		n += s[status]
		list += fmt.Sprintf(" %d×%d", s[status], status)
	}
	return n, strings.TrimSpace(list)
}

// drive does everything at once for a while, and until there were so many hostile requests, in
// pieces, so that connections come and go too. It answers how many invocations were answered.
func (t *traffic) drive(ctx context.Context, d time.Duration, least int, phase string) (invocations int, err error) {
	const piece = 10 * time.Second
	at := atomic.Int64{} // the hostile requests go on where the piece before ended
	for begin, end := time.Now(), time.Now().Add(d); time.Now().Before(end) || int(at.Load()) < least; {
		rest := min(piece, max(time.Until(end), time.Second))
		var wg sync.WaitGroup
		var good, bad *load.Result
		errs := make([]error, 2+len(t.changes()))
		wg.Go(func() {
			good, errs[0] = load.Run(ctx, load.Plan{Address: t.g.Invoke, Connections: 8, Rate: 200, For: rest, Next: func(worker, n int) load.Request {
				return t.good[(worker+n)%len(t.good)]
			}})
		})
		wg.Go(func() {
			bad, errs[1] = load.Run(ctx, load.Plan{Address: t.g.Invoke, Connections: 6, Rate: 30, For: rest, Next: func(int, int) load.Request {
				return t.hostile[int(at.Add(1))%len(t.hostile)]
			}})
		})
		for i, change := range t.changes() {
			wg.Go(func() { errs[2+i] = change.every(ctx, rest) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return invocations, err
		}
		s, err := t.g.ask("stats")
		if err != nil {
			return invocations, err
		}
		nGood, goods := counted(good.Status)
		nBad, bads := counted(bad.Status)
		invocations += nGood + nBad
		fmt.Printf("  %s %4.0f s: good %s; hostile %s; %d MiB, %d goroutines, %d descriptors, %d mappings\n",
			phase, time.Since(begin).Seconds(), goods, bads, s.Resident>>20, s.Goroutines, s.Descriptors, s.Mappings)
		switch {
		case good.Status[200] < nGood*9/10 || nGood == 0: // the rest may have found all places taken
			return invocations, fmt.Errorf("good requests were refused: %s", goods)
		case good.Status[500] > 0 || bad.Status[500] > 0:
			return invocations, fmt.Errorf("the gateway failed inside: good %s, hostile %s: %s", goods, bads, t.g.errs.String())
		}
	}
	return invocations, nil
}

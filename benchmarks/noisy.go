package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ecotone-dev/ecotone/benchmarks/load"
	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
	"github.com/ecotone-dev/ecotone/host/share"
)

const (
	groupNoisy = "A noisy neighbour"
	spinRef    = "bench:cpu.spin@1"

	noisyPairs  = 7
	noisyWindow = 4 * time.Second
	spinners    = 16
)

// noise is a gateway with two organisations: one that asks for little and one that burns all it may.
type noise struct {
	*gateway
	decent load.Plan
	spin   load.Plan
	token  string // of the one that spins
}

func startNoise(ctx context.Context, b *bench) (*noise, error) {
	g, err := startGateway(ctx, filepath.Join(b.dir, "noisy"))
	if err != nil {
		return nil, err
	}
	n := &noise{gateway: g}
	token, err := g.allow(ctx, "default", "echo", echoRef, b.built.small.Ecotone)
	if err == nil {
		err = g.do(ctx, "POST", "/v1/orgs", map[string]string{"id": "noisy"}, nil)
	}
	if err == nil {
		n.token, err = g.allow(ctx, "noisy", "spin", spinRef, peer.Spin("spin", spinRef))
	}
	if err != nil {
		_ = g.stop()
		return nil, err
	}
	n.decent = load.Plan{Address: g.Invoke, Next: always(g.post(echoRef, token, b.built.small.Input)), Connections: 16, Rate: 200, For: noisyWindow}
	// Each spinner runs until its deadline and begins again.
	n.spin = load.Plan{
		Address: g.Invoke, Next: always(g.post(spinRef, n.token, []byte(`{}`), "Ecotone-Deadline-Ms", "1000")), Connections: spinners, For: noisyWindow + time.Second,
	}
	return n, nil
}

// measureNoisy has another organisation burn all it may, and looks at the first one's p99.
func measureNoisy(ctx context.Context, b *bench) error {
	target := &report.Target{Better: report.AtMost, Bound: 1}
	const name = "others' p99 while another organisation spins"
	if b.quick {
		b.Add(report.Unmeasured(groupNoisy, name, report.FullOnly, "").Aim(target))
		return nil
	}
	n, err := startNoise(ctx, b)
	if err != nil {
		return err
	}
	defer n.stop()
	slices, err := n.slices(ctx)
	if err != nil {
		return err
	}
	slice := report.Median(slices)
	var quiet, noisy, ratios []float64
	for pair := range noisyPairs {
		q, p, err := n.pair(ctx, pair%2 == 1)
		if err != nil {
			return err
		}
		quiet, noisy = append(quiet, q), append(noisy, p)
		ratios = append(ratios, p/(q*1.5+slice))
	}
	b.Add(report.Measured(groupNoisy, "one slice of a guest alone", "ns", slices).Noting("%d units of fuel; a guest is asked for its processor after each.", share.Slice))
	b.Add(report.Measured(groupNoisy, "p99 alone, 200 requests/s, open loop", "ns", quiet))
	b.Add(report.Measured(groupNoisy, name, "ns", noisy).
		Against(fmt.Sprintf("1.5 × quiet p99 + a slice of %s", report.Human(slice, "ns")), "times", ratios).Aim(target).
		Noting("%d pairs in alternating order; %d spinning callers, each until a deadline of 1 s. The driver shares the processors.", noisyPairs, spinners))
	return nil
}

// pair measures the decent organisation's p99 without and with the other one, in either order.
func (n *noise) pair(ctx context.Context, noisyFirst bool) (quiet, noisy float64, err error) {
	alone := func() error {
		r, err := drive(ctx, n.decent)
		if err == nil {
			quiet = r.At(99)
		}
		return err
	}
	beside := func() error {
		spun := make(chan error, 1)
		go func() { _, err := load.Run(ctx, n.spin); spun <- err }()
		time.Sleep(time.Second / 2)
		r, err := drive(ctx, n.decent)
		if spinErr := <-spun; err == nil {
			err = spinErr
		}
		if err == nil {
			noisy = r.At(99)
		}
		return err
	}
	order := []func() error{alone, beside}
	if noisyFirst {
		order[0], order[1] = order[1], order[0]
	}
	for _, f := range order {
		if err := f(); err != nil {
			return 0, 0, err
		}
	}
	return quiet, noisy, nil
}

// slices measures how long a slice of a guest takes that spins alone: the wall time it was given over
// the fuel it burnt.
func (n *noise) slices(ctx context.Context) ([]float64, error) {
	const given = 400 * time.Millisecond
	var out []float64
	for range 5 {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+n.Invoke+"/v1/invoke/"+spinRef, strings.NewReader("{}"))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+n.token)
		req.Header.Set("Ecotone-Deadline-Ms", strconv.FormatInt(given.Milliseconds(), 10))
		res, err := control.Do(req)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			return nil, err
		}
		fuel, err := strconv.ParseInt(res.Header.Get("Ecotone-Fuel"), 10, 64)
		if err != nil || fuel < share.Slice {
			return nil, fmt.Errorf("a guest that spins answers %d with fuel %q: %.200s", res.StatusCode, res.Header.Get("Ecotone-Fuel"), body)
		}
		out = append(out, float64(given)*share.Slice/float64(fuel))
	}
	return out, nil
}

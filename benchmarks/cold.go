package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/ecotone-dev/ecotone/benchmarks/load"
	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
)

const groupCold = "Cold start"

func numbered(n int) (biome, ref string) {
	return fmt.Sprintf("echo%d", n), fmt.Sprintf("bench:echo%d.run@1", n)
}

// measureCold uploads many biomes, which compiles each, then restarts.
func measureCold(ctx context.Context, b *bench) error {
	const wanted = 200
	n := pick(b, 10, wanted)
	g, err := startGateway(ctx, filepath.Join(b.dir, "cold"))
	if err != nil {
		return err
	}
	compile := time.Duration(0)
	for i := range n {
		biome, ref := numbered(i)
		module := peer.Echo(biome, ref, 60<<10)
		begin := time.Now()
		if err := g.do(ctx, "POST", "/v1/biomes", module, nil); err != nil {
			_ = g.stop()
			return err
		}
		compile += time.Since(begin)
		var up struct{ Digest string }
		if err := g.do(ctx, "GET", "/v1/biomes/"+biome, nil, &up); err == nil {
			err = g.do(ctx, "PUT", "/v1/installs/"+biome, map[string]any{"digest": up.Digest, "environments": []string{"environment:project"}}, nil, "If-None-Match", "*")
			if err == nil {
				err = g.grant(ctx, "default", "user:bench", ref)
			}
			if err != nil {
				_ = g.stop()
				return err
			}
		}
	}
	token, err := g.open(ctx, "default", "user:bench")
	if err != nil {
		_ = g.stop()
		return err
	}
	var restart, all []float64
	for range pick(b, 3, 7) {
		if err := g.stop(); err != nil {
			return err
		}
		begin := time.Now()
		if g, err = startGateway(ctx, g.dir); err != nil {
			return err
		}
		if err := ready(ctx, g); err != nil {
			_ = g.stop()
			return err
		}
		restart = append(restart, float64(time.Since(begin)))
		r, err := load.Run(ctx, load.Plan{Address: g.Invoke, Connections: 1, For: time.Minute, Next: func(_, i int) load.Request {
			if i >= n {
				return nil
			}
			_, ref := numbered(i)
			return g.post(ref, token, []byte(`{}`))
		}})
		if err != nil || r.Bad() > 0 {
			_ = g.stop()
			return fmt.Errorf("after a restart: %v, %v", r.Status, err)
		}
		all = append(all, float64(time.Since(begin)))
	}
	defer g.stop()
	b.Add(report.Row{Group: groupCold, Name: fmt.Sprintf("compiling %d small biomes (uploads, one after the other)", n), Value: float64(compile), Unit: "ns"})
	row := report.Row{
		Group: groupCold, Name: fmt.Sprintf("restart with %d biomes until ready", n), Value: median(restart), Unit: "ns",
		Reference: "compiling them", Ratio: float64(compile) / median(restart), Reads: "times faster than",
	}
	target := &report.Target{Better: report.AtLeast, Bound: 10}
	if n == wanted {
		row.Target = target
	}
	b.Add(row)
	b.Add(report.Row{
		Group: groupCold, Name: fmt.Sprintf("restart with %d biomes until each has answered once", n), Value: median(all), Unit: "ns",
		Reference: "compiling them", Ratio: float64(compile) / median(all), Reads: "times faster than",
	})
	if n != wanted {
		b.Add(report.Row{Group: groupCold, Name: fmt.Sprintf("restart with %d biomes until ready", wanted), Target: target, Status: report.FullOnly})
	}
	return nil
}

// ready waits for /readyz.
func ready(ctx context.Context, g *gateway) error {
	for begin := time.Now(); time.Since(begin) < 30*time.Second; time.Sleep(2 * time.Millisecond) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.Ops+"/readyz", nil)
		if err != nil {
			return err
		}
		res, err := control.Do(req)
		if err != nil {
			return err
		}
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return nil
		}
	}
	return fmt.Errorf("the gateway does not get ready")
}

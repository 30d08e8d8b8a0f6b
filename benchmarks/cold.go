package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/benchmarks/load"
	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

const groupCold = "Cold start"

// numbered names the biome n of many, and its one capability.
func numbered(n int) (biome, ref string) {
	return fmt.Sprintf("echo%d", n), fmt.Sprintf("bench:echo%d.run@1", n)
}

// shelf is biomes of one kind, to be uploaded and found again after a restart.
type shelf struct {
	kind   string
	n      int
	module func(n int) ([]byte, error) // provides what numbered says
	input  []byte
	target *report.Target
}

// measureCold uploads many biomes, which compiles each, then restarts.
func measureCold(ctx context.Context, b *bench) error {
	const wanted = 200
	small := shelf{kind: "small biomes", n: wanted, input: []byte(`{}`), target: atLeast(10), module: func(n int) ([]byte, error) {
		biome, ref := numbered(n)
		return peer.Echo(biome, ref, 60<<10), nil
	}}
	goes := shelf{kind: "Go biomes", n: 16, input: b.built.json.Input, module: func(n int) ([]byte, error) {
		return renumbered(b.built.json.Ecotone, b.built.json.Export, n)
	}}
	if b.quick {
		b.Add(report.Unmeasured(groupCold, small.restarted(), report.FullOnly, "").Aim(small.target))
		b.Add(report.Unmeasured(groupCold, goes.restarted(), report.FullOnly, ""))
		small.n, small.target = 10, nil
		return small.measure(ctx, b)
	}
	if err := small.measure(ctx, b); err != nil {
		return err
	}
	return goes.measure(ctx, b)
}

func (s *shelf) restarted() string { return fmt.Sprintf("restart with %d %s until ready", s.n, s.kind) }

// renumbered is a guest under another name: its manifest keeps the capability with an export,
// renamed.
func renumbered(module []byte, export string, n int) ([]byte, error) {
	sections, err := wasm.Custom(module, abi.ManifestSection)
	if err != nil || len(sections) != 1 {
		return nil, fmt.Errorf("a guest with %d manifests: %w", len(sections), err)
	}
	m, problems := abi.DecodeManifest(sections[0])
	if len(problems) > 0 {
		return nil, problems
	}
	var ref string
	m.Name, ref = numbered(n)
	for _, d := range m.Provides {
		if d.Export == export {
			d.Ref = abi.CapabilityRef(ref)
			m.Provides = []abi.Descriptor{d}
			break
		}
	}
	m.Examples = nil
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return wasm.SetCustom(module, abi.ManifestSection, raw)
}

func (s *shelf) measure(ctx context.Context, b *bench) error {
	g, err := startGateway(ctx, filepath.Join(b.dir, "cold", s.kind))
	if err != nil {
		return err
	}
	defer func() { _ = g.stop() }()
	compiling, token, err := s.upload(ctx, g)
	if err != nil {
		return err
	}
	var restart, all []float64
	for range pick(b, 3, 7) {
		if err := g.stop(); err != nil {
			return err
		}
		begin := time.Now()
		next, err := startGateway(ctx, g.dir)
		if err != nil {
			return err
		}
		g = next
		if err := ready(ctx, g); err != nil {
			return err
		}
		restart = append(restart, float64(time.Since(begin)))
		// One that is not loaded yet is loaded for the first who asks.
		if _, err := drive(ctx, load.Plan{Address: g.Invoke, Connections: 1, For: time.Minute, Next: func(_, i int) load.Request {
			if i >= s.n {
				return nil
			}
			_, ref := numbered(i)
			return g.post(ref, token, s.input)
		}}); err != nil {
			return fmt.Errorf("after a restart: %w", err)
		}
		all = append(all, float64(time.Since(begin)))
	}
	faster := func(took []float64) []float64 {
		out := make([]float64, len(took))
		for i := range took {
			out[i] = float64(compiling) / took[i]
		}
		return out
	}
	b.Add(report.Measured(groupCold, fmt.Sprintf("compiling %d %s (uploads, one after the other)", s.n, s.kind), "ns", []float64{float64(compiling)}))
	b.Add(report.Measured(groupCold, s.restarted(), "ns", restart).Against("compiling them", "times faster than", faster(restart)).Aim(s.target))
	b.Add(report.Measured(groupCold, fmt.Sprintf("restart with %d %s until each has answered once", s.n, s.kind), "ns", all).Against("compiling them", "times faster than", faster(all)))
	return nil
}

// upload uploads, installs and grants all of the shelf, and says how long the uploads took and a
// token that may call them.
func (s *shelf) upload(ctx context.Context, g *gateway) (took time.Duration, token string, err error) {
	for i := range s.n {
		module, err := s.module(i)
		if err != nil {
			return 0, "", err
		}
		begin := time.Now()
		if err := g.do(ctx, "POST", "/v1/biomes", module, nil); err != nil {
			return 0, "", err
		}
		took += time.Since(begin)
		biome, ref := numbered(i)
		if err := g.admit(ctx, "default", biome); err != nil {
			return 0, "", err
		}
		if err := g.grant(ctx, "default", "user:bench", ref); err != nil {
			return 0, "", err
		}
	}
	token, err = g.open(ctx, "default", "user:bench")
	return took, token, err
}

// admit installs the last upload of a biome in the environment project.
func (g *gateway) admit(ctx context.Context, org, biome string) error {
	var b struct{ Digest string }
	if err := g.do(ctx, "GET", "/v1/biomes/"+biome+"?org="+org, nil, &b); err != nil {
		return err
	}
	return g.do(ctx, "PUT", "/v1/installs/"+biome+"?org="+org, map[string]any{"digest": b.Digest, "environments": []string{"environment:project"}}, nil, "If-None-Match", "*")
}

// ready waits for /readyz.
func ready(ctx context.Context, g *gateway) error {
	for begin := time.Now(); time.Since(begin) < 30*time.Second; time.Sleep(time.Millisecond) {
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

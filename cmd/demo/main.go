// Command demo shows the main job on a machine of its own: it starts the real server on
// loopback with a temporary data directory, drives it with the real command line, and checks
// everything it shows. It ends by itself; the last line is one JSON object.
//
//	go run ./cmd/demo -bin bin/ecotone -biomes bin/biomes
//
// With -policy it shows the permission plane instead: ceilings, flow, explanations, approvals, revocation.
// With -guests it shows biomes in four languages, and a WASI program and an Extism plug-in as they are.
// With -agent it shows an agent that finds, is denied, asks and invokes over the Model Context Protocol.
// With -stay it leaves a development gateway up instead, with the first-party biomes uploaded, and
// says what to type next.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	bin := flag.String("bin", "bin/ecotone", "the ecotone binary")
	biomes := flag.String("biomes", "bin/biomes", "folder of the first-party biomes")
	stay := flag.Bool("stay", false, "leave a development gateway up")
	policy := flag.Bool("policy", false, "show the permission plane")
	guests := flag.Bool("guests", false, "show guests in several languages, and two that were written for something else")
	agent := flag.Bool("agent", false, "show an agent over the Model Context Protocol")
	data := flag.String("data", "data", "data directory, with -stay")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case *stay:
		err = stayUp(ctx, *bin, *biomes, *data)
	case *policy:
		err = run(ctx, *bin, *biomes, policySteps)
	case *guests:
		err = run(ctx, *bin, *biomes, guestSteps)
	case *agent:
		err = run(ctx, *bin, *biomes, agentSteps)
	default:
		err = run(ctx, *bin, *biomes, steps)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// timeLimit bounds the demo, so that it ends whatever happens.
const timeLimit = 3 * time.Minute

func run(ctx context.Context, bin, biomes string, steps []step) (err error) {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	dir, err := os.MkdirTemp("", "ecotone-demo-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d := &demo{ctx: ctx, bin: bin, biomes: biomes, dir: dir, data: filepath.Join(dir, "data")}
	defer func() {
		d.close()
		result := d.summary("ok")
		if err != nil {
			result = d.summary("failed")
			result.Step, result.Error = d.step, err.Error()
		}
		_ = json.NewEncoder(os.Stdout).Encode(result)
	}()
	for _, s := range steps {
		d.step = s.title
		fmt.Printf("\n== %s\n", s.title)
		if err := s.do(d); err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
	}
	return nil
}

func stayUp(ctx context.Context, bin, biomes, data string) error {
	d := &demo{ctx: ctx, bin: bin, biomes: biomes, data: data, quiet: true}
	defer d.close()
	if err := d.serve("--dev", "--egress-loopback", "--listen", "127.0.0.1:8180", "--admin-listen", "127.0.0.1:8181", "--ops-listen", "127.0.0.1:8182"); err != nil {
		return err
	}
	for _, name := range biomeNames {
		if _, err := d.cli(d.operator(), "biome", "push", d.biome(name)); err != nil {
			return err
		}
	}
	fmt.Printf(`
A development gateway is up, with the biomes %v. In another terminal:

  export ECOTONE_TOKEN_FILE=%s/dev.token
  %s invoke notes:note.put@1 --input '{"id":"first","text":"hello"}'
  %s invoke notes:note.get@1 --input '{"id":"first"}'
  %s invoke ws:file.write@1 --input '{"path":"reports/a.md","text":"# A"}'
  curl -s -H "Authorization: Bearer $(cat %s/dev.token)" http://127.0.0.1:8180/v1/capabilities
  ECOTONE_TOKEN_FILE=%s/operator.token %s audit list

Ctrl-C stops it.
`, biomeNames, data, bin, bin, bin, data, data, bin)
	<-ctx.Done()
	return nil
}

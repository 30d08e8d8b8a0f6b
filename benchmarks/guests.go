package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ecotone-dev/ecotone/benchmarks/guests/logic"
	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/biomes/build"
)

// buildGuests compiles the Go guests from the source in guests/ into dir.
func buildGuests(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	biome, err := build.Go(ctx, "guests/ecotone")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "ecotone.wasm"), biome, 0o644); err != nil {
		return err
	}
	for _, name := range []string{"plain", "extism", "kernels"} {
		cmd := exec.CommandContext(ctx, "go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, name+".wasm"), "./guests/"+name)
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("building the guest %s: %w", name, err)
		}
	}
	return nil
}

// built is the guests of a run.
type built struct {
	json, list, small, compute *peer.Guest
	kernels                    []byte
}

// all is the guests, the one that compiles in no time first: a quick run on a busy machine may
// not get to the others.
func (b *built) all() []*peer.Guest { return []*peer.Guest{b.small, b.json, b.list, b.compute} }

// How many numbers the JSON guest sums. The targets were set for a small object, which costs wazero
// about 22 µs with its instance kept and no deadline; of this guest that is one with ten numbers.
// The longer list shows how the ratios move when there is more to do.
const (
	fewNumbers  = 10
	manyNumbers = 40
)

// numbers is an input of the JSON guest.
func numbers(n int) []byte {
	items := make([]int, n)
	for i := range items {
		items[i] = i * 37
	}
	text, _ := json.Marshal(map[string]any{"items": items})
	return text
}

const (
	echoRef = "bench:input.echo@1"
	bigRef  = "bench:input.echobig@1"
)

func loadGuests(dir string) (*built, error) {
	read := func(name string) []byte {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil
		}
		return raw
	}
	ours, plain, extism, kernels := read("ecotone.wasm"), read("plain.wasm"), read("extism.wasm"), read("kernels.wasm")
	if ours == nil || plain == nil || extism == nil || kernels == nil {
		return nil, fmt.Errorf("the guests are not built: run with -prepare first")
	}
	work := []byte(`{"n":65536}`)
	b := &built{kernels: kernels}
	b.json = &peer.Guest{Name: "Go + JSON", Export: "sum", Ecotone: ours, Plain: plain, Extism: extism, Input: numbers(fewNumbers)}
	b.list = &peer.Guest{Name: "Go + JSON, a longer list", Export: "sum", Ecotone: ours, Plain: plain, Extism: extism, Input: numbers(manyNumbers)}
	b.small = smallGuest()
	b.compute = &peer.Guest{Name: "Go, compute-bound", Export: "compute", Ecotone: ours, Plain: plain, Extism: extism, Input: work}
	var err error
	for _, g := range []*peer.Guest{b.json, b.list} {
		if g.Want, err = logic.JSONed(logic.Sum)(g.Input); err != nil {
			return nil, err
		}
	}
	if b.compute.Want, err = logic.JSONed(logic.Compute)(work); err != nil {
		return nil, err
	}
	return b, nil
}

// smallGuest needs no toolchain.
func smallGuest() *peer.Guest {
	echo := []byte(`{"message":"hello, biome","n":42}`)
	return &peer.Guest{Name: "small, no runtime", Export: "run", Ecotone: peer.Echo("echo", echoRef, 60<<10), Extism: peer.ExtismEcho(), Input: echo, Want: echo}
}

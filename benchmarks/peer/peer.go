// Package peer runs the same guest in different hosts, each through its public interface and
// in the configuration its own documentation recommends for many calls: compiled once, then
// instantiated or called.
//
// It promises that every contender answers the same input with the same JSON before anything
// is timed. It refuses to know how time is taken.
package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
)

// Guest is one capability in the forms the hosts take.
type Guest struct {
	Name    string
	Export  string
	Ecotone []byte // a biome: a reactor that imports ecotone_v1
	Plain   []byte // the same logic without an SDK, for wazero and wasmtime; nil: the biome
	Extism  []byte // an Extism plug-in with the same logic
	Input   []byte
	Want    []byte // JSON
}

// Contender answers one call after another. It is used by one goroutine.
type Contender interface {
	Call(ctx context.Context, input []byte) ([]byte, error)
	Close()
}

// Check calls a contender a few times and compares what it answers. State that is carried
// from call to call must not show.
func Check(ctx context.Context, c Contender, g *Guest) error {
	var want any
	if err := json.Unmarshal(g.Want, &want); err != nil {
		return err
	}
	for range 3 {
		out, err := c.Call(ctx, g.Input)
		if err != nil {
			return err
		}
		var got any
		if err := json.Unmarshal(out, &got); err != nil {
			return fmt.Errorf("it answers %q: %w", out, err)
		}
		if !reflect.DeepEqual(want, got) {
			return fmt.Errorf("it answers %s, not %s", out, g.Want)
		}
	}
	return nil
}

// exchange is the three host functions that the guests use, as plainly as they can be written:
// no authority, no limits, no receipt.
type exchange struct{ input, output []byte }

func (e *exchange) read(mem []byte, ptr, off, n uint32) int64 {
	if uint64(off) >= uint64(len(e.input)) {
		return 0
	}
	if uint64(ptr)+uint64(n) > uint64(len(mem)) {
		return -1
	}
	return int64(copy(mem[ptr:ptr+n], e.input[off:]))
}

func (e *exchange) write(mem []byte, ptr, n uint32) int64 {
	if uint64(ptr)+uint64(n) > uint64(len(mem)) {
		return -1
	}
	e.output = append([]byte(nil), mem[ptr:ptr+n]...)
	return 0
}

// Bare is what wazero and wasmtime run.
func (g *Guest) Bare() []byte {
	if g.Plain != nil {
		return g.Plain
	}
	return g.Ecotone
}

package admission_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/admission"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/engine"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
	"github.com/ecotone-dev/ecotone/testdata/hostile"
)

// uniqueTypes is a biome with types that no other number's has.
func uniqueTypes(n int) []byte {
	const each = 30
	b := w.New()
	output := b.Host("output")
	for k := range each {
		params := make([]byte, 0, 16)
		for v := n*each + k; len(params) < cap(params); v /= 4 {
			params = append(params, []byte{w.I32, w.I64, w.F32, w.F64}[v%4])
		}
		b.Func(params, nil, nil)
	}
	b.Capability("run", w.I32Const(0), w.I32Const(1), w.Call(output), w.Op(w.OpI32WrapI64))
	return b.Memory(1).ExportMemory().Data(0, []byte("7")).Manifest(manifest(abi.ReachOwner)).Bytes()
}

// invocation is one of a capability that is allowed everything, for so many milliseconds.
func invocation(wall int64) *boundary.Invocation {
	spec := authority.Spec{
		Invocation: "01J0000000000000000000TEST", Org: "acme", Space: "lab", Workspace: "w", Biome: "test", Subject: "user:ada",
		Capability: ref, Export: "run",
		Reach: abi.ReachOwner, Start: abi.Public, Ceiling: abi.Regulated, Clearance: abi.Regulated, Limits: abi.DefaultLimits(),
	}
	spec.Limits[abi.LimitWall] = wall
	return boundary.New(boundary.Spec{Authority: authority.New(spec, func() *abi.Error { return nil })})
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// S11, PF-D20: 5,000 uploads, each with types of its own, each loaded, run once and deleted. The
// engine keeps a table of all types it has seen; it goes with the biome.
func TestUniqueTypesAreNotKept(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles 5,000 modules")
	}
	ctx := context.Background()
	one := func(n int) {
		module := uniqueTypes(n)
		if r := admission.Inspect(module, uploadLimits()); !r.Accepted {
			t.Fatalf("%+v", r.Problems)
		}
		image := prepare(t, module)
		o := engine.New(engine.Fresh{}).Run(ctx, image, invocation(60_000))
		if string(o.Output) != "7" {
			t.Fatalf("%q %v", o.Output, o.Err)
		}
		if err := image.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	const warm, all = 200, 5000
	for n := range warm {
		one(n)
	}
	before := heap()
	for n := warm; n < all; n++ {
		one(n)
	}
	// A type that was kept would take some 200 bytes, and there were 144,000.
	if after := heap(); after > before+4<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
}

// PF-D25, S11: 64 recursions without end at once, each with 50 ms: each ends by its stack or by the
// time, and nothing of their stacks is kept.
func TestRecursionsInParallel(t *testing.T) {
	for _, name := range []string{"stack_recursion", "stack_frames", "cpu_recursion_exponential"} {
		image, e := load(t, hostile.Named(name).Bytes()), engine.New(engine.Fresh{})
		round := func() {
			var wg sync.WaitGroup
			for range 64 {
				wg.Go(func() {
					o := e.Run(context.Background(), image, invocation(50))
					if o.Err == nil || o.Err.Code != abi.CodeStackLimit && o.Err.Code != abi.CodeDeadline {
						t.Errorf("%s: %v", name, o.Err)
					}
				})
			}
			wg.Wait()
		}
		round()
		before := heap()
		for range 4 {
			round()
		}
		if after := heap(); after > before+8<<20 {
			t.Errorf("%s: the heap grew from %d to %d bytes", name, before, after)
		}
	}
}

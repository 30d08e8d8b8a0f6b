package boundary_test

import (
	"context"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// stillKV and stillFiles answer at once and allocate nothing, so that what is counted is the
// boundary's.
type (
	stillKV    struct{ boundary.KV }
	stillFiles struct{ boundary.Files }
)

var stillThere = boundary.Result{Body: []byte(`{"a":1}`), Target: "notes/today"}

func (stillKV) Get(_ context.Context, s boundary.Scope, _ string) (boundary.Result, error) {
	if err := s.Flow.Observe(abi.Internal); err != nil {
		return boundary.Result{}, err
	}
	return stillThere, nil
}

func (stillKV) Put(context.Context, boundary.Scope, string, []byte) (boundary.Result, error) {
	return stillThere, nil
}

func (stillFiles) Stat(context.Context, boundary.Scope, string) (boundary.Result, error) {
	return stillThere, nil
}

// steady is a run that has begun and may go on for as long as the measurement likes.
func steady(tb testing.TB, change ...func(*authority.Spec)) (context.Context, *boundary.Invocation, ram, boundary.Memory) {
	spec := permissive()
	spec.Limits[abi.LimitHostCalls], spec.Limits[abi.LimitFuel], spec.Limits[abi.LimitRandomBytes] = 1<<40, 1<<55, 1<<40
	for _, f := range change {
		f(&spec)
	}
	inv := boundary.New(boundary.Spec{
		Authority: authority.New(spec, func() *abi.Error { return nil }), Input: []byte(`{"in":1}`),
		Services: boundary.Services{KV: stillKV{}, Files: stillFiles{}, Journal: (&outside{}).services().Journal},
	})
	ctx, end := inv.Within(context.Background(), time.Now().Add(time.Hour))
	tb.Cleanup(end)
	inv.Enter(boundary.PhaseInitialize)
	inv.Enter(boundary.PhaseRun)
	mem := make(ram, 1<<16)
	return ctx, inv, mem, mem
}

// steadyCalls are calls that succeed, with their arguments in memory.
var steadyCalls = []struct {
	name string
	args []uint64
	want int64
}{
	{"input", nil, 8},
	{"result_read", []uint64{1024, 0, 64}, 7},
	{"result_meta", []uint64{1024, 0, 64}, 2},
	{"time_now", nil, 0},
	{"random", []uint64{1024, 32}, 32},
	{"kv_get", []uint64{0, 11}, 7},
	{"kv_put", []uint64{0, 11, 11, 8}, 7},
	{"file_stat", []uint64{0, 11}, 7},
}

// What every host call costs is checking: authority, time, price, arguments, reach, budget, label,
// receipt. None of it allocates; copies of arguments and lines of the receipt come from slabs, so
// that calls without number need a few allocations among them.
func TestCallsAllocateNothing(t *testing.T) {
	for _, c := range steadyCalls {
		ctx, inv, bytes, mem := steady(t)
		bytes.put(0, "notes/today")
		fn := function(t, c.name)
		args := make([]uint64, 8)
		call := func() int64 { return boundary.Call(ctx, inv, fn, mem, args[:copy(args, c.args)]) }
		boundary.Call(ctx, inv, function(t, "kv_get"), mem, []uint64{0, 11}) // something in the register
		if got := call(); got < 0 || c.want > 0 && got != c.want {
			t.Fatalf("%s: %d", c.name, got)
		}
		if n := testing.AllocsPerRun(1000, func() { call() }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
		if over := inv.Over(); over != nil {
			t.Errorf("%s: %v", c.name, over)
		}
	}
}

// BenchmarkCall is what the boundary adds to each host call.
func BenchmarkCall(b *testing.B) {
	for _, c := range steadyCalls {
		b.Run(c.name, func(b *testing.B) {
			ctx, inv, bytes, mem := steady(b)
			bytes.put(0, "notes/today")
			fn := function(b, c.name)
			args := make([]uint64, 8)
			b.ReportAllocs()
			for b.Loop() {
				if boundary.Call(ctx, inv, fn, mem, args[:copy(args, c.args)]) < 0 {
					b.Fatal(inv.Over())
				}
			}
		})
	}
}

// What a guest passes is copied once into memory of its own, whatever the sizes, and stays what it
// was however many calls come after it (S7).
func TestCopiesAreNeverWrittenOver(t *testing.T) {
	ctx, inv, mem, _ := steady(t)
	kept := &keeper{KV: stillKV{}}
	inv2 := boundary.New(boundary.Spec{
		Authority: inv.Authority(), Services: boundary.Services{KV: kept, Journal: (&outside{}).services().Journal},
	})
	inv2.Enter(boundary.PhaseRun)
	put := function(t, "kv_put")
	sizes := []int{0, 1, 7, 200, 255, 256, 257, 1000, 1023, 1024, 1025, 4000, 5000, 3, 512}
	for n := range 500 {
		for i := range mem[:12000] {
			mem[i] = byte(n)
		}
		key, value := uint64(1+n%300), uint64(sizes[n%len(sizes)])
		if got := boundary.Call(ctx, inv2, put, mem, []uint64{0, key, 2000, value}); got < 0 {
			t.Fatalf("put %d: %s", n, abi.Errno(-got))
		}
	}
	for n := range kept.keys {
		key, value := kept.keys[n], kept.values[n]
		if len(key) != 1+n%300 || len(value) != sizes[n%len(sizes)] || cap(value) != len(value) && len(value) > 0 && len(value) <= 1024 {
			t.Fatalf("put %d has %d and %d bytes, room for %d", n, len(key), len(value), cap(value))
		}
		for i := range key {
			if key[i] != byte(n) {
				t.Fatalf("key %d was written over", n)
			}
		}
		for i := range value {
			if value[i] != byte(n) {
				t.Fatalf("value %d was written over", n)
			}
		}
	}
	if len(kept.keys) != 500 {
		t.Errorf("%d puts", len(kept.keys))
	}
}

type keeper struct {
	boundary.KV
	keys   []string
	values [][]byte
}

func (k *keeper) Put(_ context.Context, _ boundary.Scope, key string, value []byte) (boundary.Result, error) {
	k.keys, k.values = append(k.keys, key), append(k.values, value)
	return boundary.Result{}, nil
}

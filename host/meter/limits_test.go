package meter_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/host/meter"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
	"github.com/ecotone-dev/ecotone/testdata/hostile"
)

// PF-D3, S10, S11: every module that does not end by itself ends when its fuel or its stack
// does, with the engine's own checks off, and owes no more than it could take between two looks.
func TestHostileModulesStop(t *testing.T) {
	for name, want := range map[string]error{
		"cpu_loop": errExhausted, "cpu_recursion_exponential": errExhausted, "cpu_call_ladder": errExhausted,
		"cpu_indirect": errExhausted, "cpu_bulk": errExhausted,
		"stack_recursion": errOverflow, "stack_frames": errOverflow,
		"mem_grow_bomb": nil, "mem_grow_once": nil, "mem_grow_wrap": nil, "table_grow_bomb": nil,
	} {
		t.Run(name, func(t *testing.T) {
			res := rewrite(t, hostile.Named(name).Bytes(), func(o *meter.Options) { o.MaxMemoryPages = memoryPages })
			k := &tank{slice: 1 << 20, budget: 64 << 20}
			m := start(t, res.Module, k)
			_, err := m.ExportedFunction("run").Call(context.Background())
			if want == nil && err != nil || want != nil && kind(err) != want.Error() {
				t.Fatalf("%v, want %v", err, want)
			}
			// Between two looks: one piece of a bulk instruction, or one function's straight code.
			most := int64(res.Stats.MaxOverrun) + meter.PieceBytes/8 + 300_000
			if -k.lowest > most {
				t.Errorf("it owed %d, more than %d", -k.lowest, most)
			}
		})
	}
}

// The module that froze the engine: calls alone, no loop. A collection, which waits for every
// goroutine to reach a safe point, ends while it runs.
func TestCallsAloneDoNotHoldUpTheCollector(t *testing.T) {
	res := rewrite(t, hostile.Named("cpu_call_ladder").Bytes())
	stop, running := make(chan struct{}), make(chan struct{}, 1)
	k := &tank{slice: 3_000_000, budget: 1 << 62}
	k.onRefuel = func() {
		select {
		case running <- struct{}{}:
		default:
		}
		select {
		case <-stop:
			k.budget = 0
		default:
			runtime.Gosched()
		}
	}
	m := start(t, res.Module, k)
	ended := make(chan error, 1)
	go func() {
		_, err := m.ExportedFunction("run").Call(context.Background())
		ended <- err
	}()
	<-running
	collected := make(chan struct{})
	go func() {
		for range 5 {
			runtime.GC()
		}
		close(collected)
	}()
	select {
	case <-collected:
	case <-time.After(30 * time.Second):
		t.Error("the collector did not end")
	}
	close(stop)
	select {
	case err := <-ended:
		if kind(err) != errExhausted.Error() {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the guest did not end")
	}
}

// What a run costs is a property of the run, not of how fuel is handed out.
func TestFuelDoesNotDependOnSlices(t *testing.T) {
	for _, row := range kernelRows {
		if row.inGo {
			continue
		}
		res := rewrite(t, handmade())
		var first int64
		for _, slice := range []int64{97, 1000, 1 << 20, 1 << 40} {
			k := &tank{slice: slice, budget: 1 << 62}
			m := start(t, res.Module, k)
			arg := min(row.arg, 12)
			for round := range 2 {
				before := k.used(m)
				if _, err := m.ExportedFunction(row.export).Call(context.Background(), arg); err != nil {
					t.Fatal(err)
				}
				used := k.used(m) - before
				if first == 0 {
					first = used
				}
				if used != first || used <= 0 {
					t.Errorf("%s in slices of %d, round %d: %d, before %d", row.export, slice, round, used, first)
				}
			}
		}
	}
}

// The same for a Go guest with a collector of its own.
func TestFuelOfAGoGuest(t *testing.T) {
	module := rewrite(t, kernels(t)).Module
	var first []int64
	for _, slice := range []int64{500_000, 3_000_000} {
		k := &tank{slice: slice, budget: 1 << 62}
		m := callee(t, module, config(), k)
		used := []int64{k.used(m)}
		for _, export := range []string{"sha256", "sort", "json"} {
			results, err := m.ExportedFunction(export).Call(context.Background(), 3)
			if err != nil || len(results) != 1 {
				t.Fatal(export, results, err)
			}
			used = append(used, k.used(m), int64(results[0]))
		}
		if first == nil {
			first = used
		}
		if fmt.Sprint(first) != fmt.Sprint(used) {
			t.Errorf("%v and %v", first, used)
		}
	}
}

// bulkModule has one function of three parameters on a memory of 64 pages.
func bulkModule(op ...[]byte) []byte {
	b := w.New()
	b.ExportFunc("run", b.Func(w.Types(w.I32, w.I32, w.I32), nil, nil, w.LocalGet(0), w.LocalGet(1), w.LocalGet(2), w.Cat(op...)))
	return b.Memory(64).ExportMemory().PassiveData(bytes.Repeat([]byte("segment."), 64<<10)).DataCount(1).Bytes()
}

var bulkOps = map[string][]byte{
	"copy": w.Op(0xfc, 10, 0, 0), "fill": w.Op(0xfc, 11, 0), "init": w.Op(0xfc, 8, 0, 0),
}

// S10: bulk instructions pay before they act: without fuel for the next piece nothing of it is
// written, and all before it is.
func TestBulkPaysFirst(t *testing.T) {
	for name, op := range bulkOps {
		t.Run(name, func(t *testing.T) {
			k := &tank{slice: 1, budget: 100}
			m := start(t, rewrite(t, bulkModule(op)).Module, k)
			memory := m.Memory()
			memory.Write(3<<20, bytes.Repeat([]byte{9}, 1<<19))
			_, err := m.ExportedFunction("run").Call(context.Background(), 0, 3<<20*b2u(name == "copy"), meter.PieceBytes)
			if kind(err) != errExhausted.Error() {
				t.Fatal(err)
			}
			if b, _ := memory.Read(0, meter.PieceBytes); !bytes.Equal(b, make([]byte, meter.PieceBytes)) {
				t.Error("it acted before it paid")
			}
			// Enough for one piece of two.
			k.budget, k.granted = meter.PieceBytes/8+1000, 0
			k.slice = k.budget
			fuelOf(m).Set(0)
			from := map[string]uint64{"copy": 3 << 20, "fill": 9, "init": 0}[name]
			_, err = m.ExportedFunction("run").Call(context.Background(), 0, from, 2*meter.PieceBytes)
			if kind(err) != errExhausted.Error() {
				t.Fatal(err)
			}
			first, _ := memory.Read(0, meter.PieceBytes)
			second, _ := memory.Read(meter.PieceBytes, meter.PieceBytes)
			if bytes.Count(first, []byte{0}) != 0 || !bytes.Equal(second, make([]byte, meter.PieceBytes)) {
				t.Error("the pieces are not one by one")
			}
		})
	}
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// In pieces or not, the bytes and the traps are the same: overlapping upward and downward, at
// the end of memory, past it, with lengths that wrap in 32 bits.
func TestBulkInPieces(t *testing.T) {
	const size = 64 << 16
	cases := [][3]uint64{
		{0, 5, 3 << 20},
		{5, 0, 3 << 20},
		{1 << 20, 0, 3 << 20},
		{0, 1 << 20, 3 << 20},
		{7, 7, 1 << 20},
		{size - meter.PieceBytes, 0, meter.PieceBytes},
		{0, size - meter.PieceBytes - 1, meter.PieceBytes + 1},
		{size, 0, 0},
		{size, 0, 1},
		{size + 1, 0, 0},
		{1, 0, size},
		{0, 1, size},
		{0, 0, 0xffffffff},
		{0xffffffff, 0, 0xffffffff},
		{16, 0, 0xfffffff0},
		{0, 100, 512 << 10},
		{0, 0, 512 << 10},
		{3, 1, 300_001},
		{size - 10, 0, 300_000},
	}
	ctx := context.Background()
	for name, op := range bulkOps {
		module := bulkModule(op)
		plain := callee(t, module, config(), endless())
		k := endless()
		metered := start(t, rewrite(t, module).Module, k)
		pattern := make([]byte, size)
		for i := range pattern {
			pattern[i] = byte(i * 7 >> 3)
		}
		for _, c := range cases {
			plain.Memory().Write(0, pattern)
			metered.Memory().Write(0, pattern)
			_, err1 := plain.ExportedFunction("run").Call(ctx, c[:]...)
			_, err2 := metered.ExportedFunction("run").Call(ctx, c[:]...)
			if kind(err1) != kind(err2) {
				t.Errorf("%s %v: %q and %q", name, c, kind(err1), kind(err2))
			}
			a, _ := plain.Memory().Read(0, size)
			b, _ := metered.Memory().Read(0, size)
			if !bytes.Equal(a, b) {
				t.Errorf("%s %v: the memories differ", name, c)
			}
		}
	}
}

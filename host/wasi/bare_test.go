package wasi_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// M29: a guest has no arguments, no environment and no directories, whatever the process has.
func TestNothingOfTheProcessIsVisible(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "canary")
	for _, sizes := range []string{"args_sizes_get", "environ_sizes_get"} {
		r := newRig(t)
		r.set32(0, 7)
		r.set32(4, 7)
		if errno := r.wasi(sizes, 0, 4); errno != 0 || r.u32(0) != 0 || r.u32(4) != 0 {
			t.Errorf("%s: %d %d %d", sizes, errno, r.u32(0), r.u32(4))
		}
	}
	r := newRig(t)
	for _, get := range []string{"args_get", "environ_get"} {
		if errno := r.wasi(get, 0, 100); errno != 0 {
			t.Errorf("%s: %d", get, errno)
		}
	}
	for fd := range uint64(20) {
		if errno := r.wasi("fd_prestat_get", fd, 0); errno != abi.WASIBadf {
			t.Errorf("prestat of %d: %d", fd, errno)
		}
	}
	if strings.Contains(string(r.mem), "canary") {
		t.Error("the canary is in guest memory")
	}
}

func TestWASIClock(t *testing.T) {
	for family, tick := range map[bool]uint64{true: 1e6, false: 1e3} {
		r := newRig(t, func(s *authority.Spec) { s.Boundary = family })
		for clock := range uint64(2) {
			if errno := r.wasi("clock_time_get", clock, 1, 0); errno != 0 || r.u64(0)%tick != 0 || r.u64(0) == 0 {
				t.Errorf("clock %d: %d, %d", clock, errno, r.u64(0))
			}
			if errno := r.wasi("clock_res_get", clock, 8); errno != 0 || r.u64(8) != tick {
				t.Errorf("resolution of %d: %d, %d", clock, errno, r.u64(8))
			}
		}
		if errno := r.wasi("clock_time_get", 2, 1, 0); errno != abi.WASIInval {
			t.Errorf("processor time: %d", errno)
		}
		if errno := r.wasi("clock_time_get", 0, 1, 1<<16-4); errno != abi.WASIFault {
			t.Errorf("outside memory: %d", errno)
		}
	}
}

// A runtime that is refused its randomness cannot go on; the budget is that of random.
func TestWASIRandom(t *testing.T) {
	r := newRig(t, func(s *authority.Spec) { s.Limits[abi.LimitRandomBytes] = 100 })
	r.ok(r.call("random", 0, 60))
	if errno := r.wasi("random_get", 0, 40); errno != 0 {
		t.Fatal(errno)
	}
	if errno := r.wasi("random_get", 1<<16, 1); errno != abi.WASIFault || r.inv.Over() != nil {
		t.Fatal(errno, r.inv.Over())
	}
	if r.wasi("random_get", 0, 1); r.inv.Over() == nil || r.inv.Over().Code != abi.CodeRandomLimit {
		t.Errorf("over: %v", r.inv.Over())
	}
}

// vectors writes an array of (pointer, length) at at.
func (r *rig) vectors(at uint32, pairs ...[2]uint32) (uint64, uint64) {
	for i, p := range pairs {
		r.set32(at+uint32(i)*8, p[0])
		r.set32(at+uint32(i)*8+4, p[1])
	}
	return uint64(at), uint64(len(pairs))
}

func TestFdWriteIsTheLog(t *testing.T) {
	r := newRig(t)
	copy(r.mem[1000:], "hello\nworld\n")
	ptr, n := r.vectors(0, [2]uint32{1000, 6}, [2]uint32{1006, 0}, [2]uint32{1006, 6})
	if errno := r.wasi("fd_write", 1, ptr, n, 500); errno != 0 || r.u32(500) != 12 {
		t.Errorf("%d, %d written", errno, r.u32(500))
	}
	if errno := r.wasi("fd_write", 2, ptr, n, 500); errno != 0 {
		t.Error(errno)
	}
	for _, fd := range []uint64{0, 3, 0xffff_ffff} {
		if errno := r.wasi("fd_write", fd, ptr, n, 500); errno != abi.WASIBadf {
			t.Errorf("descriptor %d: %d", fd, errno)
		}
	}
	logs := r.conclude().Receipt.Logs
	if len(logs) != 2 || logs[0].Text != `hello\nworld` || logs[0].Stream != "stdout" || logs[1].Stream != "stderr" {
		t.Errorf("%+v", logs)
	}
}

// The whole of one call is bounded: many vectors of the same bytes cost no more than a few.
func TestVectorBomb(t *testing.T) {
	r := newRig(t)
	r.mem = make(ram, 1<<20)
	pairs := make([][2]uint32, 1024)
	for i := range pairs {
		pairs[i] = [2]uint32{0, 1 << 20}
	}
	ptr, n := r.vectors(0, pairs...)
	if errno := r.wasi("fd_write", 1, ptr, n, 100); errno != 0 || r.u32(100) > 64<<10 {
		t.Errorf("%d, %d written", errno, r.u32(100))
	}
	for _, count := range []uint64{1025, 8192, 1 << 29, 0xffff_ffff} {
		if errno := r.wasi("fd_write", 1, 0, count, 100); errno != abi.WASIInval {
			t.Errorf("%d vectors: %d", count, errno)
		}
	}
	r.vectors(0, [2]uint32{1<<20 - 1, 2})
	if errno := r.wasi("fd_write", 1, 0, 1, 100); errno != abi.WASIFault {
		t.Errorf("a vector outside memory: %d", errno)
	}
	if n := len(r.conclude().Receipt.Logs); n != 1 {
		t.Errorf("%d records", n)
	}
}

func TestFdRead(t *testing.T) {
	r := newRig(t)
	r.set32(100, 9)
	if errno := r.wasi("fd_read", 0, 0, 1, 100); errno != 0 || r.u32(100) != 0 {
		t.Errorf("%d, %d read", errno, r.u32(100))
	}
	if errno := r.wasi("fd_read", 1, 0, 1, 100); errno != abi.WASIBadf {
		t.Error(errno)
	}
}

func TestFdstat(t *testing.T) {
	r := newRig(t)
	for i := range r.mem {
		r.mem[i] = 0xff
	}
	for fd := range uint64(3) {
		if errno := r.wasi("fd_fdstat_get", fd, 8); errno != 0 || r.mem[8] != 2 || r.u64(16) != 0 || r.u64(24) != 0 || r.mem[32] != 0xff {
			t.Errorf("descriptor %d: %d %v", fd, errno, r.mem[8:33])
		}
	}
	if errno := r.wasi("fd_fdstat_get", 3, 8); errno != abi.WASIBadf {
		t.Error(errno)
	}
}

// proc_exit ends the guest; code 0 after an answer is a return, everything else GUEST_EXIT.
func TestProcExit(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*rig)
		code   uint64
		want   abi.Code
	}{
		"0 after an output": {func(r *rig) { r.ok(r.call("output", `1`)) }, 0, ""},
		"0 after an error":  {func(r *rig) { r.ok(r.call("error", "MINE", "x")) }, 0, abi.CodeGuestError},
		"0 before":          {func(*rig) {}, 0, abi.CodeGuestExit},
		"2 after an output": {func(r *rig) { r.ok(r.call("output", `1`)) }, 2, abi.CodeGuestExit},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			c.before(r)
			r.wasi("proc_exit", c.code)
			if r.inv.Over() == nil {
				t.Fatal("the guest would go on")
			}
			o := r.inv.Conclude(context.Background(), r.inv.Over(), 0)
			if abi.Code(codeOf(o.Err)) != c.want || (c.want == "") != (string(o.Output) == "1") {
				t.Errorf("%v, %q", o.Err, o.Output)
			}
		})
	}
}

func codeOf(e *abi.Error) abi.Code {
	if e == nil {
		return ""
	}
	return e.Code
}

type sub struct {
	userdata uint64
	tag      byte
	clock    uint32
	timeout  time.Duration
	absolute bool
}

func (r *rig) subscribe(at uint32, subs ...sub) {
	for i, s := range subs {
		b := at + uint32(i)*48
		r.set64(b, s.userdata)
		r.mem[b+8] = s.tag
		r.set32(b+16, s.clock)
		r.set64(b+24, uint64(s.timeout))
		if s.absolute {
			r.mem[b+40] = 1
		}
	}
}

func TestPoll(t *testing.T) {
	r := newRig(t)
	r.subscribe(0, sub{userdata: 1, timeout: time.Hour}, sub{userdata: 2, timeout: time.Millisecond}, sub{userdata: 3, clock: 1, timeout: 2 * time.Millisecond})
	before := time.Now()
	if errno := r.wasi("poll_oneoff", 0, 1024, 3, 2048); errno != 0 || r.u32(2048) != 1 || r.u64(1024) != 2 {
		t.Errorf("%d, %d events, of %d", errno, r.u32(2048), r.u64(1024))
	}
	if slept := time.Since(before); slept < time.Millisecond {
		t.Errorf("slept %s", slept)
	}
	// A descriptor never becomes ready: badf at once, beside a clock that never comes.
	r.subscribe(0, sub{userdata: 1, timeout: time.Hour}, sub{userdata: 9, tag: 1})
	if errno := r.wasi("poll_oneoff", 0, 1024, 2, 2048); errno != 0 || r.u32(2048) != 1 || r.u64(1024) != 9 || r.mem[1024+8] != byte(abi.WASIBadf) || r.mem[1024+10] != 1 {
		t.Errorf("%d, %d events, %v", errno, r.u32(2048), r.mem[1024:1056])
	}
	// A point in time that has passed is due.
	r.subscribe(0, sub{userdata: 4, timeout: 1, absolute: true})
	if errno := r.wasi("poll_oneoff", 0, 1024, 1, 2048); errno != 0 || r.u32(2048) != 1 {
		t.Errorf("%d, %d events", errno, r.u32(2048))
	}
	for _, n := range []uint64{0, 65, 0xffff_ffff} {
		if errno := r.wasi("poll_oneoff", 0, 1024, n, 2048); errno != abi.WASIInval {
			t.Errorf("%d subscriptions: %d", n, errno)
		}
	}
	// What could not be answered does not sleep.
	r.subscribe(0, sub{timeout: time.Hour})
	for _, args := range [][]uint64{{1<<16 - 40, 0, 1, 2048}, {0, 1<<16 - 31, 1, 2048}} {
		if errno := r.wasi("poll_oneoff", args...); errno != abi.WASIFault {
			t.Errorf("%v: %d", args, errno)
		}
	}
}

// PF-D6: a sleep of an hour is as long as the invocation, and then the invocation is over.
func TestSleepEndsWithTheInvocation(t *testing.T) {
	for name, stop := range map[string]func() (context.Context, context.CancelFunc){
		"deadline": func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), 5*time.Millisecond)
		},
		"cancel": func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(5*time.Millisecond, cancel)
			return ctx, cancel
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			ctx, cancel := stop()
			defer cancel()
			r.subscribe(0, sub{timeout: time.Hour})
			done := make(chan struct{})
			go func() {
				defer close(done)
				boundary.Foreign(ctx, r.inv, native["poll_oneoff"], r.mem, []uint64{0, 1024, 1, 2048})
			}()
			select {
			case <-done:
			case <-soon(t).Done():
				t.Fatal("still asleep")
			}
			if over := r.inv.Over(); over == nil || (over.Code != abi.CodeDeadline && over.Code != abi.CodeCanceled) {
				t.Errorf("over: %v", over)
			}
		})
	}
}

// Runtimes initialise with WASI, and only with it.
func TestWASIAnswersAnInitialiser(t *testing.T) {
	limits := abi.DefaultLimits()
	inv := boundary.NewTrial(&limits)
	inv.Enter(boundary.PhaseInitialize)
	r := &rig{t: t, inv: inv, mem: make(ram, 1<<16), doors: native, ctx: context.Background()}
	for name, args := range map[string][]uint64{
		"args_sizes_get": {0, 4}, "environ_sizes_get": {0, 4}, "clock_time_get": {0, 1, 8}, "random_get": {0, 16}, "sched_yield": nil,
	} {
		if errno := r.wasi(name, args...); errno != 0 {
			t.Errorf("%s: %d", name, errno)
		}
	}
	if inv.Over() != nil {
		t.Error(inv.Over())
	}
}

// Every row of the subset has a door, and so has every row of the other sets.
func TestDoorsAreTheTable(t *testing.T) {
	if len(native) != len(abi.NativeWASI()) || len(bare) != len(abi.WASIFunctions()) || len(all) != len(bare) {
		t.Errorf("%d, %d and %d doors", len(native), len(bare), len(all))
	}
}

// S10: WASI is priced in the same measure as host calls.
func TestWASIIsPriced(t *testing.T) {
	for _, fn := range abi.WASIFunctions() {
		r := rigOf(t, all, "{}", boundary.Services{}, func(s *authority.Spec) { s.Limits[abi.LimitFuel] = int64(fn.Price.Base) - 1 })
		r.wasi(fn.Name, make([]uint64, len(fn.Params))...)
		if over := r.inv.Over(); over == nil || over.Code != abi.CodeFuelExhausted {
			t.Errorf("%s: %v", fn.Name, over)
		}
	}
	r := newRig(t)
	r.wasi("random_get", 0, 4096)
	if o := r.conclude(); o.Receipt.Fuel != 200+4*200 {
		t.Errorf("%d fuel", o.Receipt.Fuel)
	}
}

// What runtimes call without asking whether it is worth it allocates nothing.
func TestWASIAllocatesNothing(t *testing.T) {
	for name, args := range map[string][]uint64{
		"clock_time_get": {0, 0, 64}, "random_get": {64, 8}, "sched_yield": {}, "fd_read": {0, 0, 0, 64}, "environ_sizes_get": {64, 72},
	} {
		r := newRig(t, func(s *authority.Spec) { s.Limits[abi.LimitFuel], s.Limits[abi.LimitRandomBytes] = 1<<55, 1<<40 })
		ctx, end := r.inv.Within(context.Background(), time.Now().Add(time.Hour))
		defer end()
		mem, door := boundary.Memory(r.mem), native[name]
		call := func() uint64 { return boundary.Foreign(ctx, r.inv, door, mem, args) }
		if got := call(); got != 0 {
			t.Fatalf("%s: %d", name, got)
		}
		if n := testing.AllocsPerRun(1000, func() { call() }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func FuzzNative(f *testing.F) {
	f.Add("fd_write", uint64(1), uint64(0), uint64(2), uint64(8), []byte("\x00\x00\x00\x00\x08\x00\x00\x00"))
	f.Add("poll_oneoff", uint64(0), uint64(64), uint64(1), uint64(8), make([]byte, 200))
	f.Fuzz(func(t *testing.T, name string, a, b, c, d uint64, memory []byte) {
		if native[name] == nil {
			name = abi.NativeWASI()[a%uint64(len(abi.NativeWASI()))].Name
		}
		r := newRig(t)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		boundary.Foreign(ctx, r.inv, native[name], ram(memory), []uint64{a, b, c, d})
		if over := r.inv.Over(); over != nil && over.Code == abi.CodeInternal {
			t.Fatal(over)
		}
	})
}

package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/engine"
	"github.com/ecotone-dev/ecotone/host/memory"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
	"github.com/ecotone-dev/ecotone/testdata/hostile"
)

func needsImages(t testing.TB) {
	if !memory.Supported() {
		t.Skip("no images on this platform")
	}
}

// S12, promise 3: whatever a guest leaves and however it ends, the next invocation finds what
// the initialiser left and nothing else, in the same organisation and in another.
func TestLeakHunter(t *testing.T) {
	needsImages(t)
	image := keepable(t, hunter())
	p, e := pooled(t)
	reused := map[string]bool{"leave": true, "leave_status": true, "leave_log": true, "leave_exit": true, "leave_fetch": true}
	for export, want := range map[string]string{
		"leave": "1", "leave_status": "GUEST_ERROR", "leave_log": "1", "leave_grown": "1", "leave_trap": "GUEST_TRAP",
		"leave_exit": "1", "leave_loop": "DEADLINE_EXCEEDED", "leave_fetch": "1",
	} {
		t.Run(export, func(t *testing.T) {
			for range 3 {
				for _, org := range []string{"acme", "other"} {
					before := p.Stats().Discarded
					o := e.Run(patience(t), image, invocation{export: export, spec: func(s *authority.Spec) {
						in("acme")(s)
						if export == "leave_loop" {
							s.Deadline = time.Now().Add(20 * time.Millisecond)
						}
					}, fetch: func(context.Context) (boundary.Result, error) {
						return boundary.Result{Body: []byte("canary")}, nil
					}}.make())
					if got := describe(o); got != want {
						t.Fatalf("%s: %v", got, o.Cause)
					}
					if got := p.Stats().Discarded == before; got != reused[export] {
						t.Errorf("put back: %t", got)
					}
					for _, look := range []struct{ export, want string }{{"look", "0"}, {"size", "2"}} {
						if got := describe(e.Run(patience(t), image, invocation{export: look.export, spec: in(org)}.make())); got != look.want {
							t.Errorf("%s in %s: %s", look.export, org, got)
						}
					}
				}
			}
		})
	}
	if s := p.Stats(); s.Frozen != 2 {
		t.Errorf("two organisations, %d images", s.Frozen)
	}
}

// The hostile modules that keep state answer from a pool what they answer from new instances,
// in every round and organisation. Where an instance cannot be put back, the reason is known.
func TestHostileStateFromAPool(t *testing.T) {
	needsImages(t)
	_, e := pooled(t)
	fresh := engine.New(engine.Fresh{})
	never := map[string]bool{
		"state_table": true, "state_table_grow": true, "state_passive": true, "state_elem_drop": true, "state_init_table": true,
	}
	rows := 0
	for _, m := range hostile.At(hostile.Invoke) {
		if !strings.HasPrefix(m.Name, "state_") {
			continue
		}
		rows++
		image := keepable(t, m.Bytes())
		if got := image.FreshBecause() != ""; got != never[m.Name] {
			t.Errorf("%s: fresh because %q", m.Name, image.FreshBecause())
		}
		for range 3 {
			for i, step := range m.Calls {
				for _, org := range []string{"acme", "other"} {
					i2 := invocation{export: "run", input: step.Input, spec: in(org)}
					want := describe(fresh.Run(patience(t), image, i2.make()))
					if got := describe(e.Run(patience(t), image, i2.make())); got != want || got != step.Output {
						t.Errorf("%s, step %d: %s from a pool, %s new, want %s", m.Name, i, got, want, step.Output)
					}
				}
			}
		}
	}
	if rows != 12 {
		t.Errorf("%d rows", rows)
	}
}

// What cannot be put back is said, and served by new instances.
func TestFreshBecause(t *testing.T) {
	needsImages(t)
	global := func(init ...[]byte) func(*w.Builder) {
		return func(b *w.Builder) { b.Global(init[0][0], true, init[1]) }
	}
	for name, c := range map[string]struct {
		build func(*w.Builder)
		want  string
	}{
		"nothing":     {func(*w.Builder) {}, ""},
		"a number":    {global([]byte{w.I64}, w.I64Const(1)), ""},
		"a vector":    {global([]byte{w.V128}, w.Cat(w.Op(0xfd, 12), make([]byte, 16))), "v128"},
		"a reference": {global([]byte{w.FuncRef}, w.Op(0xd0, 0x70)), "funcref"},
		"memory.init": {func(b *w.Builder) {
			b.PassiveData([]byte("x")).DataCount(1)
			b.Func(nil, nil, nil, w.I32Const(0), w.I32Const(0), w.I32Const(0), w.Op(0xfc, 8, 0, 0))
		}, "memory.init"},
		"ref.func": {func(b *w.Builder) {
			f := b.Func(nil, nil, nil)
			b.Table(w.FuncRef, 1)
			b.Elem(0, f)
			b.Func(nil, nil, nil, w.Op(0xd2, byte(f)), w.Op(w.OpDrop))
		}, "ref.func"},
		"a table it reads": {func(b *w.Builder) {
			f := b.Func(nil, nil, nil)
			b.Table(w.FuncRef, 1)
			b.Elem(0, f)
			b.Func(nil, nil, nil, w.I32Const(0), w.CallIndirect(b.Type(nil, nil), 0))
		}, ""},
	} {
		b := w.New()
		b.Memory(1).ExportMemory()
		c.build(b)
		b.Capability("run", w.I32Const(7))
		image := keepable(t, b.Bytes())
		p, e := pooled(t)
		for range 3 {
			if o := e.Run(patience(t), image, invocation{export: "run"}.make()); o.Err == nil || o.Err.Message != "the capability returned 7" {
				t.Errorf("%s: %v", name, o.Err)
			}
		}
		if why := image.FreshBecause(); (why == "") != (c.want == "") || !strings.Contains(why, c.want) {
			t.Errorf("%s: %q", name, why)
		}
		if idle := p.Stats().Idle; (idle == 1) != (c.want == "") {
			t.Errorf("%s: %d idle", name, idle)
		}
	}
	silent := load(t, hunter())
	if silent.FreshBecause() == "" {
		t.Error("an image of which nothing was said is kept")
	}
}

// drawer is a module whose initialiser draws a random word; its capability answers its low
// digits, then changes it.
func drawer(asks string) []byte {
	b := w.New()
	output := b.Host("output")
	var init [][]byte
	switch asks {
	case "random_get":
		init = [][]byte{w.I32Const(100), w.I32Const(8), w.Call(b.WASI(asks)), w.Op(w.OpDrop)}
	case "clock_time_get":
		init = [][]byte{w.I32Const(0), w.I64Const(0), w.I32Const(100), w.Call(b.WASI(asks)), w.Op(w.OpDrop)}
	case "fd_write":
		init = [][]byte{w.I32Const(1), w.I32Const(100), w.I32Const(0), w.I32Const(120), w.Call(b.WASI(asks)), w.Op(w.OpDrop)}
	}
	b.ExportFunc("_initialize", b.Func(nil, nil, nil, init...))
	// Eight decimal digits of the word, each a byte modulo 10, behind a leading 1.
	body := [][]byte{w.I32Const(200), w.I32Const('1'), w.Store8(0)}
	for n := range uint32(8) {
		body = append(body, w.I32Const(0), w.I32Const(0), w.Load8(100+n), w.I32Const(10), w.Op(0x70), w.I32Const('0'), w.Op(w.OpI32Add), w.Store8(201+n))
	}
	body = append(body, w.I32Const(100), w.I32Const(1), w.Store32(0), w.I32Const(200), w.I32Const(9), w.Call(output), w.Op(w.OpDrop), w.I32Const(0))
	b.Capability("run", body...)
	return b.Memory(1).ExportMemory().Bytes()
}

// S13: what an initialiser drew is in no second invocation, unless the author said it may be;
// then it is in no other organisation, and not for long.
func TestFrozenRandomness(t *testing.T) {
	needsImages(t)
	draw := func(e *engine.Engine, image *engine.Image, org string) string {
		return describe(e.Run(patience(t), image, invocation{export: "run", spec: in(org)}.make()))
	}
	t.Run("by default", func(t *testing.T) {
		image, seen := keepable(t, drawer("random_get")), map[string]bool{}
		_, e := pooled(t)
		for n := range 100 {
			seen[draw(e, image, []string{"acme", "other"}[n%2])] = true
		}
		if len(seen) < 99 { // eight digits of ten values: 100 draws collide once in 20,000
			t.Errorf("100 invocations, %d values", len(seen))
		}
		if why := image.FreshBecause(); !strings.Contains(why, "random_get") {
			t.Errorf("%q", why)
		}
	})
	t.Run("seeded", func(t *testing.T) {
		image, seen := keepable(t, drawer("random_get"), seeded), map[string]map[string]bool{"acme": {}, "other": {}}
		p, e := pooled(t, func(o *engine.PoolOptions) { o.SeedLife = time.Hour })
		for n := range 100 {
			org := []string{"acme", "other"}[n%2]
			seen[org][draw(e, image, org)] = true
		}
		if len(seen["acme"]) != 1 || len(seen["other"]) != 1 {
			t.Errorf("%v", seen)
		}
		for v := range seen["acme"] {
			if seen["other"][v] {
				t.Errorf("two organisations, one seed: %s", v)
			}
		}
		if s := p.Stats(); s.Frozen != 2 || s.Made != 2 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("remade", func(t *testing.T) {
		image, seen := keepable(t, drawer("random_get"), seeded), map[string]bool{}
		p, e := pooled(t, func(o *engine.PoolOptions) { o.SeedLife = time.Nanosecond })
		for range 10 {
			seen[draw(e, image, "acme")] = true
		}
		if len(seen) < 10 || p.Stats().Frozen != 10 {
			t.Errorf("%d values, %+v", len(seen), p.Stats())
		}
	})
	for asks, frozen := range map[string]bool{"clock_time_get": true, "fd_write": false} {
		image := keepable(t, drawer(asks), seeded)
		p, e := pooled(t)
		for range 3 {
			draw(e, image, "acme")
		}
		if (p.Stats().Frozen == 1) != frozen || (image.FreshBecause() == "") != frozen {
			t.Errorf("%s: %+v, %q", asks, p.Stats(), image.FreshBecause())
		}
		if plain := keepable(t, drawer(asks)); true {
			limits := abi.DefaultLimits()
			if err := e.Trial(patience(t), plain, &limits, time.Minute); err != nil || !strings.Contains(plain.FreshBecause(), asks) {
				t.Errorf("%s: a trial says %q, %v", asks, plain.FreshBecause(), err)
			}
		}
	}
}

// S1, S7: 64 at a time, of two organisations and several ends; each is answered with its own
// bytes, and every instance lent is what it should be.
func TestPooledAtOnce(t *testing.T) {
	needsImages(t)
	for name, pages := range hunters {
		t.Run(name, func(t *testing.T) { pooledAtOnce(t, hunterOf(pages)) })
	}
}

func pooledAtOnce(t *testing.T, module []byte) {
	image := keepable(t, module)
	p, e := pooled(t, func(o *engine.PoolOptions) { o.Retire = 20 })
	ctx := patience(t)
	var wg sync.WaitGroup
	for worker := range 64 {
		wg.Go(func() {
			org := []string{"acme", "other"}[worker%2]
			for round := range 10 {
				switch worker % 8 {
				case 5:
					e.Run(ctx, image, invocation{export: "leave_trap", spec: in(org)}.make())
				case 6:
					e.Run(ctx, image, invocation{export: "leave_grown", spec: in(org)}.make())
				case 7:
					brief, cancel := context.WithTimeout(ctx, time.Millisecond)
					e.Run(brief, image, invocation{export: "leave_loop", spec: in(org)}.make())
					cancel()
				default:
					e.Run(ctx, image, invocation{export: "leave", spec: in(org)}.make())
				}
				canary := fmt.Sprintf(`{"worker":%d,"round":%d,"pad":"%s"}`, worker, round, strings.Repeat("x", worker*32))
				if got := describe(e.Run(ctx, image, invocation{input: canary, spec: in(org)}.make())); got != canary {
					t.Errorf("%s was answered with %s", canary, got)
				}
				if got := describe(e.Run(ctx, image, invocation{export: "look", spec: in(org)}.make())); got != "0" {
					t.Errorf("worker %d found %s", worker, got)
				}
			}
		})
	}
	wg.Wait()
	if s := p.Stats(); s.Made == s.Discarded || s.Idle == 0 {
		t.Errorf("nothing was kept: %+v", s)
	}
}

// S1: a guest sits in a host call that ignores its context; the invocation is cancelled, another
// organisation runs meanwhile and afterwards, and finds nothing, 1,000 times.
func TestCancelledInAHostCallOfAPool(t *testing.T) {
	needsImages(t)
	for name, pages := range hunters {
		t.Run(name, func(t *testing.T) { cancelledInAHostCall(t, hunterOf(pages)) })
	}
}

func cancelledInAHostCall(t *testing.T, module []byte) {
	rounds := 1000
	if testing.Short() {
		rounds = 50
	}
	image := keepable(t, module)
	_, e := pooled(t)
	ctx := patience(t)
	look := func(org string) {
		if got := describe(e.Run(ctx, image, invocation{export: "look", spec: in(org)}.make())); got != "0" {
			t.Errorf("%s found %s", org, got)
		}
	}
	for range rounds {
		entered, leave := make(chan struct{}), make(chan struct{})
		run, cancel := context.WithCancelCause(ctx)
		outcome := make(chan boundary.Outcome)
		go func() {
			outcome <- e.Run(run, image, invocation{export: "leave_fetch", fetch: func(context.Context) (boundary.Result, error) {
				close(entered)
				<-leave
				return boundary.Result{Body: bytes.Repeat([]byte{0xCC}, 1<<10)}, nil
			}}.make())
		}()
		<-entered
		cancel(abi.Errorf(abi.CodeGrantRevoked, "withdrawn"))
		look("other")
		close(leave)
		look("other")
		if o := <-outcome; o.Err == nil || o.Err.Code != abi.CodeGrantRevoked || o.Output != nil {
			t.Fatalf("%v, %q", o.Err, o.Output)
		}
		look("acme")
		if t.Failed() {
			return
		}
	}
}

// A cancellation that comes as the call returns reaches nobody else.
func TestLateCancellation(t *testing.T) {
	needsImages(t)
	image := keepable(t, hunter())
	_, e := pooled(t)
	for n := range 2000 {
		ctx, cancel := context.WithCancel(patience(t))
		go func() {
			for range n % 50 * 20 {
				runtime.Gosched()
			}
			cancel()
		}()
		e.Run(ctx, image, invocation{input: `1`}.make())
		if got := describe(e.Run(context.Background(), image, invocation{input: `2`}.make())); got != "2" {
			t.Fatalf("round %d: %s", n, got)
		}
		cancel()
	}
}

// S12: an instance that differs in one byte, one global or its length is not lent.
func TestVerifyAtCheckout(t *testing.T) {
	needsImages(t)
	image := keepable(t, hunter())
	p := engine.NewPooled(engine.PoolOptions{Verify: true})
	defer p.Close()
	e := engine.New(p)
	for n, spoil := range []func(api.Module, []api.MutableGlobal){
		func(m api.Module, _ []api.MutableGlobal) { m.Memory().WriteByte(2<<16-1, 1) },
		func(m api.Module, _ []api.MutableGlobal) { m.Memory().WriteByte(512, 8) },
		func(_ api.Module, g []api.MutableGlobal) { g[3].Set(0) },
		func(m api.Module, _ []api.MutableGlobal) { m.Memory().Grow(1) },
	} {
		if got := describe(e.Run(patience(t), image, invocation{export: "leave"}.make())); got != "1" {
			t.Fatal(got)
		}
		if p.Tamper(spoil) != 1 {
			t.Fatal("nothing is idle")
		}
		if got := describe(e.Run(patience(t), image, invocation{export: "look"}.make())); got != "0" {
			t.Errorf("spoil %d: found %s", n, got)
		}
		if got := p.Stats().Mismatches; got != int64(n+1) {
			t.Errorf("spoil %d: %d mismatches", n, got)
		}
	}
}

// S9: organisation, digest, link set, limits and family each have instances of their own, and
// what was made under more memory never serves under less.
func TestInstancesBelongToOneKey(t *testing.T) {
	needsImages(t)
	image := keepable(t, hunter())
	p, e := pooled(t)
	for n, change := range []func(*authority.Spec){
		func(*authority.Spec) {},
		func(s *authority.Spec) { s.Org = "other" },
		func(s *authority.Spec) { s.Digest = "ff" },
		func(s *authority.Spec) { s.Reach = abi.ReachOwner },
		func(s *authority.Spec) { s.Workspace = "" },
		func(s *authority.Spec) { s.Limits[abi.LimitMemoryBytes] = 2 << 16 },
		func(s *authority.Spec) { s.Boundary = true },
	} {
		for range 3 {
			if got := describe(e.Run(patience(t), image, invocation{export: "leave", spec: change}.make())); got != "1" {
				t.Fatal(n, got)
			}
		}
		if s := p.Stats(); s.Made != int64(n+1) || s.Idle != n+1 {
			t.Errorf("key %d: %+v", n, s)
		}
	}
	o := e.Run(patience(t), image, invocation{export: "leave_grown", spec: func(s *authority.Spec) { s.Limits[abi.LimitMemoryBytes] = 2 << 16 }}.make())
	if o.Receipt.PeakMemory != 2<<16 {
		t.Errorf("%d bytes under a limit of two pages", o.Receipt.PeakMemory)
	}
}

// Over the budget the organisation that takes most gives first.
func TestBudgetIsFair(t *testing.T) {
	needsImages(t)
	image := keepable(t, hunter())
	const each = 128<<10 + 160<<10 // image; instance with what it wrote
	p, e := pooled(t, func(o *engine.PoolOptions) { o.Bytes = 4 * each })
	run := func(org string, limit int64) {
		if got := describe(e.Run(patience(t), image, invocation{export: "leave", spec: func(s *authority.Spec) {
			s.Org, s.Limits[abi.LimitHostCalls] = org, limit
		}}.make())); got != "1" {
			t.Fatal(got)
		}
	}
	run("small", 100)
	for n := range 30 {
		run("large", 100+int64(n)) // a key each
	}
	st := p.Stats()
	if st.Bytes > 4*each {
		t.Errorf("over the budget: %+v", st)
	}
	made := st.Made
	if run("small", 100); p.Stats().Made != made {
		t.Error("the small organisation lost its instance to the large one")
	}
	if p.OrgBytes("small") < each/2 {
		t.Errorf("small has %d", p.OrgBytes("small"))
	}
}

func TestIdleInstancesGo(t *testing.T) {
	needsImages(t)
	image := keepable(t, hunter())
	p, e := pooled(t, func(o *engine.PoolOptions) { o.Idle = 20 * time.Millisecond })
	e.Run(patience(t), image, invocation{export: "leave"}.make())
	for p.Stats().Bytes > 0 {
		if patience(t).Err() != nil {
			t.Fatalf("still there: %+v", p.Stats())
		}
		time.Sleep(5 * time.Millisecond)
	}
	if got := describe(e.Run(patience(t), image, invocation{export: "look"}.make())); got != "0" {
		t.Error(got)
	}
}

// What nobody uses is there for as long as PoolOptions.Idle says, and with the first look after that it
// is gone: the instance, and the image it was put back to.
func TestIdleIsKept(t *testing.T) {
	needsImages(t)
	image := keepable(t, hunter())
	p, e := pooled(t, func(o *engine.PoolOptions) { o.Idle = 10 * time.Hour })
	e.Run(patience(t), image, invocation{export: "leave"}.make())
	p.Shrink(1) // when it was put back
	now := time.Now()
	p.Tidy(now)
	p.Tidy(now.Add(9 * time.Hour))
	if s := p.Stats(); s.Idle != 1 || s.Bytes == 0 {
		t.Errorf("after nine hours: %+v", s)
	}
	p.Tidy(now.Add(10 * time.Hour))
	if s := p.Stats(); s.Idle != 0 || s.Bytes != 0 {
		t.Errorf("after ten hours: %+v", s)
	}
}

// S11: 10,000 invocations that write all they have, with retirement: mappings, descriptors, heap
// and what the pool says it has stay what they were.
func TestPooledMemoryIsFlat(t *testing.T) {
	needsImages(t)
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	image := keepable(t, hunter())
	p, e := pooled(t, func(o *engine.PoolOptions) { o.Retire = 500; o.Verify = false })
	count := func() (n [4]int64) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		maps, _ := os.ReadFile("/proc/self/maps")
		fds, _ := os.ReadDir("/proc/self/fd")
		return [4]int64{int64(bytes.Count(maps, []byte("ecotone-image"))), int64(len(fds)), int64(m.HeapAlloc >> 20), p.Stats().Bytes}
	}
	many := func(n int) {
		for i := range n {
			export := "leave"
			if i%1000 == 999 {
				export = "leave_trap"
			}
			e.Run(context.Background(), image, invocation{export: export}.make())
		}
		e.Run(context.Background(), image, invocation{export: "leave"}.make())
		p.Shrink(1)
	}
	many(1000)
	before := count()
	many(10_000)
	after := count()
	if after[0] != before[0] || after[1] > before[1] || after[2] > before[2]+4 || after[3] > before[3] {
		t.Errorf("mappings, descriptors, MiB of heap, bytes of the pool: %v before, %v after", before, after)
	}
	if s := p.Stats(); s.Discarded < 11+11 {
		t.Errorf("%+v", s)
	}
}

// An image closes with instances idle, and a pool with images open; both leave nothing.
func TestClosingInEitherOrder(t *testing.T) {
	needsImages(t)
	for _, first := range []string{"image", "pool"} {
		image := keepable(t, hunter())
		p := engine.NewPooled(engine.PoolOptions{})
		e := engine.New(p)
		e.Run(patience(t), image, invocation{export: "leave"}.make())
		if first == "image" {
			_ = image.Close(context.Background())
		} else {
			p.Close()
			if got := describe(e.Run(patience(t), image, invocation{export: "look"}.make())); got != "0" {
				t.Errorf("from a closed pool: %s", got)
			}
		}
		if s := p.Stats(); s.Bytes != 0 || s.Idle != 0 {
			t.Errorf("%s closed: %+v", first, s)
		}
		if first == "image" {
			p.Close()
		} else {
			_ = image.Close(context.Background())
		}
	}
}

func BenchmarkSmallGuest(b *testing.B) {
	for name, pool := range map[string]func() (engine.Pool, func()){
		"fresh": func() (engine.Pool, func()) { return engine.Fresh{}, func() {} },
		"pooled": func() (engine.Pool, func()) {
			p := engine.NewPooled(engine.PoolOptions{})
			return p, p.Close
		},
	} {
		b.Run(name, func(b *testing.B) {
			image := keepable(b, hunter())
			p, done := pool()
			defer done()
			e := engine.New(p)
			b.ReportAllocs()
			for b.Loop() {
				if o := e.Run(context.Background(), image, invocation{input: `{"a":1}`}.make()); o.Err != nil {
					b.Fatal(o.Err)
				}
			}
		})
	}
}

package host_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/engine"
)

// A budget for a few modules and many of them, many at once: each invocation answers with its own
// bytes, what is dropped while it runs is closed after it (S1), what is loaded and what is kept of it
// stays within the budget, and nothing is left at the end (PF-D20).
func TestMemoryBudget(t *testing.T) {
	const budget = 1 << 20
	for name, memory := range map[string]int64{"some": budget, "next to none": 1} {
		t.Run(name, func(t *testing.T) {
			pool := engine.NewPooled(engine.PoolOptions{Bytes: memory, Verify: true})
			mappings, descriptors := left()
			t.Cleanup(func() {
				pool.Close()
				if s := pool.Stats(); s.Mismatches != 0 || s.Bytes != 0 || s.Idle != 0 {
					t.Errorf("the pool at the end: %+v", s)
				}
				if m, d := left(); m > mappings || d > descriptors {
					t.Errorf("%d mappings and %d descriptors are left", m-mappings, d-descriptors)
				}
			})
			r := newRigOf(t, memory, pool)
			var digests []string
			for i := range 12 {
				digests = append(digests, r.admit(echo(fmt.Sprintf("biome-%d", i))))
			}
			for round := range 3 {
				var wg sync.WaitGroup
				for worker := range 8 {
					wg.Go(func() {
						for n := range 6 {
							canary := fmt.Sprintf(`"%d/%d/%d"`, round, worker, n)
							org := fmt.Sprintf("org-%d", worker%2)
							o := r.run(org, digests[(worker*5+n)%len(digests)], "run", canary)
							if string(o.Output) != canary {
								t.Errorf("%s was answered with %q, %v", canary, o.Output, o.Cause)
							}
						}
					})
				}
				wg.Wait()
				r.host.Loaded()
				s := r.host.Stats()
				if s.Images > 1 && s.ImageBytes > s.Most {
					t.Errorf("loaded: %+v", s)
				}
				if s.Images < 1 || s.Images > 5 {
					t.Errorf("%d images of some 150 KiB are loaded", s.Images)
				}
				const frozen = 64 << 10 // of the module that stays whatever the budget
				if p := pool.Stats(); p.Bytes > max(memory, s.ImageBytes+frozen) {
					t.Errorf("kept: %+v, of it loaded: %d", p, s.ImageBytes)
				}
				if m, _ := left(); m-mappings > 100 {
					t.Errorf("%d mappings", m-mappings)
				}
			}
		})
	}
}

// left counts what images and instances have of the system: mappings and descriptors.
func left() (mappings, descriptors int) {
	if runtime.GOOS != "linux" {
		return 0, 0
	}
	maps, _ := os.ReadFile("/proc/self/maps")
	files, _ := os.ReadDir("/proc/self/fd")
	return bytes.Count(maps, []byte("ecotone-image")), len(files)
}

// The least recently used module goes first, and the first to come back is loaded again.
func TestLeastRecentlyUsedGoesFirst(t *testing.T) {
	r := newRig(t, 1<<20)
	var digests []string
	for i := range 8 {
		digests = append(digests, r.admit(echo(fmt.Sprintf("biome-%d", i))))
	}
	room := 0
	for _, d := range digests {
		if r.host.Room() {
			room++
		}
		if err := r.host.Warm(patience(t), "acme", d); err != nil {
			t.Fatal(err)
		}
		if err := r.host.Warm(patience(t), "acme", digests[0]); err != nil { // always in use
			t.Fatal(err)
		}
	}
	if room < 2 || room > 6 || r.host.Room() {
		t.Errorf("there was room for %d modules", room)
	}
	loads := r.shelf.gets()
	for _, again := range []int{0, 7, 6} {
		r.run("acme", digests[again], "run", `1`)
	}
	if n := r.shelf.gets() - loads; n != 0 {
		t.Errorf("%d of those used last were loaded again", n)
	}
	if r.run("acme", digests[1], "run", `1`); r.shelf.gets() == loads {
		t.Error("one of the first is still loaded")
	}
}

// PF-I3: many that want one module at once share one load.
func TestOneLoadForMany(t *testing.T) {
	r := newRig(t, 0)
	digest := r.admit(echo("one"))
	before := r.shelf.gets()
	var wg sync.WaitGroup
	for n := range 50 {
		wg.Go(func() {
			in := fmt.Sprint(n)
			if o := r.run("acme", digest, "run", in); string(o.Output) != in {
				t.Errorf("%q, %v", o.Output, o.Cause)
			}
		})
	}
	wg.Wait()
	if n := r.shelf.gets() - before; n != 1 {
		t.Errorf("%d loads", n)
	}
}

// PF-D2, PF-D4: a limit bites in the first call of an instance and in every later one, whichever pool it
// comes from, and leaves nothing to the next.
func TestLimitsBiteEveryTime(t *testing.T) {
	r := newRig(t, 0)
	digest := r.admit(echo("one"))
	for n := range 120 {
		if o := r.run("acme", digest, "run", fmt.Sprint(n)); string(o.Output) != fmt.Sprint(n) {
			t.Fatalf("call %d: %q, %v", n, o.Output, o.Cause)
		}
		if n != 1 && n != 2 && n != 100 && n < 110 {
			continue
		}
		for limit, code := range map[abi.Limit]abi.Code{
			abi.LimitFuel: abi.CodeFuelExhausted, abi.LimitMemoryBytes: abi.CodeMemoryLimit, abi.LimitWall: abi.CodeDeadline,
		} {
			o := r.run("acme", digest, "run", `1`, func(s *authority.Spec) { s.Limits[limit] = 0 })
			if o.Err == nil || o.Err.Code != code {
				t.Errorf("call %d: %v, not %s", n, o.Err, code)
			}
		}
	}
}

package invoke

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/share"
)

func slotsOf(running, waiting int64, weights map[string]int64) *slots {
	return newSlots(running, waiting, share.New(share.Options{Tokens: 1, Weights: weights}))
}

// now is a context that never waits: whoever has no place by now gives up.
func now(t testing.TB) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(abi.Errorf(abi.CodeDeadline, "at once"))
	return ctx
}

// One organisation that asks without end gets three quarters of the places to run and of those to
// wait, and every other one finds one of each.
func TestOneOrganisationCannotTakeAllSlots(t *testing.T) {
	const running, waiting = 64, 256
	s := slotsOf(running, waiting, nil)
	greedy := s.of("greedy")
	for n := range 48 {
		if _, refused := s.take(now(t), greedy); refused != nil {
			t.Fatalf("place %d: %v", n, refused)
		}
	}
	for n := range 192 {
		if _, refused := s.enter(greedy); refused != nil {
			t.Fatalf("place to wait %d: %v", n, refused)
		}
	}
	if _, refused := s.enter(greedy); refused == nil || refused.Code != abi.CodeQuotaExceeded {
		t.Errorf("one more: %v", refused)
	}
	for n := range 3 {
		if _, refused := s.take(now(t), s.of(fmt.Sprint("other", n))); refused != nil {
			t.Errorf("another organisation: %v", refused)
		}
	}
	// The next place is for who has fewest, not for who waits longest.
	var releases []func()
	for n := range 20 {
		if release, refused := s.take(now(t), s.of("other0")); refused == nil {
			releases = append(releases, release)
		} else if n < 3 {
			t.Fatal(refused)
		}
	}
	late, refused := s.enter(s.of("late"))
	if refused != nil {
		t.Fatal(refused)
	}
	for _, release := range releases {
		release()
	}
	select {
	case <-late.ready:
	default:
		t.Error("the last to come waits, and places were given back")
	}
}

// place is an invocation of the model: it waits or it has a place.
type place struct {
	t *tenant
	w *waiter // nil: it took the fast path
}

func (p place) has() bool {
	if p.w == nil {
		return true
	}
	select {
	case <-p.w.ready:
		return true
	default:
		return false
	}
}

// Whatever comes, goes and gives up: the counts are right, no place that somebody may have is free
// while they wait, within an organisation the first is first, and nobody is refused who is within
// what the table says.
func TestSlotsAreDividedProperly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		running, waiting := rapid.Int64Range(1, 20).Draw(rt, "running"), rapid.Int64Range(1, 20).Draw(rt, "waiting")
		s := slotsOf(running, waiting, map[string]int64{"org1": 1000})
		var places []place
		count := func(of *tenant) (run, wait int64) {
			for _, p := range places {
				switch {
				case of != nil && p.t != of:
				case p.has():
					run++
				default:
					wait++
				}
			}
			return run, wait
		}
		check := func() {
			run, wait := count(nil)
			free, waits := split(s.word.Load())
			if run+free != running || wait != waits || wait > waiting {
				rt.Fatalf("%d run, %d are free of %d; %d wait, %d are counted of %d", run, free, running, wait, waits, waiting)
			}
			seen := map[*tenant]bool{}
			for _, p := range places {
				run, wait := count(p.t)
				if run != p.t.running.Load() || int(wait) != len(p.t.queue) {
					rt.Fatalf("%d run and %d are counted, %d wait of %d", run, p.t.running.Load(), wait, len(p.t.queue))
				}
				if wait > 0 && fits(run, free) {
					rt.Fatalf("%d of %d places are free and one waits that may have one, with %d", free, running, run)
				}
				if !p.has() {
					seen[p.t] = true
				} else if seen[p.t] && p.w != nil {
					rt.Fatal("one that came later has a place")
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { check() },
			"come": func(rt *rapid.T) {
				tenant := s.of(fmt.Sprint("org", rapid.IntRange(0, 4).Draw(rt, "org")))
				free, waits := split(s.word.Load())
				run, wait := count(tenant)
				w, refused := s.enter(tenant)
				switch {
				case refused == nil:
					places = append(places, place{tenant, w})
				case wait == 0 && fits(run, free):
					rt.Fatalf("refused with %d places free and %d taken: %v", free, run, refused)
				case refused.Code == abi.CodeOverloaded && waits < waiting, refused.Code == abi.CodeQuotaExceeded && fits(wait, waiting-waits):
					rt.Fatalf("%v with %d of %d waiting, %d of this one", refused, waits, waiting, wait)
				}
			},
			"come fast": func(rt *rapid.T) {
				tenant := s.of(fmt.Sprint("org", rapid.IntRange(0, 4).Draw(rt, "org")))
				if _, refused := s.take(now(t), tenant); refused == nil {
					places = append(places, place{t: tenant})
				}
			},
			"end": func(rt *rapid.T) {
				if len(places) == 0 {
					rt.Skip()
				}
				i := rapid.IntRange(0, len(places)-1).Draw(rt, "which")
				p := places[i]
				if places = append(places[:i:i], places[i+1:]...); p.has() || !s.withdraw(p.t, p.w) {
					p.t.release()
				}
			},
		})
	})
}

// At once: never more than there are, none forgotten, all given back.
func TestSlotsAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	const running, waiting = 7, 1000
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s := slotsOf(running, waiting, nil)
	var runs atomic.Int64
	var wg sync.WaitGroup
	for n := range 32 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 1))
			tenant := s.of(fmt.Sprint("org", n%3))
			for range 500 {
				mine, stop := context.WithCancel(ctx)
				if random.IntN(3) == 0 {
					go stop()
				}
				if release, refused := s.take(mine, tenant); refused == nil {
					if n := runs.Add(1); n > running {
						t.Errorf("%d run", n)
					}
					if random.IntN(2) == 0 {
						time.Sleep(time.Microsecond)
					}
					runs.Add(-1)
					release()
				} else if refused.Code == abi.CodeOverloaded {
					t.Error(refused)
				}
				stop()
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		t.Fatal("one was forgotten")
	}
	if free, waits := split(s.word.Load()); free != running || waits != 0 || len(s.queued) != 0 {
		t.Errorf("%d of %d are free, %d wait", free, running, waits)
	}
}

// Nothing is taken from the heap, and no lock, while there are places.
func BenchmarkSlots(b *testing.B) {
	s := slotsOf(1<<20, 1, nil)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			release, refused := s.take(b.Context(), s.of("org"))
			if refused != nil {
				b.Fatal(refused)
			}
			release()
		}
	})
}

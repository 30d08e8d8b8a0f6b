package share

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// patience is for what would otherwise hang.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// whole fails the test unless every token is free and nobody waits.
func whole(t *testing.T, s *Scheduler, tokens int) {
	t.Helper()
	if w := s.word.Load(); int(free(w)) != tokens || waiting(w) != 0 || len(s.queued) != 0 {
		t.Errorf("%d of %d tokens are free, %d turns wait, %d organisations are queued", free(w), tokens, waiting(w), len(s.queued))
	}
}

// Whatever goroutines do at once, no more of them hold tokens than there are, none is forgotten
// in the queue, and every token comes back; those whose context ends while they wait included.
func TestTurnsAtOnce(t *testing.T) {
	const tokens, orgs, guests, rounds = 3, 5, 24, 400
	ctx := patience(t)
	s := New(Options{Tokens: tokens, Weights: map[string]int64{"a": 1, "b": MaxWeight}})
	var running, most atomic.Int64
	var wg sync.WaitGroup
	for n := range guests {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 7))
			var turn Turn
			turn.Begin(s.Org(string(rune('a' + n%orgs))))
			for range rounds {
				mine, cancel := context.WithCancel(ctx)
				if random.IntN(4) == 0 {
					go cancel()
				}
				for range 1 + random.IntN(4) {
					turn.Pass(mine)
					if !turn.Held() {
						if mine.Err() == nil {
							t.Error("neither a token nor an end")
						}
						break
					}
					now := running.Add(1)
					for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
					}
					turn.Spend(random.Int64N(Slice))
					running.Add(-1)
				}
				turn.Leave()
				cancel()
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		t.Fatal("a turn was forgotten")
	}
	if n := most.Load(); n > tokens {
		t.Errorf("%d computed at once with %d tokens", n, tokens)
	}
	whole(t, s, tokens)
}

// A turn that waits leaves when its context ends, without a token, and takes none with it.
func TestWaitingEndsWithItsContext(t *testing.T) {
	s := New(Options{})
	var holder, other, third Turn
	for _, turn := range []*Turn{&holder, &other, &third} {
		turn.Begin(s.Org("org"))
	}
	holder.Pass(patience(t))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() { ended <- other.Pass(ctx) }()
	for waiting(s.word.Load()) == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if waited := <-ended; !waited || other.Held() {
		t.Errorf("waited %v, has a token %v", waited, other.Held())
	}
	if holder.Pass(patience(t)) || !holder.Held() {
		t.Error("the holder made way for nobody")
	}
	holder.Leave()
	whole(t, s, 1)
	if third.Pass(patience(t)) || !third.Held() {
		t.Error("the token is gone")
	}
	third.Leave()
	third.Leave() // nothing
	whole(t, s, 1)
}

// A token that is handed to a turn whose context has ended goes on to the next.
func TestATokenForNobodyGoesOn(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // of two things that are true at once, either may be seen
		s := New(Options{})
		var holder, gone, next Turn
		for _, turn := range []*Turn{&holder, &gone, &next} {
			turn.Begin(s.Org("org"))
		}
		if holder.Claim() || !gone.Claim() || !next.Claim() {
			t.Fatal("one token, one holder")
		}
		holder.Leave() // to gone, which has not looked yet
		if gone.Await(ended); gone.Held() {
			gone.Leave()
		}
		if next.Await(patience(t)); !next.Held() {
			t.Fatal("the token is gone")
		}
		next.Leave()
		whole(t, s, 1)
		if len(gone.ready) > 0 {
			t.Fatal("a token is left for a turn that does not wait")
		}
	}
}

// Nobody is anybody's, and asks for nothing.
func TestNoShare(t *testing.T) {
	var none *Turn
	var zero Turn
	zero.Begin(nil)
	for _, turn := range []*Turn{none, &zero} {
		turn.Spend(1)
		if turn.Pass(t.Context()) || turn.Held() {
			t.Error("a turn that is nobody's has a token")
		}
		turn.Leave()
	}
}

// While there are tokens for all: two atomics on the way in, two on the way out, no allocation.
func BenchmarkUncontended(b *testing.B) {
	s := New(Options{Tokens: 1 << 20})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		var turn Turn
		turn.Begin(s.Org("org"))
		for pb.Next() {
			turn.Pass(context.Background())
			turn.Spend(20_000)
			turn.Leave()
		}
	})
}

// A slice's end while others wait: the token changes hands.
func BenchmarkHandedOn(b *testing.B) {
	s := New(Options{})
	b.ReportAllocs()
	var turns [2]Turn
	for i := range turns {
		turns[i].Begin(s.Org(string(rune('a' + i))))
	}
	turns[0].Claim()
	turns[1].Claim()
	for n := range b.N {
		from, to := &turns[n%2], &turns[(n+1)%2]
		from.Spend(Slice)
		from.Claim()
		<-to.ready
		to.hold()
	}
}

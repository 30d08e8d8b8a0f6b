package rate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func key(id string) Key { return Key{Kind: Subject, Org: "acme", Client: "p1", ID: id} }

// clock is a limiter's time, moved by hand.
type clock struct{ at atomic.Int64 }

func (c *clock) now() int64 { return c.at.Load() }

func take(t testing.TB, l Limiter, asks ...Ask) time.Duration {
	t.Helper()
	wait, err := l.Take(context.Background(), asks)
	if err != nil {
		t.Fatal(err)
	}
	return wait
}

// X40: a ceiling gives as many events as it says, then one at a time as they come back.
func TestCeiling(t *testing.T) {
	for _, limit := range []Limit{1, 3, 600, 6000, MaxPerHour} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			var c clock
			l := newLocal(c.now, MaxBuckets)
			n := min(int(limit), 10_000)
			for i := range n {
				if wait := take(t, l, Ask{key("u"), limit}); wait != 0 {
					t.Fatalf("event %d waits %v", i, wait)
				}
			}
			if n < int(limit) {
				return // it does not end within a test
			}
			wait := take(t, l, Ask{key("u"), limit})
			if want := time.Duration(limit.interval()); wait <= 0 || wait > want {
				t.Fatalf("event %d waits %v, want up to %v", n, wait, want)
			}
			c.at.Add(int64(wait) - 1)
			if take(t, l, Ask{key("u"), limit}) <= 0 {
				t.Error("an event came back too early")
			}
			c.at.Add(1)
			if wait := take(t, l, Ask{key("u"), limit}); wait != 0 {
				t.Errorf("after the wait it still waits %v", wait)
			}
		})
	}
}

// X40: nothing means unlimited.
func TestNothingIsUnlimited(t *testing.T) {
	l := NewLocal()
	for _, limit := range []Limit{0, -1, -1 << 63, MaxPerHour + 1} {
		if limit.Valid() || take(t, l, Ask{key("u"), limit}) <= 0 {
			t.Errorf("%d lets through", limit)
		}
	}
	for name, asks := range map[string][]Ask{
		"no bucket": nil, "a bucket without a kind": {{Key{Org: "acme"}, 5}}, "too many": make([]Ask, maxAsks+1),
	} {
		if _, err := l.Take(context.Background(), asks); !errors.Is(err, ErrAsk) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// PF-E3: keys are compared member by member, so that no name can be spelled to be another's.
func TestKeysDoNotRunTogether(t *testing.T) {
	l := NewLocal()
	keys := []Key{
		{Subject, "a", "b:c", "d"},
		{Subject, "a:b", "c", "d"},
		{Subject, "a", "b", "c:d"},
		{Client, "a", "b:c", "d"},
		{Subject, "a\x00b", "c", "d"},
		{Subject, "a", "b\x00c", "d"},
		{Grant, "a", "b:c", "d"},
	}
	for _, k := range keys {
		if take(t, l, Ask{k, 1}) != 0 {
			t.Errorf("%q shares a bucket", k)
		}
	}
}

// An event is taken from all buckets or from none, and a peek takes nothing.
func TestAllOrNothing(t *testing.T) {
	var c clock
	l := newLocal(c.now, MaxBuckets)
	client, subject := Ask{Key{Kind: Client, Org: "acme", Client: "p1"}, 10}, Ask{key("u"), 2}
	for range 2 {
		if take(t, l, client, subject) != 0 {
			t.Fatal("refused within the ceilings")
		}
	}
	for range 100 {
		if take(t, l, client, subject) == 0 {
			t.Fatal("allowed beyond the subject's ceiling")
		}
		if wait, err := l.Peek(context.Background(), []Ask{client}); wait != 0 || err != nil {
			t.Fatal("a refused event was taken from the client's bucket", wait, err)
		}
	}
	for i := range 8 {
		if take(t, l, client) != 0 {
			t.Fatalf("the client has %d events left, want 8", i)
		}
	}
	if take(t, l, client) == 0 {
		t.Error("the client's ceiling was exceeded")
	}
}

// Callers at the same time do not get more than the ceiling, nor less.
func TestConcurrent(t *testing.T) {
	var c clock
	l := newLocal(c.now, MaxBuckets)
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for range 100 {
				wait, err := l.Take(context.Background(), []Ask{{key(fmt.Sprint(g % 2)), 1000}, {Key{Kind: Client, Org: "acme"}, 300}})
				if err == nil && wait == 0 {
					allowed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if allowed.Load() != 300 {
		t.Errorf("%d events, want 300", allowed.Load())
	}
}

// X41, S11: the number of buckets is bounded. One that is full again makes room; when none is, the
// limiter says that it cannot tell, and those it knows go on being counted.
func TestBoundedBuckets(t *testing.T) {
	var c clock
	l := newLocal(c.now, shards*8)
	known := 0
	var full bool
	for i := range shards * 64 {
		wait, err := l.Take(context.Background(), []Ask{{key(fmt.Sprint(i)), 2}})
		switch {
		case errors.Is(err, ErrFull):
			full = true
		case err != nil || wait != 0:
			t.Fatal(wait, err)
		default:
			known++
		}
	}
	if !full || known > shards*8 {
		t.Fatalf("%d buckets are known, full = %v", known, full)
	}
	if take(t, l, Ask{key("0"), 2}) != 0 || take(t, l, Ask{key("0"), 2}) == 0 {
		t.Error("a known bucket is not counted as before")
	}
	c.at.Add(int64(time.Hour))
	for i := range shards {
		if take(t, l, Ask{key(fmt.Sprint("new", i)), 2}) != 0 {
			t.Fatal("no room although every bucket is full again")
		}
	}
}

// In any hour a bucket gives at most twice its ceiling (what it held and what came back), and over any
// time no more than what it held and what came back; a caller that waits as it was told is let through.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c clock
		l := newLocal(c.now, MaxBuckets)
		limit := Limit(rapid.Int64Range(1, 5000).Draw(t, "limit"))
		var allowed int64
		for range rapid.IntRange(1, 300).Draw(t, "events") {
			c.at.Add(rapid.Int64Range(0, 2*limit.interval()).Draw(t, "gap"))
			wait, err := l.Take(context.Background(), []Ask{{key("u"), limit}})
			if err != nil {
				t.Fatal(err)
			}
			if wait > 0 {
				c.at.Add(int64(wait))
				if again, err := l.Take(context.Background(), []Ask{{key("u"), limit}}); again != 0 || err != nil {
					t.Fatalf("told to wait %v, then %v", wait, again)
				}
			}
			allowed++
			if most := int64(limit) + c.now()/limit.interval() + 1; allowed > most {
				t.Fatalf("%d events by %v, at most %d", allowed, time.Duration(c.now()), most)
			}
		}
	})
}

// A ceiling that changes finds the bucket as it was.
func TestChangedCeiling(t *testing.T) {
	var c clock
	l := newLocal(c.now, MaxBuckets)
	for range 10 {
		take(t, l, Ask{key("u"), 10})
	}
	if take(t, l, Ask{key("u"), 5}) == 0 || take(t, l, Ask{key("u"), 1}) == 0 {
		t.Error("a lower ceiling gave what was used up")
	}
}

// The fast path is free of garbage.
func TestTakeDoesNotAllocate(t *testing.T) {
	l := NewLocal()
	asks := []Ask{{key("u"), MaxPerHour}, {Key{Kind: Client, Org: "acme", Client: "p1"}, MaxPerHour}}
	take(t, l, asks...)
	if n := testing.AllocsPerRun(100, func() { _, _ = l.Take(context.Background(), asks) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkTake(b *testing.B) {
	l := NewLocal()
	asks := []Ask{{key("u"), MaxPerHour}, {Key{Kind: Client, Org: "acme", Client: "p1"}, MaxPerHour}}
	b.ReportAllocs()
	for b.Loop() {
		if wait, err := l.Take(context.Background(), asks); wait != 0 || err != nil {
			b.Fatal(wait, err)
		}
	}
}

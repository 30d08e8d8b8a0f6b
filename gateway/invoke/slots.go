package invoke

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/share"
)

// slots are the places to run and to wait (LimitRunning, LimitWaiting), divided between
// organisations. A child runs in its parent's, so nesting cannot deadlock.
//
// An organisation may have three times as many places as it leaves free, and the last free one
// only when it has none: so whatever some do, there is one for who comes next. The same holds of
// the places to wait. A place that becomes free goes to the organisation that waits and has the
// fewest for its weight, and there to the invocation that came first.
//
// While nobody waits, taking and giving back touch no lock. A slot is not a processor: those are
// divided by [share.Scheduler], among the guests that have a slot.
type slots struct {
	shares  *share.Scheduler
	running int64 // places to run
	waiting int64 // places to wait

	tenants atomic.Pointer[map[string]*tenant] // replaced by a larger one, never changed
	word    atomic.Uint64                      // places that are free << 32 | invocations that wait

	mu     sync.Mutex // guards what follows, the tenants' queues, and replacing tenants
	queued []*tenant  // that have invocations waiting
	came   uint64
}

// tenant is an organisation and the places it has. Kept for good: there are as many as
// organisations that invoked anything.
type tenant struct {
	share   *share.Org
	running atomic.Int64
	queue   []*waiter // the first came first
	release func()
}

type waiter struct {
	came  uint64
	ready chan struct{} // closed when it has its place
}

func newSlots(running, waiting int64, shares *share.Scheduler) *slots {
	s := &slots{shares: shares, running: running, waiting: waiting}
	s.tenants.Store(&map[string]*tenant{})
	s.word.Store(uint64(running) << 32)
	return s
}

func (s *slots) of(org string) *tenant {
	if t := (*s.tenants.Load())[org]; t != nil {
		return t
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := (*s.tenants.Load())[org]; t != nil {
		return t
	}
	t := &tenant{share: s.shares.Org(org)}
	t.release = func() { s.give(t) }
	more := maps.Clone(*s.tenants.Load())
	more[org] = t
	s.tenants.Store(&more)
	return t
}

// fits reports whether an organisation that has some places may have one more, of those left.
func fits(has, left int64) bool {
	return left > 0 && (has == 0 || left > 1 && has < 3*left)
}

func split(word uint64) (free, waiting int64) { return int64(word >> 32), int64(uint32(word)) }

const (
	oneFree    = 1 << 32
	oneWaiting = 1
)

// take waits for a place as long as ctx lives; release gives it back.
func (s *slots) take(ctx context.Context, t *tenant) (release func(), refusal *abi.Error) {
	has := t.running.Add(1) - 1 // before the word, so that who finds no room for it sees it
	for {
		w := s.word.Load()
		if free, waiting := split(w); waiting > 0 || !fits(has, free) {
			break
		}
		if s.word.CompareAndSwap(w, w-oneFree) {
			return t.release, nil
		}
	}
	t.running.Add(-1)
	w, refusal := s.enter(t)
	if refusal != nil {
		return nil, refusal
	}
	select {
	case <-w.ready: // also when ctx has ended too
		return t.release, nil
	default:
	}
	select {
	case <-w.ready:
		return t.release, nil
	case <-ctx.Done():
	}
	if !s.withdraw(t, w) {
		t.release() // it was given one meanwhile
	}
	return nil, boundary.Ended(ctx)
}

// enter takes a place to wait, or to run if there is one by now, or refuses.
func (s *slots) enter(t *tenant) (*waiter, *abi.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.admit() // for one that looked while this one was counted among those that run
	w := &waiter{ready: make(chan struct{})}
	for {
		word := s.word.Load()
		free, waiting := split(word)
		if len(t.queue) == 0 && fits(t.running.Load(), free) {
			if s.word.CompareAndSwap(word, word-oneFree) {
				t.running.Add(1)
				close(w.ready)
				return w, nil
			}
			continue
		}
		if waiting >= s.waiting {
			return nil, abi.Errorf(abi.CodeOverloaded, "%d invocations may run and %d wait, and no place is free", s.running, s.waiting)
		}
		if n := int64(len(t.queue)); !fits(n, s.waiting-waiting) {
			return nil, abi.Errorf(abi.CodeQuotaExceeded, "%d invocations of this organisation wait; the other places to wait are for others", n).
				WithHint("have fewer in flight, or try again when some have ended")
		}
		if s.word.CompareAndSwap(word, word+oneWaiting) { // else a place was taken or given back meanwhile
			break
		}
	}
	s.came++
	w.came = s.came
	if len(t.queue) == 0 {
		s.queued = append(s.queued, t)
	}
	t.queue = append(t.queue, w)
	return w, nil
}

// give gives a place back, to one that waits if any may have it.
func (s *slots) give(t *tenant) {
	t.running.Add(-1) // before the word: who decides to wait must see either
	for {
		w := s.word.Load()
		if _, waiting := split(w); waiting > 0 {
			break
		}
		if s.word.CompareAndSwap(w, w+oneFree) {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.word.Add(oneFree)
	s.admit()
}

// admit gives the free places to those that wait, as far as they may have them.
func (s *slots) admit() {
	for {
		free, _ := split(s.word.Load())
		var best *tenant
		for _, t := range s.queued {
			if fits(t.running.Load(), free) && (best == nil || t.before(best)) {
				best = t
			}
		}
		if best == nil {
			return
		}
		w := best.queue[0]
		best.running.Add(1)
		s.word.Add(^uint64(oneFree + oneWaiting - 1)) // nobody else takes one while somebody waits
		s.remove(best, w)
		close(w.ready)
	}
}

// before reports whether t is next before other: it has fewer places for its weight.
func (t *tenant) before(other *tenant) bool {
	c := cmp.Compare(t.running.Load()*other.share.Weight(), other.running.Load()*t.share.Weight())
	return c < 0 || c == 0 && t.queue[0].came < other.queue[0].came
}

// withdraw gives up a place to wait. It reports false when there is a place to run instead.
func (s *slots) withdraw(t *tenant, w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(t.queue, w) {
		return false
	}
	s.remove(t, w)
	s.word.Add(^uint64(oneWaiting - 1))
	return true
}

func (s *slots) remove(t *tenant, w *waiter) {
	i := slices.Index(t.queue, w)
	if t.queue = slices.Delete(t.queue, i, i+1); len(t.queue) > 0 {
		return
	}
	t.queue = nil
	i = slices.Index(s.queued, t)
	s.queued = slices.Delete(s.queued, i, i+1)
}

// Package share divides the processors between organisations.
//
// A guest cannot be interrupted while it computes; it asks for fuel now and then, and only then
// can somebody else have its processor. So guests hold tokens, one for each processor there is
// for them. A [Turn] takes one to begin, is asked at every slice of fuel whether it must hand it
// on, and gives it back when the guest waits for something else or has ended.
//
// It promises start-time fair queueing with fuel as the currency: each organisation has a virtual
// time, which moves by the fuel it burns over its weight, and a token goes to the turn that waits
// whose organisation is furthest behind, the one that came first among equals. So organisations that
// always want more than they get burn fuel in proportion to their weights, each of them runs
// again after a bounded amount of the others' fuel, however many turns those have, and no token
// is idle while a turn waits. Turns of one organisation take each other's place slice by slice.
// Nobody saves: who comes, or comes back, begins no further behind than the last one that a token
// went to.
//
// While there are tokens for all, nothing here takes a lock: a turn touches its organisation's
// virtual time and one word. It refuses to know what a guest, an invocation or a limit is, and
// what time it is: waiting ends with the context.
package share

import (
	"maps"
	"sync"
	"sync/atomic"
)

// Weights of organisations.
const (
	DefaultWeight = 100
	MinWeight     = 1
	MaxWeight     = 10_000
)

// Slice is the most fuel a guest should burn between two looks at whether it must hand on its
// token: some 50 µs of what programs do, and 300 of a loop that does nothing, whose one unit of fuel takes
// as long as five of others. A look takes less than one. It is also how far the clock may lag.
const Slice = 500_000

// Options configure a [Scheduler].
type Options struct {
	Tokens  int              // guests that compute at once; less than 1 is 1
	Weights map[string]int64 // of organisations, held to MinWeight … MaxWeight; the others have DefaultWeight
}

// Scheduler hands out tokens. It is safe for concurrent use, has no goroutine and needs no end.
type Scheduler struct {
	weights map[string]int64
	// orgs is replaced by a larger map and never changed. Organisations are not forgotten: there are
	// as many as ran anything.
	orgs atomic.Pointer[map[string]*Org]

	word atomic.Uint64 // the tokens that are free, and the turns that wait: see word
	// clock is the virtual time at which a token was last taken, less at most a part of a slice.
	clock atomic.Int64

	mu     sync.Mutex // guards what follows, the queues of the organisations, and replacing orgs
	queued []*Org     // that have turns waiting, in no order: they are few
	came   uint64     // counts the turns that waited
}

// New makes a scheduler with all its tokens free.
func New(o Options) *Scheduler {
	s := &Scheduler{weights: make(map[string]int64, len(o.Weights))}
	for org, weight := range o.Weights {
		s.weights[org] = min(max(weight, MinWeight), MaxWeight)
	}
	s.orgs.Store(&map[string]*Org{})
	s.word.Store(uint64(max(o.Tokens, 1)) * oneFree)
	return s
}

// Org is one organisation's account. It is safe for concurrent use; nil has none and pays nothing.
type Org struct {
	s      *Scheduler
	weight int64
	// at is the organisation's virtual time. It is compared by difference only, and wraps.
	at atomic.Int64

	first, last *Turn // that wait, in the order they came; guarded by Scheduler.mu
}

// Org returns the account of an organisation, the same one for the same name.
func (s *Scheduler) Org(name string) *Org {
	if o := (*s.orgs.Load())[name]; o != nil {
		return o
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := (*s.orgs.Load())[name]; o != nil {
		return o
	}
	weight, set := s.weights[name]
	if !set {
		weight = DefaultWeight
	}
	o := &Org{s: s, weight: weight}
	more := maps.Clone(*s.orgs.Load())
	more[name] = o
	s.orgs.Store(&more)
	return o
}

// Weight is the organisation's weight.
func (o *Org) Weight() int64 { return o.weight }

// Debit moves the organisation's virtual time by fuel that was burnt for it, by a guest or by the
// host on its behalf. It does not wait: who owes is later at the next token.
func (o *Org) Debit(fuel int64) {
	if o == nil || fuel <= 0 {
		return
	}
	o.at.Add((fuel*DefaultWeight + o.weight - 1) / o.weight)
}

// hindsight is the most that an organisation may be ahead of the clock when it comes back. More is
// a virtual time that wrapped while the organisation was away.
const hindsight = 1 << 60

// catchUp brings an organisation that is behind the clock up to it.
func (o *Org) catchUp() {
	for {
		at, now := o.at.Load(), o.s.clock.Load()
		if ahead := at - now; ahead >= 0 && ahead < hindsight {
			return
		}
		if o.at.CompareAndSwap(at, now) {
			return
		}
	}
}

// took notes that a token went to an organisation. The clock is a cache line that all processors
// share, and so moves in steps.
func (s *Scheduler) took(o *Org) {
	const step = Slice / 8
	for {
		at, now := o.at.Load(), s.clock.Load()
		if at-now < step || s.clock.CompareAndSwap(now, at) {
			return
		}
	}
}

// word is the tokens that are free and the turns that wait, which are never both above 0: that is
// what makes a look at it enough, on the way in and on the way out. Fast paths change it only
// while no turn waits; from and to a turn that waits it changes under Scheduler.mu.
const (
	oneFree    = 1 << 32
	oneWaiting = 1
)

func free(word uint64) uint32    { return uint32(word >> 32) }
func waiting(word uint64) uint32 { return uint32(word) }

// take takes a free token.
func (s *Scheduler) take() bool {
	for {
		w := s.word.Load()
		if free(w) == 0 {
			return false
		}
		if s.word.CompareAndSwap(w, w-oneFree) {
			return true
		}
	}
}

// give makes a token free, unless a turn waits for it.
func (s *Scheduler) give() bool {
	for {
		w := s.word.Load()
		if waiting(w) > 0 {
			return false
		}
		if s.word.CompareAndSwap(w, w+oneFree) {
			return true
		}
	}
}

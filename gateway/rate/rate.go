// Package rate counts invocations against ceilings per hour.
//
// It promises that no ceiling is ever unlimited (a [Limit] that is not positive refuses
// everything); that an event is taken from all the buckets it concerns or from none; that
// memory is bounded by a fixed number of buckets; and that a limiter which cannot answer
// says so with an error, which its callers treat as a refusal (X41). It refuses to know what
// is counted: a bucket is a [Key], never a string put together from several (PF-E3).
package rate

import (
	"context"
	"errors"
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
	"time"
)

// Ceilings an hour.
const (
	MaxPerHour     = 1_000_000_000 // the largest that can be set
	DefaultSubject = 600           // of a subject, where nobody set another
	DefaultClient  = 6000          // of a client
)

// Limit is how many events an hour may have. A bucket holds as many events as its ceiling and
// refills evenly: all may come at once, and then one every 1/ceiling hours.
type Limit int64

// Valid reports whether the limit is from 1 to [MaxPerHour].
func (l Limit) Valid() bool { return l > 0 && l <= MaxPerHour }

// interval is the time one event takes to come back, in nanoseconds, rounded up so that
// rounding never allows more.
func (l Limit) interval() int64 { return (int64(time.Hour) + int64(l) - 1) / int64(l) }

// Kind says what a bucket counts for.
type Kind uint8

// The kinds. The zero value is none, and is refused.
const (
	_       Kind = iota
	Subject      // one subject behind one client
	Client       // everything that comes by one client
	Grant        // the uses of one grant
	Explain      // questions of one session
)

// Key names a bucket.
type Key struct {
	Kind   Kind
	Org    string
	Client string // who opened the session; empty for a grant
	ID     string // of the subject, grant or session; empty for a client
}

// Ask is one bucket that an event concerns, and the ceiling it has now.
type Ask struct {
	Key   Key
	Limit Limit
}

// Limiter takes events. Implementations are safe for concurrent use and keep nothing of what they are asked.
type Limiter interface {
	// Take takes one event from every bucket asked for, or from none. A positive wait says that one of
	// them is empty, and how long the emptiest takes to have one again. An error says that the
	// limiter cannot tell; nothing is to run then.
	Take(ctx context.Context, asks []Ask) (wait time.Duration, err error)
	// Peek answers what Take would, and takes nothing.
	Peek(ctx context.Context, asks []Ask) (wait time.Duration, err error)
}

// Bounds of a [Local] limiter.
const (
	maxAsks    = 6       // buckets of one event
	shards     = 64      // a power of two
	MaxBuckets = 1 << 20 // not full, at any time; about 100 bytes each
)

// Why a limiter cannot answer.
var (
	ErrFull = errors.New("rate: every bucket is in use")
	ErrAsk  = errors.New("rate: an event concerns no bucket, too many, or one without a kind")
)

// Local is a limiter in memory. A restart fills every bucket.
//
// A bucket is one number: when it will be full again (the generic cell rate algorithm). One that
// is full need not be kept. The ceiling is not part of it, so a ceiling that changes finds the
// bucket as empty as it was.
//
// Lock order: shards by ascending index.
type Local struct {
	seed   maphash.Seed
	now    func() int64
	most   int // buckets in a shard
	shards [shards]shard
}

type shard struct {
	mu      sync.Mutex
	full    map[Key]int64 // when the bucket is full again
	nextOut int64         // no bucket fills before; sweeping earlier would find nothing
	_       [64]byte      // shards of different cores share no cache line
}

// NewLocal makes a limiter whose buckets are all full.
func NewLocal() *Local {
	start := time.Now()
	return newLocal(func() int64 { return int64(time.Since(start)) }, MaxBuckets) // monotonic
}

func newLocal(now func() int64, buckets int) *Local {
	l := &Local{seed: maphash.MakeSeed(), now: now, most: buckets / shards}
	for i := range l.shards {
		l.shards[i].full = map[Key]int64{}
	}
	return l
}

// Take implements [Limiter]. It does not wait and does not allocate for buckets it knows.
func (l *Local) Take(_ context.Context, asks []Ask) (time.Duration, error) {
	return l.visit(asks, true)
}

// Peek implements [Limiter].
func (l *Local) Peek(_ context.Context, asks []Ask) (time.Duration, error) {
	return l.visit(asks, false)
}

func (l *Local) visit(asks []Ask, take bool) (time.Duration, error) {
	if len(asks) == 0 || len(asks) > maxAsks {
		return 0, ErrAsk
	}
	var at [maxAsks]int
	var locked uint64
	for i, a := range asks {
		if a.Key.Kind == 0 {
			return 0, ErrAsk
		}
		at[i] = int(maphash.Comparable(l.seed, a.Key) % shards)
		locked |= 1 << at[i]
	}
	l.lock(locked)
	defer l.unlock(locked)

	now := l.now()
	var wait int64
	for i, a := range asks {
		wait = max(wait, l.shards[at[i]].wait(a, now))
	}
	if wait > 0 || !take {
		return time.Duration(wait), nil
	}
	for i, a := range asks {
		if !l.shards[at[i]].fits(a.Key, now, l.most-len(asks)) {
			return 0, ErrFull
		}
	}
	for i, a := range asks {
		s := &l.shards[at[i]]
		until := max(s.full[a.Key], now) + a.Limit.interval()
		s.full[a.Key] = until
		s.nextOut = min(s.nextOut, until)
	}
	return 0, nil
}

func (l *Local) lock(set uint64) {
	for ; set != 0; set &= set - 1 {
		l.shards[bits.TrailingZeros64(set)].mu.Lock()
	}
}

func (l *Local) unlock(set uint64) {
	for ; set != 0; set &= set - 1 {
		l.shards[bits.TrailingZeros64(set)].mu.Unlock()
	}
}

// wait is how long the bucket takes to have an event to give, in nanoseconds; 0 when it has.
func (s *shard) wait(a Ask, now int64) int64 {
	if !a.Limit.Valid() {
		return int64(time.Hour)
	}
	return max(0, max(s.full[a.Key], now)+a.Limit.interval()-now-int64(time.Hour))
}

// fits reports whether the shard has room for the bucket, and makes room of those that are full
// again.
func (s *shard) fits(k Key, now int64, most int) bool {
	if _, there := s.full[k]; there || len(s.full) < most {
		return true
	}
	if now < s.nextOut {
		return false
	}
	s.nextOut = math.MaxInt64
	for k, until := range s.full {
		if until <= now {
			delete(s.full, k)
		} else {
			s.nextOut = min(s.nextOut, until)
		}
	}
	return len(s.full) < most
}

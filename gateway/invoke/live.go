package invoke

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/problem"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// running is one invocation that was allowed and has not ended.
type running struct {
	id        string
	root      string // of a child: id of the outermost invocation that it is made for
	session   string
	facts     *gate.Facts
	authority *authority.Authority // set before others see it
	trace     traced
	declared  abi.Classification
	began     time.Time
	caller    Caller // nil: nobody's going away is noticed
	cancel    context.CancelCauseFunc
	stopped   atomic.Pointer[abi.Error] // why it must stop, once somebody asked

	requested    atomic.Int64 // when its caller asked for its end; Unix milliseconds, 0: never
	acknowledged atomic.Int64 // when its goroutine saw that, likewise

	told []problem.Suggestion // for its children; only its own goroutine has it
}

// stop asks the invocation to end: a flag its authority reads at the next host call and the next
// slice of fuel, and the context of whatever it waits for. It frees nothing: only the goroutine
// that runs the guest does (S1).
func (r *running) stop(why *abi.Error) {
	if r.stopped.CompareAndSwap(nil, why) {
		r.cancel(why)
	}
}

// outermost is the id of the invocation that it is made for in the end.
func (r *running) outermost() string {
	if r.root != "" {
		return r.root
	}
	return r.id
}

func (r *running) stands() *abi.Error { return r.stopped.Load() }

// requestCancel stops the invocation for its caller, and reports whether this is the first request.
func (r *running) requestCancel(now time.Time) (first bool) {
	first = r.requested.CompareAndSwap(0, now.UnixMilli())
	r.stop(abi.Errorf(abi.CodeCanceled, "the invocation was cancelled by its caller"))
	return first
}

// Over implements [boundary.Witness].
func (r *running) Over(*abi.Error) {
	if r.requested.Load() != 0 {
		r.acknowledged.CompareAndSwap(0, time.Now().UnixMilli())
	}
}

// cancelState says how far a requested cancellation is, for as long as the invocation runs; "" is
// that nobody asked for one.
func (r *running) cancelState() audit.CancelState {
	switch {
	case r.requested.Load() == 0:
		return ""
	case r.acknowledged.Load() == 0:
		return audit.CancelRequested
	}
	return audit.CancelAcknowledged
}

// cancelled is what the row says of a requested cancellation, or nil.
func (r *running) cancelled() *audit.Cancel {
	requested := r.requested.Load()
	if requested == 0 {
		return nil
	}
	c := &audit.Cancel{Requested: time.UnixMilli(requested).UTC()}
	if at := r.acknowledged.Load(); at != 0 {
		seen := time.UnixMilli(at).UTC()
		c.Acknowledged = &seen
	}
	return c
}

var _ boundary.Witness = (*running)(nil)

// live knows the running invocations. Safe for concurrent use. Its parts have a lock each, so that
// invocations that begin and end at once rarely meet.
type live struct {
	parts    [liveParts]livePart
	n        atomic.Int64 // invocations
	draining atomic.Bool
	idle     chan struct{} // closed when draining and nothing runs
	once     sync.Once
}

const liveParts = 64

type livePart struct {
	mu      sync.Mutex
	running map[string]*running
	_       [48]byte // each on a cache line of its own
}

func newLive() *live {
	l := &live{idle: make(chan struct{})}
	for i := range l.parts {
		l.parts[i].running = map[string]*running{}
	}
	return l
}

// part of an id is by its last character, of 32: ids that follow each other are in different ones.
func (l *live) part(id string) *livePart {
	if id == "" {
		return &l.parts[0]
	}
	return &l.parts[id[len(id)-1]%liveParts]
}

// add refuses while the server drains.
func (l *live) add(r *running) *abi.Error {
	if refused := l.reserve(); refused != nil {
		return refused
	}
	l.put(r)
	return nil
}

// reserve counts an invocation that is put later, or ended, and refuses while the server drains.
func (l *live) reserve() *abi.Error {
	l.n.Add(1) // before the look at draining: either drain sees it or it sees drain
	if l.draining.Load() {
		l.ended()
		return abi.Errorf(abi.CodeDraining, "the server is shutting down")
	}
	return nil
}

// addChild adds also while the server drains: what runs may finish its work.
func (l *live) addChild(r *running) {
	l.n.Add(1)
	l.put(r)
}

func (l *live) put(r *running) {
	p := l.part(r.id)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[r.id] = r
}

func (l *live) remove(id string) {
	p := l.part(id)
	p.mu.Lock()
	delete(p.running, id)
	p.mu.Unlock()
	l.ended()
}

func (l *live) ended() {
	if l.n.Add(-1) == 0 && l.draining.Load() {
		l.once.Do(func() { close(l.idle) })
	}
}

func (l *live) get(id string) *running {
	p := l.part(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running[id]
}

func (l *live) count() int { return int(l.n.Load()) }

// drain stops new invocations and waits for the running ones. When ctx ends first they are
// told to stop, and drain waits for grace more.
func (l *live) drain(ctx context.Context, grace time.Duration) error {
	l.draining.Store(true)
	if l.n.Load() == 0 {
		l.once.Do(func() { close(l.idle) })
	}
	select {
	case <-l.idle:
		return nil
	case <-ctx.Done():
	}
	l.stopAll(abi.Errorf(abi.CodeDraining, "the server is shutting down"))
	select {
	case <-l.idle:
		return nil
	case <-time.After(grace):
		return abi.Errorf(abi.CodeDeadline, "%d invocations did not end in time", l.count())
	}
}

func (l *live) stopAll(why *abi.Error) { l.each(func(r *running) { r.stop(why) }) }

// each calls f with every invocation, under no lock.
func (l *live) each(f func(*running)) {
	for i := range l.parts {
		p := &l.parts[i]
		p.mu.Lock()
		all := slices.Collect(maps.Values(p.running))
		p.mu.Unlock()
		for _, r := range all {
			f(r)
		}
	}
}

// ids makes invocation ids: ULIDs that are unique and, within the process, strictly in the
// order in which they were made (X28).
type ids struct {
	mu      sync.Mutex
	entropy *ulid.MonotonicEntropy
	last    uint64
}

func newIDs() *ids { return &ids{entropy: ulid.Monotonic(rand.Reader, 0)} }

func (i *ids) next(now time.Time) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.last = max(i.last, ulid.Timestamp(now)) // a clock that goes back does not reorder ids
	id, err := ulid.New(i.last, i.entropy)
	if err != nil { // the random part of this millisecond is used up: take the next one
		i.last++
		id = ulid.MustNew(i.last, i.entropy)
	}
	return id.String()
}

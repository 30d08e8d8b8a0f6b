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
	"github.com/ecotone-dev/ecotone/gateway/gate"
)

// running is one invocation that was allowed and has not ended.
type running struct {
	id       string
	session  string
	facts    *gate.Facts
	trace    string
	declared abi.Classification
	cancel   context.CancelCauseFunc
	stopped  atomic.Pointer[abi.Error] // why it must stop, once somebody asked
}

// stop asks the invocation to end: a flag its authority reads at the next host call, and the
// context of whatever it waits for. It frees nothing: only the goroutine that runs the guest
// does (S1).
func (r *running) stop(why *abi.Error) {
	if r.stopped.CompareAndSwap(nil, why) {
		r.cancel(why)
	}
}

func (r *running) stands() *abi.Error { return r.stopped.Load() }

// live knows the running invocations. Safe for concurrent use.
type live struct {
	mu       sync.Mutex
	running  map[string]*running
	draining bool
	idle     chan struct{} // closed when draining and nothing runs
}

func newLive() *live { return &live{running: map[string]*running{}, idle: make(chan struct{})} }

// add refuses while the server drains.
func (l *live) add(r *running) *abi.Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining {
		return abi.Errorf(abi.CodeDraining, "the server is shutting down")
	}
	l.running[r.id] = r
	return nil
}

// addChild adds also while the server drains: what runs may finish its work.
func (l *live) addChild(r *running) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[r.id] = r
}

func (l *live) remove(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, id)
	if l.draining && len(l.running) == 0 {
		l.finish()
	}
}

func (l *live) finish() {
	select {
	case <-l.idle:
	default:
		close(l.idle)
	}
}

func (l *live) get(id string) *running {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running[id]
}

func (l *live) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.running)
}

// drain stops new invocations and waits for the running ones. When ctx ends first they are
// told to stop, and drain waits for grace more.
func (l *live) drain(ctx context.Context, grace time.Duration) error {
	l.mu.Lock()
	l.draining = true
	if len(l.running) == 0 {
		l.finish()
	}
	l.mu.Unlock()
	select {
	case <-l.idle:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	left := slices.Collect(maps.Values(l.running))
	l.mu.Unlock()
	for _, r := range left {
		r.stop(abi.Errorf(abi.CodeDraining, "the server is shutting down"))
	}
	select {
	case <-l.idle:
		return nil
	case <-time.After(grace):
		return abi.Errorf(abi.CodeDeadline, "%d invocations did not end in time", l.count())
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

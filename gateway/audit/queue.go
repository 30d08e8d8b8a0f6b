package audit

import (
	"context"
	"errors"
	"sync"
	"time"
)

// request is an event on its way to the committer. The one who sent it has it until it is pushed;
// when it waits it gets it back with the answer.
type request struct {
	header // kind, org, id, open; the committer fills in the rest
	key    *orgKey
	body   []byte
	wait   bool
	done   chan struct{} // one signal per answer, when somebody waits
	at     Position
	err    error
}

// Requests are kept for reuse with their buffers, unless those grew large.
const keptBody = 16 << 10

var requests = sync.Pool{New: func() any { return &request{done: make(chan struct{}, 1)} }}

func newRequest() *request { return requests.Get().(*request) }

func (r *request) free() {
	if cap(r.body) > keptBody {
		r.body = nil
	}
	*r = request{done: r.done, body: r.body[:0]}
	requests.Put(r)
}

// answer ends a request. It must not be touched afterwards: it is the waiter's again, or nobody's.
func (r *request) answer(err error) {
	if !r.wait {
		r.free()
		return
	}
	if r.err = err; err != nil {
		r.at = Position{}
	}
	r.done <- struct{}{}
}

// bytes bounds what the request adds to a group.
func (r *request) bytes() int {
	return len(r.body) + headerFixed + len(r.org) + sealOverhead + frameExtra
}

const (
	queueLength = 1024
	queueBytes  = 32 << 20
	asyncDelay  = 20 * time.Millisecond // how long events that nobody waits for wait for company
)

var errClosed = errors.New("the log is closed")

// queue hands requests to the committer, in order. It is bounded in number and in bytes: who finds
// it full waits for room (PF-G2). The committer takes all there is at once, and is woken only
// when somebody waits for an answer or events without a waiter have waited long enough.
type queue struct {
	wake chan struct{} // of the committer
	idle *time.Timer

	mu     sync.Mutex
	items  []*request
	bytes  int
	woken  bool
	closed bool
	room   chan struct{} // closed when there is room; nil while nobody waits for it
}

func newQueue() *queue {
	q := &queue{wake: make(chan struct{}, 1)}
	q.idle = time.AfterFunc(time.Hour, q.nudge)
	q.idle.Stop()
	return q
}

// push appends a request, waiting for room as long as ctx lives. After an error the request is the
// caller's.
func (q *queue) push(ctx context.Context, r *request) error {
	n := r.bytes()
	for {
		q.mu.Lock()
		if q.closed {
			q.mu.Unlock()
			return errClosed
		}
		if len(q.items) < queueLength && (q.bytes+n <= queueBytes || len(q.items) == 0) {
			break
		}
		if q.room == nil {
			q.room = make(chan struct{})
		}
		room := q.room
		q.wakeLocked()
		q.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	q.items, q.bytes = append(q.items, r), q.bytes+n
	if r.wait {
		q.wakeLocked()
	} else if len(q.items) == 1 {
		q.idle.Reset(asyncDelay)
	}
	q.mu.Unlock()
	return nil
}

func (q *queue) wakeLocked() {
	if !q.woken {
		q.woken = true
		q.wake <- struct{}{} // has room: one signal for one take
	}
}

func (q *queue) nudge() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wakeLocked()
}

// take waits to be woken, calls gather and takes what is there; last says that nothing follows.
func (q *queue) take(into []*request, gather func()) (batch []*request, last bool) {
	<-q.wake
	gather()
	q.mu.Lock()
	defer q.mu.Unlock()
	batch, q.items = q.items, into
	q.bytes, q.woken = 0, false
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
	return batch, q.closed
}

// close lets no more in. What is there is still taken; who waits for room is refused.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.idle.Stop()
	q.wakeLocked()
}

// length is how many requests wait.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}

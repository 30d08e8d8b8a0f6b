package invoke

import (
	"context"
	"sync/atomic"
	"time"
)

// life is the context of one invocation: it ends at the invocation's deadline, when it is cancelled, or
// with the context it was made of. Most invocations end by themselves and wait for nothing, so a
// life has no channel and no timer until somebody asks for one. The standard library's contexts
// with a deadline have both from the start, which is a microsecond or two and five allocations
// for each of the three that an invocation used to need.
//
// Whoever begins it calls over at the end, as with any context. It is safe for concurrent use.
type life struct {
	parent   context.Context
	deadline time.Time
	real     atomic.Pointer[realLife] // nil: it goes on, and nobody waits for its end
}

// ended is what a life becomes that ends without anybody having waited for it.
var ended = func() *realLife {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(nil)
	return &realLife{ctx, cancel, func() {}}
}()

// realLife is the context that a life becomes.
type realLife struct {
	context.Context
	cancel context.CancelCauseFunc
	timer  context.CancelFunc
}

func (r *realLife) end(cause error) {
	r.cancel(cause)
	r.timer()
}

// begin makes a life. A parent that can end is followed from the start.
func begin(parent context.Context, deadline time.Time) *life {
	if d, ok := parent.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	l := &life{parent: parent, deadline: deadline}
	if parent.Done() != nil {
		l.become()
	}
	return l
}

// become makes the life a context of the standard library, if it is none yet.
func (l *life) become() *realLife {
	if r := l.real.Load(); r != nil {
		return r
	}
	timed, timer := context.WithDeadline(l.parent, l.deadline)
	ctx, cancel := context.WithCancelCause(timed)
	r := &realLife{ctx, cancel, timer}
	if !l.real.CompareAndSwap(nil, r) { // somebody else was faster
		r.end(nil)
	}
	return l.real.Load()
}

// cancel ends the life, for a cause that [context.Cause] tells whoever was told of its end. Of several
// causes the first counts.
func (l *life) cancel(cause error) { l.become().end(cause) }

// over ends a life whose invocation has ended.
func (l *life) over() {
	if !l.real.CompareAndSwap(nil, ended) {
		l.real.Load().end(nil)
	}
}

// Deadline implements [context.Context].
func (l *life) Deadline() (time.Time, bool) { return l.deadline, true }

// Done implements [context.Context].
func (l *life) Done() <-chan struct{} { return l.become().Done() }

// Err implements [context.Context].
func (l *life) Err() error {
	if l.real.Load() == nil && time.Now().Before(l.deadline) {
		return nil
	}
	return l.become().Err()
}

// Value implements [context.Context]. It is how contexts that are made of this one find out what they
// hang on.
func (l *life) Value(key any) any {
	if r := l.real.Load(); r != nil {
		if v := r.Value(key); v != nil {
			return v
		}
	}
	return l.parent.Value(key)
}

var _ context.Context = (*life)(nil)

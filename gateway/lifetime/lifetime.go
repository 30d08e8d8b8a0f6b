// Package lifetime makes contexts that cost nothing until somebody waits for their end.
//
// It promises that they end when and as those of the standard library do. It refuses to know whose
// life they are.
package lifetime

import (
	"context"
	"sync/atomic"
	"time"
)

// Context ends at its deadline, when it is cancelled, or with the context it was made of. It has no
// channel and no timer until somebody asks for one: most invocations end by themselves and wait
// for nothing. The standard library's contexts with a deadline have both from the start, which is
// a microsecond or two and five allocations for each.
//
// Whoever begins it calls Over at the end. It is safe for concurrent use.
type Context struct {
	parent   context.Context
	deadline time.Time
	it       atomic.Pointer[real] // nil: it goes on, and nobody waits for its end
}

// ended is what one becomes that ends without anybody having waited for it.
var ended = func() *real {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(nil)
	return &real{ctx, cancel, func() {}}
}()

// real is the context that one becomes.
type real struct {
	context.Context
	cancel context.CancelCauseFunc
	timer  context.CancelFunc
}

func (r *real) end(cause error) {
	r.cancel(cause)
	r.timer()
}

// Begin makes a context. A parent that can end is followed from the start.
func Begin(parent context.Context, deadline time.Time) *Context {
	if d, ok := parent.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	l := &Context{parent: parent, deadline: deadline}
	if parent.Done() != nil {
		l.become()
	}
	return l
}

// become makes it a context of the standard library, if it is none yet.
func (l *Context) become() *real {
	if r := l.it.Load(); r != nil {
		return r
	}
	timed, timer := context.WithDeadline(l.parent, l.deadline)
	ctx, cancel := context.WithCancelCause(timed)
	r := &real{ctx, cancel, timer}
	if !l.it.CompareAndSwap(nil, r) { // somebody else was faster
		r.end(nil)
	}
	return l.it.Load()
}

// Cancel ends it, for a cause that [context.Cause] tells whoever was told of its end. Of several
// causes the first counts.
func (l *Context) Cancel(cause error) { l.become().end(cause) }

// Over ends it when what it was for has ended.
func (l *Context) Over() {
	if !l.it.CompareAndSwap(nil, ended) {
		l.it.Load().end(nil)
	}
}

// Deadline implements [context.Context].
func (l *Context) Deadline() (time.Time, bool) { return l.deadline, true }

// Done implements [context.Context].
func (l *Context) Done() <-chan struct{} { return l.become().Done() }

// Err implements [context.Context].
func (l *Context) Err() error {
	if l.it.Load() == nil && time.Now().Before(l.deadline) {
		return nil
	}
	return l.become().Err()
}

// Value implements [context.Context]. It is how contexts that are made of this one find out what they
// hang on.
func (l *Context) Value(key any) any {
	if r := l.it.Load(); r != nil {
		if v := r.Value(key); v != nil {
			return v
		}
	}
	return l.parent.Value(key)
}

var _ context.Context = (*Context)(nil)

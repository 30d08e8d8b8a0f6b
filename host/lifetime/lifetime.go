// Package lifetime makes contexts that cost nothing until somebody waits for their end.
//
// It promises that they end when and as those of the standard library do, for whoever looks. It
// refuses to know whose life they are.
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
// Whoever starts it calls Over at the end. It is safe for concurrent use, and is not copied.
type Context struct {
	parent   context.Context
	above    *Context // the parent, if it is one of these: asking it needs no clock
	deadline time.Time
	end      atomic.Pointer[error] // what Err answers from now on; nil: it goes on, as far as anybody knows
	it       atomic.Pointer[real]  // nil: nobody waits for its end
}

var (
	canceled = context.Canceled
	exceeded = context.DeadlineExceeded
)

// gone and late are what one becomes that was over, or past its deadline, before anybody waited for it.
var (
	gone = ended(context.WithCancel(context.Background()))
	late = ended(context.WithDeadline(context.Background(), time.Unix(0, 0)))
)

func ended(ctx context.Context, cancel context.CancelFunc) *real {
	cancel()
	return &real{ctx, func(error) {}, func() {}}
}

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

// Begin makes a context that is started.
func Begin(parent context.Context, deadline time.Time) *Context {
	c := new(Context)
	c.Start(parent, deadline)
	return c
}

// Start starts a context that is its zero value, and is called once. It ends with its parent.
func (c *Context) Start(parent context.Context, deadline time.Time) {
	if d, ok := parent.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	c.parent, c.deadline = parent, deadline
	c.above, _ = parent.(*Context)
}

// Started reports whether it was started.
func (c *Context) Started() bool { return c.parent != nil }

// Alone reports whether it is over and nobody ever waited for that, nor made a context of it that waits.
func (c *Context) Alone() bool { return c.it.Load() == gone }

// become makes it a context of the standard library, if it is none yet.
func (c *Context) become() *real {
	if r := c.it.Load(); r != nil {
		return r
	}
	timed, timer := context.WithDeadline(c.parent, c.deadline)
	ctx, cancel := context.WithCancelCause(timed)
	r := &real{ctx, cancel, timer}
	if !c.it.CompareAndSwap(nil, r) { // somebody else was faster
		r.end(nil)
	}
	return c.it.Load()
}

// Cancel ends it, for a cause that [context.Cause] tells whoever was told of its end. Of several
// causes the first counts.
func (c *Context) Cancel(cause error) { c.become().end(cause) }

// Over ends it when what it was for has ended.
func (c *Context) Over() {
	c.end.CompareAndSwap(nil, &canceled)
	if !c.it.CompareAndSwap(nil, gone) {
		c.it.Load().end(nil)
	}
}

// Deadline implements [context.Context].
func (c *Context) Deadline() (time.Time, bool) { return c.deadline, true }

// Done implements [context.Context].
func (c *Context) Done() <-chan struct{} { return c.become().Done() }

// Err implements [context.Context]. A deadline counts when its time has come, though its timer had no
// chance to fire.
func (c *Context) Err() error {
	if e := c.end.Load(); e != nil {
		return *e
	}
	return c.ErrAt(time.Now())
}

// ErrAt is Err for who knows the time. The zero time is for who does not want to: the deadline is not
// looked at.
func (c *Context) ErrAt(now time.Time) error {
	if e := c.end.Load(); e != nil {
		return *e
	}
	if r := c.it.Load(); r != nil {
		if err := r.Err(); err != nil {
			return c.settle(err)
		}
	}
	if !now.Before(c.deadline) { // of two that passed since somebody looked, the deadline counts
		return c.pass()
	}
	if err := c.followed(); err != nil {
		if r := c.it.Load(); r != nil && err == context.Canceled {
			r.cancel(context.Cause(c.parent)) // the parent tells its children one after the other, and not this one yet
		}
		return c.settle(err)
	}
	return nil
}

// followed is what the parent says, whose deadline is no earlier.
func (c *Context) followed() error {
	if c.above != nil {
		return c.above.ErrAt(time.Time{})
	}
	return c.parent.Err()
}

// pass makes it one whose deadline has passed, unless it has ended. Where somebody waits, the timer
// is left to fire: what it is late by is nobody's harm.
func (c *Context) pass() error {
	if c.end.CompareAndSwap(nil, &exceeded) {
		c.it.CompareAndSwap(nil, late) // what the parent ends for later is not why
	}
	return *c.end.Load()
}

// settle makes err the answer of Err, unless there is one.
func (c *Context) settle(err error) error {
	switch err {
	case context.DeadlineExceeded:
		c.end.CompareAndSwap(nil, &exceeded)
	case context.Canceled:
		c.end.CompareAndSwap(nil, &canceled)
	default:
		c.end.CompareAndSwap(nil, &err)
	}
	return *c.end.Load()
}

// Value implements [context.Context]. It is how contexts that are made of this one find out what they
// hang on.
func (c *Context) Value(key any) any {
	if r := c.it.Load(); r != nil {
		if v := r.Value(key); v != nil {
			return v
		}
	}
	return c.parent.Value(key)
}

var _ context.Context = (*Context)(nil)

package boundary

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

type contextKey struct{}

// With returns a context that carries inv to the host functions. See [Invocation.Within] for the
// one of a run.
func With(ctx context.Context, inv *Invocation) context.Context {
	return context.WithValue(ctx, contextKey{}, inv)
}

// From returns the invocation a context carries, or nil.
func From(ctx context.Context) *Invocation {
	if run, ok := ctx.(*runContext); ok {
		return run.inv
	}
	inv, _ := ctx.Value(contextKey{}).(*Invocation)
	return inv
}

// runContext is the context of a run: it carries the invocation and ends at a time. Most guests
// never wait for anything, and nobody waits for their context; so there is no timer, and nothing
// is allocated, until somebody asks for Done.
//
// It is safe for concurrent use, as every context is; the invocation it carries is not.
type runContext struct {
	parent   context.Context
	inv      *Invocation
	deadline time.Time

	ended atomic.Pointer[error]        // what Err answers from now on
	timed atomic.Pointer[timedContext] // made under mu
	mu    sync.Mutex
}

type timedContext struct {
	context.Context
	cancel context.CancelFunc
}

// Within returns the context of the invocation's run, which lasts until deadline or until parent
// ends, and what ends it. The invocation is carried by it. There is one for each invocation.
func (inv *Invocation) Within(parent context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	if inv.run.inv != nil {
		panic("boundary: a second run of one invocation")
	}
	run := &inv.run
	if d, ok := parent.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	run.parent, run.inv, run.deadline = parent, inv, deadline
	return run, run.end
}

// Deadline implements [context.Context].
func (c *runContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done implements [context.Context].
func (c *runContext) Done() <-chan struct{} { return c.wait().Done() }

// wait makes the context that has a timer.
func (c *runContext) wait() *timedContext {
	if t := c.timed.Load(); t != nil {
		return t
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.timed.Load(); t != nil {
		return t
	}
	t := new(timedContext)
	t.Context, t.cancel = context.WithDeadline(c.parent, c.deadline)
	if c.ended.Load() != nil {
		t.cancel()
	}
	c.timed.Store(t)
	return t
}

// Err implements [context.Context].
func (c *runContext) Err() error { return c.errAt(time.Time{}) }

// errAt is Err for who knows the time; the zero time is now.
func (c *runContext) errAt(now time.Time) error {
	if err := c.ended.Load(); err != nil {
		return *err
	}
	err := c.parent.Err()
	if t := c.timed.Load(); err == nil && t != nil {
		err = t.Err()
	}
	if err == nil {
		if now.IsZero() {
			now = time.Now()
		}
		if now.Before(c.deadline) {
			return nil
		}
		err = context.DeadlineExceeded
	}
	return c.settle(err)
}

// settle makes err the answer of Err, unless there is one. Where somebody waits, the timer is left
// to fire: what it is late by is nobody's harm.
func (c *runContext) settle(err error) error {
	c.ended.CompareAndSwap(nil, &err)
	return *c.ended.Load()
}

// end ends the context, with the run.
func (c *runContext) end() {
	c.ended.CompareAndSwap(nil, &canceled)
	c.mu.Lock() // against one that is being made
	defer c.mu.Unlock()
	if t := c.timed.Load(); t != nil {
		t.cancel()
	}
}

var canceled = context.Canceled

// Value implements [context.Context].
func (c *runContext) Value(key any) any {
	if key == (contextKey{}) {
		return c.inv
	}
	if t := c.timed.Load(); t != nil {
		return t.Value(key) // where derived contexts find whom to wait with
	}
	return c.parent.Value(key)
}

// ended is Ended for a time that was just read from the invocation's clock.
func (inv *Invocation) ended(ctx context.Context, at time.Time) *abi.Error {
	if run, ok := ctx.(*runContext); ok && inv.wall && run.errAt(at) == nil {
		return nil
	}
	return Ended(ctx)
}

// Ended says in the catalogue's words why ctx is done: the code of its cause when that is an
// [abi.Error], else DEADLINE_EXCEEDED or CANCELED. It is nil while ctx is not done. A
// deadline counts when its time has come, though its timer had no chance to fire.
func Ended(ctx context.Context) *abi.Error {
	if run, ok := ctx.(*runContext); ok && run.errAt(time.Time{}) == nil {
		return nil
	}
	err := ctx.Err()
	if deadline, ok := ctx.Deadline(); err == nil && ok && !time.Now().Before(deadline) {
		err = context.DeadlineExceeded
	}
	if err == nil {
		return nil
	}
	var own *abi.Error
	if errors.As(context.Cause(ctx), &own) {
		return own
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return abi.Errorf(abi.CodeDeadline, "the invocation did not end before its deadline")
	}
	return abi.Errorf(abi.CodeCanceled, "the invocation was cancelled")
}

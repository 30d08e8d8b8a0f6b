package boundary

import (
	"context"
	"errors"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/lifetime"
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

// runContext is the context of a run: it carries the invocation. Most guests never wait for
// anything, and nobody waits for their context, so that nothing is allocated for it.
//
// It is safe for concurrent use, as every context is; the invocation it carries is not.
type runContext struct {
	lifetime.Context
	inv *Invocation
}

// Within returns the context of the invocation's run, which lasts until deadline or until parent
// ends, and what ends it. The invocation is carried by it. There is one for each invocation.
func (inv *Invocation) Within(parent context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	run := &inv.run
	if run.Started() {
		panic("boundary: a second run of one invocation")
	}
	run.inv = inv
	run.Start(parent, deadline)
	return run, run.Over
}

// Value implements [context.Context].
func (c *runContext) Value(key any) any {
	if key == (contextKey{}) {
		return c.inv
	}
	return c.Context.Value(key)
}

// ended is Ended for a time that was just read from the invocation's clock. The zero time is for who
// has not: then the deadline is not looked at.
func (inv *Invocation) ended(ctx context.Context, at time.Time) *abi.Error {
	if run, ok := ctx.(*runContext); ok && inv.wall && run.ErrAt(at) == nil {
		return nil
	}
	return Ended(ctx)
}

// Told reports whether the invocation is over or was told to end, as far as that is known without a look
// at the clock.
func (inv *Invocation) Told(ctx context.Context) bool {
	return inv.over != nil || inv.ended(ctx, time.Time{}) != nil
}

// Ended says in the catalogue's words why ctx is done: the code of its cause when that is an
// [abi.Error], else DEADLINE_EXCEEDED or CANCELED. It is nil while ctx is not done. A
// deadline counts when its time has come, though its timer had no chance to fire.
func Ended(ctx context.Context) *abi.Error {
	err := ctx.Err()
	if _, ok := ctx.(*runContext); ok && err == nil {
		return nil // it has looked at the clock
	}
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

package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// Engine runs invocations. It is safe for concurrent use and bounds nothing itself: how many
// run at once is its caller's to say.
type Engine struct {
	pool    Pool
	started atomic.Int64
	trials  atomic.Int64
}

// New returns an engine that takes its instances from pool.
func New(pool Pool) *Engine { return &Engine{pool: pool} }

// Started counts invocations for which guest code was entered, initialisers included. What
// is refused before is not in it.
func (e *Engine) Started() int64 { return e.started.Load() }

// Trials counts the trial runs of initialisers, which are not in Started.
func (e *Engine) Trials() int64 { return e.trials.Load() }

// Run runs one invocation to its end on the calling goroutine. The deadline is the earliest
// of ctx's, the authority's and the wall limit since the invocation was made.
func (e *Engine) Run(ctx context.Context, image *Image, inv *boundary.Invocation) boundary.Outcome {
	ctx, end := inv.Within(ctx, deadline(inv))
	defer end()
	instance, failure := e.run(ctx, image, inv)
	var memory int64
	if instance != nil {
		// When the outcome is made: putting an instance back is nothing the answer needs.
		defer instance.Release()
		memory = instance.MemoryBytes()
	}
	return inv.Conclude(ctx, failure, memory)
}

// run returns the instance that ran, which the caller releases, and why it failed.
func (e *Engine) run(ctx context.Context, image *Image, inv *boundary.Invocation) (Instance, *abi.Error) {
	spec := inv.Authority().Spec()
	if err := inv.Authority().Current(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, boundary.Ended(ctx)
	}
	if face, ok := spec.Face.Info(); !ok || face.Face != image.face {
		return nil, abi.Errorf(abi.CodeInternal, "the module was loaded for another interface than it is invoked for")
	}
	if !image.Provides(spec.Export) {
		return nil, abi.Errorf(abi.CodeExportMissing, "the module exports no capability %s", abi.Quote(spec.Export))
	}
	if err := image.fits(inv.Limits()); err != nil {
		return nil, err
	}
	if err := inv.Decode(); err != nil {
		return nil, err
	}
	e.started.Add(1)
	return e.enter(ctx, image, inv)
}

// enter runs guest code. A panic of the engine under a hostile module ends this invocation
// and not the process.
func (e *Engine) enter(ctx context.Context, image *Image, inv *boundary.Invocation) (instance Instance, err *abi.Error) {
	defer contain(&err)
	inv.Enter(boundary.PhaseInitialize)
	if instance, err = e.pool.Take(ctx, image, inv); err != nil {
		return nil, err
	}
	inv.Enter(boundary.PhaseRun)
	failure := instance.Call(ctx, inv.Authority().Spec().Export)
	return instance, inv.Settle(ctx, failure)
}

func contain(err **abi.Error) {
	if p := recover(); p != nil {
		*err = abi.Errorf(abi.CodeInternal, "the engine failed: %w", fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
}

// deadline is when the invocation's time is over.
func deadline(inv *boundary.Invocation) time.Time {
	by := inv.Began().Add(time.Duration(inv.Limits().Get(abi.LimitWall)) * time.Millisecond)
	if d := inv.Authority().Spec().Deadline; !d.IsZero() && d.Before(by) {
		return d
	}
	return by
}

// Trial runs a module's initialiser once, as admission does, in an instance that is thrown
// away: without any authority, within limits and the given wall time. What the module does
// wrong is INITIALIZE_FAILED. Afterwards [Image.FreshBecause] knows what it asked for.
func (e *Engine) Trial(ctx context.Context, image *Image, limits *abi.Limits, wall time.Duration) (err *abi.Error) {
	defer contain(&err)
	if err := image.fits(limits); err != nil {
		return err
	}
	inv := boundary.NewTrial(limits)
	trial, cancel := context.WithTimeout(boundary.With(ctx, inv), wall)
	defer cancel()
	e.trials.Add(1)
	inv.Enter(boundary.PhaseInitialize)
	instance, err := Fresh{}.Take(trial, image, inv)
	if err == nil {
		instance.Release()
		err = boundary.Ended(trial)
	}
	switch {
	case err != nil && err.Code == abi.CodeFuelExhausted:
		return abi.Errorf(abi.CodeInitializeFailed, "the initialiser used up its fuel, %d", limits.Get(abi.LimitFuel))
	case err != nil && err.Code == abi.CodeDeadline && ctx.Err() == nil:
		return abi.Errorf(abi.CodeInitializeFailed, "the initialiser did not end within %s", wall)
	}
	return err
}

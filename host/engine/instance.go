package engine

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// Instance is a module with memory, globals and tables of its own, for one invocation. It
// belongs to the goroutine that took it.
type Instance interface {
	// Call runs an exported capability on the calling goroutine until it returns, traps or
	// is unwound. nil means that it returned 0. ctx carries the invocation.
	Call(ctx context.Context, export string) *abi.Error
	// MemoryBytes is the size of the linear memory, which never shrinks.
	MemoryBytes() int64
	// Release gives the instance up, on the goroutine that ran it, after Call has returned
	// (S1) and after the outcome was made. It is called exactly once.
	Release()
}

// Pool lends instances. An instance belongs for life to one organisation, digest, link set
// and set of limits (S9): whatever a pool keeps, it keeps under all four, and what it lends
// is in the state the module has right after initialisation.
type Pool interface {
	// Take returns an instance for the invocation, which is in PhaseInitialize and whose
	// memory limit the image fits. When it fails there is nothing to release.
	Take(ctx context.Context, image *Image, inv *boundary.Invocation) (Instance, *abi.Error)
}

// Fresh is the pool that keeps nothing: a new instance for each invocation, whose
// initialiser runs in the invocation's time, memory and fuel, and without its authority. The fuel is
// given back where a pool would keep the work: what an invocation costs does not depend on the pool.
type Fresh struct{}

// Take implements [Pool].
func (Fresh) Take(ctx context.Context, image *Image, inv *boundary.Invocation) (Instance, *abi.Error) {
	set := LinkSetOf(inv.Authority())
	linked, err := image.linked(ctx, set)
	if err != nil {
		return nil, abi.AsError(err)
	}
	making := withMemoryLimit(linked.resolve(ctx), inv.Limits().Get(abi.LimitMemoryBytes))
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	module, err := image.runtime.InstantiateModule(making, image.compiled, config)
	if err != nil {
		// Not the guest's code: a segment that lies outside its memory or table.
		return nil, abi.Errorf(abi.CodeInitializeFailed, "the module cannot be instantiated: %w", traced(err))
	}
	i := &fresh{module: module}
	if !i.bind(module) {
		i.Release()
		return nil, abi.Errorf(abi.CodeInternal, "the prepared module does not export what it is metered by")
	}
	if err := i.initialize(ctx, module, image, inv); err != nil {
		i.Release()
		return nil, err
	}
	if image.learn(inv) {
		inv.Refund()
	}
	return i, nil
}

// initializeFailed turns a guest's own failure in its initialiser into the one code for that.
// A deadline stays a deadline, and a fault of the host stays one.
func initializeFailed(err *abi.Error) *abi.Error {
	switch err.Code {
	case abi.CodeGuestTrap, abi.CodeStackLimit, abi.CodeGuestExit, abi.CodeRandomLimit:
		return abi.Errorf(abi.CodeInitializeFailed, "the initialiser failed: %s: %w", err.Message, err)
	}
	return err
}

type fresh struct {
	metered
	module api.Module
}

func (i *fresh) Call(ctx context.Context, export string) *abi.Error {
	inv := boundary.From(ctx)
	var result [1]uint64
	if err := i.call(ctx, inv, i.module.ExportedFunction(export), result[:]); err != nil {
		return failure(ctx, inv, err)
	}
	if status := int32(result[0]); status != 0 {
		return abi.Errorf(abi.CodeGuestError, "the capability returned %d", status)
	}
	return nil
}

func (i *fresh) MemoryBytes() int64 { return int64(i.module.Memory().Size()) }

// Release closes the instance. Closing cannot fail in a way anyone could act on: there are
// no files and no host resources in it.
func (i *fresh) Release() { _ = i.module.Close(context.Background()) }

package engine

import (
	"context"

	"github.com/tetratelabs/wazero/api"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/meter"
)

// StackBytes is what modules are metered for. An environment's own, smaller limit is held to in
// each call.
func StackBytes() int64 { return abi.LimitStackBytes.Info().Hard }

// metered is what a metered instance is held to fuel and depth by.
type metered struct {
	fuel, depth api.MutableGlobal
	start       int64 // of depth, with a stack of StackBytes
}

// bind finds both globals in a module that has run nothing yet.
func (m *metered) bind(module api.Module) (ok bool) {
	if m.fuel, ok = module.ExportedGlobal(meter.ExportFuel).(api.MutableGlobal); !ok {
		return false
	}
	if m.depth, ok = module.ExportedGlobal(meter.ExportDepth).(api.MutableGlobal); !ok {
		return false
	}
	m.start = int64(m.depth.Get())
	return true
}

// call calls into the instance, which has no fuel when it starts and all of its stack, whatever a
// call before left that was unwound. stack has room for the function's results.
func (m *metered) call(ctx context.Context, inv *boundary.Invocation, f api.Function, stack []uint64) error {
	m.depth.Set(uint64(m.start - StackBytes() + inv.Limits().Get(abi.LimitStackBytes)))
	inv.Meter(m.fuel)
	defer inv.Unmeter()
	return f.CallWithStack(ctx, stack)
}

// initialize runs the module's initialisers, if it has any. One that takes something is given zeros.
func (m *metered) initialize(ctx context.Context, module api.Module, image *Image, inv *boundary.Invocation) *abi.Error {
	for _, name := range image.initializers {
		f := module.ExportedFunction(name)
		if err := m.call(ctx, inv, f, make([]uint64, len(f.Definition().ParamTypes()))); err != nil {
			return initializeFailed(failure(ctx, inv, err))
		}
	}
	return nil
}

func refuel(ctx context.Context, _ api.Module, _ []uint64) {
	inv := boundary.From(ctx)
	inv.Refuel(ctx)
	unwindIfOver(inv)
}

func overflow(ctx context.Context, _ api.Module, _ []uint64) {
	inv := boundary.From(ctx)
	inv.Overflow()
	unwindIfOver(inv)
}

package peer

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/admission"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/meter"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// Kept is one instance of a guest without WASI that is called again and again, state kept: what
// metering and the boundary cost is seen by switching them on.
type Kept struct {
	runtime   wazero.Runtime
	run       api.Function
	exchange  exchange
	authority *authority.Authority // nil: the host functions of the peers
	fuel      api.MutableGlobal    // nil: not metered
	depth     api.MutableGlobal
	start     uint64 // of depth
}

// NewKept makes one. With an authority its host functions are the boundary's.
func NewKept(ctx context.Context, module []byte, export string, metered bool, a *authority.Authority) (_ *Kept, err error) {
	k := &Kept{runtime: wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler()), authority: a}
	defer func() {
		if err != nil {
			k.Close()
		}
	}()
	if metered {
		if module, err = rewritten(module, export); err != nil {
			return nil, err
		}
	}
	compiled, err := k.runtime.CompileModule(ctx, module)
	if err != nil {
		return nil, err
	}
	if err := k.link(ctx, compiled); err != nil {
		return nil, err
	}
	m, err := k.runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		return nil, err
	}
	k.run = m.ExportedFunction(export)
	if metered {
		k.fuel, k.depth = m.ExportedGlobal(meter.ExportFuel).(api.MutableGlobal), m.ExportedGlobal(meter.ExportDepth).(api.MutableGlobal)
		k.start = k.depth.Get()
	}
	return k, nil
}

func rewritten(module []byte, export string) ([]byte, error) {
	limits := admission.UploadLimits(abi.DefaultLimits())
	parsed, problems := wasm.Read(module, limits)
	if len(problems) > 0 {
		return nil, fmt.Errorf("the guest is not read: %v", problems[0])
	}
	r, err := meter.Rewrite(module, parsed, meter.Options{Exports: []string{export}, StackBytes: abi.LimitStackBytes.Info().Hard, Limits: limits})
	if err != nil {
		return nil, err
	}
	return r.Module, nil
}

// link gives the guest its host functions, and a metered one those of the meter.
func (k *Kept) link(ctx context.Context, compiled wazero.CompiledModule) error {
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range compiled.ImportedFunctions() {
		module, name, _ := f.Import()
		b := builders[module]
		if b == nil {
			b = k.runtime.NewHostModuleBuilder(module)
			builders[module] = b
		}
		b.NewFunctionBuilder().WithGoModuleFunction(k.function(module, name, len(f.ParamTypes())), f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	for _, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (k *Kept) function(module, name string, params int) api.GoModuleFunc {
	switch {
	case module == meter.ImportModule && k.authority != nil && name == meter.ImportRefuel:
		return func(ctx context.Context, _ api.Module, _ []uint64) {
			inv := boundary.From(ctx)
			if inv.Refuel(ctx); inv.Over() != nil {
				panic(inv.Over())
			}
		}
	case module == meter.ImportModule && name == meter.ImportRefuel:
		return func(context.Context, api.Module, []uint64) { k.fuel.Set(3_000_000) }
	case module == meter.ImportModule:
		return func(context.Context, api.Module, []uint64) { panic("the guest's stack is too deep") }
	case k.authority != nil:
		fn, _ := abi.FunctionByName(name)
		return func(ctx context.Context, m api.Module, stack []uint64) {
			stack[0] = uint64(boundary.Call(ctx, boundary.From(ctx), fn, m.Memory(), stack[:params]))
		}
	}
	return plainFunction(&k.exchange, name)
}

// Call implements [Contender].
func (k *Kept) Call(ctx context.Context, input []byte) ([]byte, error) {
	if k.fuel != nil {
		k.depth.Set(k.start)
		k.fuel.Set(0)
	}
	if k.authority != nil {
		return k.invoke(ctx, input)
	}
	k.exchange.input, k.exchange.output = input, nil
	r, err := k.run.Call(ctx)
	if err != nil {
		return nil, err
	}
	if r[0] != 0 {
		return nil, fmt.Errorf("the guest returned %d", r[0])
	}
	return k.exchange.output, nil
}

// invoke is a call with the state of an invocation: budgets, labels, receipt.
func (k *Kept) invoke(ctx context.Context, input []byte) ([]byte, error) {
	inv := boundary.New(boundary.Spec{Authority: k.authority, Input: input})
	ctx, cancel := context.WithDeadline(boundary.With(ctx, inv), k.authority.Spec().Deadline)
	defer cancel()
	inv.Enter(boundary.PhaseInitialize)
	inv.Enter(boundary.PhaseRun)
	if k.fuel != nil {
		inv.Meter(k.fuel)
	}
	r, err := k.run.Call(ctx)
	if k.fuel != nil {
		inv.Unmeter()
	}
	if err != nil {
		return nil, err
	}
	if r[0] != 0 {
		return nil, fmt.Errorf("the guest returned %d", r[0])
	}
	o := inv.Conclude(ctx, nil, 0)
	if o.Err != nil {
		return nil, o.Err
	}
	return o.Output, nil
}

// Close implements [Contender].
func (k *Kept) Close() { _ = k.runtime.Close(context.Background()) }

// Run is a whole invocation of the host, state restored, under an authority made for it.
func (h *Host) Run(ctx context.Context, a *authority.Authority, input []byte) ([]byte, error) {
	return (&fresh{h.host, a}).Call(ctx, input)
}

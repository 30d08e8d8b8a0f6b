package engine

import (
	"context"
	"maps"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/extism"
	"github.com/ecotone-dev/ecotone/host/meter"
	"github.com/ecotone-dev/ecotone/host/wasi"
)

// LinkSet says which host functions an instance is linked to. There are as many as there are
// reaches, times two; the zero value links none.
type LinkSet struct {
	Reach abi.Reach // min(capability, environment)
	Files bool      // the session has a workspace
}

// LinkSetOf is the set an authority is given. What the guest may do with the functions in it
// is asked on every call all the same.
func LinkSetOf(a *authority.Authority) LinkSet {
	spec := a.Spec()
	return LinkSet{Reach: spec.Reach, Files: spec.Workspace != ""}
}

// Has reports whether fn is in the set. Every other function of the table is a stub.
func (s LinkSet) Has(fn *abi.Function) bool {
	return fn.Reach.Within(s.Reach) && (fn.Group != abi.GroupFiles || s.Files)
}

// links are the host modules of one link set within one runtime, by import module. They hold no state:
// which invocation calls is in the call's context.
type links map[string]api.Module

// linkModule fills one host module for a link set.
type linkModule func(b wazero.HostModuleBuilder, set LinkSet)

// faces says what the guests of each face are linked to. Every face has what meters it besides.
var faces = map[abi.Face]map[string]linkModule{
	abi.FaceNative: {abi.Module: hostFunctions, abi.WASIModule: doors(wasi.Native())},
	abi.FaceWASI:   {abi.WASIModule: doors(wasi.Full())},
	abi.FaceExtism: {abi.ExtismModule: doors(extism.Doors()), abi.WASIModule: doors(wasi.Full())},
}

func newLinks(ctx context.Context, r wazero.Runtime, face abi.Face, set LinkSet) (links, error) {
	all := maps.Clone(faces[face])
	all[meter.ImportModule] = meterFunctions
	l := make(links, len(all))
	for name, fill := range all {
		b := r.NewHostModuleBuilder(name)
		fill(b, set)
		module, err := instantiateNameless(ctx, r, b)
		if err != nil {
			return nil, err
		}
		l[name] = module
	}
	return l, nil
}

func hostFunctions(b wazero.HostModuleBuilder, set LinkSet) {
	for i := range abi.Functions() {
		fn := &abi.Functions()[i]
		f := denied(fn)
		if set.Has(fn) {
			f = called(fn)
		}
		b.NewFunctionBuilder().WithGoModuleFunction(f, paramTypes(fn), i64).Export(fn.Name)
	}
}

func meterFunctions(b wazero.HostModuleBuilder, _ LinkSet) {
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(refuel), nil, nil).Export(meter.ImportRefuel)
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(overflow), nil, nil).Export(meter.ImportOverflow)
}

// doors links a face's functions, whatever the link set: what they may do is asked where they do it.
func doors(table []boundary.Door) linkModule {
	return func(b wazero.HostModuleBuilder, _ LinkSet) {
		for i := range table {
			d := &table[i]
			b.NewFunctionBuilder().WithGoModuleFunction(opened(d), valueTypes(d.Signature.Params), valueTypes(d.Signature.Results)).Export(d.Name)
		}
	}
}

// instantiateNameless makes a module that is found by the import resolver only, so that one
// runtime can hold one for each link set.
func instantiateNameless(ctx context.Context, r wazero.Runtime, b wazero.HostModuleBuilder) (api.Module, error) {
	compiled, err := b.Compile(ctx)
	if err != nil {
		return nil, err
	}
	return r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(""))
}

// resolve is the context under which a guest's imports are resolved to these modules.
func (l links) resolve(ctx context.Context) context.Context {
	return experimental.WithImportResolver(ctx, func(module string) api.Module {
		if m, ok := l[module]; ok {
			return m
		}
		return nil
	})
}

func called(fn *abi.Function) api.GoModuleFunc {
	n := len(fn.Params)
	return func(ctx context.Context, guest api.Module, stack []uint64) {
		inv := boundary.From(ctx)
		stack[0] = uint64(boundary.Call(ctx, inv, fn, guest.Memory(), stack[:n]))
		unwindIfOver(inv)
	}
}

func denied(fn *abi.Function) api.GoModuleFunc {
	return func(ctx context.Context, _ api.Module, stack []uint64) {
		inv := boundary.From(ctx)
		stack[0] = uint64(boundary.Deny(ctx, inv, fn))
		unwindIfOver(inv)
	}
}

func opened(d *boundary.Door) api.GoModuleFunc {
	n, answers := len(d.Signature.Params), len(d.Signature.Results) > 0
	return func(ctx context.Context, guest api.Module, stack []uint64) {
		inv := boundary.From(ctx)
		result := boundary.Foreign(ctx, inv, d, guest.Memory(), stack[:n])
		if answers {
			stack[0] = result
		}
		unwindIfOver(inv)
	}
}

// unwind is what a host function panics with to end a guest that must not run on. The engine
// underneath recovers it and gives it back as an error of the guest's call.
type unwind struct{}

func (unwind) Error() string { return "the invocation is over" }

func unwindIfOver(inv *boundary.Invocation) {
	if inv.Over() != nil {
		panic(unwind{})
	}
}

var i64 = []api.ValueType{api.ValueTypeI64}

func paramTypes(fn *abi.Function) []api.ValueType {
	types := make([]api.ValueType, len(fn.Params))
	for i, p := range fn.Params {
		types[i] = api.ValueType(p.Type)
	}
	return types
}

func valueTypes(in []abi.ValueType) []api.ValueType {
	types := make([]api.ValueType, len(in))
	for i, t := range in {
		types[i] = api.ValueType(t)
	}
	return types
}

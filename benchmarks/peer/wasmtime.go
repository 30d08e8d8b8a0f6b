//go:build wasmtime && cgo

package peer

import (
	"context"
	"fmt"

	"github.com/bytecodealliance/wasmtime-go/v25"

	"github.com/ecotone-dev/ecotone/abi"
)

// WasmtimeMissing is why there are no wasmtime rows; "" when there are.
const WasmtimeMissing = ""

// Wasmtime is a module compiled by wasmtime-go.
type Wasmtime struct {
	engine   *wasmtime.Engine
	module   *wasmtime.Module
	linker   *wasmtime.Linker
	start    bool // it exports _initialize
	exchange exchange
}

// NewWasmtime compiles a module with Cranelift at its default optimisation, without fuel and
// without epochs. Engine, module and linker are shared by all instances.
func NewWasmtime(module []byte) (*Wasmtime, error) {
	w := &Wasmtime{engine: wasmtime.NewEngine()}
	var err error
	if w.module, err = wasmtime.NewModule(w.engine, module); err != nil {
		return nil, err
	}
	for _, e := range w.module.Exports() {
		w.start = w.start || e.Name() == "_initialize"
	}
	w.linker = wasmtime.NewLinker(w.engine)
	if err := w.linker.DefineWasi(); err != nil {
		return nil, err
	}
	for _, i := range w.module.Imports() {
		if i.Module() != abi.Module {
			continue
		}
		if err := w.linker.FuncNew(i.Module(), *i.Name(), i.Type().FuncType(), w.host(*i.Name())); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *Wasmtime) host(name string) func(*wasmtime.Caller, []wasmtime.Val) ([]wasmtime.Val, *wasmtime.Trap) {
	answer := func(n int64) ([]wasmtime.Val, *wasmtime.Trap) { return []wasmtime.Val{wasmtime.ValI64(n)}, nil }
	memory := func(c *wasmtime.Caller) []byte { return c.GetExport("memory").Memory().UnsafeData(c) }
	switch name {
	case "input":
		return func(*wasmtime.Caller, []wasmtime.Val) ([]wasmtime.Val, *wasmtime.Trap) {
			return answer(int64(len(w.exchange.input)))
		}
	case "result_read":
		return func(c *wasmtime.Caller, a []wasmtime.Val) ([]wasmtime.Val, *wasmtime.Trap) {
			return answer(w.exchange.read(memory(c), uint32(a[0].I32()), uint32(a[1].I32()), uint32(a[2].I32())))
		}
	case "output":
		return func(c *wasmtime.Caller, a []wasmtime.Val) ([]wasmtime.Val, *wasmtime.Trap) {
			return answer(w.exchange.write(memory(c), uint32(a[0].I32()), uint32(a[1].I32())))
		}
	}
	return func(*wasmtime.Caller, []wasmtime.Val) ([]wasmtime.Val, *wasmtime.Trap) { return answer(-1) }
}

type wasmtimeInstance struct {
	w     *Wasmtime
	store *wasmtime.Store
	run   *wasmtime.Func
}

func (w *Wasmtime) instance(export string) (*wasmtimeInstance, error) {
	store := wasmtime.NewStore(w.engine)
	store.SetWasi(wasmtime.NewWasiConfig())
	i, err := w.linker.Instantiate(store, w.module)
	if err != nil {
		store.Close()
		return nil, err
	}
	if w.start {
		if _, err := i.GetFunc(store, "_initialize").Call(store); err != nil {
			store.Close()
			return nil, err
		}
	}
	return &wasmtimeInstance{w, store, i.GetFunc(store, export)}, nil
}

// Call implements [Contender].
func (i *wasmtimeInstance) Call(_ context.Context, input []byte) ([]byte, error) {
	i.w.exchange.input, i.w.exchange.output = input, nil
	r, err := i.run.Call(i.store)
	if err != nil {
		return nil, err
	}
	if code, _ := r.(int32); code != 0 {
		return nil, fmt.Errorf("the guest returned %d", code)
	}
	return i.w.exchange.output, nil
}

// Close implements [Contender].
func (i *wasmtimeInstance) Close() { i.store.Close() }

// Close frees the compiled module.
func (w *Wasmtime) Close() {
	w.linker.Close()
	w.module.Close()
	w.engine.Close()
}

// New is a contender that makes a store and an instance for each call.
func (w *Wasmtime) New(export string) Contender { return wasmtimeNew{w, export} }

type wasmtimeNew struct {
	w      *Wasmtime
	export string
}

func (c wasmtimeNew) Call(ctx context.Context, input []byte) ([]byte, error) {
	i, err := c.w.instance(c.export)
	if err != nil {
		return nil, err
	}
	defer i.Close()
	return i.Call(ctx, input)
}

func (c wasmtimeNew) Close() {}

// Reused is a contender that calls one instance again and again.
func (w *Wasmtime) Reused(export string) (Contender, error) { return w.instance(export) }

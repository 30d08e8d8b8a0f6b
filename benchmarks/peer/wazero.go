package peer

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/ecotone-dev/ecotone/abi"
)

// Wazero is a module compiled by wazero, and what its instances share.
type Wazero struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	config   wazero.ModuleConfig
	exchange exchange
}

// NewWazero compiles a module with wazero's compiler. checks turns on the engine's context
// checks, without which a guest has no deadline at all.
func NewWazero(ctx context.Context, module []byte, checks bool) (*Wazero, error) {
	w := &Wazero{
		runtime: wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCloseOnContextDone(checks)),
		config:  wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").WithRandSource(rand.Reader),
	}
	if err := w.compile(ctx, module); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (w *Wazero) compile(ctx context.Context, module []byte) (err error) {
	if _, err = wasi_snapshot_preview1.Instantiate(ctx, w.runtime); err != nil {
		return err
	}
	if w.compiled, err = w.runtime.CompileModule(ctx, module); err != nil {
		return err
	}
	host := w.runtime.NewHostModuleBuilder(abi.Module)
	for _, f := range w.compiled.ImportedFunctions() {
		if module, name, _ := f.Import(); module == abi.Module {
			host.NewFunctionBuilder().WithGoModuleFunction(plainFunction(&w.exchange, name), f.ParamTypes(), f.ResultTypes()).Export(name)
		}
	}
	_, err = host.Instantiate(ctx)
	return err
}

// plainFunction is a host function of the guests, on an exchange that is one caller's.
func plainFunction(e *exchange, name string) api.GoModuleFunc {
	memory := func(m api.Module) []byte {
		mem, _ := m.Memory().Read(0, m.Memory().Size())
		return mem
	}
	switch name {
	case "input":
		return func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = uint64(len(e.input)) }
	case "result_read":
		return func(_ context.Context, m api.Module, s []uint64) {
			s[0] = uint64(e.read(memory(m), uint32(s[0]), uint32(s[1]), uint32(s[2])))
		}
	case "output":
		return func(_ context.Context, m api.Module, s []uint64) {
			s[0] = uint64(e.write(memory(m), uint32(s[0]), uint32(s[1])))
		}
	}
	return func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = ^uint64(0) }
}

// Close frees the compiled module and everything made of it.
func (w *Wazero) Close() { _ = w.runtime.Close(context.Background()) }

func (w *Wazero) call(ctx context.Context, f api.Function, input []byte) ([]byte, error) {
	w.exchange.input, w.exchange.output = input, nil
	r, err := f.Call(ctx)
	if err != nil {
		return nil, err
	}
	if r[0] != 0 {
		return nil, fmt.Errorf("the guest returned %d", r[0])
	}
	return w.exchange.output, nil
}

// New is a contender that makes an instance for each call.
func (w *Wazero) New(export string) Contender { return wazeroNew{w, export} }

type wazeroNew struct {
	w      *Wazero
	export string
}

func (c wazeroNew) Call(ctx context.Context, input []byte) ([]byte, error) {
	m, err := c.w.runtime.InstantiateModule(ctx, c.w.compiled, c.w.config)
	if err != nil {
		return nil, err
	}
	defer m.Close(ctx)
	return c.w.call(ctx, m.ExportedFunction(c.export), input)
}

func (c wazeroNew) Close() {}

// Reused is a contender that calls one instance again and again, state and all.
func (w *Wazero) Reused(ctx context.Context, export string) (Contender, error) {
	m, err := w.runtime.InstantiateModule(ctx, w.compiled, w.config)
	if err != nil {
		return nil, err
	}
	return &wazeroReused{w, m, m.ExportedFunction(export)}, nil
}

type wazeroReused struct {
	w *Wazero
	m api.Module
	f api.Function
}

func (c *wazeroReused) Call(ctx context.Context, input []byte) ([]byte, error) {
	return c.w.call(ctx, c.f, input)
}

func (c *wazeroReused) Close() { _ = c.m.Close(context.Background()) }

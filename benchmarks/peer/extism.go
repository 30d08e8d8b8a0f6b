package peer

import (
	"context"
	"fmt"

	extism "github.com/extism/go-sdk"
)

// Extism is a plug-in compiled by extism/go-sdk.
type Extism struct{ plugin *extism.CompiledPlugin }

// NewExtism compiles a plug-in, with WASI as its Go PDK needs it and otherwise the SDK's
// defaults: no timeout, so no context checks.
func NewExtism(ctx context.Context, plugin []byte) (*Extism, error) {
	manifest := extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: plugin}}}
	p, err := extism.NewCompiledPlugin(ctx, manifest, extism.PluginConfig{EnableWasi: true}, nil)
	if err != nil {
		return nil, err
	}
	return &Extism{p}, nil
}

// Close frees the plug-in.
func (e *Extism) Close() { _ = e.plugin.Close(context.Background()) }

func callExtism(ctx context.Context, p *extism.Plugin, export string, input []byte) ([]byte, error) {
	code, out, err := p.CallWithContext(ctx, export, input)
	if err != nil {
		return nil, err
	}
	if code != 0 {
		return nil, fmt.Errorf("the plug-in returned %d", code)
	}
	return out, nil
}

// New is a contender that makes a plug-in instance for each call.
func (e *Extism) New(export string) Contender { return extismNew{e, export} }

type extismNew struct {
	e      *Extism
	export string
}

func (c extismNew) Call(ctx context.Context, input []byte) ([]byte, error) {
	p, err := c.e.plugin.Instance(ctx, extism.PluginInstanceConfig{})
	if err != nil {
		return nil, err
	}
	defer p.Close(ctx)
	out, err := callExtism(ctx, p, c.export, input)
	return append([]byte(nil), out...), err
}

func (c extismNew) Close() {}

// Reused is a contender that calls one instance again and again.
func (e *Extism) Reused(ctx context.Context, export string) (Contender, error) {
	p, err := e.plugin.Instance(ctx, extism.PluginInstanceConfig{})
	if err != nil {
		return nil, err
	}
	return &extismReused{p, export}, nil
}

type extismReused struct {
	p      *extism.Plugin
	export string
}

func (c *extismReused) Call(ctx context.Context, input []byte) ([]byte, error) {
	return callExtism(ctx, c.p, c.export, input)
}

func (c *extismReused) Close() { _ = c.p.Close(context.Background()) }

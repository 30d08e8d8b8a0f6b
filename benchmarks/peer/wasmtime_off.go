//go:build !wasmtime || !cgo

package peer

import "errors"

// WasmtimeMissing is why there are no wasmtime rows; "" when there are.
const WasmtimeMissing = "built without the tag wasmtime: it needs a C compiler"

// Wasmtime is not there.
type Wasmtime struct{}

// NewWasmtime fails.
func NewWasmtime([]byte) (*Wasmtime, error) { return nil, errors.New(WasmtimeMissing) }

// Close does nothing.
func (*Wasmtime) Close() {}

// New is never reached.
func (*Wasmtime) New(string) Contender { return nil }

// Reused fails.
func (*Wasmtime) Reused(string) (Contender, error) { return nil, errors.New(WasmtimeMissing) }

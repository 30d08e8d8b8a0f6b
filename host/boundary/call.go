package boundary

import (
	"context"

	"github.com/ecotone-dev/ecotone/abi"
)

// Call makes one host call. args are the raw WebAssembly parameters in the order of
// fn.Params. It returns what the guest sees: ≥ 0 a length or value, < 0 a negated errno. The
// caller must look at [Invocation.Over] before going back into the guest.
func Call(ctx context.Context, inv *Invocation, fn *abi.Function, mem Memory, args []uint64) int64 {
	return -int64(abi.EDENIED)
}

// Deny is what a function outside the link set resolves to: it records the refusal and
// answers EDENIED without looking at the arguments (S9).
func Deny(ctx context.Context, inv *Invocation, fn *abi.Function) int64 {
	return -int64(abi.EDENIED)
}

// WASI makes one call of the WASI subset and returns its WASI errno. The caller must look at
// [Invocation.Over] before going back into the guest.
func WASI(ctx context.Context, inv *Invocation, name string, mem Memory, args []uint64) int32 {
	return abi.WASINosys
}

//go:build wasip1

// Command ecotone is the benchmark's Go guest behind the Ecotone ABI, as the SDK's users write
// one.
package main

import (
	"github.com/ecotone-dev/ecotone/benchmarks/guests/logic"
	"github.com/ecotone-dev/ecotone/guest"
)

func main() {}

var (
	summing   = guest.Capability(logic.Sum)
	computing = guest.Capability(logic.Compute)
)

//go:wasmexport sum
func sum() int32 { return summing() }

//go:wasmexport compute
func compute() int32 { return computing() }

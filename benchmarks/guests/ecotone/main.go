//go:build wasip1

// Command ecotone is the benchmark's Go guest behind the Ecotone ABI. The wazero and
// wasmtime-go peers run the same bytes, behind the three host functions it uses.
package main

import (
	"github.com/ecotone-dev/ecotone/benchmarks/guests/logic"
	"github.com/ecotone-dev/ecotone/guest/core"
)

func main() {}

func answer(f func([]byte) ([]byte, error)) int32 {
	in, err := core.Input()
	if err == nil {
		if in, err = f(in); err == nil {
			err = core.Output(in)
		}
	}
	if err != nil {
		_ = core.Fail("FAILED", err.Error())
		return 1
	}
	return 0
}

//go:wasmexport sum
func sum() int32 { return answer(logic.Sum) }

//go:wasmexport compute
func compute() int32 { return answer(logic.Compute) }

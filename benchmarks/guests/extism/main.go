//go:build wasip1

// Command extism is the benchmark's Go guest as an Extism plug-in, with Extism's Go PDK.
package main

import (
	"github.com/extism/go-pdk"

	"github.com/ecotone-dev/ecotone/benchmarks/guests/logic"
)

func main() {}

func answer(f func([]byte) ([]byte, error)) int32 {
	out, err := f(pdk.Input())
	if err != nil {
		pdk.SetError(err)
		return 1
	}
	pdk.Output(out)
	return 0
}

var (
	summing   = logic.JSONed(logic.Sum)
	computing = logic.JSONed(logic.Compute)
)

//go:wasmexport sum
func sum() int32 { return answer(summing) }

//go:wasmexport compute
func compute() int32 { return answer(computing) }

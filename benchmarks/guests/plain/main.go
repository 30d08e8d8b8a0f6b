//go:build wasip1

// Command plain is the benchmark's Go guest without an SDK, as one would write it for a host that
// keeps instances: it makes nothing ready when it starts. It is what wazero and wasmtime-go run, so
// that a new instance of theirs does not pay for what only an image is made for.
package main

import "github.com/ecotone-dev/ecotone/benchmarks/guests/logic"

func main() {}

//go:wasmimport ecotone_v1 input
func input() int64

//go:wasmimport ecotone_v1 result_read
func resultRead(at *byte, off, n uint32) int64

//go:wasmimport ecotone_v1 output
func output(text string) int64

func answer(f func([]byte) ([]byte, error)) int32 {
	in := make([]byte, max(input(), 1))
	n := resultRead(&in[0], 0, uint32(len(in)))
	if n < 0 {
		return 1
	}
	out, err := f(in[:n])
	if err != nil || output(string(out)) < 0 {
		return 1
	}
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

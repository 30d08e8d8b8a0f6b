//go:build wasip1

// Command kernels is what metering is measured on: code that calls no host.
package main

import "github.com/ecotone-dev/ecotone/benchmarks/guests/logic"

func main() {}

//go:wasmexport sha256
func sha256(n int32) int32 { return logic.SHA256(n) }

//go:wasmexport sort
func sort(n int32) int32 { return logic.Sort(n) }

//go:wasmexport json
func json(n int32) int32 { return logic.JSON(n) }

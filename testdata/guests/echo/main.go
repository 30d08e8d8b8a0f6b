// Command echo answers its input. It is the smallest module the Go SDK makes.
package main

import "github.com/ecotone-dev/ecotone/guest/core"

func main() {}

//go:wasmexport echo
func echo() int32 {
	in, err := core.Input()
	if err == nil {
		err = core.Output(in)
	}
	if err != nil {
		_ = core.Fail("ECHO_FAILED", err.Error())
		return 1
	}
	return 0
}

// Package guest is the Go SDK for biome authors: every host function of the ABI as a Go
// function, and a helper that makes a capability of a function from one struct to another.
//
// A biome is a main package built as a reactor:
//
//	package main
//
//	import "github.com/ecotone-dev/ecotone/guest"
//
//	func main() {}
//
//	var greet = guest.Capability(greeting)
//
//	//go:wasmexport greet
//	func exportGreet() int32 { return greet() }
//
//	func greeting(in struct{ Name string }) (string, error) { return "hello " + in.Name, nil }
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags='-s -w'
//
// It promises that a refusal is a value: what the host denies comes back as an error that is
// an [Errno] (use errors.Is), and the capability may go on without it. It never retries and
// keeps nothing between invocations. It imports the standard library and the error numbers
// of the ABI, no more, so that modules stay small.
//
// Every invocation begins with the memory the module's initialiser left. This package prepares the
// Go runtime there, [Capability] the JSON of a capability's input and output, and [Warm] whatever
// else the first call would pay for: nothing of it has authority.
//
// Outside a module the same code runs against the fake host of package guesttest.
package guest

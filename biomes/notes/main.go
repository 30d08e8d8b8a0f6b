// Command notes is the biome that keeps short texts in its key space: put, get, list and
// delete by id. It promises that a note reads back as it was put, and knows nothing of whose
// notes they are: the host gives each space its own keys.
package main

import "github.com/ecotone-dev/ecotone/guest"

func main() {}

//go:wasmexport put
func put() int32 { return guest.Handle(doPut) }

//go:wasmexport get
func get() int32 { return guest.Handle(doGet) }

//go:wasmexport list
func list() int32 { return guest.Handle(doList) }

//go:wasmexport delete
func deleteNote() int32 { return guest.Handle(doDelete) }

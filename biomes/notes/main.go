// Command notes is the biome that keeps short texts in its key space: put, get, list and
// delete by id. It promises that a note reads back as it was put, and knows nothing of whose
// notes they are: the host gives each space its own keys.
package main

import "github.com/ecotone-dev/ecotone/guest"

func main() {}

var (
	putting  = guest.Capability(doPut)
	getting  = guest.Capability(doGet)
	listing  = guest.Capability(doList)
	deleting = guest.Capability(doDelete)
)

//go:wasmexport put
func put() int32 { return putting() }

//go:wasmexport get
func get() int32 { return getting() }

//go:wasmexport list
func list() int32 { return listing() }

//go:wasmexport delete
func deleteNote() int32 { return deleting() }

// Command workspace is the biome of the file tools: read, list, write, edit, copy, move,
// remove, grep and glob over the session's workspace. It promises bounded answers that say
// where they were cut and how to go on; everything else (confinement, versions, read before
// overwrite) is the host's, and its refusals are passed on by name.
package main

import "github.com/ecotone-dev/ecotone/guest"

func main() {}

var (
	reading  = guest.Capability(named(doRead))
	listing  = guest.Capability(named(doList))
	writing  = guest.Capability(named(doWrite))
	editing  = guest.Capability(named(doEdit))
	copying  = guest.Capability(named(doCopy))
	moving   = guest.Capability(named(doMove))
	removing = guest.Capability(named(doRemove))
	grepping = guest.Capability(named(doGrep))
	globbing = guest.Capability(named(doGlob))
)

//go:wasmexport read
func read() int32 { return reading() }

//go:wasmexport list
func list() int32 { return listing() }

//go:wasmexport write
func write() int32 { return writing() }

//go:wasmexport edit
func edit() int32 { return editing() }

//go:wasmexport copy
func copyFile() int32 { return copying() }

//go:wasmexport move
func move() int32 { return moving() }

//go:wasmexport remove
func remove() int32 { return removing() }

//go:wasmexport grep
func grep() int32 { return grepping() }

//go:wasmexport glob
func glob() int32 { return globbing() }

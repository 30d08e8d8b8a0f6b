// Command workspace is the biome of the file tools: read, list, write, edit, copy, move,
// remove, grep and glob over the session's workspace. It promises bounded answers that say
// where they were cut and how to go on; everything else (confinement, versions, read before
// overwrite) is the host's, and its refusals are passed on by name.
package main

import "github.com/ecotone-dev/ecotone/guest"

func main() {}

//go:wasmexport read
func read() int32 { return guest.Handle(named(doRead)) }

//go:wasmexport list
func list() int32 { return guest.Handle(named(doList)) }

//go:wasmexport write
func write() int32 { return guest.Handle(named(doWrite)) }

//go:wasmexport edit
func edit() int32 { return guest.Handle(named(doEdit)) }

//go:wasmexport copy
func copyFile() int32 { return guest.Handle(named(doCopy)) }

//go:wasmexport move
func move() int32 { return guest.Handle(named(doMove)) }

//go:wasmexport remove
func remove() int32 { return guest.Handle(named(doRemove)) }

//go:wasmexport grep
func grep() int32 { return guest.Handle(named(doGrep)) }

//go:wasmexport glob
func glob() int32 { return guest.Handle(named(doGlob)) }

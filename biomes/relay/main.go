// Command relay is the biome that invokes another capability by the ref it is given. It adds
// no right to its caller's: the host asks the install grant, the biome's own grant and the
// subject's. A refusal or a failed child is a part of its answer, not a failure of the relay.
package main

import "github.com/ecotone-dev/ecotone/guest"

func main() {}

var invoking = guest.Capability(doInvoke)

//go:wasmexport invoke
func invoke() int32 { return invoking() }

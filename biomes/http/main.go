// Command http is the biome that fetches a page from an origin. It promises bounded answers
// that say when they were cut. Which origins, methods, paths and secrets are allowed is the
// host's to say; a refusal is passed on by name.
package main

import "github.com/ecotone-dev/ecotone/guest"

func main() {}

var fetching = guest.Capability(doFetch)

//go:wasmexport fetch
func fetch() int32 { return fetching() }

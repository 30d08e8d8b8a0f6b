//go:build !wasip1

package guest

import "embed"

// Source is the source of this package and of those below it that a biome needs, for the command line,
// which puts it into new biomes. It is not in a module.
//
//go:embed *.go core/*.go guesttest/*.go internal/call/*.go internal/imports/*.go internal/warm/*.go
var Source embed.FS

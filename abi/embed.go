//go:build !wasip1

package abi

import "embed"

// Source is the source of this package and of the error numbers, for the command line, which puts it
// into new biomes in Go: their tests run against it.
//
//go:embed *.go errno/*.go
var Source embed.FS

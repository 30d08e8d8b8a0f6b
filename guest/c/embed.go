// Package c holds the C binding of the ABI: the one header a biome in C includes. It is a Go
// package so that the command line can put the header into a new biome without a download.
package c

import "embed"

// Files has ecotone.h at its root.
//
//go:embed ecotone.h
var Files embed.FS

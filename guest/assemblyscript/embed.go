// Package assemblyscript holds the AssemblyScript binding of the ABI. It is a Go package so that the
// command line can put the binding into a new biome without a download.
package assemblyscript

import "embed"

// Files has package.json and assembly at its root.
//
//go:embed package.json assembly
var Files embed.FS

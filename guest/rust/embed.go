// Package rust holds the Rust binding of the ABI: a crate without dependencies. It is a Go package
// so that the command line can put the crate into a new biome without a download.
package rust

import "embed"

// Files has Cargo.toml and src at its root.
//
//go:embed Cargo.toml src
var Files embed.FS

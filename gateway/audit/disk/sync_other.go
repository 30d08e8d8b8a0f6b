//go:build !linux

package disk

import "os"

// Sync makes the written bytes of a file durable, and its size.
func Sync(f *os.File) error { return f.Sync() }

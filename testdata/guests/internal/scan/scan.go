// Package scan lets a test guest search its own linear memory for bytes that must not be
// there. What is searched for comes masked, so that the search does not find itself.
package scan

import (
	"bytes"
	"encoding/hex"
	"unsafe"
)

// Mask is what every byte of a needle is combined with (exclusive or) before it is written
// in hex.
const Mask = 0xa5

// pages is the memory.size instruction: the module's memory in units of 64 KiB.
func pages() uint32

// Size is the length of linear memory, in bytes.
func Size() int64 { return int64(pages()) << 16 }

// low is the first address looked at: Go uses nothing below, and treats it as nil.
const low = 4096

// Find returns the indexes of the masked needles that are in memory. Those that are not hex,
// or shorter than four bytes, are never found.
func Find(masked []string) []int {
	found := []int{}
	for i, text := range masked {
		needle, err := hex.DecodeString(text)
		if err == nil && len(needle) >= 4 && contains(needle) {
			found = append(found, i)
		}
	}
	return found
}

// contains looks at every byte of linear memory.
//
// Invariant: [low, Size) is memory of this module, which never shrinks and holds no Go
// pointer to anything else; the slice is read only and does not outlive the call.
func contains(needle []byte) bool {
	memory := unsafe.Slice((*byte)(unsafe.Pointer(uintptr(low))), Size()-low)
	last := len(memory) - len(needle)
	first := needle[0] ^ Mask
	for at := 0; at <= last; at++ {
		skip := bytes.IndexByte(memory[at:last+1], first)
		if skip < 0 {
			return false
		}
		at += skip
		j := 1
		for j < len(needle) && memory[at+j]^Mask == needle[j] {
			j++
		}
		if j == len(needle) {
			return true
		}
	}
	return false
}

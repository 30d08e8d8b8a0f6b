// Package percore is for what all cores would otherwise share on the fast path: it tells which of
// several copies a caller should use so that callers on different cores rarely meet, and counts
// the users of a thing in such copies.
//
// It promises nothing about which core a caller is on: a copy is a hint for speed, and everything
// here is right whatever the hint is.
package percore

import (
	"runtime"
	"sync"
	"sync/atomic"
)

var (
	// hints hands each processor of the scheduler back the number it gave last: that is what
	// makes a pool local. What the collector takes from it is made anew.
	hints = sync.Pool{New: func() any { n := next.Add(1) - 1; return &n }}
	next  atomic.Uint32
)

// Slot returns a number below n, which must not be 0: mostly the same one on one processor, and
// mostly different ones on different processors.
func Slot(n int) int {
	h := hints.Get().(*uint32)
	slot := *h
	hints.Put(h)
	return int(slot % uint32(n))
}

// Slots is how many copies are worth having.
func Slots() int { return runtime.GOMAXPROCS(0) }

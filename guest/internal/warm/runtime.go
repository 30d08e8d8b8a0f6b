// Package warm spends the initialiser's time on what every invocation would pay for again.
//
// A host that keeps the memory an initialiser left begins each invocation there, so what the
// Go runtime does the first time only (grow the stack, fetch a span for a size of object,
// make the first goroutine) is done before, and done once.
package warm

import (
	"runtime"
	"sync/atomic"
)

const (
	stackBytes = 16 << 10 // what encoding/json and fmt need, and then some
	frameBytes = 256
	largest    = 256 // larger sizes are met by few calls, and each would keep 8 KiB or more
	roomBytes  = 512 << 10
)

// Runtime prepares the stack of the calling goroutine, the allocator and the scheduler.
func Runtime() {
	room()
	deep(stackBytes / frameBytes)
	for size := 8; size <= largest; size += step(size) {
		data := make([]byte, size)
		bytes.Store(&data)
		refs := make([]*byte, size/ptrSize)
		pointers.Store(&refs)
	}
	bytes.Store(nil)
	pointers.Store(nil)
	done := make(chan struct{})
	go close(done)
	<-done
}

// room has the heap begin with free pages. An instance whose memory grew in a call is not put back
// to an image that was smaller, but made anew, and whether the next small object makes the memory
// grow would be chance. The collector runs here, before anything is warm, and not later: what it
// sweeps is cold again.
func room() {
	some := make([]byte, roomBytes)
	bytes.Store(&some)
	bytes.Store(nil)
	runtime.GC()
}

const ptrSize = 8 // on wasm too, for Go

// The sinks move what is made to the heap.
var (
	bytes    atomic.Pointer[[]byte]
	pointers atomic.Pointer[[]*byte]
)

// step is at most the distance between the allocator's sizes.
func step(size int) int {
	if size < 128 {
		return 8
	}
	return 16
}

//go:noinline
func deep(n int) byte {
	var frame [frameBytes]byte
	frame[n%frameBytes] = byte(n)
	if n > 0 {
		frame[0] += deep(n - 1)
	}
	return frame[n%frameBytes] + frame[0]
}

package main

import (
	"crypto/sha256"
	"runtime"
	"testing"
	"time"
)

// The clock of a probe sees work much shorter than a scheduler's tick, and sees none while its
// thread sleeps; so a quiet machine is not said to have waited all the time.
func TestProbeTimesItsThread(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a thread's processor time is Linux's")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var block [4096]byte
	last := threadCPU()
	for range 20 {
		d := sha256.Sum256(block[:]) // microseconds
		copy(block[:], d[:])
		now := threadCPU()
		if now <= last {
			t.Fatalf("hashing 4 KiB took %v of processor time", now-last)
		}
		last = now
	}
	begin := time.Now()
	time.Sleep(50 * time.Millisecond)
	if used, wall := threadCPU()-last, time.Since(begin); used >= wall {
		t.Errorf("a thread that slept %v used %v", wall, used)
	}
}

func TestNoiseOfProbes(t *testing.T) {
	w := newWatch()
	for range 3 {
		w.probe()
	}
	n := w.noise()
	if n.Probes != 9 {
		t.Errorf("%d probes", n.Probes)
	}
	if n.Waiting >= 1 || n.Waiting < 0 {
		t.Errorf("a probe that hashed all the time waited %v of it", n.Waiting)
	}
}

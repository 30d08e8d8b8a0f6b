package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadCPU is the processor time of the calling thread. The scheduler's clock counts nanoseconds,
// where getrusage counts ticks of a few milliseconds on many kernels: longer than a probe.
func threadCPU() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

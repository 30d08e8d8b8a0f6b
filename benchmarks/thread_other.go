//go:build !linux

package main

import "time"

// threadCPU is the processor time of the whole process, where there is no clock of a thread's: a
// probe runs while nothing else of the process does.
func threadCPU() time.Duration { return processCPU() }

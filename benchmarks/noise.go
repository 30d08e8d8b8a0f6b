package main

import (
	"crypto/sha256"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ecotone-dev/ecotone/benchmarks/report"
)

// watch looks, all through a run, at what the machine does beside it.
type watch struct {
	begin      ticks
	own        time.Duration
	wall, used []float64 // of each probe
}

// ticks are a machine's since it started, of all its processors.
type ticks struct{ busy, stolen, all float64 }

func newWatch() *watch {
	w := &watch{begin: machineTicks(), own: familyCPU()}
	w.probe() // which warms up
	w.wall, w.used = nil, nil
	return w
}

// probe does a fixed piece of work a few times: how long that takes says whether the processors
// are free, and how much of their time it takes whether they are steady.
func (w *watch) probe() {
	runtime.GC()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var block [4096]byte
	for range 3 {
		begin, used := time.Now(), threadCPU()
		for range 400 { // a few milliseconds
			d := sha256.Sum256(block[:])
			copy(block[:], d[:])
		}
		w.wall, w.used = append(w.wall, float64(time.Since(begin))), append(w.used, float64(threadCPU()-used))
	}
}

// noise is what came of it. It counts children that have been waited for.
func (w *watch) noise() report.Noise {
	e := report.Of(w.used)
	n := report.Noise{Waiting: max(0, 1-e.Mid/report.Of(w.wall).Mid), Probes: len(w.used)}
	if e.Mid > 0 {
		// Not the interval of the median, which many probes make narrow: where half of them lie.
		n.Unsteady = max(quantile(w.used, 0.75)/e.Mid-1, 1-quantile(w.used, 0.25)/e.Mid)
	}
	end := machineTicks()
	if all := end.all - w.begin.all; all > 0 {
		const tick = 100 // a second: USER_HZ, the same on every Linux
		own := (familyCPU() - w.own).Seconds() * tick
		n.Others = max(0, end.busy-w.begin.busy-own) / all
		n.Stolen = (end.stolen - w.begin.stolen) / all
	}
	return n
}

func machineTicks() (t ticks) {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	// cpu user nice system idle iowait irq softirq steal guest guest_nice; guests are in user.
	for i, f := range strings.Fields(line) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil || i > 8 {
			continue
		}
		t.all += v
		switch i {
		case 4, 5:
		case 8:
			t.stolen += v
		default:
			t.busy += v
		}
	}
	return t
}

// familyCPU is the processor time of this process and of the children it has waited for.
func familyCPU() time.Duration { return usage(syscall.RUSAGE_SELF) + usage(syscall.RUSAGE_CHILDREN) }

// processCPU is the processor time of this process, all threads.
func processCPU() time.Duration { return usage(syscall.RUSAGE_SELF) }

func usage(who int) time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

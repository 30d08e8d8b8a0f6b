package memory

import (
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A page becomes private by a page fault and in no other way, and the kernel counts the faults of
// each thread. So when a guest ran on one thread and that had no fault meanwhile, the pages that are
// private are those that the last scan found, and no scan is needed: asking for the count twice is
// a quarter of what looking at the page table of a Go guest costs. Any fault, for whatever reason,
// and any doubt means that the next Restore scans.

// stretch is the time since the last Restore, as far as the guest ran in it.
type stretch uint8

const (
	unwatched stretch = iota // nothing ran
	watched                  // it runs, on the thread that the goroutine is locked to
	quiet                    // it ran, and no page became private
	doubtful                 // nobody knows
)

// watch is what a region knows of who ran in it since it was restored.
type watch struct {
	stretch stretch
	faults  int64
	usage   unix.Rusage // the kernel's answer; here, so that it is on the heap
}

// Enter is called before a guest runs in the region, on the goroutine that runs it. Where that
// makes Restore cheaper, it ties the goroutine to its thread until Leave, or until Loosen.
func (r *Region) Enter() {
	w := &r.watch
	if w.stretch != unwatched || r.known == nil || !countsFaults() {
		w.stretch = doubtful
		return
	}
	runtime.LockOSThread()
	if w.faults = threadFaults(&w.usage); w.faults < 0 {
		runtime.UnlockOSThread()
		w.stretch = doubtful
		return
	}
	w.stretch = watched
}

// Loosen lets the goroutine change its thread from here on. It is for a guest that is about to wait
// or that has run for long, and may be called at any time between Enter and Leave, on their
// goroutine.
func (r *Region) Loosen() {
	if w := &r.watch; w.stretch == watched {
		w.stretch = doubtful
		runtime.UnlockOSThread()
	}
}

// Leave is called when the guest's call has returned, on the goroutine that called Enter.
func (r *Region) Leave() {
	w := &r.watch
	if w.stretch != watched {
		return
	}
	w.stretch = doubtful
	if threadFaults(&w.usage) == w.faults {
		w.stretch = quiet
	}
	runtime.UnlockOSThread()
}

// threadFaults counts the page faults of the calling thread since it began, or is negative. The
// system call cannot wait, so the scheduler need not know of it.
func threadFaults(use *unix.Rusage) int64 {
	_, _, errno := unix.RawSyscall(unix.SYS_GETRUSAGE, unix.RUSAGE_THREAD, uintptr(unsafe.Pointer(use)), 0)
	runtime.KeepAlive(use)
	if errno != 0 {
		return -1
	}
	return int64(use.Minflt) + int64(use.Majflt)
}

// countsFaults reports whether this kernel counts as is relied on: every page that becomes private
// is a fault of the thread that wrote, at once.
var countsFaults = sync.OnceValue(func() bool {
	const pages = 64
	r, err := Reserve(4 * granule)
	if err != nil {
		return false
	}
	defer r.Close()
	memory := r.Reallocate(4 * granule)
	image, err := r.Capture()
	if err != nil {
		return false
	}
	defer image.Close()
	if r.Map(image) != nil {
		return false
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	use := new(unix.Rusage)
	for n := range uint64(min(pages, 4*granule/int(systemPage))) {
		at := n * systemPage
		if n%2 == 0 && memory[at] != 0 { // read, it is a page of the image that is written then
			return false
		}
		before := threadFaults(use)
		memory[at] = 1
		if after := threadFaults(use); before < 0 || after <= before {
			return false
		}
	}
	return true
})

package memory

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// systemPage is what the kernel maps and copies by.
var systemPage = uint64(os.Getpagesize())

// scanner lists the private pages of mappings, through PAGEMAP_SCAN of Linux 6.7.
type scanner struct{ pagemap int }

// theScanner is the process's scanner, kept open for good, or nil when the kernel has none or it
// failed its test.
// Its first call must come before the process makes itself undumpable, which closes the file
// to everybody who has not opened it.
var theScanner = sync.OnceValue(func() *scanner {
	pagemap, err := unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	s := &scanner{pagemap}
	if s.test() != nil {
		_ = unix.Close(pagemap)
		return nil
	}
	return s
})

// Method names how regions are restored: "pagemap-scan" or "dontneed". Call it once early: it
// opens what scanning needs (see theScanner).
func Method() string {
	if theScanner() == nil {
		return "dontneed"
	}
	return "pagemap-scan"
}

// From linux/fs.h, not in x/sys.
const (
	pagemapScan = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)

	pageIsFile    = 1 << 2
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
)

// scanArg is struct pm_scan_arg.
type scanArg struct {
	size             uint64
	flags            uint64
	start, end       uint64
	walkEnd          uint64
	vec              uint64
	vecLen           uint64
	maxPages         uint64
	categoryInverted uint64
	categoryMask     uint64
	categoryAnyOf    uint64
	returnMask       uint64
}

// pageRegion is struct page_region.
type pageRegion struct{ start, end, _ uint64 } // the last: which categories, asked for and not needed

const regionsAtOnce = 64

// scratch is what one scan is asked with and answered in. The kernel gets its address, so it is
// on the heap, where the collector moves nothing.
type scratch struct {
	arg   scanArg
	found [regionsAtOnce]pageRegion
}

// private calls visit with the offsets of each run of pages that are private to the mapping:
// not of the file, and present or swapped out (S12). It stops when visit says so. memory
// begins at a page and is mapped; use must not be in use.
func (s *scanner) private(memory []byte, use *scratch, visit func(from, to uint64) bool) error {
	base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
	end := base + uint64(len(memory))
	for at := base; at < end; {
		use.arg = scanArg{
			size:  uint64(unsafe.Sizeof(use.arg)),
			start: at, end: end,
			vec: uint64(uintptr(unsafe.Pointer(&use.found))), vecLen: regionsAtOnce,
			categoryInverted: pageIsFile,
			categoryMask:     pageIsFile,
			categoryAnyOf:    pageIsPresent | pageIsSwapped,
			returnMask:       pageIsPresent | pageIsSwapped,
		}
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s.pagemap), pagemapScan, uintptr(unsafe.Pointer(&use.arg)))
		runtime.KeepAlive(use)
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return fmt.Errorf("memory: scan: %w", errno)
		case n > regionsAtOnce || use.arg.walkEnd <= at || use.arg.walkEnd > end:
			return errNonsense
		}
		for _, f := range use.found[:n] {
			if f.start < base || f.end > end || f.start >= f.end {
				return errNonsense
			}
			if !visit(f.start-base, f.end-base) {
				return nil
			}
		}
		at = use.arg.walkEnd
	}
	return nil
}

var (
	errScan     = errors.New("memory: scanning does not do here what it should")
	errNonsense = errors.New("memory: scan: the kernel's answer makes no sense")
)

// test holds the kernel to what Restore relies on: a page that was written is listed, also
// after it was sent to swap; a page that was read is not; a page that was dropped is not.
func (s *scanner) test() error {
	r, err := Reserve(4 * granule)
	if err != nil {
		return err
	}
	defer r.Close()
	memory := r.Reallocate(4 * granule)
	memory[2*granule] = 1
	image, err := r.Capture()
	if err != nil {
		return err
	}
	defer image.Close()
	if err := r.Map(image); err != nil {
		return err
	}
	expect := func(want ...uint64) error {
		var got []uint64
		if err := s.private(memory, new(scratch), func(from, to uint64) bool {
			for ; from < to; from += systemPage {
				got = append(got, from)
			}
			return true
		}); err != nil {
			return err
		}
		if len(got) != len(want) {
			return errScan
		}
		for i := range want {
			if got[i] != want[i] {
				return errScan
			}
		}
		return nil
	}
	if memory[2*granule] != 1 || memory[3*granule] != 0 { // two pages read
		return errScan
	}
	if err := expect(); err != nil {
		return err
	}
	memory[granule], memory[2*granule] = 7, 7 // a hole and a page of the file written
	if err := expect(granule, 2*granule); err != nil {
		return err
	}
	// To swap, where there is any; a hint that is not taken changes nothing.
	_ = unix.Madvise(memory, unix.MADV_PAGEOUT)
	if err := expect(granule, 2*granule); err != nil {
		return err
	}
	if memory[granule] != 7 || memory[2*granule] != 7 {
		return errScan
	}
	if err := r.drop(); err != nil {
		return err
	}
	if memory[granule] != 0 || memory[2*granule] != 1 {
		return errScan
	}
	return expect()
}

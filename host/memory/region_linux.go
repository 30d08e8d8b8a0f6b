package memory

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// granule is what sizes are multiples of: a page of WebAssembly, which every page size of Linux
// divides.
const granule = 64 << 10

// Region is the linear memory of one guest. It implements the engine's LinearMemory. It is
// not safe for concurrent use, and its owner must Close it.
type Region struct {
	base     unsafe.Pointer // nil when nothing is reserved
	reserved uint64
	size     uint64 // what the guest has; readable and writable
	image    *Image // what lies at base, or nil
	private  uint64 // bytes that were private after the last Restore
	known    []span // what was, if they were found by a scan; in order
	watch    watch
	scan     *scratch
}

// span is the bytes of a region from one offset to another.
type span struct{ from, to uint64 }

// Reserve makes an empty region that can grow to limit bytes, rounded down to whole pages of
// 64 KiB.
func Reserve(limit uint64) (*Region, error) {
	r := &Region{reserved: limit &^ (granule - 1)}
	if r.reserved == 0 {
		return r, nil
	}
	base, err := unix.MmapPtr(-1, 0, nil, uintptr(r.reserved), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("memory: reserve %d bytes: %w", limit, err)
	}
	r.base = base
	if err := r.plainPages(r.reserved); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// plainPages turns off huge pages and merging for the first n bytes. A kernel built without
// either answers EINVAL, and does neither.
func (r *Region) plainPages(n uint64) error {
	for _, advice := range []int{unix.MADV_NOHUGEPAGE, unix.MADV_UNMERGEABLE} {
		if err := unix.Madvise(unsafe.Slice((*byte)(r.base), n), advice); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("memory: advise %d: %w", advice, err)
		}
	}
	return nil
}

// Reallocate grows the region to size bytes and returns it, or returns nil when it cannot be
// that large. New bytes are zero. A region does not shrink: for a smaller size nothing changes.
func (r *Region) Reallocate(size uint64) []byte {
	if size > r.reserved {
		return nil
	}
	if size > r.size {
		added := unsafe.Slice((*byte)(unsafe.Add(r.base, r.size)), size-r.size)
		if unix.Mprotect(added, unix.PROT_READ|unix.PROT_WRITE) != nil {
			return nil
		}
		r.size = size
	}
	return r.bytes()
}

// Free does nothing: the owner closes the region, when no guest runs in it (S1).
func (r *Region) Free() {}

// Size is the number of bytes the guest has.
func (r *Region) Size() uint64 { return r.size }

// Private is the number of bytes that are not shared with the image, as the last Restore left
// them; before any, all that the region has.
func (r *Region) Private() uint64 {
	if r.image == nil {
		return r.size
	}
	return r.private
}

func (r *Region) bytes() []byte {
	if r.base == nil {
		return []byte{}
	}
	return unsafe.Slice((*byte)(r.base), r.size)
}

// Close gives the memory back. Nothing may use the region's bytes afterwards. Closing twice is
// closing once.
func (r *Region) Close() error {
	base, image := r.base, r.image
	r.base, r.image, r.size = nil, nil, 0
	var err error
	if base != nil {
		err = unix.MunmapPtr(base, uintptr(r.reserved))
	}
	r.reserved = 0
	if image != nil {
		err = errors.Join(err, image.release())
	}
	return err
}

// Image is a frozen memory. It is immutable and safe for concurrent use.
type Image struct {
	file  int
	size  uint64
	bytes []byte       // a read-only mapping of the whole file
	blank []bool       // of a small image: the pages that are zero
	users atomic.Int64 // regions mapped over it, and its maker until Close
}

// Size is the image's length in bytes.
func (i *Image) Size() uint64 { return i.size }

// Supported reports whether this platform has images.
func Supported() bool { return true }

// Capture freezes the region's bytes as they are. The region itself stays as it was; Map puts
// it over the image. Whoever captures closes the image.
func (r *Region) Capture() (*Image, error) {
	if r.size == 0 {
		return nil, errors.New("memory: an image of nothing")
	}
	file, err := unix.MemfdCreate("ecotone-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memory: memfd: %w", err)
	}
	i := &Image{file: file, size: r.size}
	i.users.Store(1)
	if err := i.fill(r.bytes()); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

// fill writes, seals and maps, in this order.
func (i *Image) fill(content []byte) error {
	if err := unix.Ftruncate(i.file, int64(len(content))); err != nil {
		return fmt.Errorf("memory: size the image: %w", err)
	}
	zero := make([]byte, granule)
	for at := 0; at < len(content); at += granule {
		page := content[at : at+granule]
		if bytes.Equal(page, zero) {
			continue // a hole reads as zero
		}
		if n, err := unix.Pwrite(i.file, page, int64(at)); n != len(page) {
			return fmt.Errorf("memory: write the image: %d bytes: %w", n, err)
		}
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(i.file), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("memory: seal the image: %w", err)
	}
	mapped, err := unix.Mmap(i.file, 0, len(content), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("memory: map the image: %w", err)
	}
	i.bytes = mapped
	if len(content) <= compared {
		for at := uint64(0); at < i.size; at += systemPage {
			i.blank = append(i.blank, bytes.Equal(content[at:at+systemPage], zeroPage))
		}
	}
	return nil
}

// zeroPage is what the blank pages of all images are compared with: it stays near the processor,
// which they would not.
var zeroPage = make([]byte, systemPage)

// page is the content of a page of a small image.
func (i *Image) page(at uint64) []byte {
	if i.blank[at/systemPage] {
		return zeroPage
	}
	return i.bytes[at : at+systemPage]
}

// Close gives up the maker's hold. The image goes with the last region mapped over it.
func (i *Image) Close() error { return i.release() }

// hold takes part in the image, unless the last who did has let go.
func (i *Image) hold() bool {
	for n := i.users.Load(); n > 0; n = i.users.Load() {
		if i.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

func (i *Image) release() error {
	if i.users.Add(-1) > 0 {
		return nil
	}
	err := unix.Close(i.file)
	if i.bytes != nil {
		err = errors.Join(err, unix.Munmap(i.bytes))
	}
	return err
}

// Map replaces the region's content by the image, whose size it must have. When it fails the
// content is undefined and the region fit for closing only. It fails on an image that is gone.
func (r *Region) Map(i *Image) error {
	if r.size != i.Size() || r.image != nil {
		return fmt.Errorf("memory: a region of %d bytes does not take an image of %d", r.size, i.Size())
	}
	if !i.hold() {
		return errors.New("memory: the image is gone")
	}
	// MAP_FIXED replaces what lies there, which is ours: [base, base+size) is within the
	// reservation.
	_, err := unix.MmapPtr(i.file, 0, r.base, uintptr(r.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
	if err != nil {
		return errors.Join(fmt.Errorf("memory: map a region: %w", err), i.release())
	}
	r.image, r.known, r.watch.stretch = i, nil, unwatched
	return r.plainPages(r.size)
}

// compared is how large a region is at most that Restore compares with its image instead of asking
// the kernel what was written: 64 KiB compare in less than a microsecond, and one system call
// with its way through the page table takes several.
const compared = 128 << 10

// maxKept is how many written bytes a restored region keeps as pages of its own, so that the
// next call does not fault them in again. With more, all are dropped.
const maxKept = 1 << 20

// Restore makes the region byte for byte its image and returns how many bytes had been
// written, by whole pages of the system; where the kernel cannot tell, that is the size. When
// it fails the region is fit for closing only.
func (r *Region) Restore() (uint64, error) {
	if r.image == nil {
		return 0, errors.New("memory: no image to restore")
	}
	if r.size != r.image.Size() {
		return 0, errors.New("memory: the region grew")
	}
	still := r.watch.stretch == quiet
	r.watch.stretch = unwatched
	if r.size <= compared {
		return r.compareBack(), nil
	}
	scanner := theScanner()
	if scanner == nil {
		return r.size, r.drop()
	}
	if !still || r.known == nil {
		if err := r.find(scanner); err != nil {
			return r.size, err
		}
	}
	return r.copyBack()
}

// compareBack copies what differs. All pages may be private from then on.
func (r *Region) compareBack() (written uint64) {
	memory := r.bytes()
	for at := uint64(0); at < r.size; at += systemPage {
		page, was := memory[at:at+systemPage], r.image.page(at)
		if !bytes.Equal(page, was) {
			copy(page, was)
			written += systemPage
		}
	}
	r.private = r.size
	return written
}

// find makes known the pages that are private now, or the first of them if they are more than are
// kept.
func (r *Region) find(s *scanner) error {
	if r.scan == nil {
		r.scan = new(scratch)
	}
	found, bytes := r.known[:0], uint64(0)
	if found == nil {
		found = make([]span, 0, 32)
	}
	r.known = nil // unless all goes well
	err := s.private(r.bytes(), r.scan, func(from, to uint64) bool {
		bytes += to - from
		found = append(found, span{from, to})
		return bytes <= maxKept
	})
	if err == nil {
		r.known, r.private = found, bytes
	}
	return err
}

// copyBack copies the image's bytes over the known pages, or drops all if they are too many.
func (r *Region) copyBack() (uint64, error) {
	written := r.private
	if written > maxKept {
		return written, r.drop()
	}
	memory, image := r.bytes(), r.image.bytes
	for _, s := range r.known {
		copy(memory[s.from:s.to], image[s.from:s.to])
	}
	return written, nil
}

// drop gives up every private page, so that the image's show through again.
func (r *Region) drop() error {
	r.private, r.known = 0, nil
	if err := unix.Madvise(r.bytes(), unix.MADV_DONTNEED); err != nil {
		return fmt.Errorf("memory: drop pages: %w", err)
	}
	return nil
}

// Pristine reports whether the region is byte for byte its image. It looks at every byte.
func (r *Region) Pristine() bool {
	return r.image != nil && bytes.Equal(r.bytes(), r.image.bytes)
}

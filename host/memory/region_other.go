//go:build !linux

package memory

import "errors"

// Region is the linear memory of one guest. It implements the engine's LinearMemory. It is
// not safe for concurrent use, and its owner must Close it.
type Region struct {
	limit uint64
	bytes []byte
}

// Reserve makes an empty region that can grow to limit bytes.
func Reserve(limit uint64) (*Region, error) { return &Region{limit: limit}, nil }

// Reallocate grows the region to size bytes and returns it, or returns nil when it cannot be
// that large. New bytes are zero. A region does not shrink: for a smaller size nothing changes.
func (r *Region) Reallocate(size uint64) []byte {
	if size > r.limit {
		return nil
	}
	if size > uint64(cap(r.bytes)) {
		// By doubling, so that growing page by page does not cost the square of the size.
		grown := make([]byte, size, min(max(size, 2*uint64(cap(r.bytes))), r.limit))
		copy(grown, r.bytes)
		r.bytes = grown
	}
	r.bytes = r.bytes[:max(size, uint64(len(r.bytes)))]
	return r.bytes
}

// Free does nothing: the owner closes the region, when no guest runs in it (S1).
func (r *Region) Free() {}

// Size is the number of bytes the guest has.
func (r *Region) Size() uint64 { return uint64(len(r.bytes)) }

// Private is the number of bytes that are not shared with an image: all of them.
func (r *Region) Private() uint64 { return r.Size() }

// Close gives the memory back. Nothing may use the region's bytes afterwards.
func (r *Region) Close() error {
	r.bytes = nil
	return nil
}

// Image is a frozen memory. There are none on this platform.
type Image struct{}

var errNoImages = errors.New("memory: no images on this platform")

// Size is the image's length in bytes.
func (*Image) Size() uint64 { return 0 }

// Close gives up the maker's hold.
func (*Image) Close() error { return nil }

// Supported reports whether this platform has images.
func Supported() bool { return false }

// Method names how regions are restored: they are not.
func Method() string { return "none" }

// Capture fails on this platform.
func (*Region) Capture() (*Image, error) { return nil, errNoImages }

// Map fails on this platform.
func (*Region) Map(*Image) error { return errNoImages }

// Restore fails on this platform.
func (*Region) Restore() (uint64, error) { return 0, errNoImages }

// Pristine is false on this platform.
func (*Region) Pristine() bool { return false }

// Enter does nothing on this platform.
func (*Region) Enter() {}

// Loosen does nothing on this platform.
func (*Region) Loosen() {}

// Leave does nothing on this platform.
func (*Region) Leave() {}

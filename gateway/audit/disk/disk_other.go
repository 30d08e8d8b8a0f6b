//go:build !linux && !darwin && !freebsd

package disk

import (
	"errors"
	"io"
	"os"
)

// Free is not known here. A log that needs a reserve refuses to open rather than to ignore it.
func Free(string) (uint64, error) { return 0, errors.ErrUnsupported }

// Lock creates the file and locks nothing: whoever starts two processes on one directory here is
// stopped by the store's own lock, or not at all.
func Lock(path string) (io.Closer, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

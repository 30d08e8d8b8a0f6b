package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// Sync makes the written bytes of a file durable, and its size, which is all that reading them back
// needs; times may be lost.
func Sync(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = c.Control(func(fd uintptr) {
		for {
			if failed = unix.Fdatasync(int(fd)); failed != unix.EINTR {
				return
			}
		}
	})
	if err == nil && failed != nil {
		err = &os.PathError{Op: "fdatasync", Path: f.Name(), Err: failed}
	}
	return err
}

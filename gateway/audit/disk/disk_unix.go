//go:build linux || darwin || freebsd

package disk

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Free returns the bytes an ordinary process may still write to dir's file system.
func Free(dir string) (uint64, error) {
	var s unix.Statfs_t
	for {
		err := unix.Statfs(dir, &s)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
		}
		// Bavail is signed on some systems and negative when only the superuser's share is left.
		if int64(s.Bavail) < 0 {
			return 0, nil
		}
		return uint64(s.Bavail) * uint64(s.Bsize), nil
	}
}

const (
	lockPatience = 500 * time.Millisecond
	lockPause    = 25 * time.Millisecond
)

// Lock takes the lock of path, creating the file. The kernel drops it when the process ends, however
// it ends; until then Close releases it. A lock that is held, and stays so for a moment, is
// ErrLocked: a process that starts another one holds its own locks through it from fork to exec.
func Lock(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for until := time.Now().Add(lockPatience); ; {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK) && time.Now().Before(until):
			time.Sleep(lockPause)
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			f.Close()
			return nil, ErrLocked
		}
		f.Close()
		return nil, &os.PathError{Op: "flock", Path: path, Err: err}
	}
}

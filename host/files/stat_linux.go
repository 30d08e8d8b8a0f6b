package files

import (
	"errors"
	"io/fs"
	"syscall"
)

// openFlags keep an open from waiting for the other end of a pipe that took the name of a
// file between the look and the open.
const openFlags = syscall.O_NONBLOCK

// stateOf reads the fingerprint of a file, how many names it has and its device. It only
// reads what a stat call already returned.
func stateOf(info fs.FileInfo) (s State, names, device uint64) {
	s = State{Size: info.Size(), Modified: info.ModTime().UnixNano()}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return s, 0, 0
	}
	s.Inode = st.Ino
	s.Changed = int64(st.Ctim.Sec)*1e9 + int64(st.Ctim.Nsec)
	return s, uint64(st.Nlink), uint64(st.Dev)
}

// noRoom reports whether the disk or a quota of the system is full.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func notEmpty(err error) bool {
	return errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST)
}

// metLink reports whether an open failed because something else stood there than what it
// expected: by a refusal of os.Root, whose error is not the system's, or by the system's own.
func metLink(err error) bool {
	var no syscall.Errno
	return !errors.As(err, &no) || no == syscall.ELOOP || no == syscall.ENOTDIR
}

//go:build linux || darwin

package line

import "syscall"

// closed looks at the next byte without taking it. None and no error is the end of what the other
// side sends.
func closed(fd int) bool {
	var next [1]byte
	for {
		n, _, err := syscall.Recvfrom(fd, next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch err {
		case nil:
			return n == 0
		case syscall.EINTR:
			continue
		case syscall.ECONNRESET, syscall.EPIPE, syscall.ETIMEDOUT, syscall.ENETRESET, syscall.EHOSTUNREACH:
			return true
		}
		return false
	}
}

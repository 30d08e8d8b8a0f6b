package line

import "syscall"

// ended asks whether the other side sends no more, whatever it sent before: with TLS a record that says
// goodbye is on the connection in front of its end, and cannot be told from any other here.
func ended(fd int) bool {
	poll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return false
	}
	defer syscall.Close(poll)
	if err := syscall.EpollCtl(poll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLRDHUP}); err != nil {
		return false
	}
	var seen [1]syscall.EpollEvent
	for {
		n, err := syscall.EpollWait(poll, seen[:], 0)
		if err == syscall.EINTR {
			continue
		}
		return err == nil && n == 1
	}
}

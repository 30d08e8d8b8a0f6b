package line

import "golang.org/x/sys/unix"

// ended asks whether the other side sends no more, whatever it sent before: with TLS a record that says
// goodbye is on the connection in front of its end, and cannot be told from any other here.
func ended(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	for {
		n, err := unix.Poll(fds, 0)
		if err == unix.EINTR {
			continue
		}
		return err == nil && n == 1 && fds[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	}
}

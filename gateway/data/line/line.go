// Package line asks the system whether the other end of a connection is still there.
//
// It promises to take nothing off the connection and to wait for nothing, so that it may be asked
// while somebody else serves the connection. It refuses to know what is spoken on it.
package line

import (
	"net"
	"syscall"
)

// Gone reports whether the other end has closed the connection or broken it, and sent nothing that is
// still to be read before it did: bytes that wait, such as a further request, are a sign of
// life. With TLS the end counts whatever is in front of it, because a goodbye is. It says no where
// it cannot tell: of a connection that is closed on this side, and of one that is not the system's. Safe for
// concurrent use.
func Gone(c net.Conn) bool {
	look := closed
	for {
		over, ok := c.(interface{ NetConn() net.Conn }) // TLS
		if !ok {
			break
		}
		c, look = over.NetConn(), ended
	}
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	if err := raw.Control(func(fd uintptr) { gone = look(int(fd)) }); err != nil {
		return false
	}
	return gone
}

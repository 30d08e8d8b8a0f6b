// Package listen opens the doors of the process: every listener is a [Listener], made by [Open].
//
// It promises that an address that is not loopback is not listened on without TLS, whichever face is
// behind it; that with a certificate every listener speaks TLS and nothing else; and that a certificate
// is replaced without a connection being dropped. It refuses to know what is served.
package listen

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"

	"github.com/ecotone-dev/ecotone/abi"
)

// Listener is one open door. Whoever serves on it closes it; closing it again does nothing.
type Listener struct {
	net.Listener
	Name   string // the face behind it: data, admin, ops, mcp
	secure bool
}

// Options say how the doors of one process are.
type Options struct {
	Certificates *Certificates // nil: no TLS, and loopback only
	OnlyLoopback bool          // no other address, TLS or not: development mode (S19)
}

// Open listens on a TCP address. What is refused is refused with TLS_REQUIRED before anybody could
// connect to something that is served.
func Open(name, address string, o Options) (*Listener, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, abi.Errorf(abi.CodeNotReady, "cannot listen on %s: %w", address, err).WithHint("another process may have the port")
	}
	if refused := o.admits(address, ln.Addr()); refused != nil {
		return nil, errors.Join(refused, ln.Close())
	}
	l := &Listener{Listener: ln, Name: name}
	if o.Certificates != nil {
		l.Listener, l.secure = tls.NewListener(ln, o.Certificates.config()), true
	}
	return l, nil
}

// admits judges what the system made of an address, which may have been a name.
func (o Options) admits(address string, bound net.Addr) error {
	a, err := netip.ParseAddrPort(bound.String())
	switch {
	case err == nil && a.Addr().IsLoopback():
		return nil
	case o.OnlyLoopback:
		return abi.Errorf(abi.CodeTLSRequired, "%s is not a loopback address, and development mode is for loopback only", address).
			WithHint("listen on 127.0.0.1 or [::1], or leave --dev out")
	case o.Certificates == nil:
		return abi.Errorf(abi.CodeTLSRequired, "%s is not a loopback address, and there is no TLS", address).
			WithHint("give --tls-cert and --tls-key, or listen on 127.0.0.1 or [::1] and put a TLS terminator in front")
	}
	return nil
}

// Close implements [net.Listener].
func (l *Listener) Close() error {
	if err := l.Listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// URL is where clients find it, without a path.
func (l *Listener) URL() string {
	if l.secure {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}

// AddrPort is where it is.
func (l *Listener) AddrPort() (netip.AddrPort, bool) {
	a, err := netip.ParseAddrPort(l.Addr().String())
	return a, err == nil
}

package network

import (
	"context"
	"net"
	"net/netip"
	"time"
)

// Resolver finds the addresses of a name. *net.Resolver is one. It must honour ctx and be
// safe for concurrent use; network is always "ip".
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// SystemResolver asks the name servers the system is configured with, through Go's own
// resolver. A lookup that is cancelled ends at once: left to itself, that resolver returns
// but keeps its goroutines and sockets until the name server has timed out, and guests
// could pile them up.
func SystemResolver() *net.Resolver {
	var d net.Dialer
	return interruptible(d.DialContext)
}

func interruptible(dial func(ctx context.Context, network, address string) (net.Conn, error)) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		// ctx ends with the exchange, so this runs once and late at worst, when conn is closed.
		context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
		return conn, nil
	}}
}

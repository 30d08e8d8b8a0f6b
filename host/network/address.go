package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// maxAddresses bounds how many addresses of one name are looked at; more is no origin.
const maxAddresses = 64

// resolve returns the addresses the request may be sent to. All of them are fit to be
// dialled: one that is not refuses the request, for a name that points inside as well as
// outside is an attack or a mistake.
func (c *Client) resolve(ctx context.Context, p *plan) ([]netip.AddrPort, error) {
	addrs := []netip.Addr{p.target.Addr}
	if !p.target.Addr.IsValid() {
		var err error
		if addrs, err = c.opt.Resolver.LookupNetIP(ctx, "ip", absolute(p.target.Host)); err != nil {
			return nil, err
		}
	}
	if len(addrs) == 0 {
		return nil, errors.New("network: the name has no address")
	}
	if len(addrs) > maxAddresses {
		return nil, addressRefused(fmt.Errorf("network: the name has %d addresses", len(addrs)))
	}
	out := make([]netip.AddrPort, 0, len(addrs))
	for _, a := range addrs {
		// Resolvers may give IPv4 addresses in IPv6 form.
		ap := netip.AddrPortFrom(a.Unmap(), uint16(p.target.Port))
		if err := c.judge(ap, p); err != nil {
			return nil, addressRefused(err)
		}
		out = append(out, ap)
	}
	return out, nil
}

// absolute keeps the system's search domains out. A name of one label, such as localhost,
// is left to the system.
func absolute(name string) string {
	if strings.Contains(name, ".") {
		return name + "."
	}
	return name
}

func addressRefused(cause error) *abi.Error {
	return abi.Errorf(abi.CodeAddressRefused, "the host is at an address that is never dialled").WithCause(cause)
}

// judge refuses what is neither global nor loopback opened with both keys. A secret in clear
// text goes to loopback only.
func (c *Client) judge(ap netip.AddrPort, p *plan) error {
	class := egress.Classify(ap.Addr())
	switch {
	case class == egress.Loopback && c.opt.AllowLoopback && p.route.loopback:
	case class != egress.Global:
		return fmt.Errorf("network: %s is %s", ap.Addr(), class)
	case p.secret != nil && p.target.Scheme != "https":
		return fmt.Errorf("network: a secret in clear text toward %s", ap.Addr())
	}
	if c.own(ap, class) {
		return fmt.Errorf("network: %s is a listener of this process", ap)
	}
	return nil
}

// own finds the process's own listeners (S16).
func (c *Client) own(ap netip.AddrPort, class egress.Class) bool {
	if c.opt.Listeners == nil {
		return false
	}
	for _, l := range c.opt.Listeners() {
		l = netip.AddrPortFrom(l.Addr().Unmap(), l.Port())
		switch {
		case l.Port() != ap.Port():
		case l.Addr() == ap.Addr():
			return true
		case l.Addr().IsUnspecified() && (class == egress.Loopback || ofThisMachine(ap.Addr())):
			return true
		}
	}
	return false
}

// ofThisMachine reports whether an interface has the address. When the system cannot say,
// the answer is yes.
func ofThisMachine(a netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, o := range own {
		if n, ok := o.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap() == a {
				return true
			}
		}
	}
	return false
}

package egress

import "net/netip"

// Class says what kind of address an address is. The zero value is Reserved: what is not
// known to be global is never dialled.
type Class uint8

const (
	Reserved      Class = iota
	Global              // ordinary, may be dialled
	Loopback            // this machine
	Private             // RFC 1918, RFC 4193, and the deprecated site-local range
	Shared              // carrier-grade translation, RFC 6598
	LinkLocal           // the local link, and with it most metadata services
	Metadata            // a cloud's metadata or control service outside the link-local range
	Unspecified         // this host on this network
	Multicast           // and limited broadcast
	Documentation       // never routed
	Benchmarking        // never routed
	Protocol            // IETF protocol assignments, anycast services, discard
	Embedded            // an IPv6 form that carries an IPv4 address and may be translated to it
)

var classNames = [...]string{
	"reserved", "global", "loopback", "private", "shared", "link-local", "metadata", "unspecified",
	"multicast", "documentation", "benchmarking", "protocol", "embedded",
}

func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return classNames[Reserved]
}

type addressRange struct {
	prefix netip.Prefix
	class  Class
}

func ranges(class Class, prefixes ...string) []addressRange {
	out := make([]addressRange, 0, len(prefixes))
	for _, p := range prefixes {
		out = append(out, addressRange{netip.MustParsePrefix(p), class})
	}
	return out
}

func concat(lists ...[]addressRange) (out []addressRange) {
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// special4 and special6 are the IANA special-purpose address registries and the cloud
// services that sit on ordinary-looking addresses (PF-B2). The first match wins, so single
// addresses come before the ranges that hold them. Ranges the registries call globally
// reachable, but that hold no origins (anycast relays, AS112), are refused too.
var (
	special4 = concat(
		ranges(Metadata,
			"169.254.169.254/32", // most clouds
			"100.100.100.200/32", // Alibaba
			"192.0.0.192/32",     // Oracle, Azure
			"168.63.129.16/32"),  // Azure's wire server, outside every special range
		ranges(Unspecified, "0.0.0.0/8"),
		ranges(Loopback, "127.0.0.0/8"),
		ranges(Private, "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"),
		ranges(Shared, "100.64.0.0/10"),
		ranges(LinkLocal, "169.254.0.0/16"),
		ranges(Protocol, "192.0.0.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.175.48.0/24"),
		ranges(Documentation, "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"),
		ranges(Benchmarking, "198.18.0.0/15"),
		ranges(Multicast, "224.0.0.0/4", "255.255.255.255/32"),
		ranges(Reserved, "240.0.0.0/4"),
	)
	special6 = concat(
		ranges(Metadata, "fd00:ec2::254/128", "fd20:ce::254/128"), // Amazon, Google
		ranges(Unspecified, "::/128"),
		ranges(Loopback, "::1/128"),
		ranges(Embedded,
			"::/96",           // IPv4-compatible
			"::ffff:0:0:0/96", // IPv4-translated, RFC 2765
			"64:ff9b::/96",    // NAT64
			"64:ff9b:1::/48",  // local NAT64
			"2001::/32",       // Teredo
			"2002::/16"),      // 6to4
		ranges(Protocol, "100::/63", "2001::/23", "2620:4f:8000::/48", "5f00::/16"),
		ranges(Documentation, "2001:db8::/32", "3fff::/20"),
		ranges(Private, "fc00::/7", "fec0::/10"),
		ranges(LinkLocal, "fe80::/10"),
		ranges(Multicast, "ff00::/8"),
	)
	// globalUnicast is the only part of IPv6 that IANA hands out.
	globalUnicast = netip.MustParsePrefix("2000::/3")
)

// Classify says what a is. The invalid address and an address with a zone are Reserved; an
// IPv4 address in IPv6 form is Embedded, so callers unmap what a resolver gave them first.
func Classify(a netip.Addr) Class {
	switch {
	case !a.IsValid() || a.Zone() != "":
		return Reserved
	case a.Is4In6():
		return Embedded
	case a.Is4():
		return lookup(special4, a, Global)
	case isatap(a):
		return Embedded
	case globalUnicast.Contains(a):
		return lookup(special6, a, Global)
	}
	return lookup(special6, a, Reserved)
}

func lookup(table []addressRange, a netip.Addr, otherwise Class) Class {
	for i := range table {
		if table[i].prefix.Contains(a) {
			return table[i].class
		}
	}
	return otherwise
}

// isatap finds the interface identifiers of RFC 5214, which carry an IPv4 address under any
// prefix.
func isatap(a netip.Addr) bool {
	b := a.As16()
	return b[8]&^0x02 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

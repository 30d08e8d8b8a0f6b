package egress

import (
	"net/netip"
	"strings"
)

// maxHostBytes and maxLabelBytes are the bounds of RFC 1035 for names in text form.
const (
	maxHostBytes  = 253
	maxLabelBytes = 63
)

// checkHost accepts a DNS name or an address (IPv6 without brackets) in its one canonical
// spelling, and returns the address when it is one. Otherwise problem says what is wrong.
func checkHost(s string) (addr netip.Addr, problem string) {
	switch {
	case s == "":
		return addr, "is empty; an empty host admits nothing"
	case len(s) > maxHostBytes:
		return addr, "is longer than 253 bytes"
	}
	for i := range len(s) {
		if s[i] >= 0x80 {
			return addr, "has characters outside ASCII; write the name in its punycode form (xn--…)"
		}
	}
	if strings.ContainsAny(s, "[]") {
		return addr, "has brackets; write an IPv6 address without them"
	}
	if strings.Contains(s, "/") {
		return addr, "has a slash; a host is one name or one address, never a network"
	}
	if strings.Contains(s, ":") {
		return checkIPv6(s)
	}
	return checkName(s)
}

func checkIPv6(s string) (netip.Addr, string) {
	a, err := netip.ParseAddr(s)
	switch {
	case err != nil:
		return netip.Addr{}, "is neither a name nor an IPv6 address; a port has its own field"
	case a.Zone() != "":
		return netip.Addr{}, "has a zone"
	case a.Is4In6():
		return netip.Addr{}, "is an IPv4 address inside IPv6; write the IPv4 address"
	case a.String() != s:
		return netip.Addr{}, "is not in canonical form, which is " + a.String()
	}
	return a, ""
}

func checkName(s string) (netip.Addr, string) {
	last := s[strings.LastIndexByte(s, '.')+1:]
	if last == "" {
		return netip.Addr{}, "ends in a dot"
	}
	// Whatever ends in a number is read as an IPv4 address by some software, in decimal,
	// octal or hex and with one to four parts. Only the dotted quad is one spelling.
	if numeric(last) {
		a, err := netip.ParseAddr(s)
		if err != nil || a.String() != s {
			return netip.Addr{}, "ends in a number and is not an IPv4 address of four decimal parts"
		}
		return a, ""
	}
	for label := range strings.SplitSeq(s, ".") {
		if problem := checkLabel(label); problem != "" {
			return netip.Addr{}, problem
		}
	}
	return netip.Addr{}, ""
}

func checkLabel(label string) string {
	switch {
	case label == "":
		return "has an empty label"
	case len(label) > maxLabelBytes:
		return "has a label longer than 63 bytes"
	case label[0] == '-' || label[len(label)-1] == '-':
		return "has a label that begins or ends with a hyphen"
	}
	for i := range len(label) {
		switch c := label[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-':
		case c >= 'A' && c <= 'Z':
			return "has upper case letters; names are written in lower case"
		default:
			return "has characters that are not letters, digits, hyphens or dots"
		}
	}
	return ""
}

// numeric reports whether a last label makes the whole host an IPv4 address to lenient
// readers (WHATWG URL, "ends in a number").
func numeric(label string) bool {
	if h, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(h, "0123456789abcdefABCDEF") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

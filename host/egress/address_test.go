package egress

import (
	"net/netip"
	"testing"
)

// PF-B2: special addresses of both families, the metadata services of the clouds among them.
var specialAddresses = map[string]Class{
	"0.0.0.0": Unspecified, "0.1.2.3": Unspecified, "10.0.0.1": Private, "10.255.255.255": Private,
	"100.64.0.1": Shared, "100.127.255.255": Shared, "100.100.100.200": Metadata, "127.0.0.1": Loopback, "127.255.255.254": Loopback,
	"169.254.0.1": LinkLocal, "169.254.169.254": Metadata, "169.254.170.2": LinkLocal, "168.63.129.16": Metadata,
	"172.16.0.1": Private, "172.31.255.255": Private, "192.0.0.1": Protocol, "192.0.0.170": Protocol, "192.0.0.192": Metadata,
	"192.0.2.1": Documentation, "192.31.196.1": Protocol, "192.52.193.1": Protocol, "192.88.99.1": Protocol, "192.168.0.1": Private, "192.175.48.1": Protocol,
	"198.18.0.1": Benchmarking, "198.19.255.255": Benchmarking, "198.51.100.1": Documentation, "203.0.113.1": Documentation,
	"224.0.0.1": Multicast, "239.255.255.255": Multicast, "240.0.0.1": Reserved, "255.255.255.254": Reserved, "255.255.255.255": Multicast,
	"::": Unspecified, "::1": Loopback, "::127.0.0.1": Embedded, "::ffff:127.0.0.1": Embedded, "::ffff:8.8.8.8": Embedded, "::ffff:0:127.0.0.1": Embedded,
	"64:ff9b::7f00:1": Embedded, "64:ff9b::808:808": Embedded, "64:ff9b:1::1": Embedded, "100::1": Protocol, "100:0:0:1::1": Protocol,
	"2001::1": Embedded, "2001:0:7f00:1::": Embedded, "2001:2::1": Protocol, "2001:10::1": Protocol, "2001:20::1": Protocol, "2001:db8::1": Documentation,
	"2002:7f00:1::": Embedded, "2002:a00:1::1": Embedded, "2620:4f:8000::1": Protocol, "3fff::1": Documentation, "4000::1": Reserved, "5f00::1": Protocol,
	"2606:4700::5efe:a00:1": Embedded, "2606:4700::200:5efe:a00:1": Embedded,
	"fc00::1": Private, "fd00:ec2::254": Metadata, "fd00:ec2::253": Private, "fd20:ce::254": Metadata, "fe80::1": LinkLocal, "fe80::1%1": Reserved, "fec0::1": Private, "ff02::1": Multicast,
}

func TestClassify(t *testing.T) {
	for s, want := range specialAddresses {
		if got := Classify(netip.MustParseAddr(s)); got != want {
			t.Errorf("%s is %s, want %s", s, got, want)
		}
	}
	for _, s := range []string{"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "2001:200::1", "2003::1"} {
		if got := Classify(netip.MustParseAddr(s)); got != Global {
			t.Errorf("%s is %s, want global", s, got)
		}
	}
	if Classify(netip.Addr{}) != Reserved {
		t.Error("the invalid address is not reserved")
	}
}

// Whatever the standard library calls special is special here too.
func FuzzClassify(f *testing.F) {
	for s := range specialAddresses {
		b, _ := netip.MustParseAddr(s).MarshalBinary()
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		global := Classify(a) == Global
		if global && (a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() || !a.IsGlobalUnicast() || a.Is4In6()) {
			t.Fatalf("%s is called global", a)
		}
		if a.Is4() && Classify(netip.AddrFrom16(a.As16())) == Global {
			t.Fatalf("%s in IPv6 form is called global", a)
		}
	})
}

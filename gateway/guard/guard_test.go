package guard

import (
	"net"
	"net/http"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
)

// S19, S16: a foreign Host or Origin, a cross-site fetch and a hairpin are refused before
// anything is authenticated.
func TestCheck(t *testing.T) {
	g := New(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8180}, []string{"gw.example.com", "alias.example.com:9000"}, "nonce-1")
	for _, c := range []struct {
		name string
		f    Facts
		want abi.Code
	}{
		{"bound address", Facts{Host: "127.0.0.1:8180"}, ""},
		{"localhost", Facts{Host: "localhost:8180"}, ""},
		{"v6 loopback", Facts{Host: "[::1]:8180"}, ""},
		{"case folded", Facts{Host: "LOCALHOST:8180"}, ""},
		{"named", Facts{Host: "gw.example.com:8180"}, ""},
		{"named with port", Facts{Host: "alias.example.com:9000"}, ""},
		{"no host", Facts{}, abi.CodeHostRefused},
		{"other port", Facts{Host: "127.0.0.1:8181"}, abi.CodeHostRefused},
		{"rebinding", Facts{Host: "evil.example:8180"}, abi.CodeHostRefused},
		{"suffix", Facts{Host: "localhost:8180.evil.example"}, abi.CodeHostRefused},
		{"same origin", Facts{Host: "localhost:8180", Origin: []string{"http://localhost:8180"}}, ""},
		{"foreign origin", Facts{Host: "localhost:8180", Origin: []string{"https://evil.example"}}, abi.CodeOriginRefused},
		{"null origin", Facts{Host: "localhost:8180", Origin: []string{"null"}}, abi.CodeOriginRefused},
		{"two origins", Facts{Host: "localhost:8180", Origin: []string{"http://localhost:8180", "http://localhost:8180"}}, abi.CodeOriginRefused},
		{"cross-site", Facts{Host: "localhost:8180", FetchSite: "cross-site"}, abi.CodeOriginRefused},
		{"hairpin", Facts{Host: "localhost:8180", Nonce: []string{"nonce-1"}}, abi.CodeHairpinRefused},
		{"another gateway's guest", Facts{Host: "localhost:8180", Nonce: []string{"x"}}, abi.CodeHairpinRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := abi.Code("")
			if err := g.Check(c.f); err != nil {
				got = err.Code
			}
			if got != c.want {
				t.Fatalf("got %q, want %q", got, c.want)
			}
		})
	}
}

// S19: every header that a proxy in front would add is known as one, however it is spelled.
func TestForwards(t *testing.T) {
	for name, want := range map[string]bool{
		"Forwarded": true, "x-forwarded-for": true, "X-FORWARDED-SERVER": true, "X-Forwarded-Port": true, "via": true, "X-Real-IP": true,
		"X-Forwarded-": false, "X-Forwarding": false, "Host": false, "Ecotone-Classification": false, "": false,
	} {
		if Forwards(name) != want {
			t.Errorf("Forwards(%q) is not %v", name, want)
		}
	}
	r, _ := http.NewRequest("GET", "http://localhost:8180/", nil)
	if FromHTTP(r, "N").Forwarded {
		t.Error("a plain request is forwarded")
	}
	r.Header.Set("X-Forwarded-Server", "proxy")
	if !FromHTTP(r, "N").Forwarded {
		t.Error("a forwarded request is plain")
	}
}

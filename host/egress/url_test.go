package egress

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
)

func TestParseURL(t *testing.T) {
	for _, tt := range []struct{ in, want, query string }{
		{"https://api.example.com", "https://api.example.com/", ""},
		{"HTTPS://API.Example.com/A", "https://api.example.com/A", ""},
		{"https://api.example.com:443/a", "https://api.example.com/a", ""},
		{"http://api.example.com:80/a", "http://api.example.com/a", ""},
		{"http://api.example.com:443/a", "http://api.example.com:443/a", ""},
		{"https://api.example.com?q=1", "https://api.example.com/", "q=1"},
		{"https://api.example.com/?", "https://api.example.com/", ""},
		{"https://api.example.com/a?b=/../c?d&e=%2F%00", "https://api.example.com/a", "b=/../c?d&e=%2F%00"},
		{"https://api.example.com/a%20b%c3%a9", "https://api.example.com/a%20b%C3%A9", ""},
		{"https://api.example.com/a;v=1/b:c@d", "https://api.example.com/a;v=1/b:c@d", ""},
		{"https://api.example.com/.well-known/x", "https://api.example.com/.well-known/x", ""},
		{"https://api.example.com/...", "https://api.example.com/...", ""},
		{"https://8.8.8.8/", "https://8.8.8.8/", ""},
		{"https://[2606:4700::1111]:8443/a", "https://[2606:4700::1111]:8443/a", ""},
		{"https://[2606:4700::1111]", "https://[2606:4700::1111]/", ""},
		{"http://[::1]/", "http://[::1]/", ""},
	} {
		u, err := ParseURL(tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		if u.String() != tt.want || u.Query != tt.query {
			t.Errorf("%s: %s with %q, want %s with %q", tt.in, u, u.Query, tt.want, tt.query)
		}
	}
}

// X45: the tricks by which one URL is two to two parsers.
func TestURLTricks(t *testing.T) {
	for _, in := range []string{
		"", "api.example.com", "//api.example.com/", "https:/api.example.com", "https:api.example.com", "https:///a", "https://",
		"ftp://api.example.com/", "file:///etc/passwd", "javascript://a.example/%0a", " https://a.example/", "https://a.example/ ",
		"https://user@a.example/", "https://user:pw@a.example/", "https://@a.example/", "https://a.example@evil.test/", "https://a.example:443@evil.test/",
		"https://a.example#@evil.test/", "https://a.example/#f", `https://a.example\@evil.test/`, `https://a.example\.evil.test/`, `https://a.example/a\b`,
		"https://a.example:/", "https://a.example:0/", "https://a.example:0443/", "https://a.example:+443/", "https://a.example:65536/", "https://a.example:443:443/", "https://a.example:x/",
		"https://a.example./", "https://.a.example/", "https://a..example/", "https://-a.example/", "https://a_b.example/", "https://a%2eexample/", "https://%61.example/",
		"https://*.example.com/", "https://bücher.example/", "https://a。example/", "https://a.example/é", "https://a.example/\x7f", "https://a.example/a\tb", "https://a.example/a\r\nHost: b",
		"http://2130706433/", "http://0177.0.0.1/", "http://0x7f.0.0.1/", "http://0x7f000001/", "http://127.1/", "http://127.0.1/", "http://127.0.0.01/", "http://127.0.0.256/", "http://1.2.3.4.5/", "http://127.0.0.1./", "http://a.0x1/",
		"http://[::1/", "http://::1/", "http://[::1]a/", "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[::ffff:127.0.0.1]/", "http://[0:0:0:0:0:0:0:1]/", "http://[127.0.0.1]/", "http://[a.example]/", "http://[]/", "http://[v1.x]/",
		"https://a.example/..", "https://a.example/a/../b", "https://a.example/./a", "https://a.example/a/.", "https://a.example/..;/b", "https://a.example/a/..;x=1/b", "https://a.example//a", "https://a.example/a//b",
		"https://a.example/%2e%2e/b", "https://a.example/%2E/b", "https://a.example/a%2fb", "https://a.example/a%5cb", "https://a.example/a%252e", "https://a.example/a%00", "https://a.example/a%0d%0a", "https://a.example/a%7f",
		"https://a.example/%61", "https://a.example/%7E", "https://a.example/%c0%ae", "https://a.example/%ff", "https://a.example/%", "https://a.example/%1", "https://a.example/%zz", "https://a.example/%u002e",
		"https://a.example/?%", "https://a.example/?%zz", "https://a.example/?a b", "https://a.example/?a|b", "https://a.example/?a[]=1", "https://a.example/{a}", "https://a.example/a[b]", `https://a.example/a"b`, "https://a.example/<a>",
		"https://" + strings.Repeat("a", 64) + ".example/", "https://a.example/" + strings.Repeat("a", MaxURLBytes),
	} {
		u, err := ParseURL(in)
		if abi.CodeOf(err) != abi.CodeURLInvalid {
			t.Errorf("%q: %v, %v; want URL_INVALID", in, u, err)
		}
	}
}

// PF-F6: what is logged and recorded has no query, and refusals do not repeat the URL.
func TestURLTextIsNotRepeated(t *testing.T) {
	const sentinel = "SENTINEL"
	if u := target(t, "https://a.example/x?token="+sentinel); strings.Contains(u.String(), sentinel) {
		t.Errorf("%s shows the query", u)
	}
	for _, in := range []string{"https://a.example/?token=SENTINEL&x=%", "https://user:SENTINEL@a.example/", "https://a.example/ ?token=SENTINEL", "https://SENTINEL_.example/"} {
		if _, err := ParseURL(in); err == nil || strings.Contains(err.Error(), sentinel) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// The parser agrees with net/url about every URL it accepts, and its output is a fixed point.
func FuzzParseURL(f *testing.F) {
	for _, s := range []string{
		"https://api.example.com:8443/v1/a%20b?q=%2F", "http://127.0.0.1/", "http://[::1]:80/", "HTTP://A.b", "https://a@b/",
		"http://0x7f.1/", "https://a/..;/b", "https://a/%2e", "https://a\\@b/", "https://a?b?c", "https://a/?#",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := ParseURL(s)
		if err != nil {
			if abi.CodeOf(err) != abi.CodeURLInvalid {
				t.Fatal(err)
			}
			return
		}
		text := u.Scheme + "://" + u.Authority() + u.RequestURI()
		again, err := ParseURL(text)
		if err != nil || *again != *u {
			t.Fatalf("%q is %+v, and read again %+v, %v", s, u, again, err)
		}
		std, err := url.Parse(text)
		if err != nil {
			t.Fatalf("%q: net/url refuses %q: %v", s, text, err)
		}
		port := std.Port()
		if port == "" {
			port = strconv.Itoa(DefaultPort(std.Scheme))
		}
		if std.Hostname() != u.Host || port != strconv.Itoa(u.Port) || std.RequestURI() != u.RequestURI() || std.User != nil || std.Fragment != "" {
			t.Fatalf("%q: net/url reads %q as %#v, not %+v", s, text, std, u)
		}
		if ip := net.ParseIP(u.Host); (ip != nil) != u.Addr.IsValid() {
			t.Fatalf("%q: is %s an address?", s, u.Host)
		}
	})
}

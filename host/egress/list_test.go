package egress

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
)

func list(t testing.TB, allow, block []string) *List {
	t.Helper()
	l, err := CompileList(allow, block)
	if err != nil {
		t.Fatalf("CompileList(%q, %q): %v", allow, block, err)
	}
	return l
}

// X45, PF-B6, PF-B8: what is listed passes, what is blocked or merely looks alike does not.
func TestList(t *testing.T) {
	l := list(t, []string{"https://api.example.com/v1/**", "https://*.cdn.example.com/files/*", "http://[::1]:8080/**", "http://127.0.0.1:9000/x"},
		[]string{"https://api.example.com/v1/admin/**"})
	for url, want := range map[string]bool{
		"https://api.example.com/v1/pages":            true,
		"https://API.example.com:443/v1/pages/2":      true,
		"https://api.example.com/v1/admin/users":      false,
		"https://api.example.com/v1/ADMIN/users":      true, // paths are case-sensitive
		"https://api.example.com/v1":                  false,
		"https://api.example.com/v2/pages":            false,
		"http://api.example.com/v1/pages":             false,
		"https://api.example.com:8443/v1/pages":       false,
		"https://api.example.com.evil.test/v1/pages":  false,
		"https://evil-api.example.com/v1/pages":       false,
		"https://a.cdn.example.com/files/1":           true,
		"https://a.b.cdn.example.com/files/1":         false,
		"https://cdn.example.com/files/1":             false,
		"http://[::1]:8080/any":                       true,
		"http://127.0.0.1:9000/x":                     true,
		"http://127.0.0.1/x":                          false,
		"https://api.example.com/v1/x?next=/v1/admin": true,
	} {
		if got := l.Admits(target(t, url)); got != want {
			t.Errorf("Admits(%s) = %v", url, got)
		}
	}
	for name, none := range map[string]*List{"nil": nil, "zero": {}} {
		if none.Admits(target(t, "https://api.example.com/v1/pages")) || l.Admits(nil) {
			t.Errorf("the %s list admits", name)
		}
	}
}

// PF-B7: a pattern that would not be enforced as it reads is refused, and pointed at.
func TestListPatternsThatAreRefused(t *testing.T) {
	for _, p := range []string{
		"", "*", "https://*", "https://example.com", "example.com/v1", "ftp://example.com/x", "HTTPS://example.com/x", "https://*/x", "https://*.com/x",
		"https://a*.example.com/x", "https://example.com:0/x", "https://example.com:443443/x", "https://example.com:0443/x", "https://user@example.com/x",
		"https://example.com/a**b", "https://example.com//x", "https://example.com/../x", "https://example.com/x?y", "https://example.com/x#y",
		"https://EXAMPLE.com/x", "https://example.com./x", "https://::1/x", "https://[127.0.0.1]/x", "https://[::1/x", "https://0x7f.1/x",
		"https://169.254.169.254/x", "https://[fe80::1%25eth0]/x", "https://exämple.com/x", "https:///x", "https://example.com/" + strings.Repeat("x", 2000),
	} {
		for half, lists := range map[string][2][]string{"/allow/1": {{"https://ok.test/**", p}, nil}, "/block/0": {{"https://ok.test/**"}, {p}}} {
			l, err := CompileList(lists[0], lists[1])
			if l != nil || abi.CodeOf(err) != abi.CodeUnsupportedRule || abi.AsError(err).Pointer != half {
				t.Errorf("%q at %s: %v, %v", p, half, l, err)
			}
		}
	}
	many := slices.Repeat([]string{"https://ok.test/**"}, MaxPatterns+1)
	for _, lists := range [][2][]string{{nil, nil}, {{}, {"https://ok.test/**"}}, {many, nil}, {{"https://ok.test/**"}, many}} {
		if _, err := CompileList(lists[0], lists[1]); abi.CodeOf(err) != abi.CodeUnsupportedRule {
			t.Errorf("%d and %d patterns: %v", len(lists[0]), len(lists[1]), err)
		}
	}
}

// X45: adding to block never admits more, and a list admits exactly what an endpoint of the same rule would.
func TestListNarrows(tt *testing.T) {
	part := rapid.SampledFrom([]string{"a", "b", "*", "**"})
	rapid.Check(tt, func(t *rapid.T) {
		path := "/" + strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "pattern"), "/")
		host := rapid.SampledFrom([]string{"x.test", "*.x.test", "a.x.test"}).Draw(t, "host")
		u := target(tt, "https://"+strings.TrimPrefix(rapid.SampledFrom([]string{"x.test", "a.x.test", "b.a.x.test"}).Draw(t, "to"), "*.")+
			"/"+strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 4).Draw(t, "path"), "/"))
		pattern := "https://" + host + path
		l, err := CompileList([]string{pattern}, nil)
		if err != nil {
			t.Skip()
		}
		e, err := Compile("e", Rule{Scheme: "https", Host: host, Methods: []string{"GET"}, Path: path}, abi.Internal, abi.Internal, false)
		if err != nil {
			t.Fatalf("a pattern %q that is no rule: %v", pattern, err)
		}
		if l.Admits(u) != e.Match("GET", u) {
			t.Fatalf("%q and its endpoint differ on %+v", pattern, u)
		}
		if blocked := list(tt, []string{"https://x.test/**", "https://*.x.test/**"}, []string{pattern}); blocked.Admits(u) && l.Admits(u) {
			t.Fatalf("%q does not block %+v", pattern, u)
		}
	})
}

func FuzzListPattern(f *testing.F) {
	for _, p := range []string{"https://a.test/**", "http://[::1]:80/x", "https://*.a.test:8443/*", "://", "https://[/", "http://:/"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		l, err := CompileList([]string{p}, []string{p})
		if err != nil {
			if abi.CodeOf(err) != abi.CodeUnsupportedRule {
				t.Errorf("%q: %v", p, err)
			}
			return
		}
		if u, err := ParseURL(strings.ReplaceAll(p, "*", "a")); err == nil && l.Admits(u) {
			t.Errorf("%q admits what it blocks", p)
		}
	})
}

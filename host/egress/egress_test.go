package egress

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
)

func rule(edit func(*Rule)) Rule {
	r := Rule{Scheme: "https", Host: "api.example.com", Methods: []string{"GET"}, Path: "/v1/**"}
	if edit != nil {
		edit(&r)
	}
	return r
}

func compile(t testing.TB, r Rule) *Endpoint {
	t.Helper()
	e, err := Compile("crm", r, abi.Internal, abi.Internal, false)
	if err != nil {
		t.Fatalf("Compile(%+v): %v", r, err)
	}
	return e
}

func target(t testing.TB, s string) *Target {
	t.Helper()
	u, err := ParseURL(s)
	if err != nil {
		t.Fatalf("ParseURL(%q): %v", s, err)
	}
	return u
}

// PF-B6: the wildcard stands for exactly one label, and the apex needs a rule of its own.
func TestHostPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern, host string
		want          bool
	}{
		{"api.example.com", "api.example.com", true},
		{"api.example.com", "API.Example.COM", true},
		{"api.example.com", "xapi.example.com", false},
		{"api.example.com", "api.example.com.evil.test", false},
		{"api.example.com", "api.example.co", false},
		{"api.example.com", "a.api.example.com", false},
		{"api.example.com", "example.com", false},
		{"api.example.com", "api-example.com", false},
		{"api.example.com", "apixexample.com", false},
		{"example.com", "example.com", true},
		{"example.com", "www.example.com", false},
		{"example.com", "notexample.com", false},
		{"*.example.com", "a.example.com", true},
		{"*.example.com", "A.EXAMPLE.com", true},
		{"*.example.com", "xn--bcher-kva.example.com", true},
		{"*.example.com", "example.com", false},
		{"*.example.com", "a.b.example.com", false},
		{"*.example.com", "aexample.com", false},
		{"*.example.com", "a.example.com.evil.test", false},
		{"*.example.com", "a.example.org", false},
		{"*.a.example.com", "b.a.example.com", true},
		{"*.a.example.com", "a.example.com", false},
		{"*.a.example.com", "b.example.com", false},
		{"8.8.8.8", "8.8.8.8", true},
		{"8.8.8.8", "8.8.4.4", false},
		{"8.8.8.8", "8.8.8.8.example.com", false},
		{"2606:4700::1111", "[2606:4700::1111]", true},
		{"2606:4700::1111", "[2606:4700::1112]", false},
		{"xn--bcher-kva.example", "xn--bcher-kva.example", true},
		{"a-b.example.com", "a-b.example.com", true},
		{"localhost.example.com", "localhost.example.com", true},
		{"intranet", "intranet", true},
	} {
		e := compile(t, rule(func(r *Rule) { r.Host = tt.pattern }))
		if got := e.Match("GET", target(t, "https://"+tt.host+"/v1/x")); got != tt.want {
			t.Errorf("%s on %s: %v, want %v", tt.pattern, tt.host, got, tt.want)
		}
	}
}

// X45: one matcher for scheme, host, port, method and path. PF-B8: the port is part of the rule.
func TestMatch(t *testing.T) {
	e := compile(t, rule(func(r *Rule) { r.Methods = []string{"POST", "GET"} }))
	for _, tt := range []struct {
		method, url string
		want        bool
	}{
		{"GET", "https://api.example.com/v1/", true},
		{"GET", "https://api.example.com/v1/a/b?x=1", true},
		{"POST", "https://api.example.com:443/v1/a", true},
		{"GET", "HTTPS://API.example.com/v1/a", true},
		{"GET", "https://api.example.com/v1", false},
		{"GET", "https://api.example.com/v10/a", false},
		{"GET", "https://api.example.com/v2/a", false},
		{"GET", "https://api.example.com/", false},
		{"GET", "https://api.example.com/?/v1/a", false},
		{"GET", "https://api.example.com/V1/a", false},
		{"GET", "https://api.example.com:8443/v1/a", false},
		{"GET", "https://api.example.com:80/v1/a", false},
		{"GET", "http://api.example.com/v1/a", false},
		{"GET", "http://api.example.com:443/v1/a", false},
		{"HEAD", "https://api.example.com/v1/a", false},
		{"get", "https://api.example.com/v1/a", false},
		{"", "https://api.example.com/v1/a", false},
		{"CONNECT", "https://api.example.com/v1/a", false},
	} {
		if got := e.Match(tt.method, target(t, tt.url)); got != tt.want {
			t.Errorf("%s %s: %v, want %v", tt.method, tt.url, got, tt.want)
		}
	}
	explicit := compile(t, rule(func(r *Rule) { r.Port = 8443 }))
	if explicit.Match("GET", target(t, "https://api.example.com/v1/a")) || !explicit.Match("GET", target(t, "https://api.example.com:8443/v1/a")) {
		t.Error("an explicit port is not the only one that matches")
	}
}

func TestPathPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern, path string
		want          bool
	}{
		{"/", "/", true},
		{"/", "/a", false},
		{"/a", "/a", true},
		{"/a", "/a/", false},
		{"/a/", "/a/", true},
		{"/a/", "/a", false},
		{"/*", "/a", true},
		{"/*", "/", true},
		{"/*", "/a/b", false},
		{"/**", "/", true},
		{"/**", "/a/b/c", true},
		{"/a/*/c", "/a/b/c", true},
		{"/a/*/c", "/a/b/b/c", false},
		{"/a/**/c", "/a/c", true},
		{"/a/**/c", "/a/b/b/c", true},
		{"/a/**/c", "/a/b/d", false},
		{"/a/x*", "/a/xy", true},
		{"/a/x*", "/a/y", false},
		{"/a/**", "/a/", true},
		{"/a/**", "/a", false},
		{"/a/**", "/ab", false},
		{"/a/**", "/a/.well-known", true},
		{"/a/*", "/a/b%20c", true},
		{"/a(b)", "/a(b)", true},
		{"/a!b", "/a!b", true},
	} {
		p, problem := compilePath(tt.pattern)
		if problem != "" {
			t.Errorf("%s: %s", tt.pattern, problem)
			continue
		}
		if got := p.match(tt.path); got != tt.want {
			t.Errorf("%s on %s: %v, want %v", tt.pattern, tt.path, got, tt.want)
		}
	}
}

// PF-B7: what would not be enforced is refused, naming the field. PF-B10: an empty or
// unexpanded host is never an entry.
func TestUnsupportedRules(t *testing.T) {
	host := func(h string) func(*Rule) { return func(r *Rule) { r.Host = h } }
	path := func(p string) func(*Rule) { return func(r *Rule) { r.Path = p } }
	long := strings.Repeat("a", 64)
	for _, tt := range []struct {
		field string
		edit  func(*Rule)
	}{
		{"/scheme", func(r *Rule) { r.Scheme = "" }},
		{"/scheme", func(r *Rule) { r.Scheme = "*" }},
		{"/scheme", func(r *Rule) { r.Scheme = "HTTPS" }},
		{"/scheme", func(r *Rule) { r.Scheme = "ftp" }},
		{"/host", host("")},
		{"/host", host("${HOST}")},
		{"/host", host("{{host}}")},
		{"/host", host("*")},
		{"/host", host("*.")},
		{"/host", host("*.com")},
		{"/host", host("*com")},
		{"/host", host("*example.com")},
		{"/host", host("a.*")},
		{"/host", host("a.*.example.com")},
		{"/host", host("*.*.example.com")},
		{"/host", host("**.example.com")},
		{"/host", host("*.8.8.8.8")},
		{"/host", host("*.2606:4700::1111")},
		{"/host", host("API.example.com")},
		{"/host", host("api.example.com.")},
		{"/host", host(".example.com")},
		{"/host", host("a..example.com")},
		{"/host", host("-a.example.com")},
		{"/host", host("a-.example.com")},
		{"/host", host(long + ".example.com")},
		{"/host", host(strings.Repeat("a.", 127) + "com")},
		{"/host", host("bücher.example")},
		{"/host", host("a_b.example.com")},
		{"/host", host("api.example.com:443")},
		{"/host", host("https://api.example.com")},
		{"/host", host("user@api.example.com")},
		{"/host", host("api.example.com/v1")},
		{"/host", host("api example.com")},
		{"/host", host("8.8.8")},
		{"/host", host("8.8.8.08")},
		{"/host", host("0x08080808")},
		{"/host", host("134744072")},
		{"/host", host("8.8.8.0/24")},
		{"/host", host("[2606:4700::1111]")},
		{"/host", host("2606:4700:0:0:0:0:0:1111")},
		{"/host", host("2606:4700::AAAA")},
		{"/host", host("2606:4700::/32")},
		{"/host", host("fe80::1%eth0")},
		{"/host", host("::ffff:8.8.8.8")},
		{"/host", host("10.0.0.1")},
		{"/host", host("169.254.169.254")},
		{"/host", host("127.0.0.1")},
		{"/host", host("::1")},
		{"/host", host("localhost")},
		{"/host", host("a.localhost")},
		{"/port", func(r *Rule) { r.Port = -1 }},
		{"/port", func(r *Rule) { r.Port = 65536 }},
		{"/methods", func(r *Rule) { r.Methods = nil }},
		{"/methods", func(r *Rule) { r.Methods = []string{} }},
		{"/methods", func(r *Rule) { r.Methods = []string{"*"} }},
		{"/methods", func(r *Rule) { r.Methods = []string{"get"} }},
		{"/methods", func(r *Rule) { r.Methods = []string{"CONNECT"} }},
		{"/methods", func(r *Rule) { r.Methods = []string{"TRACE"} }},
		{"/methods", func(r *Rule) { r.Methods = []string{"GET", "GET"} }},
		{"/path", path("")},
		{"/path", path("v1")},
		{"/path", path("*")},
		{"/path", path("/v1?x=1")},
		{"/path", path("/v1#f")},
		{"/path", path("/v1/%2e%2e")},
		{"/path", path("/v1/../v2")},
		{"/path", path("/v1/./v2")},
		{"/path", path("/v1/..;/v2")},
		{"/path", path("/v1//v2")},
		{"/path", path("/v1/a**")},
		{"/path", path("/v1/***")},
		{"/path", path("/v1/{a,b}")},
		{"/path", path("/v1/[ab]")},
		{"/path", path(`/v1\v2`)},
		{"/path", path("/" + strings.Repeat("*/", 9))},
		{"/path", path("/" + strings.Repeat("a", 1100))},
	} {
		_, err := Compile("crm", rule(tt.edit), abi.Internal, abi.Internal, false)
		var e *abi.Error
		if !errors.As(err, &e) || e.Code != abi.CodeUnsupportedRule || e.Pointer != tt.field || !strings.HasPrefix(e.Message, tt.field[1:]) {
			t.Errorf("%+v: %v, want UNSUPPORTED_RULE at %s", rule(tt.edit), err, tt.field)
		}
	}
	for field, err := range map[string]error{
		"/name":      second(Compile("CRM", rule(nil), abi.Internal, abi.Internal, false)),
		"/clearance": second(Compile("crm", rule(nil), 0, abi.Internal, false)),
		"/label":     second(Compile("crm", rule(nil), abi.Internal, 0, false)),
		"/host":      second(Compile("crm", rule(host("*.example.com")), abi.Internal, abi.Internal, true)),
	} {
		if e := abi.AsError(err); err == nil || e.Code != abi.CodeUnsupportedRule || e.Pointer != field {
			t.Errorf("%v, want UNSUPPORTED_RULE at %s", err, field)
		}
	}
	for _, ok := range []string{"127.0.0.1", "::1", "localhost"} {
		if _, err := Compile("crm", rule(host(ok)), abi.Internal, abi.Internal, true); err != nil {
			t.Errorf("%s with loopback: %v", ok, err)
		}
	}
	if _, err := Compile("crm", rule(host("192.168.1.1")), abi.Internal, abi.Internal, true); err == nil {
		t.Error("the loopback key opened a private address")
	}
}

func second(_ *Endpoint, err error) error { return err }

// S16: data leaves in the name that is asked for, so a wildcard is public whatever is asked.
func TestWildcardIsPublic(t *testing.T) {
	e, err := Compile("w", rule(func(r *Rule) { r.Host = "*.example.com" }), abi.Regulated, abi.Secret, false)
	if err != nil || e.Clearance != abi.Public || e.Label != abi.Secret || !e.Wildcard() {
		t.Fatalf("%+v, %v", e, err)
	}
}

func TestZeroEndpointAdmitsNothing(t *testing.T) {
	u := target(t, "https://api.example.com/v1/a")
	forged := &Endpoint{Name: "crm", Rule: rule(nil), Clearance: abi.Regulated, Label: abi.Public}
	for _, e := range []*Endpoint{nil, {}, forged} {
		if e.Match("GET", u) {
			t.Errorf("%+v matched", e)
		}
	}
	if compile(t, rule(nil)).Match("GET", nil) {
		t.Error("a nil target matched")
	}
	widened := compile(t, rule(nil))
	widened.Rule.Host = "evil.test"
	widened.Rule.Methods[0] = "DELETE"
	if widened.Match("GET", target(t, "https://evil.test/v1/a")) || widened.Match("DELETE", u) {
		t.Error("changing the text of the rule changed what it matches")
	}
}

// PF-B9: address literals of both families, and everything else, come back as they went in.
func TestRoundTrip(t *testing.T) {
	for _, host := range []string{"api.example.com", "*.example.com", "8.8.8.8", "2606:4700::1111", "2606:4700:0:1::1"} {
		e := compile(t, Rule{Scheme: "https", Host: host, Port: 0, Methods: []string{"POST", "GET"}, Path: "/v1/**"})
		if want := (Rule{Scheme: "https", Host: host, Port: 443, Methods: []string{"GET", "POST"}, Path: "/v1/**"}); cmp.Diff(want, e.Rule) != "" {
			t.Error(cmp.Diff(want, e.Rule))
		}
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back Endpoint
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		again, _ := json.Marshal(&back)
		if string(again) != string(b) || back.match == nil {
			t.Errorf("%s came back as %s", b, again)
		}
	}
}

func TestUnmarshalIsStrict(t *testing.T) {
	const good = `{"name":"crm","rule":{"scheme":"https","host":"a.example.com","methods":["GET"],"path":"/"},"clearance":"internal","label":"internal"}`
	var e Endpoint
	if err := json.Unmarshal([]byte(good), &e); err != nil {
		t.Fatal(err)
	}
	for _, edit := range [][2]string{
		{`"name"`, `"nome"`},
		{`"host":"a.example.com"`, `"host":"a.example.com","host":"b.example.com"`},
		{`"host":"a.example.com"`, `"host":""`},
		{`"host":"a.example.com"`, `"host":null`},
		{`"label":"internal"`, `"label":"none"`},
		{`,"label":"internal"`, ``},
		{`"methods":["GET"]`, `"methods":[]`},
		{`"methods":["GET"]`, `"methods":null`},
	} {
		var bad Endpoint
		if err := json.Unmarshal([]byte(strings.Replace(good, edit[0], edit[1], 1)), &bad); err == nil || bad.match != nil {
			t.Errorf("%s for %s: accepted", edit[1], edit[0])
		}
	}
}

// Whatever compiles is canonical: compiling it again changes nothing, and what it matches is
// inside its text.
func TestCompileIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rule{
			Scheme:  rapid.SampledFrom([]string{"http", "https", "ftp", ""}).Draw(t, "scheme"),
			Host:    rapid.StringMatching(`(\*\.)?[a-z0-9-]{1,4}(\.[a-z0-9-]{1,4}){0,3}`).Draw(t, "host"),
			Port:    rapid.IntRange(-1, 65536).Draw(t, "port"),
			Methods: rapid.SliceOf(rapid.SampledFrom(append(Methods(), "get", "TRACE"))).Draw(t, "methods"),
			Path:    rapid.StringMatching(`/([a-z*.]{0,3}/){0,3}[a-z*]{0,3}`).Draw(t, "path"),
		}
		e, err := Compile("e", r, abi.Internal, abi.Internal, false)
		if err != nil {
			return
		}
		again, err := Compile("e", e.Rule, e.Clearance, e.Label, false)
		if err != nil || cmp.Diff(e.Rule, again.Rule) != "" {
			t.Fatalf("%+v became %+v: %v", e.Rule, again, err)
		}
	})
}

func FuzzRule(f *testing.F) {
	f.Add("https", "api.example.com", 443, "GET", "/v1/**")
	f.Add("http", "*.example.com", 0, "POST", "/")
	f.Add("https", "2606:4700::1111", 1, "GET", "/*/a")
	f.Add("https", "::ffff:1.2.3.4", 1, "GET", "/%2e")
	f.Fuzz(func(t *testing.T, scheme, host string, port int, method, path string) {
		e, err := Compile("e", Rule{scheme, host, port, []string{method}, path}, abi.Regulated, abi.Public, false)
		if err != nil {
			if abi.CodeOf(err) != abi.CodeUnsupportedRule || abi.AsError(err).Pointer == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		// A rule without wildcards, written as a URL, matches itself: two parsers, one meaning.
		if e.Wildcard() || strings.Contains(path, "*") {
			return
		}
		u := &Target{Scheme: e.Rule.Scheme, Host: e.Rule.Host, Port: e.Rule.Port, Path: e.Rule.Path}
		u.Addr, _ = checkHost(host)
		parsed, err := ParseURL(u.String())
		if err != nil || !e.Match(method, parsed) {
			t.Fatalf("%s does not match its own rule: %v", u, err)
		}
	})
}

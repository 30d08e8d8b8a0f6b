package network

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// PF-E9, PF-F10: the origin gets the host's headers and the guest's, and nothing of the
// caller, of the gateway's environment or of an earlier answer. PF-F6: the target has no query.
func TestFetch(t *testing.T) {
	proxy := serve(t, "proxy.test", func(http.ResponseWriter, *http.Request) {})
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, proxy.Server.URL)
	}
	var seen []http.Header
	var got []string
	o := serve(t, "origin.test", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		seen = append(seen, r.Header.Clone())
		got = append(got, r.Method+" "+r.RequestURI+" "+r.Host+" "+string(b))
		w.Header().Add("X-List", "a")
		w.Header().Add("X-List", "b")
		w.Header().Set("Set-Cookie", "sid=1")
		w.Header().Set("Date", "Sun, 29 Nov 2026 12:00:00 GMT")
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "short and stout")
	})
	c, n := local(t, "origin.test")
	s := scope(nil, o.endpoint(t))
	for range 2 {
		res, err := c.Fetch(t.Context(), s, boundary.FetchRequest{
			Method: "POST", URL: o.url("/v1/a%20b?token=SENTINEL"), Headers: map[string]string{"content-type": "text/plain", "X-Own": "mine"},
		}, []byte("hello"))
		if err != nil {
			t.Fatal(err)
		}
		if string(res.Body) != "short and stout" || res.Target != o.url("/v1/a%20b") || res.HasValue || res.Code != "" {
			t.Errorf("%+v", res)
		}
		want := meta{Status: 418, Headers: map[string]string{"x-list": "a, b", "content-length": "15", "content-type": "text/plain; charset=utf-8", "date": "Sun, 29 Nov 2026 12:00:00 GMT"}}
		if diff := cmp.Diff(want, metaOf(t, res)); diff != "" {
			t.Error(diff)
		}
	}
	for i, h := range seen {
		want := http.Header{
			"Content-Type": {"text/plain"}, "X-Own": {"mine"}, "Content-Length": {"5"},
			"User-Agent": {"ecotone"}, "Accept-Encoding": {"identity"}, NonceHeader: {Nonce()},
		}
		if diff := cmp.Diff(want, h); diff != "" {
			t.Errorf("request %d: %s", i, diff)
		}
		if want := "POST /v1/a%20b?token=SENTINEL " + strings.TrimPrefix(o.url(""), "http://") + " hello"; got[i] != want {
			t.Errorf("%s, want %s", got[i], want)
		}
	}
	if s.Flow.Label() != abi.Confidential {
		t.Errorf("the label is %s", s.Flow.Label())
	}
	if n.queries.Load() != 2 || proxy.hits.Load() != 0 {
		t.Errorf("%d queries, %d requests at the proxy", n.queries.Load(), proxy.hits.Load())
	}
}

// PF-A1, M59: without rules everything is denied, in one way, whatever the absence looks like.
func TestNoRulesMeansDenied(t *testing.T) {
	o := serve(t, "origin.test", func(http.ResponseWriter, *http.Request) {})
	c, n := local(t, "origin.test")
	var answers []string
	for _, s := range []boundary.Scope{
		scope(nil),
		scope(func(spec *authority.Spec) { spec.Endpoints = nil }),
		scope(func(spec *authority.Spec) { spec.Endpoints = []*egress.Endpoint{} }),
		scope(func(spec *authority.Spec) { spec.Endpoints = []*egress.Endpoint{nil} }),
		scope(func(spec *authority.Spec) {
			spec.Endpoints = []*egress.Endpoint{{Name: "origin", Rule: o.endpoint(t).Rule, Clearance: abi.Regulated, Label: abi.Public, Loopback: true}}
		}),
		{},
		{Flow: &flow{}},
	} {
		res, err := get(t, c, s, o.url("/"))
		e := abi.AsError(err)
		answers = append(answers, string(e.Code)+e.Message+e.Hint+e.Pointer+res.Target+string(res.Body)+string(res.Meta))
	}
	if len(slices.Compact(slices.Clone(answers))) != 1 || !strings.HasPrefix(answers[0], string(abi.CodeEndpointRefused)) {
		t.Errorf("%q", answers)
	}
	if n.queries.Load() != 0 || o.hits.Load() != 0 {
		t.Errorf("%d queries, %d requests", n.queries.Load(), o.hits.Load())
	}
}

// S16, M59, X45: whatever refuses a request refuses it before the name is asked for.
func TestRefusedBeforeResolution(t *testing.T) {
	n := resolver()
	c := client(t, Options{AllowLoopback: true, Resolver: n, Secrets: secrets(t)})
	rule := egress.Rule{Scheme: "https", Host: "api.example.com", Methods: []string{"GET", "POST"}, Path: "/v1/**"}
	e := compile(t, "origin", rule, false)
	wild := compile(t, "wild", egress.Rule{Scheme: "https", Host: "*.example.org", Methods: []string{"GET"}, Path: "/**"}, false)
	const good = "https://api.example.com/v1/x"
	labelled := func(l abi.Classification) boundary.Scope {
		s := scope(nil, e, wild)
		s.Flow.(*flow).label = l
		return s
	}
	revoked := scope(nil, e)
	revoked.Authority = authority.New(*revoked.Authority.Spec(), func() *abi.Error { return abi.Errorf(abi.CodeGrantRevoked, "revoked") })
	plain := scope(withSecret, e, wild)
	listed := func(patterns ...string) boundary.Scope {
		return scope(func(spec *authority.Spec) {
			for _, p := range patterns {
				l, err := egress.CompileList([]string{p}, nil)
				if err != nil {
					t.Fatal(err)
				}
				spec.Egress = append(spec.Egress, l)
			}
		}, e)
	}
	for _, tt := range []struct {
		what string
		s    boundary.Scope
		req  boundary.FetchRequest
		body string
		want abi.Code
	}{
		{"no URL", plain, boundary.FetchRequest{Method: "GET"}, "", abi.CodeURLInvalid},
		{"user information", plain, boundary.FetchRequest{Method: "GET", URL: "https://api.example.com@evil.test/v1/x"}, "", abi.CodeURLInvalid},
		{"another host", plain, boundary.FetchRequest{Method: "GET", URL: "https://evil.test/v1/x"}, "", abi.CodeEndpointRefused},
		{"an address", plain, boundary.FetchRequest{Method: "GET", URL: "https://93.184.216.34/v1/x"}, "", abi.CodeEndpointRefused},
		{"the metadata service", plain, boundary.FetchRequest{Method: "GET", URL: "http://169.254.169.254/latest"}, "", abi.CodeEndpointRefused},
		{"a subdomain", plain, boundary.FetchRequest{Method: "GET", URL: "https://data.api.example.com/v1/x"}, "", abi.CodeEndpointRefused},
		{"another port", plain, boundary.FetchRequest{Method: "GET", URL: "https://api.example.com:8443/v1/x"}, "", abi.CodeEndpointRefused},
		{"another scheme", plain, boundary.FetchRequest{Method: "GET", URL: "http://api.example.com:443/v1/x"}, "", abi.CodeEndpointRefused},
		{"another path", plain, boundary.FetchRequest{Method: "GET", URL: "https://api.example.com/v2/x"}, "", abi.CodeEndpointRefused},
		{"another method", plain, boundary.FetchRequest{Method: "PUT", URL: good}, "", abi.CodeEndpointRefused},
		{"no method", plain, boundary.FetchRequest{URL: good}, "", abi.CodeEndpointRefused},
		{"a lower-case method", plain, boundary.FetchRequest{Method: "get", URL: good}, "", abi.CodeEndpointRefused},
		{"a method with a line break", plain, boundary.FetchRequest{Method: "GET / HTTP/1.1\r\nX: y", URL: good}, "", abi.CodeEndpointRefused},
		{"a refused header", plain, boundary.FetchRequest{Method: "GET", URL: good, Headers: map[string]string{"Host": "evil.test"}}, "", abi.CodeHeaderRefused},
		{"a body that is too large", plain, boundary.FetchRequest{Method: "POST", URL: good}, strings.Repeat("x", 1<<20+1), abi.CodeRequestTooLarge},
		{"a body with GET", plain, boundary.FetchRequest{Method: "GET", URL: good}, "x", abi.CodeArgumentInvalid},
		{"a label above the endpoint", labelled(abi.Secret), boundary.FetchRequest{Method: "GET", URL: good}, "", abi.CodeClassificationFlow},
		{"a label above a wildcard", labelled(abi.Internal), boundary.FetchRequest{Method: "GET", URL: "https://c2VjcmV0.example.org/"}, "", abi.CodeClassificationFlow},
		{"an endpoint above the ceiling", scope(func(spec *authority.Spec) { spec.Ceiling = abi.Internal }, e), boundary.FetchRequest{Method: "GET", URL: good}, "", abi.CodeEndpointRefused},
		{"a URL that an obligation does not list", listed("https://api.example.com/v2/**"), boundary.FetchRequest{Method: "GET", URL: good}, "", abi.CodeEndpointRefused},
		{"a URL that one of two obligations does not list", listed("https://api.example.com/**", "https://other.example.com/**"), boundary.FetchRequest{Method: "GET", URL: good}, "", abi.CodeEndpointRefused},
		{"a listed URL that no endpoint admits", listed("https://evil.test/**"), boundary.FetchRequest{Method: "GET", URL: "https://evil.test/v1/x"}, "", abi.CodeEndpointRefused},
		{"a secret that is not granted", scope(nil, e), boundary.FetchRequest{Method: "GET", URL: good, Secret: "crm"}, "", abi.CodeSecretDenied},
		{"a secret that is not there", plain, boundary.FetchRequest{Method: "GET", URL: good, Secret: "absent"}, "", abi.CodeSecretDenied},
		{"a secret toward a wildcard", plain, boundary.FetchRequest{Method: "GET", URL: "https://a.example.org/", Secret: "crm"}, "", abi.CodeSecretDenied},
		{"a secret with Range", plain, boundary.FetchRequest{Method: "GET", URL: good, Secret: "crm", Headers: map[string]string{"Range": "bytes=0-1"}}, "", abi.CodeHeaderRefused},
		{"an authority that was withdrawn", revoked, boundary.FetchRequest{Method: "GET", URL: good}, "", abi.CodeGrantRevoked},
	} {
		before := labelOf(tt.s)
		res, err := c.Fetch(t.Context(), tt.s, tt.req, []byte(tt.body))
		if abi.CodeOf(err) != tt.want || res.Body != nil || res.Meta != nil {
			t.Errorf("%s: %v, want %s", tt.what, err, tt.want)
		}
		if q := n.queries.Swap(0); q != 0 {
			t.Errorf("%s: %d names were asked for", tt.what, q)
		}
		if labelOf(tt.s) != before {
			t.Errorf("%s: the label was raised by a request that never left", tt.what)
		}
	}
}

func labelOf(s boundary.Scope) abi.Classification { return s.Flow.Label() }

// S16: of several rules that admit one request the lowest clearance and the highest label count.
func TestRulesOnlyRestrict(t *testing.T) {
	rule := egress.Rule{Scheme: "https", Host: "a.example.com", Methods: []string{"GET"}, Path: "/**"}
	high, _ := egress.Compile("high", rule, abi.Secret, abi.Public, false)
	low, _ := egress.Compile("low", rule, abi.Internal, abi.Secret, false)
	loop, _ := egress.Compile("loop", rule, abi.Regulated, abi.Public, true)
	u, _ := egress.ParseURL("https://a.example.com/")
	for _, es := range [][]*egress.Endpoint{{high, low, loop}, {loop, low, high}, {low, loop, high}} {
		r, ok := match(&authority.Spec{Endpoints: es}, "GET", u)
		if !ok || r.clearance != abi.Internal || r.label != abi.Secret || r.loopback || len(r.endpoints) != 3 {
			t.Errorf("%+v", r)
		}
	}
}

// PF-B1, X45: a redirect is an answer. It is not followed, to where a rule allows or not, and
// neither the secret nor anything else reaches the second origin.
func TestRedirectsAreNotFollowed(t *testing.T) {
	second := serve(t, "second.test", func(http.ResponseWriter, *http.Request) {})
	to := ""
	first := serve(t, "origin.test", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
	n := resolver("origin.test.", "127.0.0.1", "second.test.", "127.0.0.1")
	c := client(t, Options{AllowLoopback: true, Resolver: n, Secrets: secrets(t)})
	allowed := compile(t, "second", egress.Rule{Scheme: "http", Host: "second.test", Port: second.port, Methods: []string{"GET"}, Path: "/**"}, true)
	for _, endpoints := range [][]*egress.Endpoint{{first.endpoint(t)}, {first.endpoint(t), allowed}} {
		for _, to = range []string{second.url("/x"), second.Server.URL + "/x", "http://169.254.169.254/", "//second.test/x", "/loop"} {
			before := first.hits.Load()
			res, err := c.Fetch(t.Context(), scope(withSecret, endpoints...), boundary.FetchRequest{Method: "GET", URL: first.url("/"), Secret: "crm"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if m := metaOf(t, res); m.Status != 302 || m.Headers["location"] != to {
				t.Errorf("%+v", m)
			}
			if first.hits.Load() != before+1 {
				t.Errorf("%s: followed on the same origin", to)
			}
		}
	}
	if second.hits.Load() != 0 {
		t.Errorf("the second origin was asked %d times", second.hits.Load())
	}
}

// PF-B2: a name at any special address is refused, alone or among good ones, in both orders,
// and both keys to loopback open nothing but loopback.
func TestSpecialAddresses(t *testing.T) {
	special := []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.1.2.3", "168.63.129.16", "169.254.169.254", "169.254.170.2",
		"172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
		"224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1",
		"64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "2606:4700::5efe:7f00:1", "3fff::1", "5f00::1",
		"fc00::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
	}
	for _, keys := range []bool{false, true} {
		n := resolver()
		c := client(t, Options{AllowLoopback: keys, Resolver: n})
		var dialled []string
		c.dial = record(&dialled)
		e := compile(t, "origin", egress.Rule{Scheme: "http", Host: "origin.test", Methods: []string{"GET"}, Path: "/**"}, keys)
		for _, s := range special {
			a := netip.MustParseAddr(s)
			if keys && a.Unmap().IsLoopback() {
				continue
			}
			good := netip.MustParseAddr("93.184.216.34")
			for _, answer := range [][]netip.Addr{{a}, {good, a}, {a, good}} {
				n.table["origin.test."] = [][]netip.Addr{answer}
				sc := scope(nil, e)
				_, err := get(t, c, sc, "http://origin.test/")
				if abi.CodeOf(err) != abi.CodeAddressRefused || strings.Contains(abi.AsError(err).Message, s) {
					t.Errorf("%v with keys %v: %v", answer, keys, err)
				}
				if sc.Flow.Label() != abi.Confidential {
					t.Errorf("%v: what the resolver said did not raise the label", answer)
				}
			}
		}
		if len(dialled) != 0 {
			t.Errorf("dialled %v", dialled)
		}
	}
}

// PF-B4, PF-B17: the address that was classified is the address that is dialled. A name that
// changes its mind reaches nothing.
func TestRebinding(t *testing.T) {
	inside := serve(t, "origin.test", func(http.ResponseWriter, *http.Request) {})
	n := resolver("origin.test.", "93.184.216.34", "origin.test.", "127.0.0.1")
	c := client(t, Options{Resolver: n})
	var dialled []string
	c.dial = record(&dialled)
	rule := egress.Rule{Scheme: "http", Host: "origin.test", Port: inside.port, Methods: []string{"GET"}, Path: "/**"}
	s := scope(nil, compile(t, "origin", rule, false))
	if _, err := get(t, c, s, inside.url("/")); abi.CodeOf(err) != abi.CodeUpstreamFailed {
		t.Errorf("first: %v", err)
	}
	if n.queries.Load() != 1 || len(dialled) != 1 || !strings.HasPrefix(dialled[0], "93.184.216.34:") {
		t.Errorf("%d queries, dialled %v", n.queries.Load(), dialled)
	}
	if _, err := get(t, c, s, inside.url("/")); abi.CodeOf(err) != abi.CodeAddressRefused {
		t.Errorf("second: %v", err)
	}
	if inside.hits.Load() != 0 || len(dialled) != 1 {
		t.Errorf("%d requests inside, dialled %v", inside.hits.Load(), dialled)
	}
}

// PF-A25: loopback takes the server's key and the endpoint's.
func TestLoopbackTakesTwoKeys(t *testing.T) {
	o := serve(t, "origin.test", func(http.ResponseWriter, *http.Request) {})
	rule := egress.Rule{Scheme: "http", Host: "origin.test", Port: o.port, Methods: []string{"GET"}, Path: "/**"}
	for _, tt := range []struct {
		server, endpoint bool
		want             abi.Code
	}{
		{false, false, abi.CodeAddressRefused},
		{true, false, abi.CodeAddressRefused},
		{false, true, abi.CodeAddressRefused},
		{true, true, ""},
	} {
		before := o.hits.Load()
		c := client(t, Options{AllowLoopback: tt.server, Resolver: resolver("origin.test.", "127.0.0.1")})
		_, err := get(t, c, scope(nil, compile(t, "origin", rule, tt.endpoint)), o.url("/"))
		if abi.CodeOf(err) != tt.want {
			t.Errorf("%+v: %v", tt, err)
		}
		if hit := o.hits.Load() > before; hit != (tt.want == "") {
			t.Errorf("%+v: reached is %v", tt, hit)
		}
	}
	// A connection that was made with both keys serves no rule without: the pools are apart.
	c, _ := local(t, "origin.test")
	if _, err := get(t, c, scope(nil, compile(t, "origin", rule, true)), o.url("/")); err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, c, scope(nil, compile(t, "origin", rule, false)), o.url("/")); abi.CodeOf(err) != abi.CodeAddressRefused {
		t.Error(err)
	}
}

// A connection that a loopback rule left open carries no request of another rule, also when
// that rule's addresses are good (PF-A25, PF-B17).
func TestLoopbackConnectionsAreNotReused(t *testing.T) {
	inside := serve(t, "origin.test", func(http.ResponseWriter, *http.Request) {})
	c := client(t, Options{AllowLoopback: true, Resolver: resolver("origin.test.", "127.0.0.1", "origin.test.", "93.184.216.34")})
	rule := inside.endpoint(t).Rule
	if _, err := get(t, c, scope(nil, compile(t, "origin", rule, true)), inside.url("/")); err != nil {
		t.Fatal(err)
	}
	var dialled []string
	c.dial = record(&dialled)
	if _, err := get(t, c, scope(nil, compile(t, "origin", rule, false)), inside.url("/")); abi.CodeOf(err) != abi.CodeUpstreamFailed {
		t.Error(err)
	}
	if inside.hits.Load() != 1 || len(dialled) != 1 {
		t.Errorf("%d requests inside, dialled %v", inside.hits.Load(), dialled)
	}
}

// Some resolvers give IPv4 addresses in IPv6 form.
func TestMappedAddresses(t *testing.T) {
	o := serve(t, "origin.test", func(http.ResponseWriter, *http.Request) {})
	c := client(t, Options{AllowLoopback: true, Resolver: resolver("origin.test.", "::ffff:127.0.0.1")})
	if _, err := get(t, c, scope(nil, o.endpoint(t)), o.url("/")); err != nil {
		t.Error(err)
	}
}

// X45: an address in the URL is classified like one that was resolved, and no name is asked for.
func TestAddressLiterals(t *testing.T) {
	o := serve(t, "127.0.0.1", func(http.ResponseWriter, *http.Request) {})
	n := resolver()
	open, shut := client(t, Options{AllowLoopback: true, Resolver: n}), client(t, Options{Resolver: n})
	if _, err := get(t, open, scope(nil, o.endpoint(t)), o.url("/")); err != nil {
		t.Error(err)
	}
	if _, err := get(t, shut, scope(nil, o.endpoint(t)), o.url("/")); abi.CodeOf(err) != abi.CodeAddressRefused {
		t.Error(err)
	}
	if n.queries.Load() != 0 || o.hits.Load() != 1 {
		t.Errorf("%d queries, %d requests", n.queries.Load(), o.hits.Load())
	}
}

// S16: the process's own listeners are refused with both keys, by exact and by unspecified
// address; and what arrives some other way bears the nonce.
func TestHairpin(t *testing.T) {
	own := serve(t, "origin.test", func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get(NonceHeader) != Nonce() {
			t.Error("the nonce is missing")
		}
	})
	port := uint16(own.port)
	for _, tt := range []struct {
		listener string
		want     abi.Code
	}{
		{"127.0.0.1", abi.CodeAddressRefused},
		{"0.0.0.0", abi.CodeAddressRefused},
		{"::", abi.CodeAddressRefused},
		{"::ffff:127.0.0.1", abi.CodeAddressRefused},
		{"127.0.0.2", ""},
	} {
		c := client(t, Options{
			AllowLoopback: true, Resolver: resolver("origin.test.", "127.0.0.1"),
			Listeners: func() []netip.AddrPort {
				return []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr(tt.listener), port)}
			},
		})
		before := own.hits.Load()
		_, err := get(t, c, scope(nil, own.endpoint(t)), own.url("/"))
		if abi.CodeOf(err) != tt.want || (own.hits.Load() > before) != (tt.want == "") {
			t.Errorf("%s: %v", tt.listener, err)
		}
	}
	if again := Nonce(); len(again) < 24 || again != Nonce() {
		t.Error("the nonce is weak or changes")
	}
}

func TestOwnAddressesOfTheMachine(t *testing.T) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range own {
		if a, ok := netip.AddrFromSlice(o.(*net.IPNet).IP); ok && !ofThisMachine(a.Unmap()) {
			t.Errorf("%s is not recognised", a)
		}
	}
	if ofThisMachine(netip.MustParseAddr("93.184.216.34")) {
		t.Error("a foreign address is taken for our own")
	}
}

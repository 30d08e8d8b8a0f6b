package network

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// record stands in for the wire toward addresses that tests must not dial.
func record(to *[]string) func(context.Context, string, string) (net.Conn, error) {
	var mu sync.Mutex
	return func(_ context.Context, _, address string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		*to = append(*to, address)
		return nil, errors.New("not dialled in tests")
	}
}

// PF-B14: organisations, biomes and environments share neither connections nor TLS sessions;
// one biome keeps its connection.
func TestPoolsAreApart(t *testing.T) {
	ts := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.RemoteAddr+" "+strconv.FormatBool(r.TLS.DidResume))
	}))
	t.Cleanup(ts.Close)
	roots := x509.NewCertPool()
	roots.AddCert(ts.Certificate())
	c := client(t, Options{AllowLoopback: true, Resolver: resolver("example.com.", "127.0.0.1"), RootCAs: roots})
	port := portOf(t, ts.URL)
	e := compile(t, "origin", egress.Rule{Scheme: "https", Host: "example.com", Port: port, Methods: []string{"GET"}, Path: "/**"}, true)
	conns := map[string]string{}
	for range 2 {
		for who, edit := range map[string]func(*authority.Spec){
			"first":           nil,
			"another biome":   func(s *authority.Spec) { s.Biome = "other" },
			"another org":     func(s *authority.Spec) { s.Org = "other" },
			"another profile": func(s *authority.Spec) { s.Environment = abi.MakeEnvironmentRef("app") },
			"joined names":    func(s *authority.Spec) { s.Org, s.Biome = "acmef", "etcher" },
		} {
			res, err := get(t, c, scope(edit, e), "https://example.com:"+strconv.Itoa(port)+"/")
			if err != nil {
				t.Fatal(err)
			}
			remote, resumed, _ := strings.Cut(string(res.Body), " ")
			if resumed != "false" {
				t.Errorf("%s: resumed a TLS session", who)
			}
			if conns[who] != "" && conns[who] != remote {
				t.Errorf("%s: did not keep its connection", who)
			}
			conns[who] = remote
		}
	}
	seen := map[string]bool{}
	for _, r := range conns {
		seen[r] = true
	}
	if len(seen) != len(conns) {
		t.Errorf("shared connections: %v", conns)
	}
}

// The certificate must be for the name the rule admitted, and by an authority that is trusted.
func TestTLSIsVerified(t *testing.T) {
	ts := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request went through") }))
	quiet := log.New(io.Discard, "", 0) // the refused handshakes
	ts.Config.ErrorLog = quiet
	t.Cleanup(ts.Close)
	roots := x509.NewCertPool()
	roots.AddCert(ts.Certificate())
	port := portOf(t, ts.URL)
	old := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request went through") }))
	old.Config.ErrorLog = quiet
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.StartTLS()
	t.Cleanup(old.Close)
	for _, tt := range []struct {
		what, host string
		port       int
		roots      *x509.CertPool
	}{
		{"another name", "origin.test", port, roots},
		{"unknown authority", "example.com", port, x509.NewCertPool()},
		{"old protocol", "example.com", portOf(t, old.URL), roots},
	} {
		c := client(t, Options{AllowLoopback: true, Resolver: resolver(tt.host+".", "127.0.0.1"), RootCAs: tt.roots})
		e := compile(t, "origin", egress.Rule{Scheme: "https", Host: tt.host, Port: tt.port, Methods: []string{"GET"}, Path: "/**"}, true)
		_, err := get(t, c, scope(nil, e), "https://"+tt.host+":"+strconv.Itoa(tt.port)+"/")
		if abi.CodeOf(err) != abi.CodeUpstreamFailed {
			t.Errorf("%s: %v", tt.what, err)
		}
	}
}

func TestPoolsAreBounded(t *testing.T) {
	ps := newPools(func() *http.Transport { return &http.Transport{} })
	busy := ps.take(poolKey{org: "busy"})
	for i := range 4 * maxPools {
		ps.put(ps.take(poolKey{org: strconv.Itoa(i)}))
		if len(ps.all) > maxPools {
			t.Fatalf("%d pools", len(ps.all))
		}
	}
	if !busy.retired || busy.running != 1 {
		t.Errorf("%+v", busy)
	}
	ps.put(busy)
	if again := ps.take(poolKey{org: "busy"}); again == busy {
		t.Error("a retired pool came back")
	}
	ps.close()
	if len(ps.all) != 0 {
		t.Error("pools are left after close")
	}
}

// Several addresses are tried in their order; none beyond those that were classified.
func TestDialOrder(t *testing.T) {
	n := resolver("origin.test.", "93.184.216.34")
	addrs := n.table["origin.test."][0]
	for range maxDialAttempts {
		addrs = append(addrs, addrs[len(addrs)-1].Next())
	}
	n.table["origin.test."][0] = addrs
	c := client(t, Options{Resolver: n})
	var dialled []string
	c.dial = record(&dialled)
	e := compile(t, "origin", egress.Rule{Scheme: "http", Host: "origin.test", Methods: []string{"GET"}, Path: "/**"}, false)
	if _, err := get(t, c, scope(nil, e), "http://origin.test/"); abi.CodeOf(err) != abi.CodeUpstreamFailed {
		t.Error(err)
	}
	want := make([]string, 0, maxDialAttempts)
	for _, a := range addrs[:maxDialAttempts] {
		want = append(want, a.String()+":80")
	}
	if diff := cmp.Diff(want, dialled); diff != "" {
		t.Error(diff)
	}
}

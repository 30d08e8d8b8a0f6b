package listen

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/listen/listentest"
)

func open(t *testing.T, address string, o Options) *Listener {
	t.Helper()
	ln, err := Open("data", address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln
}

// Everyone could connect: without TLS only loopback is listened on, and in development nothing else.
func TestOnlyLoopbackWithoutTLS(t *testing.T) {
	a := listentest.New(t, "ecotone.test")
	cert, key := a.Files(t.TempDir())
	certs, err := Load(cert, key, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		address string
		o       Options
		refused bool
	}{
		{"127.0.0.1:0", Options{}, false},
		{"localhost:0", Options{}, false},
		{"127.0.0.1:0", Options{OnlyLoopback: true}, false},
		{"127.0.0.1:0", Options{Certificates: certs, OnlyLoopback: true}, false},
		{"0.0.0.0:0", Options{Certificates: certs}, false},
		{":0", Options{}, true},
		{"0.0.0.0:0", Options{}, true},
		{"0.0.0.0:0", Options{OnlyLoopback: true}, true},
		{"0.0.0.0:0", Options{Certificates: certs, OnlyLoopback: true}, true}, // S19
	} {
		ln, err := Open("data", c.address, c.o)
		if c.refused {
			if code := abi.CodeOf(err); code != abi.CodeTLSRequired {
				t.Errorf("%s %+v: %v", c.address, c.o, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %+v: %v", c.address, c.o, err)
			continue
		}
		if scheme, _, _ := strings.Cut(ln.URL(), ":"); (scheme == "https") != (c.o.Certificates != nil) {
			t.Errorf("%s is at %s", c.address, ln.URL())
		}
		for range 2 {
			if err := ln.Close(); err != nil {
				t.Errorf("it cannot be closed twice: %v", err)
			}
		}
	}
}

func TestOldestTLS(t *testing.T) {
	a := listentest.New(t, "ecotone.test")
	cert, key := a.Files(t.TempDir())
	for _, c := range []struct {
		oldest MinVersion
		speaks uint16
		works  bool
	}{
		{0, tls.VersionTLS13, true},
		{0, tls.VersionTLS12, false},
		{TLS12, tls.VersionTLS12, true},
		{TLS12, tls.VersionTLS11, false},
	} {
		certs, err := Load(cert, key, c.oldest)
		if err != nil {
			t.Fatal(err)
		}
		ln := open(t, "127.0.0.1:0", Options{Certificates: certs})
		go func() {
			if conn, err := ln.Accept(); err == nil {
				_ = conn.(*tls.Conn).Handshake()
				conn.Close()
			}
		}()
		conn, err := tls.Dial("tcp", ln.Addr().String(), &tls.Config{RootCAs: a.Pool, ServerName: "ecotone.test", MinVersion: tls.VersionTLS10, MaxVersion: c.speaks})
		if (err == nil) != c.works {
			t.Errorf("oldest %x, a client of %x: %v", c.oldest, c.speaks, err)
		}
		if err == nil {
			conn.Close()
		}
	}
}

// What is not good is not taken, and what there was stays.
func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	good, other := listentest.New(t, "a.test"), listentest.New(t, "b.test")
	cert, key := good.Files(dir)
	certs, err := Load(cert, key, 0)
	if err != nil {
		t.Fatal(err)
	}
	old := listentest.Between(t, "old.test", time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour))
	for name, change := range map[string]func(){
		"another key":         func() { listentest.Write(t, key, other.Key, 0o600) },
		"a key for everybody": func() { listentest.Write(t, key, good.Key, 0o604) },
		"no key":              func() { _ = os.Remove(key) },
		"half a certificate":  func() { listentest.Write(t, cert, good.Cert[:len(good.Cert)/2], 0o600) },
		"an old certificate":  func() { old.FilesAt(cert, key) },
		"a folder":            func() { _ = os.Remove(cert); _ = os.Mkdir(cert, 0o700) },
	} {
		change()
		if _, err := Load(cert, key, 0); abi.CodeOf(err) != abi.CodeNotReady {
			t.Errorf("%s is taken at the start: %v", name, err)
		}
		if changed, err := certs.Reload(); changed || err == nil {
			t.Errorf("%s is taken while it runs", name)
		}
		if certs.current.Load().Leaf.DNSNames[0] != "a.test" {
			t.Errorf("%s: the certificate is gone", name)
		}
		_ = os.RemoveAll(cert)
		good.FilesAt(cert, key)
	}
	if changed, err := certs.Reload(); changed || err != nil {
		t.Errorf("the same files: %v %v", changed, err)
	}
}

// A certificate is replaced under load: connections that are there go on, new ones see the new one, and no
// request fails.
func TestReloadUnderLoad(t *testing.T) {
	dir := t.TempDir()
	a := listentest.New(t, "ecotone.test")
	cert, key := a.Files(dir)
	certs, err := Load(cert, key, 0)
	if err != nil {
		t.Fatal(err)
	}
	watched, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); certs.Watch(watched, time.Millisecond, slog.New(slog.DiscardHandler)) }()
	defer func() { stop(); <-ended }()
	ln := open(t, "127.0.0.1:0", Options{Certificates: certs})
	srv := &httptest.Server{Listener: ln, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })}}
	srv.Start() // speaks what the listener speaks
	defer srv.Close()

	second := a.Again(t, "ecotone.test") // of the same authority
	var moved atomic.Bool
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.Pool, ServerName: "ecotone.test"}, DisableKeepAlives: n%2 == 0, MaxConnsPerHost: 1}
			defer transport.CloseIdleConnections()
			client := http.Client{Transport: transport, Timeout: time.Minute}
			dialled, after := 0, 0
			for i := 0; i < 20 || after < 3; i++ {
				now := moved.Load()
				req, _ := http.NewRequest("GET", ln.URL(), nil)
				req = req.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{ConnectDone: func(string, string, error) { dialled++ }}))
				res, err := client.Do(req)
				if err != nil {
					t.Errorf("a request failed: %v", err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if seen := res.TLS.PeerCertificates[0].SerialNumber; now {
					after++
					if n%2 == 0 && seen.Cmp(second.Serial) != 0 {
						t.Errorf("a new connection sees the old certificate")
					}
				}
			}
			if n%2 == 1 && dialled != 1 {
				t.Errorf("a connection was dropped: %d were made", dialled)
			}
		})
	}
	second.FilesAt(cert, key)
	for end := time.Now().Add(time.Minute); certs.current.Load().Leaf.SerialNumber.Cmp(second.Serial) != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the new certificate is not taken")
		}
	}
	moved.Store(true)
	wg.Wait()
}

var _ net.Listener = (*Listener)(nil)

// The key and the certificate are two files, and between them the pair does not match: that is no harm, and is said once.
func TestWatchSaysOnce(t *testing.T) {
	dir := t.TempDir()
	a, b := listentest.New(t, "a.test"), listentest.New(t, "b.test")
	cert, key := a.Files(dir)
	certs, err := Load(cert, key, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, nil))
	listentest.Write(t, cert, b.Cert, 0o600)
	said := ""
	for range 3 {
		said = certs.look(log, said)
	}
	listentest.Write(t, key, b.Key, 0o600)
	said = certs.look(log, said)
	if n := strings.Count(out.String(), "stays as it was"); n != 1 || said != "" || !strings.Contains(out.String(), "was replaced") {
		t.Errorf("said %d times: %s", n, out.String())
	}
	if filepath.Dir(cert) != dir || strings.Contains(out.String(), "PRIVATE") {
		t.Error(out.String())
	}
}

package servertest_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/listen"
	"github.com/ecotone-dev/ecotone/gateway/listen/listentest"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// trusting is a client that trusts one authority, and keeps its connections or not.
func trusting(t testing.TB, a *listentest.Authority, keep bool) *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.Pool}, DisableKeepAlives: !keep}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Timeout: 2 * time.Minute, Transport: transport}
}

func secured(cert, key string) func(*server.Options) {
	return func(o *server.Options) { o.TLSCert, o.TLSKey = cert, key }
}

// echoSession has a biome that echoes, for user:alice in project.
func echoSession(g *servertest.Gateway) *servertest.Session {
	g.Upload(wasmtest.Echo(wasmtest.Manifest("echo", wasmtest.Provide("test:echo.do@1", "run", abi.ReachOwner)))).Want(201)
	g.Install("echo", []string{"project"}, nil).Want(200)
	g.Grant("user:alice", "test:echo.do@1", "project")
	return g.Open("user:alice", "project", nil)
}

// With a certificate every listener speaks TLS and nothing else, also where everybody can connect.
func TestEveryListenerSpeaksTLS(t *testing.T) {
	a := listentest.New(t, "ecotone.test")
	cert, key := a.Files(t.TempDir())
	g := servertest.Start(t, secured(cert, key), func(o *server.Options) {
		o.Listen, o.AdminListen, o.OpsListen = "0.0.0.0:0", "[::]:0", ":0"
	})
	for _, at := range []*string{&g.Invoke, &g.Admin, &g.Ops} { // whoever connects names an address of the certificate
		*at = strings.NewReplacer("[::]", "127.0.0.1", "0.0.0.0", "127.0.0.1").Replace(*at)
	}
	g.Client = trusting(t, a, true)
	s := echoSession(g)
	if got := s.Invoke("test:echo.do@1", map[string]int{"a": 1}).Want(200); string(got.Body) != `{"a":1}` {
		t.Errorf("%s", got.Body)
	}
	g.Do("GET", g.Ops+"/readyz", "", nil).Want(200)
	for _, base := range []string{g.Invoke, g.Admin, g.Ops} {
		res, err := http.Get(strings.Replace(base, "https:", "http:", 1) + "/livez")
		if err != nil {
			continue // the data plane just ends the connection
		}
		if raw, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusBadRequest || !strings.Contains(string(raw), "HTTPS") {
			t.Errorf("%s answers without TLS: %d %s", base, res.StatusCode, raw)
		}
		res.Body.Close()
	}
	strict := trusting(t, listentest.New(t, "ecotone.test"), false)
	if res, err := strict.Get(g.Ops + "/livez"); err == nil {
		res.Body.Close()
		t.Error("a client that trusts somebody else is content")
	}
	old := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.Pool, MaxVersion: tls.VersionTLS12}, DisableKeepAlives: true}
	if res, err := (&http.Client{Transport: old}).Get(g.Invoke + "/v1/capabilities"); err == nil {
		res.Body.Close()
		t.Error("TLS 1.2 is spoken though nobody said so")
	}
}

// S19: where everybody could connect there is TLS, on each listener, and no development mode.
func TestNobodyListensInTheOpen(t *testing.T) {
	a := listentest.New(t, "ecotone.test")
	cert, key := a.Files(t.TempDir())
	for name, open := range map[string]func(*server.Options){
		"data":  func(o *server.Options) { o.Listen = "0.0.0.0:0" },
		"admin": func(o *server.Options) { o.AdminListen = "0.0.0.0:0" },
		"ops":   func(o *server.Options) { o.OpsListen = "0.0.0.0:0" },
		"mcp":   func(o *server.Options) { o.MCPListen = "0.0.0.0:0" },
	} {
		t.Run(name, func(t *testing.T) {
			servertest.DoesNotOpen(t, abi.CodeTLSRequired, open)
			servertest.DoesNotOpen(t, abi.CodeTLSRequired, open, secured(cert, key), servertest.Dev)
		})
	}
	servertest.DoesNotOpen(t, abi.CodeNotReady, secured(cert, ""))
	servertest.DoesNotOpen(t, abi.CodeNotReady, secured(cert, cert))
}

// The certificate is replaced while callers are served: no request fails, no connection is dropped, and
// new ones see the new certificate.
func TestCertificateIsReplacedUnderLoad(t *testing.T) {
	a := listentest.New(t, "ecotone.test")
	dir := t.TempDir()
	cert, key := a.Files(dir)
	g := servertest.Start(t, secured(cert, key), func(o *server.Options) { o.TLSOldest = listen.TLS12 })
	g.Client = trusting(t, a, false)
	s := echoSession(g)
	second := a.Again(t, "ecotone.test")
	var moved atomic.Bool
	var wg, connected sync.WaitGroup
	for n := range 4 {
		connected.Add(1)
		wg.Go(func() {
			there := sync.OnceFunc(connected.Done)
			defer there()
			keep := n%2 == 0
			client := trusting(t, a, keep)
			for i, after := 0, 0; i < 10 || after < 3; i++ {
				now := moved.Load()
				req, err := http.NewRequest("POST", g.Invoke+"/v1/invoke/test:echo.do@1", strings.NewReader("{}"))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Authorization", "Bearer "+s.Token)
				req.Header.Set("Content-Type", "application/json")
				res, err := client.Do(req)
				if err != nil {
					t.Errorf("a request failed: %v", err)
					return
				}
				raw, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || res.StatusCode != http.StatusOK {
					t.Errorf("%d %s %v", res.StatusCode, raw, err)
					return
				}
				there()
				if now {
					after++
				}
				serial := res.TLS.PeerCertificates[0].SerialNumber
				if now && !keep && serial.Cmp(second.Serial) != 0 {
					t.Error("a new connection sees the old certificate")
				}
				if keep && serial.Cmp(second.Serial) == 0 {
					t.Error("a connection was dropped")
				}
			}
		})
	}
	connected.Wait()
	second.FilesAt(cert, key)
	if err := g.Server.Reload(); err != nil {
		t.Error(err)
	}
	moved.Store(true)
	wg.Wait()

	listentest.Write(t, key, a.Key, 0o600) // does not go with the certificate
	if g.Server.Reload() == nil {
		t.Error("what does not go together is taken")
	}
	s.Invoke("test:echo.do@1", map[string]int{}).Want(200)
}

package main

import (
	"bytes"
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/gateway/listen/listentest"
)

// shared is a buffer that is read while it is written.
type shared struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *shared) count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.b.String(), text)
}

// SIGHUP reads the file again: the log's level and the certificate are taken, what else changed is named, and what
// does not read changes nothing. The process and its connections go on.
func TestHangupReadsAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings := filepath.Join(dir, "settings.yaml")
	write := func(text string) {
		if err := os.WriteFile(settings, []byte("tls-cert: "+dir+"/tls.crt\ntls-key: "+dir+"/tls.key\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := listentest.New(t, "ecotone.test")
	cert, key := a.Files(dir)
	write("log-level: info\n")
	log := &shared{}
	s, err := startServerLogging(log, os.Environ(), dir, "--config", settings, "--data", filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	if !strings.HasPrefix(s.Invoke, "https://127.0.0.1:") || !strings.HasPrefix(s.Ops, "https://") {
		t.Fatalf("it is at %s", s.Invoke)
	}
	dial := func() *tls.Conn {
		c, err := tls.Dial("tcp", strings.TrimPrefix(s.Ops, "https://"), &tls.Config{RootCAs: a.Pool})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	authority := filepath.Join(dir, "ca.pem")
	listentest.Write(t, authority, a.CA, 0o600)
	for _, c := range []struct {
		code int
		args []string
	}{{exitDone, []string{"--ca", authority}}, {exitFailed, nil}, {exitUsage, []string{"--ca", settings}}} {
		var out bytes.Buffer
		args := append(c.args, "--admin", s.Admin, "--token-file", filepath.Join(dir, "data", "operator.token"), "biome", "list")
		if code := Run(t.Context(), args, strings.NewReader(""), &out, &out); code != c.code {
			t.Errorf("%v: exit code %d: %s", c.args, code, &out)
		}
	}
	kept := dial()
	hangup := func(says string) {
		t.Helper()
		before := log.count(says)
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(patience); log.count(says) == before; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				log.mu.Lock()
				defer log.mu.Unlock()
				t.Fatalf("it does not say %q:\n%s", says, log.b.String())
			}
		}
	}
	second := a.Again(t, "ecotone.test")
	second.FilesAt(cert, key)
	hangup(`"msg":"the settings were read again"`)
	if seen := dial().ConnectionState().PeerCertificates[0].SerialNumber; seen.Cmp(second.Serial) != 0 {
		t.Error("the certificate is the old one")
	}
	if _, err := kept.Write([]byte("GET /livez HTTP/1.1\r\nHost: " + strings.TrimPrefix(s.Ops, "https://") + "\r\n\r\n")); err != nil {
		t.Error(err)
	}
	if n, err := kept.Read(make([]byte, 15)); err != nil || n == 0 {
		t.Errorf("the connection from before is gone: %v", err)
	}
	write("log-level: debug\nsubject-rate: 7\n")
	hangup(`"settings":"subject-rate"`)
	write("log-level: debug\n")
	hangup(`"msg":"the settings were read again"`) // the level was taken the time before
	if log.count(`"changed":"log-level"`) != 1 {
		t.Error("the level was not taken, or twice")
	}
	write("log-level: warn\nlisten: x\nlisten: y\n")
	hangup(`listen is there twice`)
	listentest.Write(t, key, a.Key, 0o600) // of the first certificate
	write("log-level: info\n")
	hangup(`"msg":"the TLS certificate stays as it was"`)
	dial()
	if log.count("PRIVATE KEY") != 0 {
		t.Error("a key is in the log")
	}
}

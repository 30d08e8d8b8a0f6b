package listen

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// MinVersion is the oldest TLS that is spoken.
type MinVersion uint16

// The versions that may be the oldest. The zero value is 1.3.
const (
	TLS13 MinVersion = tls.VersionTLS13
	TLS12 MinVersion = tls.VersionTLS12
)

// maxPEM bounds the certificate's file and the key's, in bytes.
const maxPEM = 1 << 20

// Certificates is the certificate all listeners show, and its key. It is read again by [Certificates.Reload];
// handshakes that began keep what they began with. Safe for concurrent use.
type Certificates struct {
	certFile, keyFile string
	oldest            MinVersion
	current           atomic.Pointer[pair]
	mu                sync.Mutex // one reload at a time
}

// pair is a certificate and what it was read from.
type pair struct {
	tls.Certificate
	sum [2][sha256.Size]byte
}

// Load reads the PEM files of a certificate, with its intermediates, and of its key. A key that everybody on
// the machine can read is refused, and so is a certificate that is not valid now.
func Load(certFile, keyFile string, oldest MinVersion) (*Certificates, error) {
	if oldest == 0 {
		oldest = TLS13
	}
	c := &Certificates{certFile: certFile, keyFile: keyFile, oldest: oldest}
	p, err := c.read()
	if err != nil {
		return nil, err
	}
	c.current.Store(p)
	return c, nil
}

func (c *Certificates) read() (*pair, error) {
	info, err := os.Stat(c.keyFile)
	if err != nil {
		return nil, abi.Errorf(abi.CodeNotReady, "the TLS key cannot be read: %w", err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return nil, abi.Errorf(abi.CodeNotReady, "everybody on this machine may use the TLS key %s", c.keyFile).WithHint("chmod o= it")
	}
	certPEM, err := readPEM(c.certFile)
	if err != nil {
		return nil, abi.Errorf(abi.CodeNotReady, "the TLS certificate cannot be read: %w", err)
	}
	keyPEM, err := readPEM(c.keyFile)
	if err != nil {
		return nil, abi.Errorf(abi.CodeNotReady, "the TLS key cannot be read: %w", err)
	}
	p := &pair{sum: [2][sha256.Size]byte{sha256.Sum256(certPEM), sha256.Sum256(keyPEM)}}
	if p.Certificate, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		return nil, abi.Errorf(abi.CodeNotReady, "the TLS certificate %s and its key do not go together: %w", c.certFile, err).
			WithHint("the certificate comes first in its file, then the intermediates; the key is not encrypted")
	}
	if now := time.Now(); now.After(p.Leaf.NotAfter) || now.Before(p.Leaf.NotBefore) {
		return nil, abi.Errorf(abi.CodeNotReady, "the TLS certificate %s is valid from %s to %s, which is not now",
			c.certFile, p.Leaf.NotBefore.UTC().Format(time.RFC3339), p.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return p, nil
}

func readPEM(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxPEM {
		return nil, abi.Errorf(abi.CodeNotReady, "%s is no PEM file", name)
	}
	return os.ReadFile(name)
}

// Reload reads the files again. When they are not good the certificate stays as it was.
func (c *Certificates) Reload() (changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, err := c.read()
	if err != nil {
		return false, err
	}
	if p.sum == c.current.Load().sum {
		return false, nil
	}
	c.current.Store(p)
	return true, nil
}

// Watch looks at the files now and then until ctx ends, and takes what changed. What it cannot take it says
// once, until it can.
func (c *Certificates) Watch(ctx context.Context, every time.Duration, log *slog.Logger) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		said = c.look(log, said)
	}
}

func (c *Certificates) look(log *slog.Logger, said string) string {
	changed, err := c.Reload()
	switch {
	case err != nil && err.Error() != said:
		log.Warn("the TLS certificate stays as it was: the files are not good", "error", err)
		return err.Error()
	case err != nil:
		return said
	case changed:
		log.Info("the TLS certificate was replaced", "expires", c.Expires())
	}
	return ""
}

// Expires is when the certificate runs out.
func (c *Certificates) Expires() time.Time { return c.current.Load().Leaf.NotAfter }

// config asks for the certificate with every handshake. The faces speak HTTP/1.1.
func (c *Certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion: uint16(c.oldest),
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &c.current.Load().Certificate, nil
		},
	}
}

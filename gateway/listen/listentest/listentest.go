// Package listentest makes authorities and certificates for tests of TLS. What it makes is worth nothing.
package listentest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority is an authority and a certificate it gave.
type Authority struct {
	t         testing.TB
	Pool      *x509.CertPool // has the authority in it
	CA        []byte         // the authority's certificate, PEM
	Cert, Key []byte         // PEM
	Serial    *big.Int

	ca  *x509.Certificate
	key *ecdsa.PrivateKey
}

// New makes an authority that gives a certificate for loopback and the names.
func New(t testing.TB, names ...string) *Authority {
	t.Helper()
	return Between(t, names[0], time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour), names[1:]...)
}

// Between is New for a time that is not now.
func Between(t testing.TB, name string, from, to time.Time, more ...string) *Authority {
	t.Helper()
	a := &Authority{t: t, Pool: x509.NewCertPool(), key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.ca, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	a.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	a.Pool.AddCert(a.ca)
	a.give(append([]string{name}, more...))
	return a
}

// Again makes another certificate of the same authority, with another key.
func (a *Authority) Again(t testing.TB, names ...string) *Authority {
	t.Helper()
	b := *a
	b.t = t
	b.give(names)
	return &b
}

func (a *Authority) give(names []string) {
	a.t.Helper()
	key := newKey(a.t)
	a.Serial = serial(a.t)
	template := &x509.Certificate{
		SerialNumber: a.Serial, Subject: pkix.Name{CommonName: names[0]}, NotBefore: a.ca.NotBefore, NotAfter: a.ca.NotAfter,
		DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.ca, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.Cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	a.Key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// Files writes certificate and key into a folder.
func (a *Authority) Files(dir string) (cert, key string) {
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	a.FilesAt(cert, key)
	return cert, key
}

// FilesAt writes certificate and key.
func (a *Authority) FilesAt(cert, key string) {
	a.t.Helper()
	Write(a.t, cert, a.Cert, 0o644)
	Write(a.t, key, a.Key, 0o600)
}

// Write replaces a file at once, as whoever renews certificates should.
func Write(t testing.TB, name string, content []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name+".new", content, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name+".new", mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

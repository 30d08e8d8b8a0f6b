package compile

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"regexp"

	"github.com/ecotone-dev/ecotone/abi"
)

// Artifact is native code for one module, fresh from a child or verified. It is immutable and safe
// for concurrent use.
type Artifact struct {
	digest      Digest
	module      [sha256.Size]byte // SHA-256 of the module it is the code of
	fingerprint string
	name        string // the engine's file name, relative, with slashes; empty: nothing to load
	code        []byte
	owner       *Compiler
}

// Digest is the name the artifact is kept under.
func (a *Artifact) Digest() Digest { return a.digest }

// Size is the length of the native code file in bytes; 0 where the engine interprets.
func (a *Artifact) Size() int { return len(a.code) }

// maxName is more than the longest name engineFile lets through.
const maxName = 256

// engineFile is the only form of name that is ever joined to a path.
var engineFile = regexp.MustCompile(`^wazero-[A-Za-z0-9][A-Za-z0-9.+_-]{0,127}/[0-9a-f]{64}$`)

func validName(name string, code []byte) bool {
	if name == "" {
		return len(code) == 0
	}
	return engineFile.MatchString(name)
}

// A kept artifact is
//
//	magic[8] fingerprint[64] module[32] nameLength[2] name[nameLength] code[…] mac[32]
//
// where mac = HMAC-SHA-256 over a domain string, the digest it is kept under, and every byte before
// it. The digest is not in the file: one file over another's name fails (S14).

const (
	sealMagic       = "ECOART\x00\x01"
	sealDomain      = "ecotone compiled artifact, version 1\x00"
	fingerprintSize = 2 * sha256.Size
	sealFixed       = len(sealMagic) + fingerprintSize + sha256.Size + 2
	sealOverhead    = sealFixed + maxName + sha256.Size
)

func sealMAC(key []byte, digest Digest, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(sealDomain))
	h.Write(digest[:])
	h.Write(body)
	return h.Sum(nil)
}

// seal encodes an artifact for keeping.
func seal(key []byte, a *Artifact) []byte {
	b := make([]byte, 0, sealFixed+len(a.name)+len(a.code)+sha256.Size)
	b = append(b, sealMagic...)
	b = append(b, a.fingerprint...)
	b = append(b, a.module[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(a.name)))
	b = append(b, a.name...)
	b = append(b, a.code...)
	return append(b, sealMAC(key, a.digest, b)...)
}

var (
	errForeign = errors.New("the file is damaged, of another name or of another key")
	errStale   = errors.New("the file was made by another engine, configuration or CPU")
)

// unseal verifies before it parses. The code is a part of file, not a copy.
func unseal(key []byte, digest Digest, fingerprint string, file []byte) (*Artifact, error) {
	if len(file) < sealFixed+sha256.Size {
		return nil, errForeign
	}
	body, mac := file[:len(file)-sha256.Size], file[len(file)-sha256.Size:]
	if !hmac.Equal(mac, sealMAC(key, digest, body)) {
		return nil, errForeign
	}
	a := &Artifact{digest: digest}
	take := func(n int) []byte { // n bytes are there
		part := body[:n:n]
		body = body[n:]
		return part
	}
	if string(take(len(sealMagic))) != sealMagic {
		return nil, errStale
	}
	a.fingerprint = string(take(fingerprintSize))
	copy(a.module[:], take(sha256.Size))
	n := int(binary.BigEndian.Uint16(take(2)))
	if n > len(body) {
		return nil, errForeign
	}
	a.name = string(take(n))
	a.code = body[:len(body):len(body)]
	if a.fingerprint != fingerprint {
		return nil, errStale
	}
	if !validName(a.name, a.code) {
		return nil, errForeign
	}
	return a, nil
}

// Open writes the artifact into a fresh private directory (0700) in the form the engine reads, and
// returns that directory: what was verified is what is loaded. The caller calls release, once, when
// the engine has loaded it.
func (a *Artifact) Open(ctx context.Context) (dir string, release func(), err error) {
	if a == nil || a.owner == nil {
		return "", nil, abi.Errorf(abi.CodeImageNotReady, "there is no compiled form")
	}
	if err := ctx.Err(); err != nil {
		return "", nil, contextError(err)
	}
	dir, err = os.MkdirTemp(a.owner.tmp, loadPrefix)
	if err != nil {
		return "", nil, notKept(err)
	}
	release = func() { _ = os.RemoveAll(dir) }
	if a.name == "" {
		return dir, release, nil
	}
	path := filepath.Join(dir, filepath.FromSlash(a.name))
	if err = os.Mkdir(filepath.Dir(path), 0o700); err == nil {
		err = os.WriteFile(path, a.code, 0o600)
	}
	if err != nil {
		release()
		return "", nil, notKept(err)
	}
	return dir, release, nil
}

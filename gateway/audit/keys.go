package audit

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/mod/sumdb/note"

	"github.com/ecotone-dev/ecotone/abi"
)

const (
	pubName     = "key.pub"
	signingName = "audit-signing"
	orgKeysName = "audit-org"
	erasedExt   = ".erased"
	keyBytes    = 32
)

// signing is the key pair of a log.
type signing struct {
	note.Signer
	verifier note.Verifier
	public   string // the line of key.pub
	founded  bool   // key.pub is there: the log exists and has a head
}

// loadSigning returns the signing key. A new data directory gets a new one; a log whose
// signing key is lost, or is not the key beside the log, is refused: nothing new may
// be signed in its name. key.pub is written last, by [found], when there is a head.
func loadSigning(keys, audit string) (*signing, error) {
	secret := filepath.Join(keys, signingName)
	vkey, pubErr := os.ReadFile(filepath.Join(audit, pubName))
	skey, secErr := os.ReadFile(secret)
	fresh := errors.Is(pubErr, fs.ErrNotExist)
	switch {
	case fresh && errors.Is(secErr, fs.ErrNotExist):
		var raw [8]byte
		rand.Read(raw[:])
		made, _, err := note.GenerateKey(rand.Reader, originPrefix+hex.EncodeToString(raw[:]))
		if err != nil {
			return nil, err
		}
		skey = []byte(made + "\n")
		if err := writeNew(secret, skey, 0o600); err != nil {
			return nil, err
		}
	case secErr != nil:
		return nil, secErr
	case pubErr != nil && !fresh:
		return nil, pubErr
	}
	s, err := note.NewSigner(strings.TrimSpace(string(skey)))
	if err != nil {
		return nil, err
	}
	public, err := publicOf(s, strings.TrimSpace(string(skey)))
	if err != nil {
		return nil, err
	}
	if !fresh && string(vkey) != public {
		return nil, errors.New("the signing key is not the key beside the log")
	}
	v, err := parseVerifier(public)
	if err != nil {
		return nil, err
	}
	return &signing{Signer: s, verifier: v, public: public, founded: !fresh}, nil
}

// found writes key.pub. From then on a log without a head is a log that was removed.
func (s *signing) found(audit string) error {
	if s.founded {
		return nil
	}
	s.founded = true
	return writeNew(filepath.Join(audit, pubName), []byte(s.public), 0o644)
}

// publicOf derives the line of key.pub from a signer key.
func publicOf(s note.Signer, skey string) (string, error) {
	// NewSigner checked the form: PRIVATE+KEY+<name>+<hash>+<base64 of algorithm and seed>.
	parts := strings.SplitN(skey, "+", 5)
	seed, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil {
		return "", err
	}
	public := ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey)
	line, err := note.NewEd25519VerifierKey(s.Name(), public)
	return line + "\n", err
}

// parseVerifier reads the one line of key.pub.
func parseVerifier(line string) (note.Verifier, error) {
	v, err := note.NewVerifier(strings.TrimSuffix(line, "\n"))
	if err != nil {
		return nil, err
	}
	if len(v.Name()) != originBytes || !strings.HasPrefix(v.Name(), originPrefix) {
		return nil, errors.New("the key is not a key of an audit log")
	}
	return v, nil
}

// orgKey is what an organisation's audit key gives.
type orgKey struct {
	id     [8]byte
	secret []byte
	gone   atomic.Bool // it is being destroyed, or was
	macs   sync.Pool   // of [hash.Hash]: keyed, for the digests of inputs

	// The committer's own: the cipher of the file that is written.
	last     cipher.AEAD
	lastBase uint64
}

func newOrgKey(secret []byte) (*orgKey, error) {
	k := &orgKey{secret: secret}
	id, err := hkdf.Key(sha256.New, secret, nil, "ecotone audit key id", len(k.id))
	if err != nil {
		return nil, err
	}
	copy(k.id[:], id)
	digest, err := hkdf.Key(sha256.New, secret, nil, "ecotone audit input digest", keyBytes)
	k.macs.New = func() any { return hmac.New(sha256.New, digest) }
	return k, err
}

// sealer returns the cipher for bodies that are written now. Only the committer calls it.
func (k *orgKey) sealer(base uint64) (cipher.AEAD, error) {
	if k.last == nil || k.lastBase != base {
		a, err := k.body(base)
		if err != nil {
			return nil, err
		}
		k.last, k.lastBase = a, base
	}
	return k.last, nil
}

// body returns the cipher for bodies in the entries file that starts at base. A key per file
// keeps the number of random nonces under one key far below what GCM can bear.
func (k *orgKey) body(base uint64) (cipher.AEAD, error) {
	key, err := k.bodyKey(base)
	if err != nil {
		return nil, err
	}
	return bodyCipher(key)
}

func (k *orgKey) bodyKey(base uint64) ([]byte, error) {
	return hkdf.Key(sha256.New, k.secret, nil, "ecotone audit body"+string(binary.BigEndian.AppendUint64(nil, base)), keyBytes)
}

func bodyCipher(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

const digestPrefix = "hmac-sha256:"

func (k *orgKey) sum(input []byte) string {
	m := k.macs.Get().(hash.Hash)
	defer k.macs.Put(m)
	m.Reset()
	m.Write(input)
	var sum [sha256.Size]byte
	var out [len(digestPrefix) + 2*sha256.Size]byte
	hex.Encode(out[copy(out[:], digestPrefix):], m.Sum(sum[:0]))
	return string(out[:])
}

// unseal opens a sealed body into dst.
func unseal(a cipher.AEAD, dst, sealed, header []byte) ([]byte, error) {
	return a.Open(dst, sealed[:nonceBytes], sealed[nonceBytes:], header)
}

var errErased = errors.New("the organisation's audit key was erased")

// keyRing holds the keys of organisations, one file each.
type keyRing struct {
	dir string

	mu    sync.RWMutex
	keys  map[string]*orgKey
	aeads map[aeadKey]cipher.AEAD // for reading; bounded
}

type aeadKey struct {
	org  string
	base uint64
}

const maxAEADs = 1024

func newKeyRing(dir string) *keyRing {
	return &keyRing{dir: dir, keys: map[string]*orgKey{}, aeads: map[aeadKey]cipher.AEAD{}}
}

// key returns an organisation's key. make says whether a missing one is made.
func (r *keyRing) key(org string, make bool) (*orgKey, error) {
	r.mu.RLock()
	k := r.keys[org]
	r.mu.RUnlock()
	if k == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		var err error
		if k, err = r.load(org, make); err != nil {
			return nil, err
		}
	}
	if k.gone.Load() {
		return nil, errErased
	}
	return k, nil
}

// load reads a key, or makes it; r.mu must be held.
func (r *keyRing) load(org string, make bool) (*orgKey, error) {
	if !abi.ValidSlug(org) { // the name becomes a file name
		return nil, fmt.Errorf("%s is not an organisation", abi.Quote(org))
	}
	if k := r.keys[org]; k != nil {
		return k, nil
	}
	path := filepath.Join(r.dir, org)
	if _, err := os.Lstat(path + erasedExt); err == nil {
		return nil, errErased
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && make {
		secret := [keyBytes]byte{}
		rand.Read(secret[:])
		raw = []byte(hex.EncodeToString(secret[:]) + "\n")
		err = writeNew(path, raw, 0o600)
	}
	if err != nil {
		return nil, err
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(raw)))
	if err != nil || len(secret) != keyBytes {
		return nil, errors.New("an organisation's audit key is not 64 hex digits")
	}
	k, err := newOrgKey(secret)
	if err != nil {
		return nil, err
	}
	r.keys[org] = k
	return k, nil
}

var errKeyID = errors.New("it was sealed with another key")

// open unseals a body of the entries file that starts at base into dst. The seal covers the header.
func (r *keyRing) open(dst []byte, h *header, base uint64, payload, sealed []byte) ([]byte, error) {
	k, err := r.key(h.org, false)
	if err != nil {
		return nil, err
	}
	if k.id != h.keyID {
		return nil, errKeyID
	}
	at := aeadKey{h.org, base}
	r.mu.RLock()
	a := r.aeads[at]
	r.mu.RUnlock()
	if a == nil {
		if a, err = k.body(base); err != nil {
			return nil, err
		}
		r.mu.Lock()
		if len(r.aeads) >= maxAEADs {
			clear(r.aeads)
		}
		if !k.gone.Load() {
			r.aeads[at] = a
		}
		r.mu.Unlock()
	}
	return unseal(a, dst, sealed, payload[:len(payload)-len(sealed)])
}

// retire keeps a key from being used: nothing is sealed or opened with it from now on. Recall takes
// that back.
func (r *keyRing) retire(org string) (recall func(), err error) {
	k, err := r.key(org, true)
	if err != nil {
		return nil, err
	}
	k.gone.Store(true)
	return func() { k.gone.Store(false) }, nil
}

// erase destroys a key: first the mark that keeps a new one from being made, then the bytes, then
// the name.
func (r *keyRing) erase(org string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := filepath.Join(r.dir, org)
	if err := writeNew(path+erasedExt, nil, 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if k := r.keys[org]; k != nil {
		k.gone.Store(true)
		delete(r.keys, org)
	}
	for k := range r.aeads {
		if k.org == org {
			delete(r.aeads, k)
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, werr := f.WriteAt(make([]byte, 2*keyBytes), 0)
	if err := errors.Join(werr, f.Sync(), f.Close(), os.Remove(path)); err != nil {
		return err
	}
	return syncDir(r.dir)
}

// writeNew writes a file that must not be there, and makes it and its name durable. A crash
// leaves the whole file or none.
func writeNew(path string, data []byte, mode fs.FileMode) error {
	if _, err := os.Lstat(path); err == nil {
		return fs.ErrExist
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, werr := f.Write(data)
	if err := errors.Join(werr, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil { // unlike a rename, never replaces
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

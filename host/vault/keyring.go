package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ecotone-dev/ecotone/abi"
)

// MasterKeyBytes is the length of the master key file: raw bytes, nothing else.
const MasterKeyBytes = 32

// Keyring seals and opens secret values under a master key. Safe for concurrent use. The
// master key itself is not kept: two keys derived from it are.
type Keyring struct {
	id   string
	aead cipher.AEAD
}

// Sealed is a secret value at rest. It is only good together with the organisation, name
// and version it was sealed for.
type Sealed struct {
	Key   string `json:"key"` // id of the master key
	Nonce []byte `json:"nonce"`
	Box   []byte `json:"box"`
}

// NewKeyring derives a keyring from a master key of [MasterKeyBytes]; the caller wipes master.
func NewKeyring(master []byte) (*Keyring, error) {
	if len(master) != MasterKeyBytes {
		return nil, abi.Errorf(abi.CodeInternal, "the master key has the wrong length")
	}
	key, err := hkdf.Key(sha256.New, master, nil, "ecotone vault: seal v1", 32)
	if err != nil {
		return nil, fmt.Errorf("vault: deriving the sealing key: %w", err)
	}
	defer clear(key)
	id, err := hkdf.Key(sha256.New, master, nil, "ecotone vault: key id v1", 8)
	if err != nil {
		return nil, fmt.Errorf("vault: deriving the key id: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	return &Keyring{id: hex.EncodeToString(id), aead: aead}, nil
}

// LoadKeyring reads the master key file. With create set, a missing file is made first:
// mode 0600 in a directory of mode 0700, durable when LoadKeyring returns, and of several
// processes that start at once all get the same key. A file that others may read, that is
// not regular or has another length is refused.
func LoadKeyring(path string, create bool) (*Keyring, error) {
	if create {
		if err := createMaster(path); err != nil {
			return nil, err
		}
	}
	master, err := readMaster(path)
	if err != nil {
		return nil, err
	}
	defer clear(master)
	return NewKeyring(master)
}

func readMaster(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("vault: master key: %w", err)
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("vault: master key %s is not a regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("vault: master key %s may be read by others (mode %04o); use 0600", path, info.Mode().Perm())
	case info.Size() != MasterKeyBytes:
		return nil, fmt.Errorf("vault: master key %s has %d bytes instead of %d", path, info.Size(), MasterKeyBytes)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("vault: master key: %w", err)
	}
	if len(b) != MasterKeyBytes {
		return nil, fmt.Errorf("vault: master key %s changed while it was read", path)
	}
	return b, nil
}

// createMaster writes the key beside its place and links it there: the name never shows a
// short key, and an existing key is never replaced.
func createMaster(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("vault: master key: %w", err)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("vault: master key: %w", err)
	}
	tmp, err := os.CreateTemp(dir, ".master-*") // mode 0600
	if err != nil {
		return fmt.Errorf("vault: master key: %w", err)
	}
	defer os.Remove(tmp.Name())
	var key [MasterKeyBytes]byte
	defer clear(key[:])
	_, _ = rand.Read(key[:]) // never fails
	_, err = tmp.Write(key[:])
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err != nil {
		return fmt.Errorf("vault: master key: %w", err)
	}
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("vault: master key: %w", err)
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("vault: master key: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// ID names the master key; it reveals nothing about it.
func (k *Keyring) ID() string { return k.id }

// Seal encrypts value with AES-256-GCM under a random nonce, bound to the organisation, the
// name and the version: the record opens as nothing else (PF-F2).
func (k *Keyring) Seal(org, name string, version uint64, value Value) Sealed {
	nonce := make([]byte, k.aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return Sealed{Key: k.id, Nonce: nonce, Box: k.aead.Seal(nil, nonce, value.Reveal(), binding(org, name, version))}
}

// Open decrypts what Seal made for the same organisation, name and version. The caller
// wipes the value. Any mismatch is the same SECRET_DENIED; the cause is private.
func (k *Keyring) Open(org, name string, version uint64, s Sealed) (Value, error) {
	if !hmac.Equal([]byte(s.Key), []byte(k.id)) {
		return Value{}, denied(errors.New("vault: sealed under another master key"))
	}
	if len(s.Nonce) != k.aead.NonceSize() {
		return Value{}, denied(errors.New("vault: malformed record"))
	}
	b, err := k.aead.Open(nil, s.Nonce, s.Box, binding(org, name, version))
	if err != nil {
		return Value{}, denied(errors.New("vault: the record does not open; it was changed or belongs to another name"))
	}
	return adopt(b), nil
}

// binding is length-prefixed: no two different triples have the same bytes.
func binding(org, name string, version uint64) []byte {
	b := []byte("ecotone secret v1")
	for _, s := range []string{org, name} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
		b = append(b, s...)
	}
	return binary.BigEndian.AppendUint64(b, version)
}

// denied is the one answer for every secret that cannot be used, whatever the reason.
func denied(cause error) *abi.Error {
	return abi.Errorf(abi.CodeSecretDenied, "the secret is not there, not bound to this biome, or not for this use").WithCause(cause)
}

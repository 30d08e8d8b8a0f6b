package server

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ecotone-dev/ecotone/abi"
)

// keyBytes is the length of a key file.
const keyBytes = 32

// loadKey reads a key file, or makes it on the first start. A key that others can read is
// refused: it would protect nothing.
func loadKey(path string) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := makeKey(path); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, abi.Errorf(abi.CodeNotReady, "a key file can be read by others").WithHint("chmod 600 the files below DIR/keys")
	}
	key, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(key) != keyBytes {
		return nil, abi.Errorf(abi.CodeNotReady, "a key file does not have %d bytes", keyBytes)
	}
	return key, nil
}

// makeKey writes a key that is whole or not there: a start that is cut off leaves no half of one.
func makeKey(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".key-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	key := make([]byte, keyBytes)
	rand.Read(key) // never fails: the process ends without randomness
	_, err = f.Write(key)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}

// writeToken leaves a token for the operator, who is the only one that can read it. A file that is
// there, of a start that did not come to its end, makes room: its mode, or what it links to, may be
// somebody else's.
func writeToken(path, token string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(token + "\n")
	return errors.Join(err, f.Sync(), f.Close())
}

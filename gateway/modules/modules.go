// Package modules keeps uploaded modules as they were uploaded.
//
// It promises that what is read is what was written: each read is checked against the digest
// it was asked for, so that a swapped file is refused before anything looks into it (S14), and
// that names of files are digests, never text of an upload (PF-C5). It refuses to know who
// uploaded what.
package modules

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// Dir is a directory of modules. Safe for concurrent use.
type Dir struct{ path string }

// Open makes the directory when it is not there, 0700.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, abi.Errorf(abi.CodeInternal, "the directory of modules cannot be made: %w", err)
	}
	return &Dir{path: path}, nil
}

func (d *Dir) file(digest string) (string, error) {
	raw, err := hex.DecodeString(digest)
	if err != nil || len(raw) != 32 || hex.EncodeToString(raw) != digest {
		return "", abi.Errorf(abi.CodeNotFound, "there is no such module")
	}
	return filepath.Join(d.path, digest+".wasm"), nil
}

// Put stores a module under its digest and returns when it is on disk. Storing the same bytes
// again, also at the same time, is one file (PF-I3).
func (d *Dir) Put(digest string, module []byte) error {
	name, err := d.file(digest)
	if err != nil {
		return err
	}
	if sum, err := sum(module); err != nil || sum != digest {
		return abi.Errorf(abi.CodeInternal, "the module is not what its digest says: %w", err)
	}
	if _, err := d.Get(context.Background(), digest); err == nil {
		return nil
	}
	if err := d.write(name, module); err != nil {
		return abi.Errorf(abi.CodeInternal, "the module cannot be stored: %w", err)
	}
	return nil
}

func (d *Dir) write(name string, module []byte) error {
	f, err := os.CreateTemp(d.path, ".upload-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(module)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	dir, err := os.Open(d.path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Get reads a module: NOT_FOUND when there is none, INTERNAL when its bytes are not those of
// the digest.
func (d *Dir) Get(_ context.Context, digest string) ([]byte, error) {
	name, err := d.file(digest)
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, abi.Errorf(abi.CodeNotFound, "there is no such module")
	}
	if err != nil {
		return nil, abi.Errorf(abi.CodeInternal, "the module cannot be read: %w", err)
	}
	if got, err := sum(raw); err != nil || got != digest {
		return nil, abi.Errorf(abi.CodeInternal, "the stored module is not what was uploaded: %w", err)
	}
	return raw, nil
}

// Manifest returns the bytes of a module's one manifest.
func Manifest(module []byte) ([]byte, error) {
	manifests, err := wasm.Custom(module, abi.ManifestSection)
	if err != nil {
		return nil, err
	}
	if len(manifests) != 1 {
		return nil, abi.Errorf(abi.CodeManifestMissing, "the module has %d manifests", len(manifests))
	}
	return manifests[0], nil
}

func sum(module []byte) (string, error) {
	manifest, err := Manifest(module)
	if err != nil {
		return "", err
	}
	return wasm.Digest(manifest, module), nil
}

// Sweep removes what a crash left half-written.
func (d *Dir) Sweep() error {
	left, err := filepath.Glob(filepath.Join(d.path, ".upload-*"))
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

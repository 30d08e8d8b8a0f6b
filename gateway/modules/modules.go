// Package modules keeps biomes as they were uploaded: the module, and the manifest where that came
// beside it.
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
	"strings"

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

// files are where a biome's module and the manifest beside it are.
func (d *Dir) files(digest string) (module, manifest string, err error) {
	raw, err := hex.DecodeString(digest)
	if err != nil || len(raw) != 32 || hex.EncodeToString(raw) != digest {
		return "", "", abi.Errorf(abi.CodeNotFound, "there is no such module")
	}
	stem := filepath.Join(d.path, digest)
	return stem + ".wasm", stem + ".json", nil
}

// Put stores a biome under its digest and returns when it is on disk. Storing the same bytes
// again, also at the same time, is one biome (PF-I3). A manifest that the module carries too is
// kept there alone.
func (d *Dir) Put(digest string, biome wasm.Original) error {
	module, manifest, err := d.files(digest)
	if err != nil {
		return err
	}
	if sum, err := biome.Digest(); err != nil || sum != digest {
		return abi.Errorf(abi.CodeInternal, "the module is not what its digest says: %w", err)
	}
	if _, err := d.Get(context.Background(), digest); err == nil {
		return nil
	}
	inside, err := wasm.Custom(biome.Module, abi.ManifestSection)
	if err == nil && len(inside) == 0 {
		err = d.write(manifest, biome.Manifest)
	}
	if err == nil {
		err = d.write(module, biome.Module) // last: with it the biome is there
	}
	if err != nil {
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

// Get reads a biome: NOT_FOUND when there is none, INTERNAL when its bytes are not those of
// the digest.
func (d *Dir) Get(_ context.Context, digest string) (wasm.Original, error) {
	module, manifest, err := d.files(digest)
	if err != nil {
		return wasm.Original{}, err
	}
	var biome wasm.Original
	biome.Module, err = os.ReadFile(module)
	if errors.Is(err, fs.ErrNotExist) {
		return wasm.Original{}, abi.Errorf(abi.CodeNotFound, "there is no such module")
	}
	if err == nil {
		biome.Manifest, err = os.ReadFile(manifest)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // it is in the module, or the digest says that it is not
		}
	}
	if err != nil {
		return wasm.Original{}, abi.Errorf(abi.CodeInternal, "the module cannot be read: %w", err)
	}
	if got, err := biome.Digest(); err != nil || got != digest {
		return wasm.Original{}, abi.Errorf(abi.CodeInternal, "the stored module is not what was uploaded: %w", err)
	}
	return biome, nil
}

// Sweep removes what a crash left half-written, a manifest without its module too. Nothing else may
// use the directory meanwhile.
func (d *Dir) Sweep() error {
	left, err := filepath.Glob(filepath.Join(d.path, ".upload-*"))
	manifests, bad := filepath.Glob(filepath.Join(d.path, "*.json"))
	err = errors.Join(err, bad)
	for _, name := range manifests {
		if _, missing := os.Stat(strings.TrimSuffix(name, ".json") + ".wasm"); errors.Is(missing, fs.ErrNotExist) {
			left = append(left, name)
		}
	}
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

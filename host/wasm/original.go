package wasm

import "github.com/ecotone-dev/ecotone/abi"

// Original is a biome as it was uploaded, to the byte. Its manifest is a section of the module, or
// came beside a module that nobody wanted to change, or both.
type Original struct {
	Module   []byte
	Manifest []byte // that came beside the module; nil when none did
}

// Declaration returns the bytes of the biome's one manifest: [abi.CodeManifestMissing] when there is
// none, or more than one section of it; [abi.CodeManifestInvalid] when the section is not what came
// beside the module.
func (o Original) Declaration() ([]byte, error) {
	inside, err := Custom(o.Module, abi.ManifestSection)
	switch {
	case err != nil:
		return nil, err
	case len(inside) == 0 && o.Manifest != nil:
		return o.Manifest, nil
	case len(inside) != 1:
		return nil, abi.Errorf(abi.CodeManifestMissing, "the module has %d manifests", len(inside))
	case o.Manifest != nil && string(inside[0]) != string(o.Manifest):
		return nil, abi.Errorf(abi.CodeManifestInvalid, "the module carries another manifest than the one beside it")
	}
	return inside[0], nil
}

// Digest names the biome, see [Digest]; it fails as [Original.Declaration] does. A module that
// carries its manifest is the same biome whether that came beside it too or not.
func (o Original) Digest() (string, error) {
	manifest, err := o.Declaration()
	if err != nil {
		return "", err
	}
	return Digest(manifest, o.Module), nil
}

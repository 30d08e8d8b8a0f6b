package admission_test

import (
	"slices"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/admission"
	"github.com/ecotone-dev/ecotone/host/wasm"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// A manifest beside the module is judged as one inside it is, and the digest is over what was
// uploaded.
func TestManifestBeside(t *testing.T) {
	inside := w.Echo(w.Manifest("beside", w.Provide("test:beside.do@1", "run", abi.ReachOwner)))
	manifests, err := wasm.Custom(inside, abi.ManifestSection)
	if err != nil || len(manifests) != 1 {
		t.Fatal(err)
	}
	manifest := manifests[0]
	bare, err := wasm.StripCustom(inside, nil)
	if err != nil {
		t.Fatal(err)
	}
	in := admission.Inspector{Limits: uploadLimits()}
	for name, c := range map[string]struct {
		biome  wasm.Original
		digest string
		want   []abi.Code
	}{
		"beside":        {wasm.Original{Module: bare, Manifest: manifest}, wasm.Digest(manifest, bare), nil},
		"inside":        {wasm.Original{Module: inside}, wasm.Digest(manifest, inside), nil},
		"both":          {wasm.Original{Module: inside, Manifest: manifest}, wasm.Digest(manifest, inside), nil},
		"none":          {wasm.Original{Module: bare}, "", []abi.Code{abi.CodeManifestMissing}},
		"another":       {wasm.Original{Module: inside, Manifest: append(slices.Clone(manifest), ' ')}, "", []abi.Code{abi.CodeManifestInvalid}},
		"empty":         {wasm.Original{Module: bare, Manifest: []byte{}}, wasm.Digest(nil, bare), []abi.Code{abi.CodeManifestInvalid}},
		"unknown field": {wasm.Original{Module: bare, Manifest: []byte(`{"publisher":1}`)}, wasm.Digest([]byte(`{"publisher":1}`), bare), nil},
	} {
		r := in.Inspect(c.biome)
		if r.Digest != c.digest {
			t.Errorf("%s: digest %s, want %s", name, r.Digest, c.digest)
		}
		if c.want != nil && !slices.Equal(codes(r), c.want) {
			t.Errorf("%s: %v, want %v", name, codes(r), c.want)
		}
		if good := c.want == nil && name != "unknown field"; r.Accepted != good {
			t.Errorf("%s: accepted %v: %v", name, r.Accepted, r.Problems)
		}
		digest, err := c.biome.Digest() // what is stored goes by the same name
		if r.Accepted && (err != nil || digest != r.Digest) {
			t.Errorf("%s: stored as %s, %v", name, digest, err)
		}
		for _, p := range r.Problems {
			if name == "unknown field" && (p.Section != "manifest" || p.Offset != 0 || p.Pointer == "" && p.Code == abi.CodeUnknownField) {
				t.Errorf("%s: %+v", name, p)
			}
		}
	}
}

package admission

import (
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// chooseFace finds the face that the module is held to: the manifest's, or else the one that its imports
// look like, so that what is wrong is said in the author's own terms.
func (i *inspection) chooseFace() {
	face := i.looksLikeFace()
	if m := i.report.Manifest; m != nil {
		face = m.ABI
	}
	i.face, _ = face.Info()
	i.report.Face = i.face.Face
}

// looksLikeFace guesses. Importing WASI alone says little: what the module exports, or what of WASI it
// imports, says more.
func (i *inspection) looksLikeFace() abi.Face {
	guess := abi.FaceNative
	for _, im := range i.m.Imports {
		if im.Module == abi.Module {
			return abi.FaceNative
		}
		if row, ok := abi.Face(im.Module).Info(); ok && row.Foreign && im.Module != abi.WASIModule {
			return row.Face
		}
		if f, ok := abi.WASIFunctionByName(im.Name); ok && im.Module == abi.WASIModule && !f.Native {
			guess = abi.FaceWASI
		}
	}
	if slices.ContainsFunc(i.m.Exports, func(e wasm.Export) bool { return e.Name == exportStart }) {
		guess = abi.FaceWASI
	}
	return guess
}

// otherFace finds the face whose own module an import is from, when that is not one of this face's.
func (i *inspection) otherFace(im *wasm.Import) (*abi.FaceInfo, bool) {
	if i.face.Imports(im.Module) {
		return nil, false
	}
	other, ok := abi.Face(im.Module).Info()
	return other, ok && im.Module != ""
}

func mixedHint(other *abi.FaceInfo) string {
	return `a module is built for one interface: do without the other, or say "abi": "` + string(other.Face) + `" if it is that`
}

// manifestHint says what to do about a module without a manifest.
func (i *inspection) manifestHint() string {
	const how = "ecotone biome build embeds a manifest into a module; biome push --manifest sends one beside it"
	if face := i.looksLikeFace(); face != abi.FaceNative {
		row, _ := face.Info()
		return how + `; this looks like ` + row.Title + `, whose manifest says "abi": "` + string(face) + `"`
	}
	return how
}

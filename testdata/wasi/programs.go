// Package wasi holds programs that were written for WASI preview 1 alone, compiled, with their sources
// in src, for the tests of packages that run them.
//
// They are C, built with clang 14 and wasi-libc:
//
//	clang-14 --target=wasm32-wasi -O2 -Wl,--strip-all -o tool.wasm src/tool.c
package wasi

import (
	"bytes"
	_ "embed"
	"encoding/json"

	"github.com/ecotone-dev/ecotone/abi"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

var (
	//go:embed tool.wasm
	Tool []byte
	//go:embed manyfiles.wasm
	ManyFiles []byte
)

// Command is the capability of a program with arguments, whose output is JSON.
func Command(ref string, arguments ...string) abi.Descriptor {
	d := w.Provide(ref, abi.ExportStart, abi.ReachOwner)
	d.Arguments = arguments
	return d
}

// Text makes a capability read and write text.
func Text(d abi.Descriptor) abi.Descriptor {
	d.InputEncoding, d.OutputEncoding = abi.EncodingText, abi.EncodingText
	d.InputSchema, d.OutputSchema = json.RawMessage(`{"type":"string"}`), json.RawMessage(`{"type":"string"}`)
	return d
}

// Biome is a program with a manifest, and otherwise unchanged.
func Biome(name string, module []byte, provides ...abi.Descriptor) []byte {
	m := w.Manifest(name, provides...)
	m.ABI = abi.FaceWASI
	section := w.Section(w.SectionCustom, w.Cat(w.Name(abi.ManifestSection), w.MustJSON(m)))
	return append(bytes.Clone(module), section...)
}

package wasmtest

import (
	"encoding/json"
	"fmt"

	"github.com/ecotone-dev/ecotone/abi"
)

// Host imports a function of the host-function table, with the signature of its row, and
// returns its index. An unknown name panics.
func (b *Builder) Host(name string) uint32 {
	f, ok := abi.FunctionByName(name)
	if !ok {
		panic(fmt.Sprintf("wasmtest: no host function %q", name))
	}
	params := make([]byte, 0, len(f.Params))
	for _, p := range f.Params {
		params = append(params, byte(p.Type))
	}
	return b.ImportFunc(abi.Module, name, params, Types(I64))
}

// WASI imports a function of WASI preview 1, with the signature of its row, and returns
// its index. An unknown name panics.
func (b *Builder) WASI(name string) uint32 {
	f, ok := abi.WASIFunctionByName(name)
	if !ok {
		panic(fmt.Sprintf("wasmtest: no WASI function %q", name))
	}
	params := make([]byte, 0, len(f.Params))
	for _, p := range f.Params {
		params = append(params, byte(p.Type))
	}
	var results []byte
	if !f.NoResult {
		results = Types(I32)
	}
	return b.ImportFunc(abi.WASIModule, name, params, results)
}

// Capability defines a function () -> i32 with a body, exports it, and returns its index.
// Without a body it returns 0.
func (b *Builder) Capability(export string, body ...[]byte) uint32 {
	if len(body) == 0 {
		body = [][]byte{I32Const(0)}
	}
	i := b.Func(nil, Types(I32), nil, body...)
	b.ExportFunc(export, i)
	return i
}

// Manifest adds the manifest section: the bytes themselves for []byte, json.RawMessage and
// string, the JSON form of anything else.
func (b *Builder) Manifest(m any) *Builder {
	switch m := m.(type) {
	case []byte:
		return b.Custom(abi.ManifestSection, m)
	case json.RawMessage:
		return b.Custom(abi.ManifestSection, m)
	case string:
		return b.Custom(abi.ManifestSection, []byte(m))
	}
	return b.Custom(abi.ManifestSection, MustJSON(m))
}

// Manifest returns a valid manifest for a biome that provides the given capabilities.
func Manifest(name string, provides ...abi.Descriptor) *abi.Manifest {
	return &abi.Manifest{Name: name, Version: "1.0.0", ABI: abi.Version, Provides: provides, Freeze: abi.FreezeAuto}
}

// Provide returns a valid descriptor: any JSON in and out, low risk, public output, reach
// as given.
func Provide(ref, export string, reach abi.Reach) abi.Descriptor {
	return abi.Descriptor{
		Ref:                  abi.CapabilityRef(ref),
		Export:               export,
		Title:                "Test capability",
		Summary:              "Does what its test needs.",
		SideEffects:          "none",
		InputSchema:          json.RawMessage(`{}`),
		OutputSchema:         json.RawMessage(`{}`),
		RiskTier:             abi.RiskLow,
		OutputClassification: abi.Public,
		Reach:                reach,
	}
}

// Biome returns a valid module for a manifest: one page of exported memory, and every
// provided export a function with the given body, or one that returns 0. The body cannot
// call the host; use a [Builder] with [Builder.Host] and [Builder.Capability] for that.
func Biome(m *abi.Manifest, body ...[]byte) []byte {
	b := New()
	for i := range m.Provides {
		b.Capability(m.Provides[i].Export, body...)
	}
	return b.Memory(1).ExportMemory().Manifest(m).Bytes()
}

// BiomeJSON is [Biome] for a manifest as JSON, which is embedded to the byte. A document
// that does not decode panics.
func BiomeJSON(manifest []byte, body ...[]byte) []byte {
	m, problems := abi.DecodeManifest(manifest)
	if len(problems) > 0 {
		panic("wasmtest: " + problems.Error())
	}
	b := New()
	for i := range m.Provides {
		b.Capability(m.Provides[i].Export, body...)
	}
	return b.Memory(1).ExportMemory().Manifest(manifest).Bytes()
}

// Echo returns a biome whose capability answers its input.
func Echo(m *abi.Manifest) []byte {
	const at, size = 1024, 63 << 10
	b := New()
	input, read, output := b.Host("input"), b.Host("result_read"), b.Host("output")
	for i := range m.Provides {
		b.Capability(m.Provides[i].Export,
			Call(input), Op(OpDrop),
			I32Const(at),
			I32Const(at), I32Const(0), I32Const(size), Call(read), Op(OpI32WrapI64),
			Call(output), Op(OpI32WrapI64),
		)
	}
	return b.Memory(1).ExportMemory().Manifest(m).Bytes()
}

// MustJSON is the JSON form of v; it panics when there is none.
func MustJSON(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		panic("wasmtest: " + err.Error())
	}
	return out
}

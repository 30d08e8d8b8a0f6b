package tck

import (
	"embed"
	"encoding/binary"
	"encoding/json"

	"github.com/ecotone-dev/ecotone/abi"
)

//go:embed guest/*.wasm
var modules embed.FS

// Guest is the kit's module with its manifest: guest/tck.c, compiled. It makes every call, raw pointers
// included.
func Guest() []byte { return In("c") }

// Languages are the languages the kit has a guest in, beside each other in the folder guest. That in C
// is [Guest]; the others go by the functions of their bindings and run the [Case.Portable] cases.
func Languages() []string { return []string{"assemblyscript", "c", "rust"} }

// In is the kit's module in a language of [Languages], with its manifest.
func In(language string) []byte {
	module, err := modules.ReadFile("guest/" + language + ".wasm")
	if err != nil {
		panic(err) // there is no such language
	}
	return WithManifest(module)
}

// WithManifest adds the kit's manifest to another module that understands its scripts and exports
// call_run and call_child.
func WithManifest(module []byte) []byte {
	manifest, err := json.Marshal(Manifest())
	if err != nil {
		panic(err) // it is data of ours
	}
	content := append(binary.AppendUvarint(nil, uint64(len(abi.ManifestSection))), abi.ManifestSection...)
	content = append(content, manifest...)
	out := append([]byte{}, module...)
	out = append(out, 0)
	out = binary.AppendUvarint(out, uint64(len(content)))
	return append(out, content...)
}

// Manifest is the manifest of the kit's guest, whatever language it is written in.
func Manifest() *abi.Manifest {
	descriptor := func(ref abi.CapabilityRef, export string, reach abi.Reach) abi.Descriptor {
		return abi.Descriptor{
			Ref: ref, Export: export, Reach: reach,
			Title: "Make host calls", Summary: "Makes the host calls its input names and reports what each gave.", SideEffects: "those of the calls",
			InputSchema:  json.RawMessage(`{"type":"string","pattern":"^!?[a-z0-9_:; -]*$"}`),
			OutputSchema: json.RawMessage(`{}`),
			RiskTier:     abi.RiskHigh, OutputClassification: abi.Public,
		}
	}
	return &abi.Manifest{
		Name: "tck", Version: "1.0.0", ABI: abi.Version, Freeze: abi.FreezeAuto,
		Provides: []abi.Descriptor{descriptor(Call, "call_run", abi.ReachPlatform), descriptor(Child, "call_child", abi.ReachOwner)},
		Requires: abi.Requires{
			Capabilities: []abi.CapabilityRef{Child},
			Endpoints:    []abi.Need{{Name: Endpoint, Why: "the calls of http_fetch"}},
			Secrets:      []abi.Need{{Name: Secret, Why: "the calls of secret_hmac"}},
		},
	}
}

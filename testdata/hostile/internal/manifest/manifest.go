// Package manifest makes the manifest of a hostile module that brings none of its own: one
// capability, served by the export run, that declares the least.
package manifest

import (
	"encoding/json"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
)

// Name is the biome's name for a module's name.
func Name(module string) string {
	return "hostile-" + strings.NewReplacer("_", "-", "/", "-").Replace(module)
}

// Ref is the capability of a module's default manifest.
func Ref(module string) abi.CapabilityRef {
	return abi.CapabilityRef("hostile:" + strings.TrimPrefix(Name(module), "hostile-") + ".run@1")
}

// Default is the manifest of a module that has none of its own.
func Default(module string) []byte {
	out, err := json.Marshal(abi.Manifest{
		Name: Name(module), Version: "1.0.0", ABI: abi.Version,
		Provides: []abi.Descriptor{{
			Ref: Ref(module), Export: "run", Title: module, Summary: "Tries what it should not.", SideEffects: "none",
			InputSchema: json.RawMessage(`{}`), OutputSchema: json.RawMessage(`{}`), RiskTier: abi.RiskLow,
			OutputClassification: abi.Public, Reach: abi.ReachOwner,
		}},
	})
	if err != nil {
		panic(err)
	}
	return out
}

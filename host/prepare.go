package host

import (
	"context"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/engine"
	"github.com/ecotone-dev/ecotone/host/meter"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// prepared is the copy of an admitted module that is compiled and loaded, and how its instances
// may be kept; the original is what is stored and digested.
type prepared struct {
	module  []byte
	keeping engine.Keeping
	face    abi.Face
}

// prepare makes that copy. It differs in four things. Every table has a maximum, because the engine
// holds table.grow to the declared one and to nothing else. It is metered. Nothing is exported
// but what the manifest names, and the globals the host sets. And it has no custom sections: the
// engine would read one of them, names, and believe its counts.
//
// It is a function of the biome's bytes and limits alone, so that what is loaded is what was compiled; what
// another version made of the same bytes is not, and is made again.
func (h *Host) prepare(module []byte, structure *wasm.Module, manifest *abi.Manifest) (*prepared, error) {
	exports := make([]string, 0, len(manifest.Provides))
	for i := range manifest.Provides {
		exports = append(exports, manifest.Provides[i].Export)
	}
	if face, ok := manifest.ABI.Info(); ok {
		exports = append(exports, face.Initializers...)
	}
	bounded := wasm.BoundTables(module, structure, h.limits)
	limits := metered(h.inspector.Limits)
	structure, problems := wasm.Read(bounded, limits)
	if len(problems) > 0 {
		return nil, abi.Errorf(abi.CodeInternal, "a module whose tables were bounded is not one any more: %s", problems[0].Message)
	}
	result, err := meter.Rewrite(bounded, structure, meter.Options{
		Exports: exports, StackBytes: engine.StackBytes(), MaxMemoryPages: uint32(abi.LimitMemoryBytes.Info().Hard >> 16),
		ExportGlobals: true, Limits: h.inspector.Limits,
	})
	if err != nil {
		return nil, err
	}
	k := engine.Keeping{Overhead: instanceBytes(structure)}
	for _, g := range result.Globals {
		k.Globals = append(k.Globals, g.Name)
	}
	switch {
	case manifest.Freeze == abi.FreezeNever:
		k.Never = "its manifest says freeze: never"
	case !result.Restorable:
		k.Never = "no image can hold what it does: " + result.Reasons[0].What
	default:
		k.Seeded = manifest.Freeze == abi.FreezeSeeded
	}
	return &prepared{result.Module, k, manifest.ABI}, nil
}

// metered are the limits that hold for what [Host.prepare] makes: see [meter.Options].
func metered(limits abi.Limits) abi.Limits {
	limits[abi.LimitModuleBytes] = 2*limits[abi.LimitModuleBytes] + 4096
	return limits
}

// admitted makes what is kept of a biome ready again, for the compiler and the loader.
func (h *Host) admitted(ctx context.Context, digest string) (*prepared, error) {
	biome, err := h.source(ctx, digest)
	if err != nil {
		return nil, err
	}
	declaration, err := biome.Declaration()
	if err != nil {
		return nil, err
	}
	manifest, unreadable := abi.DecodeManifest(declaration)
	structure, problems := wasm.Read(biome.Module, h.inspector.Limits)
	if len(problems) > 0 || unreadable != nil {
		return nil, abi.Errorf(abi.CodeInternal, "the bytes kept of a biome are not an admitted module")
	}
	return h.prepare(biome.Module, structure, manifest)
}

// instanceBytes estimates what an instance takes of the host beside its memory.
func instanceBytes(m *wasm.Module) int64 {
	const fixed, entry, global = 32 << 10, 8, 64
	n := int64(fixed + global*len(m.Globals))
	for _, t := range m.Tables {
		n += entry * int64(t.Limits.Min)
	}
	for _, e := range m.Elements {
		n += entry * int64(e.Entries)
	}
	return n
}

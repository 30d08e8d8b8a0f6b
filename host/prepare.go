package host

import (
	"context"
	"encoding/binary"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/engine"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// prepare makes the copy of an admitted module that is compiled and loaded; the original is
// what is kept and digested. The copy differs in three things. It has no custom sections: the
// engine would read one of them, names, and believe its counts. Every table has a maximum,
// because the engine holds table.grow to the declared one and to nothing else. And mutable
// globals are exported under reserved names, because the engine sets no others.
//
// It is a function of bytes and limits alone, so that what is loaded is what was compiled.
func (h *Host) prepare(module []byte, structure *wasm.Module) []byte {
	// From the last section to the first: structure holds offsets into the original.
	module = wasm.ExportGlobals(module, structure)
	return withoutCustom(wasm.BoundTables(module, structure, h.limits))
}

// prepared is where the compiler and the loader find modules: originals, made ready again.
func (h *Host) prepared(ctx context.Context, digest string) ([]byte, error) {
	module, structure, err := h.admitted(ctx, digest)
	if err != nil {
		return nil, err
	}
	return h.prepare(module, structure), nil
}

// admitted returns the original bytes of a biome and their structure.
func (h *Host) admitted(ctx context.Context, digest string) ([]byte, *wasm.Module, error) {
	module, err := h.source(ctx, digest)
	if err != nil {
		return nil, nil, err
	}
	structure, problems := wasm.Read(module, h.inspector.Limits)
	if len(problems) > 0 {
		return nil, nil, abi.Errorf(abi.CodeInternal, "the bytes kept of a biome are not an admitted module")
	}
	return module, structure, nil
}

// keeping says how instances of an admitted module may be kept.
func keeping(module []byte, structure *wasm.Module) engine.Keeping {
	k := engine.Keeping{Globals: structure.MutableGlobals(), Overhead: instanceBytes(structure)}
	freeze := abi.FreezeNever
	for _, s := range structure.Custom(abi.ManifestSection) {
		if m, problems := abi.DecodeManifest(s.Content.Of(module)); len(problems) == 0 {
			freeze = m.Freeze
		}
	}
	switch why := structure.NotRestorable(); {
	case freeze == abi.FreezeNever:
		k.Never = "its manifest says freeze: never"
	case why != "":
		k.Never = why
	default:
		k.Seeded = freeze == abi.FreezeSeeded
	}
	return k
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

// withoutCustom drops the custom sections of a module whose structure is sound.
func withoutCustom(module []byte) []byte {
	const header = 8
	out := append(make([]byte, 0, len(module)), module[:header]...)
	for rest := module[header:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		end := 1 + n + int(size)
		if wasm.SectionID(rest[0]) != wasm.SectionCustom {
			out = append(out, rest[:end]...)
		}
		rest = rest[end:]
	}
	return out
}

package host

import (
	"context"
	"encoding/binary"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// prepare makes the copy of an admitted module that is compiled and loaded; the original is
// what is kept and digested. The copy differs in two things. It has no custom sections: the
// engine would read one of them, names, and believe its counts. And every table has a
// maximum, because the engine holds table.grow to the declared one and to nothing else.
//
// It is a function of bytes and limits alone, so that what is loaded is what was compiled.
func (h *Host) prepare(module []byte, structure *wasm.Module) []byte {
	return withoutCustom(wasm.BoundTables(module, structure, h.limits))
}

// prepared is where the compiler and the loader find modules: originals, made ready again.
func (h *Host) prepared(ctx context.Context, digest string) ([]byte, error) {
	module, err := h.source(ctx, digest)
	if err != nil {
		return nil, err
	}
	structure, problems := wasm.Read(module, h.inspector.Limits)
	if len(problems) > 0 {
		return nil, abi.Errorf(abi.CodeInternal, "the bytes kept of a biome are not an admitted module")
	}
	return h.prepare(module, structure), nil
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

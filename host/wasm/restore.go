package wasm

import (
	"encoding/binary"
	"strconv"

	"github.com/ecotone-dev/ecotone/abi"
)

// NotRestorable says why an instance of the module cannot be put back into an earlier state by
// putting back its memory and its mutable globals of number types, in words for an author, or
// "" when it can (S11, S12). m must have been read without problems.
func (m *Module) NotRestorable() string {
	u := &m.Uses
	switch {
	case u.TableWrites > 0 || u.TableGrows > 0:
		return "it changes tables (table.set, grow, init, copy or fill)"
	case u.SegmentDrops > 0:
		return "it drops segments (data.drop or elem.drop)"
	case u.MemoryInits > 0:
		return "it copies from passive segments (memory.init)"
	case u.RefFuncs > 0:
		return "it makes references to functions at run time (ref.func)"
	}
	for i := range m.Globals {
		switch g := &m.Globals[i]; {
		case !g.Mutable:
		case g.Type == V128:
			return "it has a mutable v128 global"
		case g.Type.IsRef():
			return "it has a mutable global that holds a reference"
		}
	}
	return ""
}

// GlobalName is the reserved name under which [ExportGlobals] exports the n-th global that it
// exports.
func GlobalName(n int) string { return abi.ReservedPrefix + "global_" + strconv.Itoa(n) }

// MutableGlobals counts the mutable globals the module defines.
func (m *Module) MutableGlobals() int {
	n := 0
	for i := range m.Globals {
		if m.Globals[i].Mutable {
			n++
		}
	}
	return n
}

// ExportGlobals returns the module with an export of every mutable global it defines, in their
// order, named by [GlobalName]. m must have been read from module without problems, and none
// of its exports may have a reserved name (S2). Nothing but the export section changes; a
// module without one is returned as it is.
func ExportGlobals(module []byte, m *Module) []byte {
	s, ok := m.Section(SectionExport)
	added := m.MutableGlobals()
	if !ok || added == 0 {
		return module
	}
	_, n := binary.Uvarint(s.Payload.Of(module)) // the number of exports, in whatever length
	payload := binary.AppendUvarint(nil, uint64(len(m.Exports)+added))
	payload = append(payload, s.Payload.Of(module)[n:]...)
	added = 0
	for i := range m.Globals {
		if !m.Globals[i].Mutable {
			continue
		}
		name := GlobalName(added)
		added++
		payload = binary.AppendUvarint(payload, uint64(len(name)))
		payload = append(append(payload, name...), byte(KindGlobal))
		payload = binary.AppendUvarint(payload, uint64(m.Imported(KindGlobal))+uint64(i))
	}
	return replaceSection(module, s, payload)
}

// replaceSection returns the module with another payload in one of its sections.
func replaceSection(module []byte, s Section, payload []byte) []byte {
	out := make([]byte, 0, len(module)-s.Payload.Len()+len(payload)+binary.MaxVarintLen32)
	out = append(out, module[:s.Offset]...)
	out = append(out, byte(s.ID))
	out = binary.AppendUvarint(out, uint64(len(payload)))
	out = append(out, payload...)
	return append(out, module[s.Payload.End:]...)
}

package wasm

import (
	"encoding/binary"

	"github.com/ecotone-dev/ecotone/abi"
)

// BoundTables returns the module with a maximum on every table it defines, so that table.grow
// answers -1 before all tables together have more entries than [abi.LimitTableEntries]: the
// engine itself sets no bound on a table that declares none. What the limit leaves above the
// minima is shared out evenly; a smaller declared maximum stays. m must have been read from
// module without problems. Nothing but the table section changes, which no valid module can
// observe except through the answers of table.grow.
func BoundTables(module []byte, m *Module, limits abi.Limits) []byte {
	s, ok := m.Section(SectionTable)
	if !ok || len(m.Tables) == 0 {
		return module
	}
	spare := limits.Get(abi.LimitTableEntries)
	for _, t := range m.AllTables() {
		spare -= int64(t.Limits.Min)
	}
	share := max(spare, 0) / int64(len(m.Tables))

	payload := binary.AppendUvarint(nil, uint64(len(m.Tables)))
	for _, t := range m.Tables {
		top := int64(t.Limits.Min) + share
		if t.Limits.HasMax {
			top = min(top, int64(t.Limits.Max))
		}
		payload = append(payload, byte(t.Elem), 1)
		payload = binary.AppendUvarint(payload, uint64(t.Limits.Min))
		payload = binary.AppendUvarint(payload, uint64(top))
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

package admission

import (
	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// segments refuses active segments that do not fit what they are copied into. Such a module
// can never be instantiated by the specification; the engine lets some of the element
// segments pass without a word, and the program that was meant is not the one that would run.
func (i *inspection) segments() {
	if len(i.m.Memories) == 1 && i.m.Imported(wasm.KindMemory) == 0 {
		size := int64(i.m.Memories[0].Limits.Min) * wasm.PageBytes
		for _, d := range i.m.Data {
			if at, ok := i.offset(d.Mode, d.Offset); ok && at+int64(d.Init.Len()) > size {
				i.refuse(abi.CodeModuleInvalid, wasm.SectionData, d.Offset.Start, "",
					"a data segment of %d bytes at %d does not fit the memory's first %d bytes", d.Init.Len(), at, size)
			}
		}
	}
	tables := i.m.AllTables()
	for _, e := range i.m.Elements {
		at, ok := i.offset(e.Mode, e.Offset)
		if !ok || int64(e.Table) >= int64(len(tables)) {
			continue
		}
		if size := int64(tables[e.Table].Limits.Min); at+int64(e.Entries) > size {
			i.refuse(abi.CodeModuleInvalid, wasm.SectionElement, e.At.Start, "",
				"an element segment of %d entries at %d does not fit the table's first %d entries", e.Entries, at, size)
		}
	}
}

// offset is where an active segment begins, when that is a number.
func (i *inspection) offset(mode wasm.SegmentMode, expr wasm.Range) (int64, bool) {
	if mode != wasm.Active {
		return 0, false
	}
	v, ok := wasm.ConstI32(i.module, expr)
	return int64(uint32(v)), ok
}

package wasmtest

import (
	"bytes"
	"fmt"
)

// Value types.
const (
	I32       byte = 0x7f
	I64       byte = 0x7e
	F32       byte = 0x7d
	F64       byte = 0x7c
	V128      byte = 0x7b
	FuncRef   byte = 0x70
	ExternRef byte = 0x6f
)

// Kinds of imports and exports.
const (
	KindFunc   byte = 0
	KindTable  byte = 1
	KindMemory byte = 2
	KindGlobal byte = 3
)

// Section ids.
const (
	SectionCustom byte = iota
	SectionType
	SectionImport
	SectionFunction
	SectionTable
	SectionMemory
	SectionGlobal
	SectionExport
	SectionStart
	SectionElement
	SectionCode
	SectionData
	SectionDataCount
)

// order is the order in which the format wants the sections that are not custom.
var order = []byte{
	SectionType, SectionImport, SectionFunction, SectionTable, SectionMemory, SectionGlobal, SectionExport,
	SectionStart, SectionElement, SectionDataCount, SectionCode, SectionData,
}

// Types lists value types: wasmtest.Types(I32, I64).
func Types(t ...byte) []byte { return t }

// Builder collects the parts of one module. The zero value is an empty module. It is not
// safe for concurrent use.
type Builder struct {
	vectors map[byte]vector // the vector sections
	raw     map[byte][]byte // payloads that are not vectors: start, data count
	tail    []byte          // whole sections that follow the ordered ones
	types   map[string]uint32
	funcs   uint32
	globals uint32
	tables  uint32
	defined bool
}

// vector is a section's items, one behind the other.
type vector struct {
	n     int
	items []byte
}

// New returns an empty module.
func New() *Builder { return &Builder{} }

func (b *Builder) add(section byte, items ...[]byte) {
	b.addMany(section, 1, items...)
}

func (b *Builder) addMany(section byte, n int, items ...[]byte) {
	if b.vectors == nil {
		b.vectors = make(map[byte]vector)
	}
	v := b.vectors[section]
	v.n += n
	for _, item := range items {
		v.items = append(v.items, item...)
	}
	b.vectors[section] = v
}

// Type returns the index of a function type, adding it when it is new.
func (b *Builder) Type(params, results []byte) uint32 {
	key := string(params) + "\x00" + string(results)
	if i, ok := b.types[key]; ok {
		return i
	}
	if b.types == nil {
		b.types = make(map[string]uint32)
	}
	i := uint32(b.vectors[SectionType].n)
	b.types[key] = i
	b.add(SectionType, []byte{0x60}, Vec(params), Vec(results))
	return i
}

// Import adds an import of any kind; desc is what follows the kind byte.
func (b *Builder) Import(module, name string, kind byte, desc ...byte) *Builder {
	if b.defined {
		panic(fmt.Sprintf("wasmtest: import %q.%q comes after a definition", module, name))
	}
	b.add(SectionImport, Name(module), Name(name), []byte{kind}, desc)
	switch kind {
	case KindFunc:
		b.funcs++
	case KindTable:
		b.tables++
	case KindGlobal:
		b.globals++
	}
	return b
}

// ImportFunc imports a function and returns its index.
func (b *Builder) ImportFunc(module, name string, params, results []byte) uint32 {
	t := b.Type(params, results)
	b.Import(module, name, KindFunc, LEB(uint64(t))...)
	return b.funcs - 1
}

// Func defines a function and returns its index. The closing end is added; locals are
// declared one by one.
func (b *Builder) Func(params, results, locals []byte, body ...[]byte) uint32 {
	decl := LEB(uint64(len(locals)))
	for _, l := range locals {
		decl = append(decl, 1, l)
	}
	return b.RawFunc(b.Type(params, results), Cat(decl, Cat(body...), []byte{OpEnd}))
}

// RawFunc defines a function of a type index with a body given to the byte (locals,
// instructions, end) and returns its index.
func (b *Builder) RawFunc(typeIndex uint32, body []byte) uint32 {
	b.defined = true
	b.add(SectionFunction, LEB(uint64(typeIndex)))
	b.add(SectionCode, LEB(uint64(len(body))), body)
	b.funcs++
	return b.funcs - 1
}

// Memory defines a memory of minPages and at most maxPages, if given.
func (b *Builder) Memory(minPages uint32, maxPages ...uint32) *Builder {
	b.add(SectionMemory, Limits(minPages, maxPages...))
	return b
}

// Table defines a table and returns its index.
func (b *Builder) Table(elem byte, minEntries uint32, maxEntries ...uint32) uint32 {
	b.defined = true
	b.add(SectionTable, []byte{elem}, Limits(minEntries, maxEntries...))
	b.tables++
	return b.tables - 1
}

// Global defines a global with an initial expression (without its end) and returns its index.
func (b *Builder) Global(t byte, mutable bool, init ...[]byte) uint32 {
	b.defined = true
	m := byte(0)
	if mutable {
		m = 1
	}
	b.add(SectionGlobal, []byte{t, m}, Cat(init...), []byte{OpEnd})
	b.globals++
	return b.globals - 1
}

// Export adds an export of any kind.
func (b *Builder) Export(name string, kind byte, index uint32) *Builder {
	b.add(SectionExport, Name(name), []byte{kind}, LEB(uint64(index)))
	return b
}

// ExportFunc exports a function.
func (b *Builder) ExportFunc(name string, index uint32) *Builder {
	return b.Export(name, KindFunc, index)
}

// ExportMemory exports memory 0 as "memory".
func (b *Builder) ExportMemory() *Builder { return b.Export("memory", KindMemory, 0) }

// Start sets the start function.
func (b *Builder) Start(index uint32) *Builder { return b.payload(SectionStart, LEB(uint64(index))) }

// DataCount adds a data count section.
func (b *Builder) DataCount(n uint32) *Builder {
	return b.payload(SectionDataCount, LEB(uint64(n)))
}

func (b *Builder) payload(section byte, payload []byte) *Builder {
	if b.raw == nil {
		b.raw = make(map[byte][]byte)
	}
	b.raw[section] = payload
	return b
}

// Data adds an active segment of memory 0 at a constant offset.
func (b *Builder) Data(offset int32, data []byte) *Builder {
	return b.Entry(SectionData, Cat([]byte{0}, I32Const(offset), []byte{OpEnd}, Vec(data)))
}

// PassiveData adds a passive segment.
func (b *Builder) PassiveData(data []byte) *Builder {
	return b.Entry(SectionData, Cat([]byte{1}, Vec(data)))
}

// Elem adds an active segment of table 0 at a constant offset.
func (b *Builder) Elem(offset int32, funcs ...uint32) *Builder {
	item := Cat([]byte{0}, I32Const(offset), []byte{OpEnd}, LEB(uint64(len(funcs))))
	for _, f := range funcs {
		item = append(item, LEB(uint64(f))...)
	}
	return b.Entry(SectionElement, item)
}

// Entry adds one raw item to a vector section.
func (b *Builder) Entry(section byte, item []byte) *Builder {
	b.add(section, item)
	return b
}

// Repeat adds n copies of a raw item to a vector section.
func (b *Builder) Repeat(section byte, n int, item []byte) *Builder {
	b.addMany(section, n, bytes.Repeat(item, n))
	return b
}

// Custom adds a custom section after everything else.
func (b *Builder) Custom(name string, payload []byte) *Builder {
	return b.Section(SectionCustom, Cat(Name(name), payload))
}

// Section adds a whole section, any id and payload, after everything else.
func (b *Builder) Section(id byte, payload []byte) *Builder {
	b.tail = append(b.tail, Section(id, payload)...)
	return b
}

// Bytes returns the module.
func (b *Builder) Bytes() []byte {
	var out bytes.Buffer
	out.Write(Header())
	for _, id := range order {
		if v := b.vectors[id]; v.n > 0 {
			out.Write(Section(id, Cat(LEB(uint64(v.n)), v.items)))
		}
		if p, ok := b.raw[id]; ok {
			out.Write(Section(id, p))
		}
	}
	out.Write(b.tail)
	return out.Bytes()
}

package wasm

import (
	"slices"
	"strings"
)

// MaxExpansion bounds what [Read] allocates, as a multiple of the module's size. A fixed
// 64 KiB comes on top.
const MaxExpansion = 32

// ValType is a value type as the binary format encodes it.
type ValType byte

// The value types of WebAssembly 2.0.
const (
	I32       ValType = 0x7f
	I64       ValType = 0x7e
	F32       ValType = 0x7d
	F64       ValType = 0x7c
	V128      ValType = 0x7b
	FuncRef   ValType = 0x70
	ExternRef ValType = 0x6f
)

func (t ValType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	case FuncRef:
		return "funcref"
	case ExternRef:
		return "externref"
	}
	return "unknown"
}

// IsRef reports whether t is a reference type.
func (t ValType) IsRef() bool { return t == FuncRef || t == ExternRef }

// Kind is what an import or export is.
type Kind byte

// The kinds of WebAssembly 2.0.
const (
	KindFunc Kind = iota
	KindTable
	KindMemory
	KindGlobal
)

func (k Kind) String() string {
	switch k {
	case KindFunc:
		return "function"
	case KindTable:
		return "table"
	case KindMemory:
		return "memory"
	case KindGlobal:
		return "global"
	}
	return "unknown"
}

// Range is a half-open range of byte offsets in the module.
type Range struct{ Start, End uint32 }

// Len is the range's length in bytes.
func (r Range) Len() int { return int(r.End - r.Start) }

// Of returns the range's bytes of the module it was read from.
func (r Range) Of(module []byte) []byte { return module[r.Start:r.End] }

// Section is one section as it lies in the module.
type Section struct {
	ID      SectionID
	Offset  uint32 // of the id byte
	Payload Range
	Name    string // of a custom section
	Content Range  // of a custom section: what follows the name
}

// SectionID is a section's id.
type SectionID byte

// The sections of WebAssembly 2.0.
const (
	SectionCustom SectionID = iota
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

var sectionNames = [...]string{
	"custom", "type", "import", "function", "table", "memory", "global", "export", "start", "element", "code", "data",
	"data count",
}

func (id SectionID) String() string {
	if int(id) < len(sectionNames) {
		return sectionNames[id]
	}
	return "unknown"
}

// FuncType is a function type.
type FuncType struct{ Params, Results []ValType }

// Equal reports whether two types are the same.
func (t FuncType) Equal(o FuncType) bool {
	return slices.Equal(t.Params, o.Params) && slices.Equal(t.Results, o.Results)
}

// showTypes bounds how many types of a signature are written out.
const showTypes = 16

func (t FuncType) String() string {
	var b strings.Builder
	for i, list := range [][]ValType{t.Params, t.Results} {
		if i == 1 {
			b.WriteString(" -> ")
			if len(list) == 1 {
				return b.String() + list[0].String()
			}
		}
		b.WriteByte('(')
		for j, v := range list {
			if j > 0 {
				b.WriteString(", ")
			}
			if j == showTypes {
				b.WriteString("…")
				break
			}
			b.WriteString(v.String())
		}
		b.WriteByte(')')
	}
	return b.String()
}

// Limits is a table's or memory's size: entries or pages of 64 KiB.
type Limits struct {
	Min, Max uint32
	HasMax   bool
}

// PageBytes is the size of a page of memory.
const PageBytes = 64 << 10

// MaxPages is the largest size of a memory that 32 bits address.
const MaxPages = 1 << 16

// Import is one import. Which of Type, Table, Memory and Global counts follows from Kind.
type Import struct {
	Module, Name string
	Kind         Kind
	Offset       uint32
	Type         uint32 // index into Types
	Table        Table
	Memory       Memory
	Global       GlobalType
}

// Function is one function the module defines.
type Function struct {
	Type uint32 // index into Types
	Body Range  // local declarations, instructions and the closing end
	Code Range  // instructions and the closing end
}

// Table is one table.
type Table struct {
	Elem   ValType
	Limits Limits
	At     Range // the whole entry
}

// Memory is one memory.
type Memory struct {
	Limits Limits
	At     Range // the whole entry
}

// GlobalType is a global's type.
type GlobalType struct {
	Type    ValType
	Mutable bool
}

// Global is one global the module defines.
type Global struct {
	GlobalType
	Init Range // the constant expression with its end
}

// Export is one export.
type Export struct {
	Name   string
	Kind   Kind
	Index  uint32 // in the space of Kind, imports first
	Offset uint32
}

// Start is the start section.
type Start struct{ Func, Offset uint32 }

// SegmentMode says when a segment is used.
type SegmentMode byte

// The modes of element and data segments.
const (
	Active SegmentMode = iota
	Passive
	Declarative
)

// Element is one element segment.
type Element struct {
	Mode    SegmentMode
	Elem    ValType
	Table   uint32 // when active
	Offset  Range  // the constant expression with its end, when active
	Entries uint32
	At      Range // the whole segment
}

// Data is one data segment.
type Data struct {
	Mode   SegmentMode
	Offset Range // the constant expression with its end, when active
	Init   Range // the bytes
}

// Module is the structure of a core module. It holds offsets into the bytes it was read
// from and strings of its own; it keeps no reference to the bytes.
type Module struct {
	Size      int
	Sections  []Section
	Types     []FuncType
	Imports   []Import
	Functions []Function
	Tables    []Table  // defined ones
	Memories  []Memory // defined ones
	Globals   []Global
	Exports   []Export
	Start     *Start
	Elements  []Element
	Data      []Data
	Uses      Uses

	imported [KindGlobal + 1]uint32
	unread   uint16 // a bit for each section that could not be read to its end
}

// Unread reports whether a section is there that could not be read to its end, so that what
// the module holds of it is not all there is.
func (m *Module) Unread(ids ...SectionID) bool {
	for _, id := range ids {
		if m.unread&(1<<id) != 0 {
			return true
		}
	}
	return false
}

// Imported is how many imports of a kind there are; definitions are numbered after them.
func (m *Module) Imported(k Kind) uint32 { return m.imported[k] }

// FuncType returns the type of a function by its index, imports first. There is none when
// the sections that say it could not be read.
func (m *Module) FuncType(index uint32) (FuncType, bool) {
	if m.Unread(SectionType, SectionImport, SectionFunction) {
		return FuncType{}, false
	}
	t, ok := m.typeIndexOf(index)
	if !ok || int64(t) >= int64(len(m.Types)) {
		return FuncType{}, false
	}
	return m.Types[t], true
}

func (m *Module) typeIndexOf(index uint32) (uint32, bool) {
	if n := m.imported[KindFunc]; index >= n {
		if i := index - n; int64(i) < int64(len(m.Functions)) {
			return m.Functions[i].Type, true
		}
		return 0, false
	}
	for i := range m.Imports {
		if m.Imports[i].Kind != KindFunc {
			continue
		}
		if index == 0 {
			return m.Imports[i].Type, true
		}
		index--
	}
	return 0, false
}

// AllTables lists the tables of the index space, imports first.
func (m *Module) AllTables() []Table {
	var out []Table
	for i := range m.Imports {
		if m.Imports[i].Kind == KindTable {
			out = append(out, m.Imports[i].Table)
		}
	}
	return append(out, m.Tables...)
}

// Uses counts what the code does that decides later how an instance may be kept (S11, S12),
// and which parts of WebAssembly 2.0 the module needs.
type Uses struct {
	Instructions   uint64   `json:"instructions"`
	MaxBodyBytes   int      `json:"maxBodyBytes"`
	MaxLocals      int      `json:"maxLocals"`
	MaxNesting     int      `json:"maxNesting"`
	MaxBrTable     int      `json:"maxBrTable"`
	MaxBlocks      int      `json:"maxBlocks"`
	Loops          uint64   `json:"loops"`
	IndirectCalls  uint64   `json:"indirectCalls"`
	MemoryGrows    uint64   `json:"memoryGrows"`
	TableGrows     uint64   `json:"tableGrows"`
	TableWrites    uint64   `json:"tableWrites"`  // table.set, fill, copy and init
	SegmentDrops   uint64   `json:"segmentDrops"` // data.drop and elem.drop
	MemoryInits    uint64   `json:"memoryInits"`
	RefFuncs       uint64   `json:"refFuncs"` // ref.func in bodies
	BulkOperations uint64   `json:"bulkOperations"`
	Features       []string `json:"features"` // sorted names of the extensions to WebAssembly 1.0
}

// Section finds the section of an id that is not [SectionCustom].
func (m *Module) Section(id SectionID) (Section, bool) {
	for _, s := range m.Sections {
		if s.ID == id {
			return s, true
		}
	}
	return Section{}, false
}

// Custom lists the custom sections of a name, in order.
func (m *Module) Custom(name string) []Section {
	var out []Section
	for _, s := range m.Sections {
		if s.ID == SectionCustom && s.Name == name {
			out = append(out, s)
		}
	}
	return out
}

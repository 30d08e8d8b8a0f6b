package wasm

import (
	"fmt"

	"github.com/ecotone-dev/ecotone/abi"
)

// maxModule keeps every offset within 31 bits, whatever the limits say.
const maxModule = 1<<31 - 1

// Read reads the structure of a module. It lists every problem it finds, up to
// [MaxProblems], in the order of the bytes; the module is complete, and fit to be relied on,
// only when there are none. It is nil when data is not a core module at all or is larger than
// [abi.LimitModuleBytes]. Read keeps no reference to data and is safe for concurrent use.
func Read(data []byte, limits abi.Limits) (*Module, []Problem) {
	p := &problems{}
	if allowed := min(limits.Get(abi.LimitModuleBytes), maxModule); int64(len(data)) > allowed {
		p.add(abi.LimitModuleBytes.Info().Code, "", int(max(allowed, 0)), "",
			"the module has %d bytes; the limit %s is %d", len(data), abi.LimitModuleBytes.Info().Name, allowed)
		return nil, p.list
	}
	if !identify(p, data) {
		return nil, p.list
	}
	r := &reader{problems: p, data: data, limits: limits, m: &Module{Size: len(data)}}
	r.sections()
	return r.m, p.list
}

// space is an index space.
type space uint8

const (
	spaceType space = iota
	spaceFunc
	spaceTable
	spaceMemory
	spaceGlobal
	spaceElement
	numSpaces
)

var spaceNames = [numSpaces]string{"type", "function", "table", "memory", "global", "element segment"}

// reader is the state of one reading.
type reader struct {
	*problems
	data   []byte
	limits abi.Limits
	m      *Module

	sizes        [numSpaces]uint64 // how many there are, imports included
	unknown      [numSpaces]bool   // a section could not be read: indices cannot be judged
	tables       []Table           // the index space of tables
	hasDataCount bool
	dataCount    uint32
	functions    int // announced by the function section
	bodies       int // announced by the code section
	segments     int // announced by the data section
	customs      int
	tableEntries int64
	elemEntries  int64
	uses         uint
}

// sectionOrder is the order the format wants; custom sections go anywhere.
var sectionOrder = [...]uint8{
	SectionType: 1, SectionImport: 2, SectionFunction: 3, SectionTable: 4, SectionMemory: 5, SectionGlobal: 6,
	SectionExport: 7, SectionStart: 8, SectionElement: 9, SectionDataCount: 10, SectionCode: 11, SectionData: 12,
}

const (
	sectionTag    SectionID = 13 // exception handling
	sectionString SectionID = 14 // reference-typed strings
)

func (r *reader) sections() {
	var last uint8
	c := &cursor{problems: r.problems, data: r.data, pos: headerBytes, end: len(r.data)}
	for c.left() > 0 && !r.full() {
		at := c.pos
		id := SectionID(c.byte("a section"))
		payload := c.bytes(c.u32("the size of a section"), sectionLabel(id))
		if c.failed {
			r.lostAll()
			r.m.unread |= 1 << SectionCustom
			break
		}
		body := &cursor{problems: r.problems, data: r.data, pos: int(payload.Start), end: int(payload.End), section: id.String()}
		switch {
		case id == SectionCustom:
			if !r.custom(body, Section{ID: id, Offset: uint32(at), Payload: payload}) {
				r.m.unread |= 1 << id
			}
			continue
		case int(id) >= len(sectionOrder):
			r.unknownSection(at, id)
			continue
		case sectionOrder[id] <= last:
			r.add(abi.CodeModuleMalformed, id.String(), at, "", "the %s section is out of order or there twice", id)
			r.lostAll()
			continue
		}
		last = sectionOrder[id]
		r.m.Sections = append(r.m.Sections, Section{ID: id, Offset: uint32(at), Payload: payload})
		r.section(id, body)
		if body.failed {
			r.m.unread |= 1 << id
		}
		if !body.failed && body.left() > 0 {
			body.fail(abi.CodeModuleMalformed, body.pos, "%d bytes are left over in the %s section", body.left(), id)
		}
	}
	r.counts()
	r.m.Uses.Features = featureNames(r.uses)
}

func sectionLabel(id SectionID) string {
	if int(id) < len(sectionNames) {
		return "the " + id.String() + " section"
	}
	return fmt.Sprintf("the section of id %d", id)
}

func (r *reader) unknownSection(at int, id SectionID) {
	r.lostAll()
	switch id {
	case sectionTag:
		r.feature("", at, exceptions, "the tag section")
	case sectionString:
		r.feature("", at, stringRefs, "the string section")
	default:
		r.add(abi.CodeModuleMalformed, "", at, "", "%d is not the id of a section", id)
	}
}

func (r *reader) section(id SectionID, c *cursor) {
	switch id {
	case SectionType:
		r.typeSection(c)
	case SectionImport:
		r.importSection(c)
	case SectionFunction:
		r.functionSection(c)
	case SectionTable:
		r.tableSection(c)
	case SectionMemory:
		r.memorySection(c)
	case SectionGlobal:
		r.globalSection(c)
	case SectionExport:
		r.exportSection(c)
	case SectionStart:
		r.startSection(c)
	case SectionElement:
		r.elementSection(c)
	case SectionDataCount:
		r.dataCount, r.hasDataCount = c.u32("the number of data segments"), true
		r.uses |= useBulk
	case SectionCode:
		r.codeSection(c)
	case SectionData:
		r.dataSection(c)
	}
}

// counts compares what sections announce about each other, as far as they could be read.
func (r *reader) counts() {
	end := len(r.data)
	if r.functions != r.bodies && !r.m.Unread(SectionFunction, SectionCode) {
		r.add(abi.CodeModuleMalformed, "code", r.sectionAt(SectionCode, end), "",
			"%d functions are declared and %d have bodies", r.functions, r.bodies)
	}
	if r.hasDataCount && int64(r.dataCount) != int64(r.segments) && !r.m.Unread(SectionDataCount, SectionData) {
		r.add(abi.CodeModuleMalformed, "data", r.sectionAt(SectionData, end), "",
			"%d data segments are announced and %d are there", r.dataCount, r.segments)
	}
}

func (r *reader) sectionAt(id SectionID, otherwise int) int {
	if s, ok := r.m.Section(id); ok {
		return int(s.Offset)
	}
	return otherwise
}

// lostAll is for a module whose sections are not what they should be: nothing that one
// section says of another can be judged.
func (r *reader) lostAll() {
	r.m.unread |= 1<<16 - 1<<SectionType
	for s := range r.unknown {
		r.unknown[s] = true
	}
}

// lost marks a space whose section could not be read to its end.
func (r *reader) lost(c *cursor, spaces ...space) {
	if c.failed {
		for _, s := range spaces {
			r.unknown[s] = true
		}
	}
}

// index reads an index and checks it against its space (S2).
func (r *reader) index(c *cursor, s space, what string) uint32 {
	at := c.pos
	i := c.u32("an index")
	r.check(c, at, s, uint64(i), what)
	return i
}

func (r *reader) check(c *cursor, at int, s space, i uint64, what string) {
	if c.failed || i < r.sizes[s] || r.unknown[s] || r.full() {
		return
	}
	c.invalid(at, "%s names %s %d, which does not exist; there are %d", what, spaceNames[s], i, r.sizes[s])
}

func isValType(t ValType) bool { return t >= V128 && t <= I32 || t.IsRef() }

func usesOf(t ValType) uint8 {
	switch {
	case t == V128:
		return useSIMD
	case t.IsRef():
		return useReferences
	}
	return 0
}

func (r *reader) valType(c *cursor, what string) ValType {
	at := c.pos
	t := ValType(c.byte(what))
	if c.failed {
		return 0
	}
	if !isValType(t) {
		r.badType(c, at, byte(t), what)
		return 0
	}
	r.uses |= uint(usesOf(t))
	return t
}

func (r *reader) badType(c *cursor, at int, b byte, what string) {
	if name, ok := typeForms[b]; ok {
		c.refuse(at, name, what)
		return
	}
	c.fail(abi.CodeModuleMalformed, at, "0x%02x is not %s", b, what)
}

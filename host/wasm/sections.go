package wasm

import (
	"github.com/ecotone-dev/ecotone/abi"
)

// MaxParams and MaxResults bound a function type, as the JavaScript embedding does.
const (
	MaxParams  = 1000
	MaxResults = 1000
)

// custom keeps where a custom section lies, and reports whether it did; its content is nobody's
// business here.
func (r *reader) custom(c *cursor, s Section) bool {
	allowed := r.limits.Get(abi.LimitCustomSections)
	r.customs++
	if int64(r.customs) > allowed {
		if int64(r.customs) == allowed+1 {
			c.over(int(s.Offset), abi.LimitCustomSections, int64(r.customs), allowed, "too many custom sections")
		}
		return false
	}
	s.Name = c.name(r.limits.Get(abi.LimitNameBytes), "the name of a custom section")
	if c.failed {
		return false
	}
	s.Content = Range{uint32(c.pos), uint32(c.end)}
	r.m.Sections = append(r.m.Sections, s)
	return true
}

func (r *reader) typeSection(c *cursor) {
	defer r.lost(c, spaceType)
	n := c.limited(3, abi.LimitTypes, r.limits.Get(abi.LimitTypes), "types")
	r.m.Types = make([]FuncType, 0, n)
	for range n {
		at := c.pos
		if form := c.byte("a type"); form != 0x60 {
			r.badType(c, at, form, "the form of a type")
		}
		t := FuncType{r.valTypes(c, MaxParams, "parameters"), r.valTypes(c, MaxResults, "results")}
		if c.failed {
			return
		}
		if len(t.Results) > 1 {
			r.uses |= useMultiValue
		}
		r.m.Types = append(r.m.Types, t)
	}
	r.sizes[spaceType] = uint64(len(r.m.Types))
}

func (r *reader) valTypes(c *cursor, allowed int, what string) []ValType {
	at := c.pos
	n := c.count(1, what)
	if n > allowed {
		c.fail(abi.CodeModuleLimit, at, "a function type has %d %s; at most %d are accepted", n, what, allowed)
	}
	if n == 0 || c.failed {
		return nil
	}
	out := make([]ValType, n)
	for i := range out {
		out[i] = r.valType(c, "a value type")
	}
	return out
}

func (r *reader) importSection(c *cursor) {
	defer r.lost(c, spaceFunc, spaceTable, spaceMemory, spaceGlobal)
	names := r.limits.Get(abi.LimitNameBytes)
	n := c.limited(4, abi.LimitImports, r.limits.Get(abi.LimitImports), "imports")
	r.m.Imports = make([]Import, 0, n)
	for range n {
		im := Import{Offset: uint32(c.pos)}
		im.Module = c.name(names, "the module of an import")
		im.Name = c.name(names, "the name of an import")
		at := c.pos
		im.Kind = Kind(c.byte("the kind of an import"))
		if c.failed {
			return
		}
		switch im.Kind {
		case KindFunc:
			im.Type = r.index(c, spaceType, "an import")
		case KindTable:
			im.Table = r.table(c)
		case KindMemory:
			im.Memory = r.memory(c)
		case KindGlobal:
			im.Global = r.globalType(c)
		case 4:
			c.refuse(at, exceptions, "an imported tag")
		default:
			c.fail(abi.CodeModuleMalformed, at, "0x%02x is not the kind of an import", byte(im.Kind))
		}
		if c.failed {
			return
		}
		r.m.Imports = append(r.m.Imports, im)
		r.m.imported[im.Kind]++
		r.sizes[spaceOf[im.Kind]]++
		r.oneMemory(c, at)
	}
}

var spaceOf = [...]space{KindFunc: spaceFunc, KindTable: spaceTable, KindMemory: spaceMemory, KindGlobal: spaceGlobal}

func (r *reader) functionSection(c *cursor) {
	defer r.lost(c, spaceFunc)
	n := c.limited(1, abi.LimitFunctions, r.limits.Get(abi.LimitFunctions), "functions")
	r.functions = n
	r.m.Functions = make([]Function, n)
	for i := range r.m.Functions {
		r.m.Functions[i].Type = r.index(c, spaceType, "a function")
		if c.failed {
			return
		}
	}
	r.sizes[spaceFunc] += uint64(n)
}

func (r *reader) tableSection(c *cursor) {
	defer r.lost(c, spaceTable)
	n := c.limited(3, abi.LimitTables, r.limits.Get(abi.LimitTables), "tables")
	for range n {
		t := r.table(c)
		if c.failed {
			return
		}
		r.m.Tables = append(r.m.Tables, t)
		r.sizes[spaceTable]++
	}
}

func (r *reader) table(c *cursor) Table {
	at := c.pos
	elem := ValType(c.byte("the type of a table"))
	switch {
	case c.failed:
		return Table{}
	case elem == 0x40:
		c.refuse(at, typedRefs, "a table with an initialiser")
		return Table{}
	case !elem.IsRef():
		r.badType(c, at, byte(elem), "the type of a table")
		return Table{}
	}
	t := Table{Elem: elem, Limits: r.sizeLimits(c, "a table")}
	t.At = Range{uint32(at), uint32(c.pos)}
	if c.failed {
		return t
	}
	if elem != FuncRef || len(r.tables) > 0 {
		r.uses |= useReferences
	}
	r.tables = append(r.tables, t)
	if allowed := r.limits.Get(abi.LimitTables); int64(len(r.tables)) == allowed+1 {
		c.over(at, abi.LimitTables, int64(len(r.tables)), allowed, "too many tables")
	}
	before, allowed := r.tableEntries, r.limits.Get(abi.LimitTableEntries)
	r.tableEntries += int64(t.Limits.Min)
	if r.tableEntries > allowed && before <= allowed {
		c.over(at, abi.LimitTableEntries, r.tableEntries, allowed, "tables have too many entries")
	}
	return t
}

func (r *reader) memorySection(c *cursor) {
	defer r.lost(c, spaceMemory)
	at := c.pos
	n := c.count(2, "memories")
	if allowed := r.limits.Get(abi.LimitMemories); n > 1 {
		c.refuse(at, multiMemory, "a second memory")
	} else if int64(n) > allowed {
		c.over(at, abi.LimitMemories, int64(n), allowed, "too many memories")
	}
	if c.failed {
		return
	}
	for range n {
		m := r.memory(c)
		if c.failed {
			return
		}
		r.m.Memories = append(r.m.Memories, m)
		r.sizes[spaceMemory]++
		r.oneMemory(c, int(m.At.Start))
	}
}

func (r *reader) oneMemory(c *cursor, at int) {
	if r.sizes[spaceMemory] > 1 {
		r.feature(c.section, at, multiMemory, "a second memory")
	}
}

func (r *reader) memory(c *cursor) Memory {
	at := c.pos
	m := Memory{Limits: r.sizeLimits(c, "a memory")}
	m.At = Range{uint32(at), uint32(c.pos)}
	if c.failed {
		return m
	}
	if m.Limits.Min > MaxPages || m.Limits.HasMax && m.Limits.Max > MaxPages {
		c.invalid(at, "a memory of more than %d pages", MaxPages)
		return m
	}
	if have, allowed := int64(m.Limits.Min)*PageBytes, r.limits.Get(abi.LimitMemoryBytes); have > allowed {
		c.over(at, abi.LimitMemoryBytes, have, allowed, "the memory is too large from the start, in bytes")
	}
	return m
}

// sizeLimits reads a minimum and perhaps a maximum. The flags are a bit each: a maximum is
// there, shared, 64-bit, and a page size.
func (r *reader) sizeLimits(c *cursor, what string) Limits {
	at := c.pos
	flags := c.byte("the limits of " + what)
	switch {
	case c.failed:
		return Limits{}
	case flags > 0x0f:
		c.fail(abi.CodeModuleMalformed, at, "0x%02x does not begin the limits of %s", flags, what)
		return Limits{}
	case flags&0x02 != 0:
		c.refuse(at, threads, what+" that is shared")
	case flags&0x04 != 0:
		c.refuse(at, memory64, what+" with 64-bit indices")
	case flags&0x08 != 0:
		c.refuse(at, customPages, what+" with a page size")
	}
	l := Limits{Min: c.u32("a minimum")}
	if flags&0x01 != 0 {
		l.Max, l.HasMax = c.u32("a maximum"), true
	}
	if l.HasMax && l.Max < l.Min {
		c.invalid(at, "the minimum of %s is above its maximum: %d, %d", what, l.Min, l.Max)
	}
	return l
}

func (r *reader) globalSection(c *cursor) {
	defer r.lost(c, spaceGlobal)
	n := c.limited(4, abi.LimitGlobals, r.limits.Get(abi.LimitGlobals), "globals")
	r.m.Globals = make([]Global, 0, n)
	for range n {
		g := Global{GlobalType: r.globalType(c)}
		g.Init = r.constant(c)
		if c.failed {
			return
		}
		r.m.Globals = append(r.m.Globals, g)
	}
	r.sizes[spaceGlobal] += uint64(n)
}

func (r *reader) globalType(c *cursor) GlobalType {
	g := GlobalType{Type: r.valType(c, "the type of a global")}
	at := c.pos
	switch m := c.byte("whether a global is mutable"); {
	case m == 1:
		g.Mutable = true
	case m == 2 || m == 3:
		c.refuse(at, sharedAll, "a shared global")
	case m > 3:
		c.fail(abi.CodeModuleMalformed, at, "0x%02x does not say whether a global is mutable", m)
	}
	return g
}

func (r *reader) exportSection(c *cursor) {
	names := r.limits.Get(abi.LimitNameBytes)
	n := c.limited(3, abi.LimitExports, r.limits.Get(abi.LimitExports), "exports")
	r.m.Exports = make([]Export, 0, n)
	seen := make(map[string]bool, n)
	for range n {
		e := Export{Offset: uint32(c.pos)}
		e.Name = c.name(names, "the name of an export")
		at := c.pos
		e.Kind = Kind(c.byte("the kind of an export"))
		switch {
		case c.failed:
			return
		case e.Kind == 4:
			c.refuse(at, exceptions, "an exported tag")
			return
		case e.Kind > KindGlobal:
			c.fail(abi.CodeModuleMalformed, at, "0x%02x is not the kind of an export", byte(e.Kind))
			return
		}
		e.Index = r.index(c, spaceOf[e.Kind], "an export")
		if c.failed {
			return
		}
		if seen[e.Name] {
			c.invalid(int(e.Offset), "%s is exported twice", abi.Quote(e.Name))
		}
		seen[e.Name] = true
		r.m.Exports = append(r.m.Exports, e)
	}
}

func (r *reader) startSection(c *cursor) {
	at := c.pos
	s := &Start{Offset: uint32(at), Func: r.index(c, spaceFunc, "the start section")}
	if c.failed {
		return
	}
	r.m.Start = s
	if t, ok := r.m.FuncType(s.Func); ok && (len(t.Params) > 0 || len(t.Results) > 0) {
		c.invalid(at, "the start function is %s; it must be () -> ()", t)
	}
}

func (r *reader) elementSection(c *cursor) {
	defer r.lost(c, spaceElement)
	n := c.limited(3, abi.LimitElementSegments, r.limits.Get(abi.LimitElementSegments), "element segments")
	r.m.Elements = make([]Element, 0, n)
	for range n {
		e := r.element(c)
		if c.failed {
			return
		}
		r.m.Elements = append(r.m.Elements, e)
	}
	r.sizes[spaceElement] = uint64(n)
}

// element reads one segment. The bits of its first number: passive or declarative, a table
// index or declarative, expressions instead of function indices.
func (r *reader) element(c *cursor) Element {
	e := Element{Elem: FuncRef}
	start := c.pos
	flags := c.u32("the kind of an element segment")
	if flags > 7 {
		c.fail(abi.CodeModuleMalformed, start, "%d is not the kind of an element segment", flags)
	}
	if flags > 0 {
		r.uses |= useBulk
	}
	table := c.pos
	switch {
	case flags&1 == 0:
		if flags&2 != 0 {
			e.Table = c.u32("the table of an element segment")
		}
		r.check(c, table, spaceTable, uint64(e.Table), "an element segment")
		e.Offset = r.constant(c)
	case flags&2 == 0:
		e.Mode = Passive
	default:
		e.Mode = Declarative
	}
	expressions := flags&4 != 0
	if flags&3 != 0 {
		at := c.pos
		if expressions {
			if e.Elem = r.valType(c, "the type of an element segment"); !c.failed && !e.Elem.IsRef() {
				c.fail(abi.CodeModuleMalformed, at, "an element segment of %s", e.Elem)
			}
		} else if kind := c.byte("the kind of elements"); kind != 0 {
			c.fail(abi.CodeModuleMalformed, at, "0x%02x is not the kind of elements", kind)
		}
	}
	r.elements(c, &e, expressions)
	e.At = Range{uint32(start), uint32(c.pos)}
	return e
}

// elements reads the entries. All segments together may have as many as tables, so that no
// reader of the module makes more of them than of the tables they fill.
func (r *reader) elements(c *cursor, e *Element, expressions bool) {
	at, minBytes := c.pos, 1
	if expressions {
		minBytes = 2
	}
	n := c.count(minBytes, "elements")
	allowed := r.limits.Get(abi.LimitTableEntries)
	if r.elemEntries += int64(n); r.elemEntries > allowed {
		c.over(at, abi.LimitTableEntries, r.elemEntries, allowed, "element segments have too many entries")
		c.failed = true
	}
	for range n {
		if expressions {
			r.constant(c)
		} else {
			r.index(c, spaceFunc, "an element")
		}
		if c.failed {
			return
		}
	}
	e.Entries = uint32(n)
}

func (r *reader) codeSection(c *cursor) {
	n := c.limited(3, abi.LimitFunctions, r.limits.Get(abi.LimitFunctions), "function bodies")
	r.bodies = n
	w := &walker{reader: r}
	for i := range n {
		body := c.bytes(c.u32("the size of a function body"), "a function body")
		if c.failed || r.full() {
			return
		}
		var spare Function
		f := &spare
		if i < len(r.m.Functions) {
			f = &r.m.Functions[i]
		}
		// A body has its own bounds, so what is wrong in one does not hide the next.
		w.body(&cursor{problems: r.problems, data: r.data, pos: int(body.Start), end: int(body.End), section: c.section}, f, uint32(i))
	}
}

func (r *reader) dataSection(c *cursor) {
	n := c.limited(2, abi.LimitDataSegments, r.limits.Get(abi.LimitDataSegments), "data segments")
	r.segments = n
	r.m.Data = make([]Data, 0, n)
	for range n {
		var d Data
		at := c.pos
		flags := c.u32("the kind of a data segment")
		switch {
		case c.failed:
		case flags == 1:
			d.Mode = Passive
			r.uses |= useBulk
		case flags == 0 || flags == 2:
			if memory := c.pos; flags == 2 {
				r.uses |= useBulk
				if c.u32("the memory of a data segment") != 0 {
					c.refuse(memory, multiMemory, "a data segment of a memory other than the first")
				}
			}
			r.check(c, at, spaceMemory, 0, "a data segment")
			d.Offset = r.constant(c)
		default:
			c.fail(abi.CodeModuleMalformed, at, "%d is not the kind of a data segment", flags)
		}
		d.Init = c.bytes(c.u32("the length of a data segment"), "a data segment")
		if c.failed {
			return
		}
		r.m.Data = append(r.m.Data, d)
	}
}

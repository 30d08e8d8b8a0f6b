package meter

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// added is how many functions are imported more.
const added = 2

// minStack is the least stack that options may leave a guest.
const minStack = 64 << 10

// Rewrite returns the metered form of a module. parsed is what [wasm.Read] made of the same
// bytes without listing a problem; the bytes were also validated completely. Custom sections
// are dropped. It fails with [abi.CodeModuleLimit] when the result would be over the limits,
// and with [abi.CodeInternal] when the options make no sense. It is safe for concurrent use
// and keeps no reference to module.
func Rewrite(module []byte, parsed *wasm.Module, opt Options) (*Result, error) {
	if opt.StackBytes < minStack {
		return nil, abi.Errorf(abi.CodeInternal, "a metered guest needs a stack of at least %d bytes", minStack)
	}
	if opt.MaxMemoryPages == 0 || opt.MaxMemoryPages > wasm.MaxPages {
		opt.MaxMemoryPages = wasm.MaxPages
	}
	if parsed.Unread(wasm.SectionType, wasm.SectionImport, wasm.SectionFunction, wasm.SectionCode) {
		return nil, abi.Errorf(abi.CodeInternal, "a module that could not be read cannot be metered")
	}
	r := newRewriter(module, parsed, opt)
	r.roots()
	r.facts()
	r.rest = r.accounts()
	r.rest += r.lates()
	out := r.module()
	if r.err != nil {
		return nil, r.err
	}
	r.globals()
	s := &r.stats
	for i := range r.fact {
		s.Functions++
		if r.fact[i].leaf {
			s.Leaves++
		}
		if r.fact[i].account {
			s.Accounted++
		}
		if r.fact[i].at != 0 {
			s.Late++
		}
	}
	s.Unaccounted, s.BytesIn, s.BytesOut = r.rest, 8, len(out)
	for _, sec := range parsed.Sections {
		if sec.ID != wasm.SectionCustom {
			s.BytesIn += int(sec.Payload.End - sec.Offset)
		}
	}
	s.Growth = float64(s.BytesOut) / float64(s.BytesIn)
	if most := 2*opt.Limits.Get(abi.LimitModuleBytes) + 4096; int64(len(out)) > most {
		return nil, abi.Errorf(abi.CodeModuleLimit, "the module has %d bytes when it is metered; at most %d are accepted", len(out), most)
	}
	return &Result{
		Module: out, Fuel: r.fuel, Depth: r.depth, StartDepth: r.startDepth(), Globals: r.exported,
		Restorable: len(r.reasons) == 0, Reasons: r.reasons, Stats: r.stats,
	}, nil
}

// rewriter is the state of one rewriting.
type rewriter struct {
	data []byte
	m    *wasm.Module
	opt  Options

	imported    uint32         // functions
	importTypes []uint32       // of imported functions
	globalTypes []wasm.ValType // of all globals
	fuel, depth uint32
	sameType    []uint32 // the first type that is equal to each
	fact        []fact
	reachable   []bool // by an indirect call
	current     int    // the function being written
	rest        int64  // bytes of stack kept free for frames that are not accounted

	types    *types
	helpers  *helpers
	scratch  code
	exported []Global
	reasons  []Reason
	stats    Stats
	err      error
}

func newRewriter(module []byte, m *wasm.Module, opt Options) *rewriter {
	r := &rewriter{data: module, m: m, opt: opt, imported: m.Imported(wasm.KindFunc)}
	for i := range m.Imports {
		switch m.Imports[i].Kind {
		case wasm.KindFunc:
			r.importTypes = append(r.importTypes, m.Imports[i].Type)
		case wasm.KindGlobal:
			r.globalTypes = append(r.globalTypes, m.Imports[i].Global.Type)
		}
	}
	for i := range m.Globals {
		r.globalTypes = append(r.globalTypes, m.Globals[i].Type)
	}
	r.fuel = m.Imported(wasm.KindGlobal) + uint32(len(m.Globals))
	r.depth = r.fuel + 1
	r.types = newTypes(m)
	r.sameType = make([]uint32, len(m.Types))
	for i, t := range m.Types {
		r.sameType[i] = r.types.of(t)
	}
	r.helpers = &helpers{r: r, index: make(map[helper]uint32)}
	return r
}

// moved is a function's index after the added imports.
func (r *rewriter) moved(index uint32) uint32 {
	if index >= r.imported {
		return index + added
	}
	return index
}

// startDepth is what frames that are accounted may have together.
func (r *rewriter) startDepth() int64 { return r.opt.StackBytes - r.rest - stackSlack }

func (r *rewriter) maxPages() int64 {
	most := r.opt.MaxMemoryPages
	for _, mem := range r.m.Memories {
		if mem.Limits.HasMax {
			most = min(most, mem.Limits.Max)
		}
	}
	return int64(most)
}

// limit refuses what is more than times a limit, with room for what every function gets.
func (r *rewriter) limit(l abi.Limit, times int64, have int, fn *wasm.Function) {
	if most := times*r.opt.Limits.Get(l) + 64; int64(have) > most && r.err == nil {
		r.err = abi.Errorf(abi.CodeModuleLimit, "the function at byte %d has %s %d when it is metered; at most %d is accepted",
			fn.Body.Start, l.Info().Name, have, most)
	}
}

// keeps reports whether an export stays.
func (r *rewriter) keeps(e *wasm.Export) bool {
	switch e.Name {
	case "memory":
		return e.Kind == wasm.KindMemory
	case "_initialize":
		return e.Kind == wasm.KindFunc
	}
	return slices.Contains(r.opt.Exports, e.Name)
}

// roots marks the functions that an indirect call may reach by being in a segment or a
// global, or because a table is not the module's alone.
func (r *rewriter) roots() {
	r.reachable = make([]bool, len(r.m.Functions))
	shared := r.m.Imported(wasm.KindTable) > 0
	for i := range r.m.Exports {
		shared = shared || r.m.Exports[i].Kind == wasm.KindTable && r.keeps(&r.m.Exports[i])
	}
	if shared {
		for i := range r.reachable {
			r.reachable[i] = true
		}
	}
	for i := range r.m.Elements {
		r.element(nil, &r.m.Elements[i], r.reach)
	}
	for i := range r.m.Globals {
		if init := r.m.Globals[i].Init; r.data[init.Start] == opRefFunc {
			s := scanner{r.data, int(init.Start) + 1}
			r.reach(uint32(s.u()))
		}
	}
}

// globals lists the mutable ones that no image can hold.
func (r *rewriter) globals() {
	for i := range r.m.Globals {
		if g := &r.m.Globals[i]; g.Mutable && (g.Type == wasm.V128 || g.Type.IsRef()) {
			r.note("a mutable global of "+g.Type.String(), g.Init.Start)
		}
	}
	slices.SortStableFunc(r.reasons, func(a, b Reason) int { return cmp.Compare(a.Offset, b.Offset) })
}

// types is the type section, with what is added.
type types struct {
	index map[string]uint32
	added code
	n     int
}

func newTypes(m *wasm.Module) *types {
	t := &types{index: make(map[string]uint32, len(m.Types)), n: len(m.Types)}
	for i, f := range m.Types {
		key := string(typeBytes(f))
		if _, ok := t.index[key]; !ok {
			t.index[key] = uint32(i)
		}
	}
	return t
}

func typeBytes(f wasm.FuncType) (c code) {
	c.op(0x60)
	for _, list := range [][]wasm.ValType{f.Params, f.Results} {
		c.u(uint64(len(list)))
		for _, v := range list {
			c.op(byte(v))
		}
	}
	return c
}

// of returns the first type equal to f, which is added when there is none.
func (t *types) of(f wasm.FuncType) uint32 {
	raw := typeBytes(f)
	if i, ok := t.index[string(raw)]; ok {
		return i
	}
	i := uint32(t.n)
	t.index[string(raw)] = i
	t.added = append(t.added, raw...)
	t.n++
	return i
}

// items returns what follows the count of a section.
func (r *rewriter) items(id wasm.SectionID) []byte {
	s, ok := r.m.Section(id)
	if !ok {
		return nil
	}
	payload := s.Payload.Of(r.data)
	_, n := binary.Uvarint(payload)
	return payload[n:]
}

// module writes the sections. The code comes first, since it decides which types and
// functions are added.
func (r *rewriter) module() []byte {
	codes := r.codeSection()
	voidType := uint64(r.types.of(void))

	out := append(code(nil), r.data[:8]...)
	out.section(wasm.SectionType, r.types.n, append(slices.Clone(r.items(wasm.SectionType)), r.types.added...))

	imports := code(slices.Clone(r.items(wasm.SectionImport)))
	for _, name := range []string{ImportRefuel, ImportOverflow} {
		imports.name(ImportModule)
		imports.name(name)
		imports.op(byte(wasm.KindFunc))
		imports.u(voidType)
	}
	out.section(wasm.SectionImport, len(r.m.Imports)+added, imports)

	functions := code(slices.Clone(r.items(wasm.SectionFunction)))
	for _, t := range r.helpers.types {
		functions.u(uint64(t))
	}
	out.section(wasm.SectionFunction, len(r.m.Functions)+len(r.helpers.types), functions)

	r.copySections(&out, wasm.SectionTable, wasm.SectionMemory)
	out.section(wasm.SectionGlobal, len(r.m.Globals)+2, r.globalSection())
	exports, n := r.exportSection()
	out.section(wasm.SectionExport, n, exports)
	if r.m.Start != nil {
		start := code(nil)
		start.u(uint64(r.moved(r.m.Start.Func)))
		out.op(byte(wasm.SectionStart))
		out.bytes(start)
	}
	elements := code(nil)
	for i := range r.m.Elements {
		r.element(&elements, &r.m.Elements[i], nil)
	}
	out.section(wasm.SectionElement, len(r.m.Elements), elements)
	r.copySections(&out, wasm.SectionDataCount)
	out.section(wasm.SectionCode, len(r.m.Functions)+len(r.helpers.codes), codes)
	r.copySections(&out, wasm.SectionData)
	return out
}

func (r *rewriter) copySections(out *code, ids ...wasm.SectionID) {
	for _, id := range ids {
		if s, ok := r.m.Section(id); ok {
			*out = append(*out, r.data[s.Offset:s.Payload.End]...)
		}
	}
}

func (r *rewriter) codeSection() code {
	r.helpers.of(opSlow, 0)
	var out code
	p := &planner{r: r}
	for i := range r.m.Functions {
		r.current = i
		r.body(&out, p, i)
		r.stats.CodeIn += r.m.Functions[i].Body.Len()
	}
	for _, c := range r.helpers.codes {
		out.bytes(c)
	}
	r.stats.CodeOut = len(out)
	return out
}

func (r *rewriter) globalSection() (c code) {
	for i := range r.m.Globals {
		g := &r.m.Globals[i]
		mutable := byte(0)
		if g.Mutable {
			mutable = 1
		}
		c.op(byte(g.Type), mutable)
		s := scanner{r.data, int(g.Init.Start)}
		r.constant(&c, &s, nil)
	}
	c.op(byte(wasm.I64), 1)
	c.i64(0)
	c.op(opEnd, byte(wasm.I64), 1)
	c.i64(r.startDepth())
	c.op(opEnd)
	return c
}

func (r *rewriter) exportSection() (c code, n int) {
	export := func(name string, kind wasm.Kind, index uint32) {
		c.name(name)
		c.op(byte(kind))
		c.u(uint64(index))
		n++
	}
	for i := range r.m.Exports {
		e := &r.m.Exports[i]
		if !r.keeps(e) {
			continue
		}
		index := e.Index
		if e.Kind == wasm.KindFunc {
			index = r.moved(index)
		}
		export(e.Name, e.Kind, index)
	}
	export(ExportFuel, wasm.KindGlobal, r.fuel)
	export(ExportDepth, wasm.KindGlobal, r.depth)
	if r.opt.ExportGlobals {
		for i := range r.m.Globals {
			g := &r.m.Globals[i]
			if !g.Mutable || g.Type == wasm.V128 || g.Type.IsRef() {
				continue
			}
			index := r.m.Imported(wasm.KindGlobal) + uint32(i)
			name := ExportGlobal + strconv.Itoa(int(index))
			export(name, wasm.KindGlobal, index)
			r.exported = append(r.exported, Global{index, name, g.Type})
		}
	}
	return c, n
}

// constant copies a constant expression, and tells which function it names.
func (r *rewriter) constant(c *code, s *scanner, names func(uint32)) {
	start := s.pos
	op := s.byte()
	switch op {
	case opRefFunc:
		f := uint32(s.u())
		if names != nil {
			names(f)
		}
		if c != nil {
			c.op(op)
			c.u(uint64(r.moved(f)))
			c.op(opEnd)
		}
		s.pos++
		return
	case 0x43:
		s.pos += 4
	case 0x44:
		s.pos += 8
	case 0xfd:
		s.pos += 17
	default: // numbers, the index of a global, a reference type
		for s.byte() >= 0x80 {
		}
	}
	s.pos++ // the end
	if c != nil {
		*c = append(*c, r.data[start:s.pos]...)
	}
}

// element copies an element segment to c, if given, and tells names which functions are in it.
func (r *rewriter) element(c *code, e *wasm.Element, names func(uint32)) {
	s := scanner{r.data, int(e.At.Start)}
	flags := s.u()
	if flags&1 == 0 {
		if flags&2 != 0 {
			s.u()
		}
		r.constant(nil, &s, nil)
	}
	if flags&3 != 0 {
		s.byte()
	}
	n := s.u()
	if c != nil {
		// The offset is no ref.func, so all up to here is as it was.
		*c = append(*c, r.data[e.At.Start:s.pos]...)
	}
	for range n {
		if flags&4 != 0 {
			r.constant(c, &s, names)
			continue
		}
		f := uint32(s.u())
		if names != nil {
			names(f)
		}
		if c != nil {
			c.u(uint64(r.moved(f)))
		}
	}
}

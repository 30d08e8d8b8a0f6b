package wasm

import (
	"fmt"

	"github.com/ecotone-dev/ecotone/abi"
)

// frame kinds of the walk.
const (
	inBody byte = iota
	inBlock
	inIf
	inElse
)

// walker walks function bodies. It keeps one stack of open blocks, no deeper than the limit
// on nesting, whatever the bodies hold.
type walker struct {
	*reader
	open []byte
}

// body reads one function body that lies in c: local declarations, instructions and an end
// that is the last byte.
func (w *walker) body(c *cursor, f *Function, index uint32) {
	f.Body = Range{uint32(c.pos), uint32(c.end)}
	size, allowed := int64(c.left()), w.limits.Get(abi.LimitBodyBytes)
	if size > allowed {
		c.over(c.pos, abi.LimitBodyBytes, size, allowed, "a function body is too large")
		return
	}
	w.m.Uses.MaxBodyBytes = max(w.m.Uses.MaxBodyBytes, int(size))
	locals, ok := w.locals(c, index)
	if !ok {
		return
	}
	f.Code = Range{uint32(c.pos), uint32(c.end)}
	w.instructions(c, locals)
}

// locals reads the declarations and returns the number of locals, parameters included.
func (w *walker) locals(c *cursor, index uint32) (uint64, bool) {
	at := c.pos
	var sum uint64
	for range c.count(2, "local declarations") {
		sum += uint64(c.u32("a number of locals"))
		w.valType(c, "the type of a local")
		if c.failed {
			return 0, false
		}
	}
	allowed := w.limits.Get(abi.LimitLocals)
	if sum > uint64(max(allowed, 0)) {
		c.over(at, abi.LimitLocals, int64(sum), allowed, "a function declares too many locals")
		return 0, false
	}
	w.m.Uses.MaxLocals = max(w.m.Uses.MaxLocals, int(sum))
	if t, ok := w.m.FuncType(w.m.imported[KindFunc] + index); ok {
		return sum + uint64(len(t.Params)), true
	}
	// The type is unknown, which is listed already: no index of a local can be judged.
	return 1 << 32, true
}

func (w *walker) instructions(c *cursor, locals uint64) {
	uses := &w.m.Uses
	nesting, blocks := int(w.limits.Get(abi.LimitNesting)), int64(0)
	w.open = append(w.open[:0], inBody)
	for !c.failed && !w.full() {
		at := c.pos
		op := c.byte("the end of the function")
		if c.failed {
			return
		}
		uses.Instructions++
		in := &opcodes[op]
		switch in.imm {
		case immMisc:
			in = w.misc(c, at)
		case immVector:
			in = w.vector(c, at)
		}
		w.uses |= uint(in.uses)
		switch in.imm {
		case immNone:
		case immBlock, immLoop, immIf:
			w.blockType(c)
			kind := inBlock
			if in.imm == immIf {
				kind = inIf
			}
			if in.imm == immLoop {
				uses.Loops++
			}
			blocks++
			if len(w.open) > nesting {
				c.over(at, abi.LimitNesting, int64(len(w.open)), int64(nesting), "blocks are nested too deeply")
				return
			}
			w.open = append(w.open, kind)
			uses.MaxNesting = max(uses.MaxNesting, len(w.open)-1)
		case immElse:
			if top := len(w.open) - 1; w.open[top] != inIf {
				c.fail(abi.CodeModuleMalformed, at, "an else that belongs to no if")
			} else {
				w.open[top] = inElse
			}
		case immEnd:
			w.open = w.open[:len(w.open)-1]
			if len(w.open) > 0 {
				break
			}
			uses.MaxBlocks = max(uses.MaxBlocks, int(blocks))
			if allowed := w.limits.Get(abi.LimitBlocks); blocks > allowed {
				c.over(int(at), abi.LimitBlocks, blocks, allowed, "a function has too many blocks, loops and ifs")
			}
			if c.left() > 0 {
				c.fail(abi.CodeModuleMalformed, c.pos, "%d bytes follow the end of a function", c.left())
			}
			return
		case immLabel:
			w.label(c)
		case immLabels:
			w.labels(c)
		case immFunc:
			w.index(c, spaceFunc, "a call")
		case immIndirect:
			uses.IndirectCalls++
			w.index(c, spaceType, "an indirect call")
			table := c.pos
			i := w.index(c, spaceTable, "an indirect call")
			if t := w.tables; int64(i) < int64(len(t)) && t[i].Elem != FuncRef {
				c.invalid(table, "an indirect call through table %d of %s", i, t[i].Elem)
			}
		case immTypes:
			w.selectTypes(c)
		case immLocal:
			at := c.pos
			if i := c.u32("the index of a local"); uint64(i) >= locals {
				c.invalid(at, "local %d does not exist; there are %d", i, locals)
			}
		case immGlobal:
			w.index(c, spaceGlobal, "an instruction")
		case immTable:
			if op == 0x26 {
				uses.TableWrites++
			}
			w.index(c, spaceTable, "an instruction")
		case immMemory:
			w.memory(c)
		case immGrow:
			uses.MemoryGrows++
			w.memory(c)
		case immAccess:
			w.access(c, in.bound)
		case immAccessLane:
			w.access(c, in.bound)
			w.lane(c, in.lanes)
		case immI32:
			c.signed(32, "an i32 constant")
		case immI64:
			c.signed(64, "an i64 constant")
		case imm4:
			c.bytes(4, "an f32 constant")
		case imm8:
			c.bytes(8, "an f64 constant")
		case imm16:
			c.bytes(16, "a v128 constant")
		case immHeapType:
			w.heapType(c)
		case immRefFunc:
			uses.RefFuncs++
			w.index(c, spaceFunc, "ref.func")
		case immShuffle:
			for range 16 {
				w.lane(c, 32)
			}
		case immLane:
			w.lane(c, in.bound)
		case immProposal:
			c.refuse(at, in.proposal, fmt.Sprintf("instruction 0x% x", c.data[at:c.pos]))
		case immUnknown:
			c.fail(abi.CodeModuleMalformed, at, "0x% x is not an instruction", c.data[at:c.pos])
		default:
			w.bulk(c, in.imm)
		}
	}
}

// bulk reads the immediates of the instructions on whole memories, tables and segments.
func (w *walker) bulk(c *cursor, imm immediate) {
	uses := &w.m.Uses
	uses.BulkOperations++
	switch imm {
	case immMemoryInit:
		uses.MemoryInits++
		w.segment(c)
		w.memory(c)
	case immDataDrop:
		uses.SegmentDrops++
		w.segment(c)
	case immMemoryCopy:
		w.memory(c)
		w.memory(c)
	case immMemoryFill:
		w.memory(c)
	case immTableInit:
		uses.TableWrites++
		w.index(c, spaceElement, "table.init")
		w.index(c, spaceTable, "table.init")
	case immElemDrop:
		uses.SegmentDrops++
		w.index(c, spaceElement, "elem.drop")
	case immTableCopy:
		uses.TableWrites++
		w.index(c, spaceTable, "table.copy")
		w.index(c, spaceTable, "table.copy")
	case immTableGrow:
		uses.TableGrows++
		w.index(c, spaceTable, "table.grow")
	case immTableSize:
		w.index(c, spaceTable, "table.size")
	case immTableFill:
		uses.TableWrites++
		w.index(c, spaceTable, "table.fill")
	}
}

func (w *walker) misc(c *cursor, at int) *instruction {
	op := c.u32("an instruction after prefix 0xfc")
	if int64(op) < int64(len(misc)) {
		return &misc[op]
	}
	c.fail(abi.CodeModuleMalformed, at, "0x% x is not an instruction", c.data[at:c.pos])
	return &opcodes[0x01]
}

// vector reads an instruction after prefix 0xfd. The engine looks at one byte here and takes
// what follows a number above 127 for the next instruction, which is nop only in the
// shortest form: any other form would mean one program to this reader and another to it.
func (w *walker) vector(c *cursor, at int) *instruction {
	from := c.pos
	op := c.u32("an instruction after prefix 0xfd")
	shortest := 1
	if op > 0x7f {
		shortest = 2
	}
	switch {
	case c.failed:
	case op > 0xff:
		c.refuse(at, relaxedSIMD, fmt.Sprintf("instruction 0x% x", c.data[at:c.pos]))
	case c.pos-from != shortest:
		c.fail(abi.CodeModuleMalformed, from, "the number of a vector instruction is not in its shortest form")
	default:
		return &vector[op]
	}
	return &opcodes[0x01]
}

// blockType reads one byte for no or one result, or the index of a type.
func (w *walker) blockType(c *cursor) {
	at := c.pos
	if c.pos < c.end {
		switch b := c.data[c.pos]; {
		case b == 0x40 || isValType(ValType(b)):
			c.pos++
			w.uses |= uint(usesOf(ValType(b)))
			return
		case b&0xc0 == 0x40:
			w.badType(c, at, b, "the type of a block")
			return
		}
	}
	i := c.signed(33, "the type of a block")
	switch {
	case c.failed:
	case i < 0:
		c.fail(abi.CodeModuleMalformed, at, "the type of a block is neither a value type nor an index")
	default:
		w.uses |= useMultiValue
		w.check(c, at, spaceType, uint64(i), "the type of a block")
	}
}

func (w *walker) label(c *cursor) {
	at := c.pos
	if l := c.u32("a label"); int64(l) >= int64(len(w.open)) {
		c.invalid(at, "label %d does not exist; %d blocks are open", l, len(w.open))
	}
}

func (w *walker) labels(c *cursor) {
	at := c.pos
	n := c.count(1, "labels of br_table")
	if allowed := w.limits.Get(abi.LimitBrTable); int64(n) > allowed {
		c.over(at, abi.LimitBrTable, int64(n), allowed, "a br_table has too many labels")
		c.failed = true
		return
	}
	w.m.Uses.MaxBrTable = max(w.m.Uses.MaxBrTable, n)
	for range n {
		w.label(c)
		if c.failed || w.full() {
			return
		}
	}
	w.label(c)
}

func (w *walker) selectTypes(c *cursor) {
	at := c.pos
	// The engine reads the count as one byte.
	if n := c.byte("the types of select"); n != 1 {
		c.fail(abi.CodeModuleInvalid, at, "select with %d types; exactly one is possible", n)
		return
	}
	w.valType(c, "the type of select")
}

func (w *walker) memory(c *cursor) {
	at := c.pos
	if b := c.byte("the index of a memory"); b != 0 {
		c.refuse(at, multiMemory, "a memory other than the first")
		return
	}
	w.check(c, at, spaceMemory, 0, "an instruction")
}

func (w *walker) access(c *cursor, natural uint8) {
	at := c.pos
	align := c.u32("an alignment")
	switch {
	case c.failed:
		return
	case align >= 0x40 && align < 0x80:
		c.refuse(at, multiMemory, "a memory access that names its memory")
		return
	case align > uint32(natural):
		c.invalid(at, "the alignment 2^%d is larger than the access", align)
	}
	c.u32("an offset")
	w.check(c, at, spaceMemory, 0, "a memory access")
}

func (w *walker) lane(c *cursor, bound uint8) {
	at := c.pos
	if l := c.byte("a lane"); l >= bound {
		c.invalid(at, "lane %d does not exist; there are %d", l, bound)
	}
}

func (w *walker) heapType(c *cursor) {
	at := c.pos
	switch b := c.byte("a reference type"); {
	case c.failed, ValType(b).IsRef():
	case b < 0x40:
		c.refuse(at, typedRefs, "a reference to a type")
	default:
		w.badType(c, at, b, "a reference type")
	}
}

// segment reads the index of a data segment, which only a data count section announces
// before the code.
func (w *walker) segment(c *cursor) {
	at := c.pos
	i := c.u32("the index of a data segment")
	switch {
	case c.failed:
	case !w.hasDataCount:
		c.fail(abi.CodeModuleMalformed, at, "a data segment is used and there is no data count section")
	case i >= w.dataCount:
		c.invalid(at, "data segment %d does not exist; there are %d", i, w.dataCount)
	}
}

package meter

import (
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// How large a call frame is.
//
// The engine gives a frame to the values that do not stay in registers, a place of its own to each:
// none is shared. Which these are is for its register allocator to know. What can be known without
// it is which cannot be: a value needs a place only when it is used after something took its
// register away, and that is a call, a place where ways join, an instruction that wants certain
// registers, or more values alive at once than there are registers. So the values that are alive
// over such a place are counted, those of locals by liveness and those of the operand stack as they
// lie there, and the values that joins make of locals, which are values too. Beside them a frame has
// the registers that are saved for the caller, and arguments and results that do not fit registers.
const (
	frameBase   = 48  // return address, frame pointer or size, alignment
	frameSaved  = 16  // a saved register
	savedWords  = 10  // registers that are saved for the caller, of numbers
	savedFloats = 14  // and of floats and vectors
	bulkBytes   = 160 // values of the engine's own where memory or tables are changed in place,
	bulkMore    = 40  // and for each such instruction
	indirect    = 16  // the same for an indirect call
	division    = 8   // and for a division
	inRegisters = 6   // arguments or results that are passed without a frame
	crowded     = 7   // values alive at once that surely stay in registers
)

// frameWork bounds what telling locals apart takes for all functions of a module together, in words
// of sets: a fraction of a second. Beyond, every local counts wherever ways join.
const frameWork = 1 << 28

// place is an instruction as far as frames are concerned.
type place struct {
	op       uint16
	dead     bool
	takes    bool   // registers are taken away here
	targeted bool   // of a block: more than its own end may lead behind it
	height   uint16 // of the operand stack
	index    uint32 // a label or a local
	at       uint32
	match    int32 // of an end or else: where its block begins, -1 for the function's own; of a loop: its number
}

// span is how long a value lies on the operand stack.
type span struct{ from, to, size int32 }

// item is a value on the operand stack. A constant has no size: it is made where it is used.
type item struct{ from, size int32 }

// scope is an open block, going forward.
type scope struct {
	start    int32
	height   int
	from, to []wasm.ValType
	dead     bool // from the beginning
}

// frames estimates frames, one function after the other, in the same buffers.
type frames struct {
	r       *rewriter
	places  []place
	spans   []span
	stack   []item
	scopes  []scope
	back    []backScope
	sets    []uint64
	heads   []uint64 // what is alive at the head of each loop
	live    []uint64
	crossed []uint64 // of that, what was taken from its register later on
	loops   int32
	blocks  int32
	inside  []uint64 // what is written inside of each loop
	merged  []uint64 // for each block, what differs by the way that leads to its end
	labels  int      // that branches name
	work    int      // words of sets that may still be gone through
	taken   []int32  // how many places up to each take registers away
	types   []wasm.ValType
	words   int
	params  int
	phis    int64 // bytes, of values that are neither locals nor lie on the stack long
	peak    int
	floats  bool
	bulk    bool // memory or tables are changed in place, with values of the engine's own
}

// of returns a frame's size in bytes, without arguments to others.
func (e *frames) of(fn *wasm.Function) int64 {
	t := e.r.m.Types[fn.Type]
	e.locals(fn, t)
	e.forward(fn, t)
	bytes := e.phis
	e.words = (len(e.types) + 63) / 64
	if e.work -= e.words * (32*int(e.blocks) + 4*e.labels); e.work < 0 {
		bytes += e.coarse()
	} else {
		e.heads = empty(e.heads, int(e.loops)*e.words)
		e.inside = empty(e.inside, int(e.loops)*e.words)
		e.merged = empty(e.merged, int(e.blocks)*e.words)
		e.backward(false)
		if e.joins() {
			bytes += e.backward(true)
		} else {
			bytes += e.coarse()
		}
	}
	bytes += e.stacked()
	saved := savedWords
	if e.bulk {
		bytes += bulkBytes
		e.peak = saved
	}
	if e.floats {
		saved += savedFloats
	}
	return frameBase + frameSaved*int64(min(e.peak+1, saved)) + (bytes+15)&^15
}

func (e *frames) locals(fn *wasm.Function, t wasm.FuncType) {
	e.types = append(e.types[:0], t.Params...)
	e.params = len(t.Params)
	s := scanner{e.r.data, int(fn.Body.Start)}
	for range s.u() {
		n, v := s.u(), wasm.ValType(s.byte())
		for range n {
			e.types = append(e.types, v)
		}
	}
	e.floats, e.bulk = false, false
	for _, v := range e.types {
		e.floats = e.floats || isFloat(v)
	}
}

func isFloat(t wasm.ValType) bool { return t == wasm.F32 || t == wasm.F64 || t == wasm.V128 }

// slot is the size of a value's place.
func slot(t wasm.ValType) int32 {
	switch t {
	case wasm.I32, wasm.F32:
		return 4
	case wasm.V128:
		return 16
	}
	return 8
}

func slots(list []wasm.ValType) (n int64) {
	for _, t := range list {
		n += int64(slot(t))
	}
	return n
}

// forward goes through the function with its operand stack.
func (e *frames) forward(fn *wasm.Function, t wasm.FuncType) {
	e.places, e.spans, e.stack, e.scopes = e.places[:0], e.spans[:0], e.stack[:0], e.scopes[:0]
	e.phis, e.peak, e.loops, e.blocks, e.labels = slots(t.Results), 0, 0, 0, 0
	e.scopes = append(e.scopes, scope{start: -1, to: t.Results})
	dead := false
	var before wasm.Instruction
	for in := range wasm.Instructions(e.r.data, fn.Code) {
		n := int32(len(e.places))
		p := place{op: in.Op, dead: dead, index: in.Index, at: in.At.Start, height: uint16(min(len(e.stack), 1<<16-1)), match: -1}
		p.takes = !dead && takesRegisters(in, before)
		switch in.Op {
		case opBlock, opLoop, opIf:
			from, to := e.blockType(in.Block)
			p.index, e.blocks = uint32(e.blocks), e.blocks+1
			if in.Op == opLoop {
				p.match, e.loops = e.loops, e.loops+1
			}
			if !dead {
				if in.Op == opIf {
					e.pop(n, 1)
				}
				if in.Op == opLoop {
					e.pop(n, len(from))
					e.push(n, from)
					e.phis += slots(from)
				}
			}
			e.scopes = append(e.scopes, scope{start: n, height: max(len(e.stack)-len(from), 0), from: from, to: to, dead: dead})
		case opElse, opEnd:
			s := &e.scopes[len(e.scopes)-1]
			p.match = s.start
			e.pop(n, len(e.stack)-s.height)
			if in.Op == opElse {
				dead = s.dead
				if !dead {
					e.push(n, s.from)
					e.places[s.start].targeted = true
				}
				break
			}
			if s.start >= 0 && e.places[s.start].op == opIf {
				e.places[s.start].targeted = true
			}
			// A way on that nothing leads to is none for the engine either.
			dead = s.dead || dead && s.start >= 0 && (e.places[s.start].op == opLoop || !e.places[s.start].targeted)
			if !dead {
				e.push(n, s.to)
				e.phis += slots(s.to)
			}
			e.scopes = e.scopes[:len(e.scopes)-1]
		case opBr, opBrTable, opReturn, opUnreachable, opBrIf:
			if dead {
				break
			}
			if in.Op == opBrIf || in.Op == opBrTable {
				e.pop(n, 1)
			}
			e.branches(in, func(label uint32) {
				e.labels++
				if k := len(e.scopes) - 1 - int(label); k > 0 {
					e.places[e.scopes[k].start].targeted = true
				}
			})
			if in.Op != opBrIf {
				dead = true
				e.pop(n, len(e.stack)-e.scopes[len(e.scopes)-1].height)
			}
		default:
			if !dead {
				e.simple(n, in)
			}
		}
		e.places = append(e.places, p)
		before = in
	}
}

// branches tells which labels an instruction may branch to.
func (e *frames) branches(in wasm.Instruction, to func(label uint32)) {
	switch in.Op {
	case opBr, opBrIf:
		to(in.Index)
	case opBrTable:
		s := scanner{e.r.data, int(in.At.Start) + 1}
		for range s.u() + 1 {
			to(uint32(s.u()))
		}
	}
}

func (e *frames) blockType(block int64) (from, to []wasm.ValType) {
	switch {
	case block >= 0:
		t := e.r.m.Types[block]
		return t.Params, t.Results
	case block == -0x40:
		return nil, nil
	}
	return nil, []wasm.ValType{wasm.ValType(block & 0x7f)}
}

func (e *frames) push(n int32, list []wasm.ValType) {
	for _, t := range list {
		e.floats = e.floats || isFloat(t)
		e.stack = append(e.stack, item{n, slot(t)})
	}
}

// pop ends the spans of so many values, and returns the size of the last.
func (e *frames) pop(n int32, count int) (size int32) {
	for range min(count, len(e.stack)) {
		v := e.stack[len(e.stack)-1]
		e.stack = e.stack[:len(e.stack)-1]
		size = max(size, v.size)
		if v.size > 0 && n-v.from > 1 {
			e.spans = append(e.spans, span{v.from, n, v.size})
		}
	}
	return size
}

// simple is an instruction that neither branches nor opens or closes a block.
func (e *frames) simple(n int32, in wasm.Instruction) {
	switch in.Op {
	case opCall:
		t := e.r.typeOf(in.Index)
		e.pop(n, len(t.Params))
		e.push(n, t.Results)
	case opCallIndirect:
		t := e.r.m.Types[in.Index]
		e.phis += indirect
		e.pop(n, len(t.Params)+1)
		e.push(n, t.Results)
	case opMemoryCopy, opMemoryFill, opMemoryInit, opTableCopy, opTableInit, opTableFill:
		e.bulk = true
		e.phis += bulkMore
		e.pop(n, 3)
	case opLocalGet:
		e.stack = append(e.stack, item{n, slot(e.types[in.Index])})
	case opLocalTee: // the value stays
	case opGlobalGet:
		e.push(n, e.r.globalTypes[in.Index:in.Index+1])
	case opSelect, 0x1c:
		size := e.pop(n, 3)
		e.stack = append(e.stack, item{n, max(size, 8)})
	default:
		pops, size := effect(in.Op)
		if isDivision(in.Op) {
			e.phis += division
		}
		e.pop(n, pops)
		if size != 0 {
			e.stack = append(e.stack, item{n, max(size, 0)})
			e.floats = e.floats || in.Op>>8 == 0xfd || floatResult(in.Op)
		}
	}
}

// takesRegisters reports whether no value in a register is sure to be there still after an
// instruction.
func takesRegisters(in, before wasm.Instruction) bool {
	switch in.Op {
	case opCall, opCallIndirect, opLoop, opMemoryGrow, opTableSet, 0x25, opRefFunc:
		return true
	case 0x74, 0x75, 0x76, 0x77, 0x78, 0x86, 0x87, 0x88, 0x89, 0x8a: // shifts and rotations, by what is not written there
		return before.Op != opI32Const && before.Op != opI64Const
	}
	return in.Op>>8 == 0xfc && in.Op >= opMemoryInit || in.Op>>8 == 0xfd ||
		isDivision(in.Op)
}

// isDivision reports whether an instruction divides integers.
func isDivision(op uint16) bool { return op >= 0x6d && op <= 0x70 || op >= 0x7f && op <= 0x82 }

// stacked is the room for values of the operand stack.
func (e *frames) stacked() (bytes int64) {
	e.taken = e.taken[:0]
	n := int32(0)
	for i := range e.places {
		if e.places[i].takes {
			n++
		}
		e.taken = append(e.taken, n)
	}
	for _, s := range e.spans {
		if e.taken[s.to-1] > e.taken[s.from] {
			bytes += int64(s.size)
		}
	}
	return bytes
}

// coarse is the room for locals when there are too many to tell apart.
func (e *frames) coarse() (bytes int64) {
	all := slots(e.types)
	for i := range e.places {
		p := &e.places[i]
		switch p.op {
		case opLocalSet, opLocalTee:
			bytes += int64(slot(e.types[p.index]))
		case opBlock, opIf, opLoop:
			if p.targeted {
				bytes += all
			}
		}
		p.takes = true
	}
	e.peak = savedWords + savedFloats
	return bytes + slots(e.types[:e.params])
}

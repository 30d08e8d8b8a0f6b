package meter

import "github.com/ecotone-dev/ecotone/host/wasm"

// helpers are the functions that are added, each when it is first needed.
type helpers struct {
	r     *rewriter
	types []uint32
	codes []code // bodies with their locals
	index map[helper]uint32
}

// helper names an added function. segment counts for memory.init alone.
type helper struct {
	op      uint16
	segment uint32
}

// opSlow names the function that is called when fuel or depth is below zero.
const opSlow = 0xffff

var void = wasm.FuncType{}

func i32s(params, results int) wasm.FuncType {
	list := []wasm.ValType{wasm.I32, wasm.I32, wasm.I32}
	return wasm.FuncType{Params: list[:params], Results: list[:results]}
}

// of returns the index of an added function.
func (h *helpers) of(op uint16, segment uint32) uint32 {
	if op != opMemoryInit {
		segment = 0
	}
	key := helper{op, segment}
	if i, ok := h.index[key]; ok {
		return i
	}
	t, body := void, code(nil)
	switch op {
	case opSlow:
		body = h.slow()
	case opMemoryGrow:
		t, body = i32s(1, 1), h.grow()
	case opMemoryCopy:
		t, body = i32s(3, 0), h.copy()
	case opMemoryFill:
		t, body = i32s(3, 0), h.fill()
	case opMemoryInit:
		t, body = i32s(3, 0), h.init(segment)
	case opTableGrow:
		t, body = i32s(1, 1), h.entries(priceTableGrow)
	default:
		t, body = i32s(1, 1), h.entries(priceBulk)
	}
	h.types = append(h.types, h.r.types.of(t))
	h.codes = append(h.codes, body)
	i := h.r.imported + added + uint32(len(h.r.m.Functions)+len(h.codes)) - 1
	h.index[key] = i
	return i
}

// slow asks the host until there is fuel. A host that comes back from an overflow would have
// the guest go on without a stack, so it does not go on.
func (h *helpers) slow() (c code) {
	c.op(0) // locals
	c.global(h.r.depth)
	c.i64(0)
	c.op(opI64LtS, opIf, blockVoid)
	c.call(h.r.imported + 1)
	c.op(opUnreachable, opEnd)
	c.op(opLoop, blockVoid)
	c.global(h.r.fuel)
	c.i64(0)
	c.op(opI64LtS, opIf, blockVoid)
	c.call(h.r.imported)
	c.op(opBr, 1, opEnd, opEnd, opEnd)
	return c
}

// pay takes what price leaves on the stack as an i64, and asks for fuel when there is none.
func (h *helpers) pay(c *code, price func(c *code)) {
	c.global(h.r.fuel)
	price(c)
	c.op(opI64Sub)
	c.setGlobal(h.r.fuel)
	c.global(h.r.fuel)
	c.i64(0)
	c.op(opI64LtS, opIf, blockVoid)
	c.call(h.of(opSlow, 0))
	c.op(opEnd)
}

// payBytes takes the price of as many bytes as a local says.
func (h *helpers) payBytes(c *code, local uint64) {
	h.pay(c, func(c *code) {
		c.get(local)
		c.op(opExtendU)
		c.i64(3) // a unit for each of bytesPerUnit
		c.op(opI64ShrU)
		c.i64(priceBulk)
		c.op(opI64Add)
	})
}

// grow pays for pages before the memory grows. What cannot succeed costs the attempt.
func (h *helpers) grow() (c code) {
	c.op(0)
	h.pay(&c, func(c *code) {
		c.i64(priceGrow)
		c.get(0)
		c.op(opExtendU)
		c.i64(pricePage)
		c.op(opI64Mul, opI64Const, 0)
		c.get(0)
		c.op(opExtendU)
		c.op(opMemorySize, 0, opExtendU, opI64Add)
		c.i64(h.r.maxPages())
		c.op(opI64LeU, opSelect, opI64Add)
	})
	c.get(0)
	c.op(opMemoryGrow, 0, opEnd)
	return c
}

// entries pays for a number of table entries and leaves it where it was.
func (h *helpers) entries(base int64) (c code) {
	c.op(0)
	h.pay(&c, func(c *code) {
		c.get(0)
		c.i32(maxEntries)
		c.get(0)
		c.i32(maxEntries)
		c.op(0x49, opSelect) // i32.lt_u
		c.op(opExtendU)
		c.i64(base)
		c.op(opI64Add)
	})
	c.get(0)
	c.op(opEnd)
	return c
}

// The parameters of the functions on memory, and the length of the piece at hand.
const (
	pTo = iota
	pFrom
	pLen
	pPiece
)

// pieces writes the frame of a function on memory: at most a piece is done at once; more is
// done piece by piece when all of it lies where it must, and else at once, which traps before
// anything is written, as it must.
func (h *helpers) pieces(inside func(c *code), act func(c *code, length uint64), step func(c *code)) (c code) {
	c.op(1, 1, byte(wasm.I32)) // one more local
	c.get(pLen)
	c.i32(PieceBytes)
	c.op(opI32LeU, opIf, blockVoid)
	h.payBytes(&c, pLen)
	act(&c, pLen)
	c.op(opReturn, opEnd)

	inside(&c) // 1 when something lies outside
	c.op(opIf, blockVoid)
	act(&c, pLen)
	c.op(opUnreachable, opEnd)

	c.op(opLoop, blockVoid)
	c.get(pLen)
	c.i32(PieceBytes)
	c.get(pLen)
	c.i32(PieceBytes)
	c.op(0x49, opSelect)
	c.set(pPiece)
	h.payBytes(&c, pPiece)
	step(&c)
	c.get(pLen)
	c.get(pPiece)
	c.op(opI32Sub, opLocalTee, pLen)
	c.op(opBrIf, 0, opEnd, opEnd)
	return c
}

// outside leaves 1 when the bytes from a local on do not lie within a size.
func outside(c *code, from uint64, size func(c *code)) {
	c.get(from)
	c.op(opExtendU)
	c.get(pLen)
	c.op(opExtendU, opI64Add)
	size(c)
	c.op(opI64GtU)
}

func memoryBytes(c *code) {
	c.op(opMemorySize, 0, opExtendU)
	c.i64(16)
	c.op(opI64Shl)
}

func advance(c *code, locals ...uint64) {
	for _, l := range locals {
		c.get(l)
		c.get(pPiece)
		c.op(opI32Add)
		c.set(l)
	}
}

// copy goes upward when the target lies below, and downward when it lies above, so that no
// piece is overwritten before it was read.
func (h *helpers) copy() code {
	act := func(c *code, length uint64) {
		c.get(pTo)
		c.get(pFrom)
		c.get(length)
		c.op(0xfc, 0x0a, 0, 0)
	}
	last := func(c *code, from uint64) {
		c.get(from)
		c.get(pLen)
		c.op(opI32Add)
		c.get(pPiece)
		c.op(opI32Sub)
	}
	return h.pieces(func(c *code) {
		outside(c, pTo, memoryBytes)
		outside(c, pFrom, memoryBytes)
		c.op(opI32Or)
	}, act, func(c *code) {
		c.get(pTo)
		c.get(pFrom)
		c.op(opI32LeU, opIf, blockVoid)
		act(c, pPiece)
		advance(c, pTo, pFrom)
		c.op(opElse)
		last(c, pTo)
		last(c, pFrom)
		c.get(pPiece)
		c.op(0xfc, 0x0a, 0, 0)
		c.op(opEnd)
	})
}

func (h *helpers) fill() code {
	act := func(c *code, length uint64) {
		c.get(pTo)
		c.get(pFrom) // the value
		c.get(length)
		c.op(0xfc, 0x0b, 0)
	}
	return h.pieces(func(c *code) { outside(c, pTo, memoryBytes) }, act, func(c *code) {
		act(c, pPiece)
		advance(c, pTo)
	})
}

// init copies from a data segment. One that was dropped has no bytes left, and the first
// piece traps.
func (h *helpers) init(segment uint32) code {
	act := func(c *code, length uint64) {
		c.get(pTo)
		c.get(pFrom)
		c.get(length)
		c.op(0xfc, 0x08)
		c.u(uint64(segment))
		c.op(0)
	}
	size := int64(h.r.m.Data[segment].Init.Len())
	return h.pieces(func(c *code) {
		outside(c, pTo, memoryBytes)
		outside(c, pFrom, func(c *code) { c.i64(size) })
		c.op(opI32Or)
	}, act, func(c *code) {
		act(c, pPiece)
		advance(c, pTo, pFrom)
	})
}

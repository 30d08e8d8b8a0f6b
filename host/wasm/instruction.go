package wasm

import "iter"

// Instruction is one instruction of a function body as it lies in the module.
type Instruction struct {
	Op    uint16 // the opcode; after the prefixes 0xfc and 0xfd, the prefix in the high byte and the number in the low one
	At    Range  // the whole instruction
	Index uint32 // the label, function, type, local, global, table or segment it names; the first where there are two
	Block int64  // the type of a block, loop or if: an index into the types, or negative as it is encoded
	Const int32  // the operand of i32.const
}

// Instructions goes through a body's code in order, the closing end included. It must be the
// [Function.Code] of a module that [Read] accepted: nothing is checked again.
func Instructions(module []byte, code Range) iter.Seq[Instruction] {
	return func(yield func(Instruction) bool) {
		c := &cursor{problems: &problems{}, data: module, pos: int(code.Start), end: int(code.End)}
		for c.left() > 0 {
			in := c.instruction()
			if c.failed || !yield(in) {
				return
			}
		}
	}
}

func (c *cursor) instruction() Instruction {
	start := c.pos
	op := c.byte("an instruction")
	in, info := Instruction{Op: uint16(op)}, &opcodes[op]
	switch info.imm {
	case immMisc:
		n := c.u32("an instruction")
		info, in.Op = &misc[n], 0xfc00|uint16(n)
	case immVector:
		n := c.u32("an instruction")
		info, in.Op = &vector[n], 0xfd00|uint16(n)
	}
	switch info.imm {
	case immBlock, immLoop, immIf:
		in.Block = c.signed(33, "the type of a block")
	case immLabels:
		for range c.u32("labels") + 1 {
			c.u32("a label")
		}
	case immIndirect, immMemoryInit, immTableInit, immTableCopy:
		in.Index = c.u32("an index")
		c.u32("an index")
	case immTypes:
		c.bytes(c.u32("types"), "types")
	case immLabel, immFunc, immLocal, immGlobal, immTable, immRefFunc,
		immDataDrop, immElemDrop, immTableGrow, immTableSize, immTableFill:
		in.Index = c.u32("an index")
	case immMemory, immGrow, immMemoryFill, immHeapType, immLane:
		c.bytes(1, "an operand")
	case immMemoryCopy:
		c.bytes(2, "memories")
	case immAccess, immAccessLane:
		c.u32("an alignment")
		c.u32("an offset")
		if info.imm == immAccessLane {
			c.bytes(1, "a lane")
		}
	case immI32:
		in.Const = int32(c.signed(32, "a constant"))
	case immI64:
		c.signed(64, "a constant")
	case imm4:
		c.bytes(4, "a constant")
	case imm8:
		c.bytes(8, "a constant")
	case imm16, immShuffle:
		c.bytes(16, "a constant")
	}
	in.At = Range{uint32(start), uint32(c.pos)}
	return in
}

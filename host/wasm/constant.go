package wasm

import "github.com/ecotone-dev/ecotone/abi"

// constant reads a constant expression: one instruction and an end. Its type is the
// validator's to check; indices are checked here.
func (r *reader) constant(c *cursor) Range {
	start := c.pos
	op := c.byte("a constant expression")
	if c.failed {
		return Range{}
	}
	switch op {
	case 0x41:
		c.signed(32, "an i32 constant")
	case 0x42:
		c.signed(64, "an i64 constant")
	case 0x43:
		c.bytes(4, "an f32 constant")
	case 0x44:
		c.bytes(8, "an f64 constant")
	case 0x23:
		r.constantGlobal(c)
	case 0xd0:
		(&walker{reader: r}).heapType(c)
		r.uses |= useReferences
	case 0xd2:
		r.index(c, spaceFunc, "ref.func")
		r.uses |= useReferences
	case 0xfd:
		at := c.pos
		// One byte, as the engine reads it.
		if b := c.byte("a vector instruction"); b != 0x0c {
			c.fail(abi.CodeModuleInvalid, at, "vector instruction 0x%02x in a constant expression", b)
		}
		c.bytes(16, "a v128 constant")
		r.uses |= useSIMD
	case 0x0b:
		c.fail(abi.CodeModuleInvalid, start, "an empty constant expression")
	default:
		r.notConstant(c, start, op)
	}
	at := c.pos
	if end := c.byte("the end of a constant expression"); !c.failed && end != 0x0b {
		// Two constants and an operator are how the proposal begins.
		c.refuse(at, extendedConst, "a second instruction in a constant expression")
	}
	return Range{uint32(start), uint32(c.pos)}
}

// constantGlobal reads the index of a global, which must be an imported one: definitions are
// not constant before the proposals of the garbage collector.
func (r *reader) constantGlobal(c *cursor) {
	at := c.pos
	i := c.u32("the index of a global")
	if c.failed || r.unknown[spaceGlobal] || i < r.m.imported[KindGlobal] {
		return
	}
	c.invalid(at, "a constant expression names global %d; it may name imported globals only, of which there are %d", i, r.m.imported[KindGlobal])
}

func (r *reader) notConstant(c *cursor, at int, op byte) {
	switch op {
	case 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e:
		c.refuse(at, extendedConst, "arithmetic in a constant expression")
	case 0xfb:
		c.refuse(at, garbage, "a constant expression")
	default:
		c.fail(abi.CodeModuleInvalid, at, "instruction 0x%02x in a constant expression", op)
	}
}

// ConstI32 returns the value of a constant expression that is an i32.const. expr must come
// from a reading of module without problems.
func ConstI32(module []byte, expr Range) (int32, bool) {
	if expr.Len() == 0 || module[expr.Start] != 0x41 {
		return 0, false
	}
	c := &cursor{problems: &problems{}, data: module, pos: int(expr.Start) + 1, end: int(expr.End)}
	v := c.signed(32, "a constant")
	return int32(v), !c.failed
}

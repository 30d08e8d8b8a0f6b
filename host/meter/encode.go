package meter

import (
	"encoding/binary"

	"github.com/ecotone-dev/ecotone/host/wasm"
)

// Opcodes that are written or looked for.
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableSet     = 0x26
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opI32LeU       = 0x4d
	opI64LtS       = 0x53
	opI64GtU       = 0x56
	opI64LeU       = 0x58
	opI64GeS       = 0x59
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI64Add       = 0x7c
	opI64Sub       = 0x7d
	opI64Mul       = 0x7e
	opI32Or        = 0x72
	opI64Or        = 0x84
	opI64Shl       = 0x86
	opI64ShrU      = 0x88
	opExtendU      = 0xad
	opSelect       = 0x1b
	opRefFunc      = 0xd2

	opMemoryInit = 0xfc08
	opDataDrop   = 0xfc09
	opMemoryCopy = 0xfc0a
	opMemoryFill = 0xfc0b
	opTableInit  = 0xfc0c
	opElemDrop   = 0xfc0d
	opTableCopy  = 0xfc0e
	opTableGrow  = 0xfc0f
	opTableFill  = 0xfc11

	blockVoid = 0x40
)

// code is a byte string of the binary format that is being written.
type code []byte

func (c *code) op(b ...byte)       { *c = append(*c, b...) }
func (c *code) u(v uint64)         { *c = binary.AppendUvarint(*c, v) }
func (c *code) name(s string)      { c.u(uint64(len(s))); *c = append(*c, s...) }
func (c *code) bytes(b []byte)     { c.u(uint64(len(b))); *c = append(*c, b...) }
func (c *code) i32(v int32)        { c.op(opI32Const); c.s(int64(v)) }
func (c *code) i64(v int64)        { c.op(opI64Const); c.s(v) }
func (c *code) get(local uint64)   { c.op(opLocalGet); c.u(local) }
func (c *code) set(local uint64)   { c.op(opLocalSet); c.u(local) }
func (c *code) call(f uint32)      { c.op(opCall); c.u(uint64(f)) }
func (c *code) global(g uint32)    { c.op(opGlobalGet); c.u(uint64(g)) }
func (c *code) setGlobal(g uint32) { c.op(opGlobalSet); c.u(uint64(g)) }

// s appends the shortest signed LEB128.
func (c *code) s(v int64) {
	for {
		b := byte(v) & 0x7f
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			*c = append(*c, b)
			return
		}
		*c = append(*c, b|0x80)
	}
}

// section appends a section whose items were written one after the other.
func (c *code) section(id wasm.SectionID, n int, items []byte) {
	if n == 0 {
		return
	}
	head := binary.AppendUvarint(nil, uint64(n))
	c.op(byte(id))
	c.u(uint64(len(head) + len(items)))
	*c = append(append(*c, head...), items...)
}

// scanner reads again what [wasm.Read] accepted.
type scanner struct {
	data []byte
	pos  int
}

func (s *scanner) u() uint64 {
	v, n := binary.Uvarint(s.data[s.pos:])
	s.pos += n
	return v
}

func (s *scanner) byte() byte {
	s.pos++
	return s.data[s.pos-1]
}

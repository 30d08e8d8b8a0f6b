package wasmtest

import (
	"encoding/binary"
	"math"
)

// Opcodes that tests use by name. Others are written as bytes.
const (
	OpUnreachable  byte = 0x00
	OpNop          byte = 0x01
	OpElse         byte = 0x05
	OpEnd          byte = 0x0b
	OpReturn       byte = 0x0f
	OpDrop         byte = 0x1a
	OpSelect       byte = 0x1b
	OpI32Eqz       byte = 0x45
	OpI32Add       byte = 0x6a
	OpI32Sub       byte = 0x6b
	OpI64Add       byte = 0x7c
	OpI32WrapI64   byte = 0xa7
	OpI64ExtendI32 byte = 0xac

	// BlockVoid is the type of a block without parameters and results.
	BlockVoid byte = 0x40
)

// Header is the preamble of a core module.
func Header() []byte { return []byte{0, 'a', 's', 'm', 1, 0, 0, 0} }

// Section is a section with any id and payload.
func Section(id byte, payload []byte) []byte { return Cat([]byte{id}, Vec(payload)) }

// Cat joins byte strings into a new one.
func Cat(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// LEB is the shortest unsigned LEB128 form of v.
func LEB(v uint64) []byte { return binary.AppendUvarint(nil, v) }

// LEBPadded is v in exactly n bytes, whether the format allows so many or not.
func LEBPadded(v uint64, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(v)&0x7f | 0x80
		v >>= 7
	}
	out[n-1] &= 0x7f
	return out
}

// SLEB is the shortest signed LEB128 form of v.
func SLEB(v int64) []byte {
	var out []byte
	for {
		c := byte(v) & 0x7f
		v >>= 7
		if (v == 0 && c&0x40 == 0) || (v == -1 && c&0x40 != 0) {
			return append(out, c)
		}
		out = append(out, c|0x80)
	}
}

// Vec is a byte vector: its length and its bytes.
func Vec(data []byte) []byte { return Cat(LEB(uint64(len(data))), data) }

// Name is a string as the format writes names.
func Name(s string) []byte { return Vec([]byte(s)) }

// Limits is a limits value with a minimum and, if given, a maximum.
func Limits(minimum uint32, maximum ...uint32) []byte {
	if len(maximum) == 0 {
		return Cat([]byte{0}, LEB(uint64(minimum)))
	}
	return Cat([]byte{1}, LEB(uint64(minimum)), LEB(uint64(maximum[0])))
}

// Op is one or more bytes as they are.
func Op(b ...byte) []byte { return b }

// I32Const pushes v.
func I32Const(v int32) []byte { return Cat(Op(0x41), SLEB(int64(v))) }

// I64Const pushes v.
func I64Const(v int64) []byte { return Cat(Op(0x42), SLEB(v)) }

// F64Const pushes v.
func F64Const(v float64) []byte {
	return binary.LittleEndian.AppendUint64(Op(0x44), math.Float64bits(v))
}

func index(op byte, i uint32) []byte { return Cat(Op(op), LEB(uint64(i))) }

// Call calls a function by index.
func Call(i uint32) []byte { return index(0x10, i) }

// CallIndirect calls through a table.
func CallIndirect(typeIndex, table uint32) []byte {
	return Cat(index(0x11, typeIndex), LEB(uint64(table)))
}

// LocalGet reads a local.
func LocalGet(i uint32) []byte { return index(0x20, i) }

// LocalSet writes a local.
func LocalSet(i uint32) []byte { return index(0x21, i) }

// LocalTee writes a local and keeps the value.
func LocalTee(i uint32) []byte { return index(0x22, i) }

// GlobalGet reads a global.
func GlobalGet(i uint32) []byte { return index(0x23, i) }

// GlobalSet writes a global.
func GlobalSet(i uint32) []byte { return index(0x24, i) }

// Br branches to a label.
func Br(depth uint32) []byte { return index(0x0c, depth) }

// BrIf branches to a label when the top of the stack is not zero.
func BrIf(depth uint32) []byte { return index(0x0d, depth) }

// BrTable branches through a table of labels.
func BrTable(fallback uint32, labels ...uint32) []byte {
	out := Cat(Op(0x0e), LEB(uint64(len(labels))))
	for _, l := range labels {
		out = append(out, LEB(uint64(l))...)
	}
	return append(out, LEB(uint64(fallback))...)
}

// Block is a block without parameters and results.
func Block(body ...[]byte) []byte { return nest(0x02, body) }

// Loop is a loop without parameters and results.
func Loop(body ...[]byte) []byte { return nest(0x03, body) }

// If is an if without else, parameters and results.
func If(body ...[]byte) []byte { return nest(0x04, body) }

func nest(op byte, body [][]byte) []byte { return Cat(Op(op, BlockVoid), Cat(body...), Op(OpEnd)) }

// Load8 loads an unsigned byte as i32 at a constant offset.
func Load8(offset uint32) []byte { return Cat(Op(0x2d, 0), LEB(uint64(offset))) }

// Load32 loads an i32 at a constant offset.
func Load32(offset uint32) []byte { return Cat(Op(0x28, 2), LEB(uint64(offset))) }

// Store8 stores the low byte of an i32 at a constant offset.
func Store8(offset uint32) []byte { return Cat(Op(0x3a, 0), LEB(uint64(offset))) }

// Store32 stores an i32 at a constant offset.
func Store32(offset uint32) []byte { return Cat(Op(0x36, 2), LEB(uint64(offset))) }

// MemorySize pushes the size of memory 0 in pages.
func MemorySize() []byte { return Op(0x3f, 0) }

// MemoryGrow grows memory 0 and pushes the old size or -1.
func MemoryGrow() []byte { return Op(0x40, 0) }

package compile

import (
	"bytes"
	"encoding/binary"
)

// Modules that are small and valid and cost the engine far more than their size, each within the
// structural limits that admission enforces unless its comment says otherwise.

func uleb(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func section(id byte, body []byte) []byte {
	return append(append([]byte{id}, uleb(len(body))...), body...)
}

// moduleOf has one type () -> (), and one function for each body. A body is locals and code, without
// its length.
func moduleOf(bodies ...[]byte) []byte {
	b := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	b = append(b, section(1, []byte{1, 0x60, 0, 0})...)
	functions, code := uleb(len(bodies)), uleb(len(bodies))
	for _, body := range bodies {
		functions = append(functions, 0)
		code = append(append(code, uleb(len(body))...), body...)
	}
	b = append(b, section(3, functions)...)
	return append(b, section(10, code)...)
}

// body declares n locals of type i32.
func body(locals int, code []byte) []byte {
	b := []byte{0}
	if locals > 0 {
		b = append(append([]byte{1}, uleb(locals)...), 0x7f)
	}
	return append(append(b, code...), 0x0b)
}

func repeated(code []byte, n int) []byte { return bytes.Repeat(code, n) }

// bombIfElse is n empty conditionals in a row: quadratic in the engine's block layout.
func bombIfElse(n int) []byte {
	return body(0, repeated([]byte{0x41, 0, 0x04, 0x40, 0x05, 0x0b}, n))
}

// bombBranchTables is n tables of targets entries.
func bombBranchTables(n, targets int) []byte {
	one := append([]byte{0x02, 0x40, 0x41, 0, 0x0e}, uleb(targets)...)
	one = append(one, make([]byte, targets+1)...)
	return body(0, repeated(append(one, 0x0b), n))
}

// bombNested is blocks in blocks, with a conditional branch out of all of them at each level.
func bombNested(depth int) []byte {
	var code []byte
	for i := range depth {
		code = append(code, 0x02, 0x40, 0x41, 0, 0x0d)
		code = append(code, uleb(i)...)
	}
	return body(0, append(code, repeated([]byte{0x0b}, depth)...))
}

// bombLocals changes every local in every one of n loops: values to merge grow with the product.
func bombLocals(locals, n int) []byte {
	var code []byte
	for i := range n {
		code = append(code, 0x03, 0x40) // loop
		for k := range 4 {
			code = append(append(code, 0x20), uleb((i*4+k)%locals)...)
			code = append(append(code, 0x21), uleb((i*7+k)%locals)...)
		}
		code = append(code, 0x41, 0, 0x0d, 0, 0x0b) // br_if 0, end
	}
	return body(locals, code)
}

func copies(b []byte, n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = b
	}
	return all
}

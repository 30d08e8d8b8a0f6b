package meter

// effect is how many values a plain instruction takes and the size of the one it leaves: 0 when it
// leaves none, -1 when that is a constant.
func effect(op uint16) (pops int, size int32) {
	switch op >> 8 {
	case 0xfc:
		switch {
		case op <= 0xfc07:
			return 1, 8
		case op == opDataDrop, op == opElemDrop:
			return 0, 0
		case op == opTableGrow:
			return 2, 4
		case op == 0xfc10: // table.size
			return 0, 4
		}
		return 3, 0
	case 0xfd:
		return vectorEffect(op & 0xff)
	}
	switch {
	case op == 0x1a, op == opLocalSet, op == opGlobalSet:
		return 1, 0
	case op == 0x25:
		return 1, 8
	case op == opTableSet, op >= 0x36 && op <= 0x3e:
		return 2, 0
	case op >= 0x28 && op <= 0x35:
		return 1, widths[op]
	case op == opMemorySize:
		return 0, 4
	case op == opMemoryGrow:
		return 1, 4
	case op >= 0x41 && op <= 0x44:
		return 0, -1
	case op == 0x45, op == 0x50, op >= 0x67 && op <= 0x69, op >= 0x79 && op <= 0x7b, op >= 0x8b && op <= 0x91,
		op >= 0x99 && op <= 0x9f, op >= 0xa7 && op <= 0xc4, op == 0xd1:
		return 1, widths[op]
	case op >= 0x46 && op <= 0xa6:
		return 2, widths[op]
	case op == 0xd0, op == opRefFunc:
		return 0, 8
	}
	return 0, 0
}

// widths are the sizes of the results of loads and numeric instructions.
var widths = func() (t [256]int32) {
	for i := range t {
		t[i] = 8
	}
	four := func(from, to int) {
		for op := from; op <= to; op++ {
			t[op] = 4
		}
	}
	four(0x28, 0x28)
	four(0x2a, 0x2a)
	four(0x2c, 0x2f)
	four(0x45, 0x78) // comparisons and i32
	four(0x8b, 0x98) // f32
	four(0xa7, 0xab)
	four(0xb2, 0xb6)
	four(0xbc, 0xbc)
	four(0xbe, 0xbe)
	four(0xc0, 0xc1)
	four(0xd1, 0xd1)
	return t
}()

// floatResult reports whether a numeric instruction or a load leaves a float.
func floatResult(op uint16) bool {
	switch {
	case op == 0x2a, op == 0x2b, op == 0x43, op == 0x44, op >= 0x8b && op <= 0xa6, op >= 0xb2 && op <= 0xbb, op == 0xbe, op == 0xbf:
		return true
	}
	return false
}

// vectorEffect is effect for what follows the prefix 0xfd.
func vectorEffect(n uint16) (pops int, size int32) {
	switch n {
	case 11, 88, 89, 90, 91: // stores
		return 2, 0
	case 12:
		return 0, 16
	case 21, 22, 24, 25, 27, 29, 31, 33: // extract_lane
		return 1, 8
	case 83, 99, 100, 131, 132, 163, 164, 195, 196: // to a number
		return 1, 4
	case 82: // bitselect
		return 3, 16
	case 77, 92, 93, 94, 95, 96, 97, 98, 103, 104, 105, 106, 116, 117, 122, 124, 125, 126, 127, 128, 129,
		135, 136, 137, 138, 148, 160, 161, 167, 168, 169, 170, 192, 193, 199, 200, 201, 202,
		224, 225, 227, 236, 237, 239:
		return 1, 16
	}
	if n <= 10 || n >= 15 && n <= 20 || n >= 248 {
		return 1, 16
	}
	return 2, 16
}

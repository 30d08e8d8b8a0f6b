package wasm

// immediate says what follows an opcode.
type immediate uint8

const (
	immUnknown immediate = iota // no instruction of WebAssembly 2.0
	immNone
	immBlock
	immLoop
	immIf
	immElse
	immEnd
	immLabel
	immLabels // br_table
	immFunc
	immIndirect // type and table
	immTypes    // select with types
	immLocal
	immGlobal
	immTable
	immMemory // the index of the only memory
	immGrow   // memory.grow
	immAccess // alignment and offset
	immI32
	immI64
	imm4
	imm8
	imm16
	immHeapType
	immRefFunc
	immMisc // prefix 0xfc
	immVector
	immShuffle
	immLane
	immAccessLane
	immProposal

	// After prefix 0xfc.
	immMemoryInit
	immDataDrop
	immMemoryCopy
	immMemoryFill
	immTableInit
	immElemDrop
	immTableCopy
	immTableGrow
	immTableSize
	immTableFill
)

// instruction is what the walk of a body needs to know of an opcode.
type instruction struct {
	imm      immediate
	bound    uint8  // exclusive bound of a lane; largest alignment, as a power of two, of an access
	lanes    uint8  // exclusive bound of the lane of an access that has one
	uses     uint8  // extensions to WebAssembly 1.0
	proposal string // that an instruction which is refused belongs to
}

var opcodes = func() (t [256]instruction) {
	fill := func(from, to int, in instruction) {
		for i := from; i <= to; i++ {
			t[i] = in
		}
	}
	fill(0x00, 0x01, instruction{imm: immNone})
	t[0x02].imm, t[0x03].imm, t[0x04].imm, t[0x05].imm, t[0x0b].imm = immBlock, immLoop, immIf, immElse, immEnd
	t[0x0c].imm, t[0x0d].imm, t[0x0e].imm, t[0x0f].imm = immLabel, immLabel, immLabels, immNone
	t[0x10].imm, t[0x11].imm = immFunc, immIndirect
	t[0x1a].imm, t[0x1b].imm = immNone, immNone
	t[0x1c] = instruction{imm: immTypes, uses: useReferences}
	fill(0x20, 0x22, instruction{imm: immLocal})
	fill(0x23, 0x24, instruction{imm: immGlobal})
	fill(0x25, 0x26, instruction{imm: immTable, uses: useReferences})
	for i, align := range [...]uint8{2, 3, 2, 3, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 2, 3, 2, 3, 0, 1, 0, 1, 2} {
		t[0x28+i] = instruction{imm: immAccess, bound: align}
	}
	t[0x3f].imm, t[0x40].imm = immMemory, immGrow
	t[0x41].imm, t[0x42].imm, t[0x43].imm, t[0x44].imm = immI32, immI64, imm4, imm8
	fill(0x45, 0xbf, instruction{imm: immNone})
	fill(0xc0, 0xc4, instruction{imm: immNone, uses: useSignExtension})
	t[0xd0] = instruction{imm: immHeapType, uses: useReferences}
	t[0xd1] = instruction{imm: immNone, uses: useReferences}
	t[0xd2] = instruction{imm: immRefFunc, uses: useReferences}
	t[0xfc].imm, t[0xfd].imm = immMisc, immVector

	for proposal, codes := range map[string][]int{
		exceptions:     {0x06, 0x07, 0x08, 0x09, 0x0a, 0x18, 0x19, 0x1f},
		tailCalls:      {0x12, 0x13},
		typedRefs:      {0x14, 0x15, 0xd4, 0xd5, 0xd6},
		garbage:        {0xd3, 0xfb},
		stackSwitching: {0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6},
		threads:        {0xfe},
	} {
		for _, op := range codes {
			t[op] = instruction{imm: immProposal, proposal: proposal}
		}
	}
	return t
}()

// misc are the instructions after prefix 0xfc.
var misc = func() (t [23]instruction) {
	for i := range 8 {
		t[i] = instruction{imm: immNone, uses: useSaturating}
	}
	for i, imm := range [...]immediate{
		immMemoryInit, immDataDrop, immMemoryCopy, immMemoryFill, immTableInit, immElemDrop, immTableCopy,
	} {
		t[8+i] = instruction{imm: imm, uses: useBulk}
	}
	for i, imm := range [...]immediate{immTableGrow, immTableSize, immTableFill} {
		t[15+i] = instruction{imm: imm, uses: useReferences}
	}
	t[18] = instruction{imm: immProposal, proposal: memoryControl}
	for i := 19; i <= 22; i++ {
		t[i] = instruction{imm: immProposal, proposal: wideArithmetic}
	}
	return t
}()

// vector are the instructions after prefix 0xfd.
var vector = func() (t [256]instruction) {
	for i := range t {
		t[i].imm = immNone
	}
	for i, align := range [...]uint8{4, 3, 3, 3, 3, 3, 3, 0, 1, 2, 3, 4} {
		t[i] = instruction{imm: immAccess, bound: align}
	}
	t[0x0c].imm, t[0x0d].imm = imm16, immShuffle
	for i, lanes := range [...]uint8{16, 16, 16, 8, 8, 8, 4, 4, 2, 2, 4, 4, 2, 2} {
		t[0x15+i] = instruction{imm: immLane, bound: lanes}
	}
	for i := range 8 {
		align := uint8(i % 4)
		t[0x54+i] = instruction{imm: immAccessLane, bound: align, lanes: 16 >> align}
	}
	t[0x5c] = instruction{imm: immAccess, bound: 2}
	t[0x5d] = instruction{imm: immAccess, bound: 3}
	for _, unassigned := range [...]int{
		0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb, 0xc2, 0xc5, 0xc6, 0xcf, 0xd0, 0xd2, 0xd3, 0xd4, 0xe2, 0xee,
	} {
		t[unassigned].imm = immUnknown
	}
	for i := range t {
		t[i].uses = useSIMD
	}
	return t
}()

package meter

import "github.com/ecotone-dev/ecotone/host/wasm"

// Prices, in units of fuel. A unit is about one simple instruction. They are part of what an
// invocation costs: changing one changes every receipt.
const (
	priceSimple  = 1
	priceLoad    = 2
	priceStore   = 2
	priceVector  = 2
	priceTable   = 4
	priceSwitch  = 3
	priceDivide  = 12
	priceDivideF = 6
	priceCall    = 5
	priceRefFunc = 60 // the engine leaves the guest's code and allocates

	// An indirect call pays for the dearest function whose own price its callers pay.
	priceIndirect = 9 + maxLeafPrice
	maxLeafPrice  = 16

	// Entering a function; its locals are zeroed, eight bytes at a time.
	priceEntry = 2

	// Whole memories and tables: so much for trying and then by length.
	priceBulk      = 16
	bytesPerUnit   = 8
	priceGrow      = 1000
	pricePage      = 1024
	priceTableGrow = 1000
	priceDrop      = 60
)

// maxEntries bounds the length that is paid for tables. More than any table has: such an
// instruction fails before it acts.
const maxEntries = 1 << 24

var prices = func() (t [256]uint64) {
	for i := range t {
		t[i] = priceSimple
	}
	set := func(price uint64, ops ...int) {
		for _, op := range ops {
			t[op] = price
		}
	}
	set(0, 0x01, opBlock, opLoop, opElse, opEnd)
	set(priceSwitch, opBrTable)
	set(priceCall, opCall)
	set(priceIndirect, opCallIndirect)
	set(priceTable, 0x25, opTableSet)
	for op := 0x28; op <= 0x35; op++ {
		t[op] = priceLoad
	}
	for op := 0x36; op <= 0x3e; op++ {
		t[op] = priceStore
	}
	set(priceDivide, 0x6d, 0x6e, 0x6f, 0x70, 0x7f, 0x80, 0x81, 0x82)
	set(priceDivideF, 0x91, 0x95, 0x9f, 0xa3) // square roots and divisions
	for op := 0x8d; op <= 0x90; op++ {        // rounding
		t[op], t[op+0x0e] = priceLoad, priceLoad
	}
	for op := 0xa8; op <= 0xb1; op++ { // to integers, with their traps
		t[op] = 3
	}
	set(priceRefFunc, opRefFunc)
	return t
}()

// price is an instruction's, without what depends on a length or on the function called.
func price(in wasm.Instruction) uint64 {
	switch in.Op {
	case opMemoryInit, opMemoryCopy, opMemoryFill, opMemoryGrow, opTableInit, opTableCopy, opTableFill, opTableGrow:
		return priceSimple // the rest is taken where the length is known
	case opDataDrop, opElemDrop:
		return priceDrop
	}
	switch in.Op >> 8 {
	case 0:
		return prices[in.Op]
	case 0xfc:
		return 3 // conversions that saturate, and table.size
	}
	return priceVector
}

// byLength is the price of n bytes moved.
func byLength(n uint64) uint64 { return priceBulk + n/bytesPerUnit }

// Package kernel is the memory that an Extism plug-in shares with its host: blocks with addresses of
// their own, apart from the plug-in's linear memory.
//
// Addresses, sizes, the order in which freed blocks are used again and what happens to handles that
// name nothing are those of the Extism runtime kernel 1.7.0, as far as a plug-in can see them; a test
// beside the SDK compares the two call by call. Two things differ. The list of blocks is not kept in
// the memory itself, so that no store can break it; a plug-in that reads between blocks reads zeros.
// And sizes and addresses are 64 bits wide throughout: none of them wraps around.
//
// The package refuses to know invocations, fuel and host functions: it says how much was touched, and
// whoever calls it pays. Nothing in it is safe for concurrent use.
package kernel

import (
	"cmp"
	"encoding/binary"
	"slices"
)

const (
	base     = 65 // address of the first block's header; what is below is the kernel's own
	header   = 12 // bytes of a block's header
	page     = 64 << 10
	reserved = 64
	// firstSize is the memory there is before any is asked for, 16 pages, of which one counts as room.
	firstSize = 16 * page
	// remainder is the least that is left of a freed block for it to be divided.
	remainder = 128
	// firstTouched is what is made of the memory when it is first used.
	firstTouched = 4 << 10
)

// MaxBlocks bounds the blocks of one memory, live and freed: their list is the host's.
const MaxBlocks = 64 << 10

// Memory is one plug-in's memory for one invocation. The zero value holds nothing and grows to
// nothing; see [New].
type Memory struct {
	data   []byte // what was touched; all that lies behind it is zero
	most   uint64 // of room
	room   uint64 // bytes that blocks may take, what is reserved left out
	next   uint64 // bytes that blocks and their headers take, at most room-reserved
	blocks []block
	input  Extent
	output Extent
	err    uint64
	walked int // blocks looked at since that was last asked
	grown  int // bytes touched for the first time since that was last asked
}

// Extent is a piece of memory.
type Extent struct{ Offset, Length uint64 }

type block struct {
	at   uint32 // address of its data
	size uint32
	used uint32
	live bool
}

// New returns a memory whose blocks take at most most bytes.
func New(most int64) *Memory {
	return &Memory{most: max(uint64(max(most, 0)), page-reserved), room: page - reserved}
}

// size is how many bytes there are to read and write.
func (m *Memory) size() uint64 { return min(firstSize+m.room-(page-reserved), m.most+reserved) }

// Alloc makes a block of n bytes and returns its address; 0 when n is 0 or there is no room.
func (m *Memory) Alloc(n uint64) uint64 {
	if n == 0 || n > m.most {
		return 0
	}
	need, free := n+header, m.room-m.next-reserved
	if need >= free {
		if at := m.again(n, need); at != 0 {
			return at
		}
		more := (need - free + page - 1) / page * page
		if m.room+more > m.most {
			return 0
		}
		m.room += more
	}
	if len(m.blocks) >= MaxBlocks {
		return 0
	}
	b := block{at: uint32(base + m.next + header), size: uint32(n), used: uint32(n), live: true}
	m.next += need
	m.blocks = append(m.blocks, b)
	return uint64(b.at)
}

// again finds the first freed block that n fits into, and divides it when much would be left.
func (m *Memory) again(n, need uint64) uint64 {
	if need > m.next {
		return 0
	}
	for i := range m.blocks {
		m.walked++
		b := &m.blocks[i]
		if b.live || uint64(b.size) < n {
			continue
		}
		if left := uint64(b.size) - n; left >= remainder && len(m.blocks) < MaxBlocks {
			b.size, b.used = uint32(left-header), 0
			rest := block{at: b.at + uint32(left), size: uint32(n), used: uint32(n), live: true}
			m.blocks = slices.Insert(m.blocks, i+1, rest)
			m.walked += len(m.blocks) - i
			return uint64(rest.at)
		}
		b.live, b.used = true, uint32(n)
		return uint64(b.at)
	}
	return 0
}

// find is the live block whose data begins at an address, or nil.
func (m *Memory) find(at uint64) *block {
	i, ok := slices.BinarySearchFunc(m.blocks, at, func(b block, at uint64) int { return cmp.Compare(uint64(b.at), at) })
	if !ok || !m.blocks[i].live {
		return nil
	}
	return &m.blocks[i]
}

// Free gives a block back. What names no block is nothing to give back.
func (m *Memory) Free(at uint64) {
	b := m.find(at)
	if b == nil {
		return
	}
	b.live = false
	if m.input.Offset == at {
		m.input.Length = 0
	}
}

// Length is how long a block is; 0 when the address names none.
func (m *Memory) Length(at uint64) uint64 {
	if b := m.find(at); b != nil {
		return uint64(b.used)
	}
	return 0
}

// Reset forgets all blocks, input, output and error. The room stays.
func (m *Memory) Reset() {
	clear(m.data[min(base, len(m.data)):])
	m.blocks, m.next, m.input, m.output, m.err = m.blocks[:0], 0, Extent{}, Extent{}, 0
}

// touch makes n bytes at an address there to be read and written, and reports false when they are
// not of the memory.
func (m *Memory) touch(at, n uint64) bool {
	end := at + n
	if end < at || end > m.size() {
		return false
	}
	if end > uint64(len(m.data)) {
		more := int(min(max(end, 2*uint64(len(m.data)), firstTouched), m.size()))
		m.grown += more - len(m.data)
		m.data = append(make([]byte, 0, more), m.data...)[:more]
	}
	return true
}

// Load8 is the byte at an address; outside of memory it is 0.
func (m *Memory) Load8(at uint64) byte {
	if at < base-1 || at >= uint64(len(m.data)) {
		return 0
	}
	return m.data[at]
}

// Load64 is the number at an address, little-endian; false when it lies outside of memory.
func (m *Memory) Load64(at uint64) (uint64, bool) {
	if at+8 < at || at+8 > m.size() {
		return 0, false
	}
	if at >= base-1 && at+8 <= uint64(len(m.data)) {
		return binary.LittleEndian.Uint64(m.data[at:]), true
	}
	var b [8]byte
	for i := range b {
		b[i] = m.Load8(at + uint64(i))
	}
	return binary.LittleEndian.Uint64(b[:]), true
}

// Store8 changes the byte at an address; outside of memory it changes nothing.
func (m *Memory) Store8(at uint64, v byte) {
	if at < base-1 || !m.touch(at, 1) {
		return
	}
	m.data[at] = v
}

// Store64 changes the number at an address; false says that it lies outside of memory, and nothing
// was changed.
func (m *Memory) Store64(at, v uint64) bool {
	if !m.touch(at, 8) {
		return false
	}
	if at < base-1 { // the kernel's own is not a plug-in's to change
		for i := range uint64(8) {
			m.Store8(at+i, byte(v>>(8*i)))
		}
		return true
	}
	binary.LittleEndian.PutUint64(m.data[at:], v)
	return true
}

// Bytes is a view of n bytes at an address, good until memory is next stored to; false when they are
// not of the memory.
func (m *Memory) Bytes(at, n uint64) ([]byte, bool) {
	if !m.touch(at, n) {
		return nil, false
	}
	return m.data[at : at+n : at+n], true
}

// Block is a view of a block's bytes, as [Memory.Bytes]; empty when the address names none.
func (m *Memory) Block(at uint64) []byte {
	b := m.find(at)
	if b == nil {
		return nil
	}
	view, _ := m.Bytes(at, uint64(b.used))
	return view
}

// Put makes a block that holds b and returns its address; 0 when b is empty. false says that there is
// no room.
func (m *Memory) Put(b []byte) (uint64, bool) {
	at := m.Alloc(uint64(len(b)))
	if at == 0 {
		return 0, len(b) == 0
	}
	view, _ := m.Bytes(at, uint64(len(b)))
	copy(view, b)
	return at, true
}

// within reports whether an extent lies where blocks can be.
func (m *Memory) within(e Extent) bool {
	last := e.Offset + e.Length - 1
	return e.Offset >= base && e.Offset < m.room+base && e.Length <= m.room && last >= base && last < m.room+base
}

// SetInput says where the input is. What lies outside of memory changes nothing; the same holds for
// the output and the error.
func (m *Memory) SetInput(e Extent) {
	if m.within(e) {
		m.input = e
	}
}

// SetOutput says where the output is.
func (m *Memory) SetOutput(e Extent) {
	if m.within(e) {
		m.output = e
	}
}

// SetError says which block is the error; 0 is none.
func (m *Memory) SetError(at uint64) {
	if at == 0 || at >= base && at < m.room+base {
		m.err = at
	}
}

// Input is where the input is.
func (m *Memory) Input() Extent { return m.input }

// Output is where the output is.
func (m *Memory) Output() Extent { return m.output }

// Error is the address of the error; 0: none.
func (m *Memory) Error() uint64 { return m.err }

// Room is how many bytes there are for blocks.
func (m *Memory) Room() uint64 { return m.room }

// Touched is how much of the host's memory the bytes take.
func (m *Memory) Touched() int64 { return int64(len(m.data)) }

// Work is what was done since it was last asked that a call's own price does not cover: blocks that were
// looked at, and bytes that were made.
func (m *Memory) Work() (walked, grown int) {
	walked, grown = m.walked, m.grown
	m.walked, m.grown = 0, 0
	return walked, grown
}

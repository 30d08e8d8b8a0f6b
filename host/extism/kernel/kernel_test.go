package kernel

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

const most = 512 << 10

func TestZeroMemory(t *testing.T) {
	m := New(most)
	if got := m.Alloc(0); got != 0 {
		t.Errorf("a block of nothing is at %d", got)
	}
	if m.Length(0) != 0 || m.Error() != 0 || m.Input() != (Extent{}) || m.Output() != (Extent{}) {
		t.Error("an empty memory has something in it")
	}
	at := m.Alloc(5)
	if at != base+header {
		t.Errorf("the first block is at %d", at)
	}
	if m.Length(at) != 5 || m.Length(at+1) != 0 {
		t.Errorf("lengths %d, %d", m.Length(at), m.Length(at+1))
	}
	m.Free(at + 1)
	m.Free(at)
	m.Free(at)
	if m.Length(at) != 0 || m.Block(at) != nil {
		t.Error("a freed block has a length")
	}
}

// Hostile arguments: none of them is a fault, and none reaches what is not there.
func TestHostileAddresses(t *testing.T) {
	hostile := []uint64{0, 1, 63, 64, 65, 66, firstSize - 8, firstSize - 7, firstSize - 1, firstSize, most, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 62, math.MaxUint64 - 7, math.MaxUint64}
	m := New(most)
	own := m.Alloc(16)
	for _, at := range hostile {
		if got := m.Alloc(at); got != 0 && at > most {
			t.Errorf("alloc(%d) is %d", at, got)
		}
		m.Store8(at, 0xff)
		stored := m.Store64(at, math.MaxUint64)
		if _, loaded := m.Load64(at); loaded != stored {
			t.Errorf("at %d a load says %v and a store %v", at, loaded, stored)
		}
		m.Load8(at)
		for _, n := range hostile {
			if view, ok := m.Bytes(at, n); ok && uint64(len(view)) != n {
				t.Errorf("%d bytes at %d are %d", n, at, len(view))
			}
			m.SetInput(Extent{at, n})
			m.SetOutput(Extent{at, n})
			for _, e := range []Extent{m.Input(), m.Output()} {
				if e.Length > m.Room() || e.Offset+e.Length < e.Offset {
					t.Errorf("an extent %+v", e)
				}
			}
		}
		m.SetError(at)
		m.Block(m.Error())
		if at != own {
			m.Free(at)
		}
	}
	if got, _ := m.Load64(0); got != 0 {
		t.Errorf("what is below the blocks holds %x", got)
	}
	if m.Touched() > most+reserved {
		t.Errorf("%d bytes were made", m.Touched())
	}
}

// PF-D19, S11: what a memory takes is bounded, the list of its blocks too, and running out is an address
// of 0 that leaves the rest as it was.
func TestBounds(t *testing.T) {
	m := New(most)
	var last uint64
	for at := m.Alloc(page); at != 0; at = m.Alloc(page) {
		last = at
	}
	if m.Room() > most || m.Length(last) != page {
		t.Errorf("room for %d bytes", m.Room())
	}
	m.Free(last)
	if m.Alloc(page) != last {
		t.Error("what was given back is not used again")
	}
	m = New(64 << 20)
	n := 0
	for m.Alloc(1) != 0 {
		n++
	}
	if n != MaxBlocks {
		t.Errorf("%d blocks", n)
	}
	if New(0).Alloc(most) != 0 || New(-1).Alloc(most) != 0 {
		t.Error("a memory of nothing has room")
	}
}

// For every sequence of calls: live blocks do not overlap, hold what was put into them last, and are as
// long as was asked for; freed ones have no length; loads and stores agree.
func TestBlocksKeepTheirBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := New(most)
		held := map[uint64][]byte{}
		pick := func() uint64 {
			keys := make([]uint64, 0, len(held))
			for at := range held {
				keys = append(keys, at)
			}
			slices.Sort(keys)
			return rapid.SampledFrom(append(keys, 0)).Draw(rt, "block")
		}
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				b := bytes.Repeat([]byte{rapid.Byte().Draw(rt, "fill")}, rapid.IntRange(1, 40_000).Draw(rt, "length"))
				if at, ok := m.Put(b); ok {
					if _, there := held[at]; there {
						rt.Fatalf("the block at %d is given out twice", at)
					}
					held[at] = b
				}
			},
			"free": func(rt *rapid.T) {
				at := pick()
				m.Free(at)
				delete(held, at)
				if m.Length(at) != 0 {
					rt.Fatalf("freed, it is %d long", m.Length(at))
				}
			},
			"store": func(rt *rapid.T) {
				at := pick()
				b := held[at]
				if len(b) < 8 {
					return
				}
				off := rapid.IntRange(0, len(b)-8).Draw(rt, "at")
				v := rapid.Uint64().Draw(rt, "value")
				m.Store64(at+uint64(off), v)
				binary.LittleEndian.PutUint64(b[off:], v)
				m.Store8(at+uint64(off), b[off]+1)
				b[off]++
			},
			"": func(rt *rapid.T) {
				type span struct{ from, to uint64 }
				var spans []span
				for at, want := range held {
					if got := m.Block(at); !bytes.Equal(got, want) || m.Length(at) != uint64(len(want)) {
						rt.Fatalf("the block at %d lost its %d bytes", at, len(want))
					}
					if got := m.Load8(at); got != want[0] {
						rt.Fatalf("a load says %d", got)
					}
					spans = append(spans, span{at - header, at + uint64(len(want))})
				}
				slices.SortFunc(spans, func(a, b span) int { return int(int64(a.from - b.from)) })
				for i := 1; i < len(spans); i++ {
					if spans[i].from < spans[i-1].to {
						rt.Fatalf("blocks overlap: %+v", spans[i-1:i+1])
					}
				}
				if m.Room() > most || m.Touched() > most+reserved {
					rt.Fatalf("room %d, touched %d", m.Room(), m.Touched())
				}
			},
		})
	})
}

func TestReset(t *testing.T) {
	m := New(most)
	at, _ := m.Put([]byte("of the last call"))
	m.SetInput(Extent{at, 4})
	m.SetOutput(Extent{at, 4})
	m.SetError(at)
	m.Reset()
	if m.Length(at) != 0 || m.Input() != (Extent{}) || m.Output() != (Extent{}) || m.Error() != 0 || m.Load8(at) != 0 {
		t.Error("something is left")
	}
	if again := m.Alloc(3); again != at {
		t.Errorf("the first block is at %d now", again)
	}
}

// FuzzKernel makes any sequence of calls: nothing panics, and nothing grows past what it may.
func FuzzKernel(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x10\x01\x00\x00\x00\x00\x00\x00\x00\x4d"))
	f.Fuzz(func(t *testing.T, calls []byte) {
		m := New(most)
		for len(calls) >= 9 {
			a := binary.BigEndian.Uint64(calls[1:])
			e := Extent{a & 0xfffff, a >> 40}
			switch calls[0] % 14 {
			case 0:
				m.Alloc(a)
			case 1:
				m.Alloc(a & 0xffff)
			case 2:
				m.Free(a)
			case 3:
				m.Store8(a, byte(a))
			case 4:
				m.Store64(a, a)
			case 5:
				m.Load8(a)
			case 6:
				m.Load64(a)
			case 7:
				m.SetInput(e)
			case 8:
				m.SetOutput(Extent{a, a})
			case 9:
				m.SetError(a)
			case 10:
				m.Block(a)
			case 11:
				m.Bytes(e.Offset, e.Length)
			case 12:
				m.Reset()
			case 13:
				m.Length(a)
			}
			calls = calls[9:]
		}
		if m.Room() > most || m.Touched() > most+reserved || len(m.blocks) > MaxBlocks {
			t.Errorf("room %d, touched %d, %d blocks", m.Room(), m.Touched(), len(m.blocks))
		}
		if m.input.Offset+m.input.Length > m.Room()+base || m.output.Offset+m.output.Length > m.Room()+base {
			t.Errorf("input %+v, output %+v", m.input, m.output)
		}
	})
}

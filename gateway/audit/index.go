package audit

import (
	"slices"
	"sort"

	"github.com/oklog/ulid/v2"
)

// index says where rows are. It holds 4 bytes for an entry and 32 for a row and nothing of
// what they say: entries are read and unsealed when somebody asks.
type index struct {
	files []fileIndex
	size  uint64
	orgs  map[string][]rowRef // ascending by id
	open  map[rowKey]struct{} // allowed, not ended
}

type fileIndex struct {
	base    uint64
	offsets []uint32 // of frames
	end     int64    // of the last frame
}

type rowRef struct {
	id   ulid.ULID
	last uint64 // the row's latest entry; each entry names the one before
	kind Kind   // of the first entry
}

type rowKey struct {
	org string
	id  ulid.ULID
}

func newIndex() *index {
	return &index{orgs: map[string][]rowRef{}, open: map[rowKey]struct{}{}}
}

func byID(r rowRef, id ulid.ULID) int { return r.id.Compare(id) }

// place finds an id among rows, or where it belongs. New ids are nearly always the greatest.
func place(rows []rowRef, id ulid.ULID) (int, bool) {
	if n := len(rows); n == 0 || rows[n-1].id.Compare(id) < 0 {
		return n, false
	}
	return slices.BinarySearchFunc(rows, id, byID)
}

// row finds a row.
func (x *index) row(k rowKey) (rowRef, bool) {
	rows := x.orgs[k.org]
	i, ok := place(rows, k.id)
	if !ok {
		return rowRef{}, false
	}
	return rows[i], true
}

// add records one entry. Entries come in order.
func (x *index) add(e *located) {
	if n := len(x.files); n == 0 || x.files[n-1].base != e.base {
		x.files = append(x.files, fileIndex{base: e.base})
	}
	f := &x.files[len(x.files)-1]
	f.offsets = append(f.offsets, uint32(e.offset))
	f.end = e.offset + int64(e.length) + frameExtra
	x.size++

	rows := x.orgs[e.org]
	i, ok := place(rows, e.id)
	if ok {
		rows[i].last = e.index
	} else {
		x.orgs[e.org] = slices.Insert(rows, i, rowRef{id: e.id, last: e.index, kind: e.kind})
	}
	k := rowKey{e.org, e.id}
	if e.open {
		x.open[k] = struct{}{}
	} else if e.kind == KindEnded {
		delete(x.open, k)
	}
}

// find says where an entry is: the first index of its file, the offset and the length of its frame.
func (x *index) find(i uint64) (base uint64, offset, length int64, ok bool) {
	n := sort.Search(len(x.files), func(k int) bool { return x.files[k].base > i }) - 1
	if n < 0 || i-x.files[n].base >= uint64(len(x.files[n].offsets)) {
		return 0, 0, 0, false
	}
	f := &x.files[n]
	at := i - f.base
	offset, end := int64(f.offsets[at]), f.end
	if at+1 < uint64(len(f.offsets)) {
		end = int64(f.offsets[at+1])
	}
	return f.base, offset, end - offset, true
}

package audit

import (
	"slices"
	"sort"

	"github.com/oklog/ulid/v2"
)

// index says where rows are, and nothing of what they say: entries are read and unsealed when somebody
// asks. Of the file that is written and the one before it has every row, of all others only which ids
// are in it: 48 bytes for a file. Whoever looks for an older row reads the headers of its file
// ([segments]). So its size does not grow with the log, but for those 48 bytes in 64 MiB.
type index struct {
	sealed   []span    // files that are full, in order; only ever appended to
	previous *segment  // the last of them
	current  *segment  // the file that is written; nil in a log without entries
	open     openRows  // allowed and not ended, or waiting for a person
	greatest ulid.ULID // of all ids
}

// openRows are the rows that may go on.
type openRows map[rowKey]openRow

type openRow struct {
	last  uint64 // index of its last entry
	waits bool   // for a person, and for nothing that runs
}

// span is what is known of a full file at any time.
type span struct {
	base     uint64
	size     int // entries
	min, max ulid.ULID
}

func (s *span) covers(id ulid.ULID) bool {
	return s.size > 0 && s.min.Compare(id) <= 0 && id.Compare(s.max) <= 0
}

// segment is the index of one entries file: 4 bytes for an entry and 40 for a row.
type segment struct {
	span
	offsets []uint32            // of frames
	end     int64               // of the last frame
	orgs    map[string][]rowRef // ascending by id
}

// rowRef is a row in one file. A row that goes on in another file has one there too.
type rowRef struct {
	id   ulid.ULID
	last uint64 // the row's latest entry in the file; each entry names the one before
	kind Kind   // of its first entry in the file, from which the kind of the row follows
}

type rowKey struct {
	org string
	id  ulid.ULID
}

func newIndex() *index { return &index{open: openRows{}} }

func newSegment(base uint64) *segment {
	return &segment{span: span{base: base}, orgs: map[string][]rowRef{}}
}

func byID(r rowRef, id ulid.ULID) int { return r.id.Compare(id) }

// place finds an id among rows, or where it belongs. New ids are nearly always the greatest.
func place(rows []rowRef, id ulid.ULID) (int, bool) {
	if n := len(rows); n == 0 || rows[n-1].id.Compare(id) < 0 {
		return n, false
	}
	return slices.BinarySearchFunc(rows, id, byID)
}

// add records one entry. Entries come in order.
func (x *index) add(e *located) {
	if x.current == nil || x.current.base != e.base {
		if x.current != nil {
			x.sealed, x.previous = append(x.sealed, x.current.span), x.current
		}
		x.current = newSegment(e.base)
	}
	x.current.add(&e.header, e.offset, e.length)
	if x.greatest.Compare(e.id) < 0 {
		x.greatest = e.id
	}
	k := rowKey{e.org, e.id}
	switch _, goesOn := x.open[k]; {
	case e.kind == KindEnded, e.kind == KindResolved && !e.header.open:
		delete(x.open, k)
	case e.header.open || e.waits || goesOn:
		x.open[k] = openRow{e.index, e.waits}
	}
}

// add records one entry of the file.
func (s *segment) add(h *header, offset int64, length int) {
	s.offsets = append(s.offsets, uint32(offset))
	s.end = offset + int64(length) + frameExtra
	if s.size == 0 || h.id.Compare(s.min) < 0 {
		s.min = h.id
	}
	if s.size == 0 || s.max.Compare(h.id) < 0 {
		s.max = h.id
	}
	s.size++
	rows := s.orgs[h.org]
	if i, ok := place(rows, h.id); ok {
		rows[i].last = h.index
	} else {
		s.orgs[h.org] = slices.Insert(rows, i, rowRef{id: h.id, last: h.index, kind: h.kind})
	}
}

// row finds a row in the file.
func (s *segment) row(k rowKey) (rowRef, bool) {
	if s == nil || !s.covers(k.id) {
		return rowRef{}, false
	}
	rows := s.orgs[k.org]
	i, ok := place(rows, k.id)
	if !ok {
		return rowRef{}, false
	}
	return rows[i], true
}

// find says where an entry of the file is.
func (s *segment) find(i uint64) (offset, length int64, ok bool) {
	if s == nil || i < s.base || i-s.base >= uint64(len(s.offsets)) {
		return 0, 0, false
	}
	at := i - s.base
	offset, end := int64(s.offsets[at]), s.end
	if at+1 < uint64(len(s.offsets)) {
		end = int64(s.offsets[at+1])
	}
	return offset, end - offset, true
}

// state is what the committer has to know of a row: an open row may go on, and a new one must be new.
// An id is new when it is none of the open rows and none of those of the last two files. Older
// files are not asked: ids are made of the time and 80 random bits, by the gateway alone.
func (x *index) state(k rowKey) rowState {
	if r, ok := x.open[k]; ok {
		return rowState{exists: true, open: !r.waits, waits: r.waits, last: r.last}
	}
	if x.greatest.Compare(k.id) < 0 {
		return rowState{}
	}
	for _, s := range []*segment{x.current, x.previous} {
		if ref, ok := s.row(k); ok {
			return rowState{exists: true, last: ref.last}
		}
	}
	return rowState{}
}

// holding returns the full file that has entry i.
func holding(sealed []span, i uint64) (span, bool) {
	n := sort.Search(len(sealed), func(k int) bool { return sealed[k].base > i }) - 1
	if n < 0 || i-sealed[n].base >= uint64(sealed[n].size) {
		return span{}, false
	}
	return sealed[n], true
}

package audit

import (
	"crypto/sha256"
	"hash"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// frontier is the right edge of the RFC 6962 tree: the roots of its complete subtrees. That is all a
// tree needs to grow and to have its root taken, so hashes are stored nowhere: whoever
// checks a log recomputes them, and no derived file can disagree with the entries. It is a value:
// a copy is the tree as it was.
type frontier struct {
	size int64
	edge [63]tlog.Hash // edge[k] is the root of 2^k leaves, where bit k of size is set
}

// add appends one leaf.
func (f *frontier) add(leaf tlog.Hash) {
	k := 0
	for ; f.size>>k&1 == 1; k++ {
		leaf = node(&f.edge[k], &leaf)
	}
	f.edge[k] = leaf
	f.size++
}

// root is the hash of the tree so far.
func (f *frontier) root() tlog.Hash {
	if f.size == 0 {
		return sha256.Sum256(nil)
	}
	low := bits.TrailingZeros64(uint64(f.size))
	h := f.edge[low]
	for k := low + 1; f.size>>k != 0; k++ {
		if f.size>>k&1 == 1 {
			h = node(&f.edge[k], &h)
		}
	}
	return h
}

func node(left, right *tlog.Hash) tlog.Hash {
	var b [1 + 2*tlog.HashSize]byte
	b[0] = 1
	copy(b[1:], left[:])
	copy(b[1+tlog.HashSize:], right[:])
	return sha256.Sum256(b[:])
}

// leafHasher hashes leaves without garbage. It is not safe for concurrent use.
type leafHasher struct {
	h   hash.Hash
	sum tlog.Hash
}

var leafPrefix = []byte{0}

func (l *leafHasher) of(payload []byte) tlog.Hash {
	if l.h == nil {
		l.h = sha256.New()
	}
	l.h.Reset()
	l.h.Write(leafPrefix)
	l.h.Write(payload)
	l.h.Sum(l.sum[:0])
	return l.sum
}

// Package trie is a persistent map: a change gives a new map that shares all but a few nodes
// with the old one, which stays as it was.
//
// It promises that a lookup allocates nothing and looks at about log64(n) nodes, that a change
// copies as many, and that a map that was handed out never changes, so that any number of
// goroutines may read it without a lock. It refuses to know an order: what is listed in an
// order is kept in one elsewhere.
//
// The nodes are those of a hash array mapped trie (Bagwell 2001) with 64 slots each and the
// entries in the node that leads to them.
package trie

import (
	"hash/maphash"
	"iter"
	"math/bits"
	"slices"
)

const (
	step = 6 // bits of a hash that one level takes
	mask = 1<<step - 1
	deep = 64 // from this shift on the hash is used up and a node is a plain list
)

// seed is drawn for each process: nobody outside can choose keys that meet.
var seed = maphash.MakeSeed()

// Map is an immutable map. The zero value is empty and ready to use.
type Map[K comparable, V any] struct {
	root *node[K, V]
	n    int
}

// Batch lets changes that follow each other share the nodes they copy: nodes a batch has made
// are changed in place by the next change of the same batch. Maps in between must not be kept;
// when the last one is handed out the batch is not used again. It serves one goroutine.
type Batch struct{ _ byte } // not empty, so that no two have one address

type node[K comparable, V any] struct {
	batch *Batch // that may change the node; nil: none
	holds uint64 // slots with an entry
	leads uint64 // slots with a node; never both
	list  []entry[K, V]
	nodes []*node[K, V]
}

type entry[K comparable, V any] struct {
	hash  uint64
	key   K
	value V
}

// From makes a map of the entries of m.
func From[K comparable, V any](m map[K]V) (out Map[K, V]) {
	b := new(Batch)
	for k, v := range m {
		out = out.With(b, k, v)
	}
	return out
}

// Len is the number of entries.
func (m Map[K, V]) Len() int { return m.n }

// Get returns the value of a key, or the zero value and false.
func (m Map[K, V]) Get(k K) (V, bool) { return m.root.get(maphash.Comparable(seed, k), k) }

// At is [Map.Get] for values whose zero value says that there is none.
func (m Map[K, V]) At(k K) V {
	v, _ := m.Get(k)
	return v
}

// With returns the map with one entry set. b may be nil.
func (m Map[K, V]) With(b *Batch, k K, v V) Map[K, V] {
	return m.with(b, entry[K, V]{maphash.Comparable(seed, k), k, v})
}

// Without returns the map without a key. b may be nil.
func (m Map[K, V]) Without(b *Batch, k K) Map[K, V] {
	return m.without(b, maphash.Comparable(seed, k), k)
}

// All lists the entries in no order that means anything.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { m.root.all(yield) }
}

func (m Map[K, V]) with(b *Batch, e entry[K, V]) Map[K, V] {
	root, more := m.root.put(b, 0, e)
	return Map[K, V]{root, m.n + more}
}

func (m Map[K, V]) without(b *Batch, h uint64, k K) Map[K, V] {
	root, fewer := m.root.drop(b, 0, h, k)
	return Map[K, V]{root, m.n - fewer}
}

// get is on the path of every decision: see BenchmarkGet.
func (n *node[K, V]) get(h uint64, k K) (V, bool) {
	for shift := uint(0); n != nil; shift += step {
		if shift >= deep {
			for i := range n.list {
				if n.list[i].key == k {
					return n.list[i].value, true
				}
			}
			break
		}
		bit := uint64(1) << (h >> shift & mask)
		if n.holds&bit != 0 {
			if e := &n.list[rank(n.holds, bit)]; e.hash == h && e.key == k {
				return e.value, true
			}
			break
		}
		if n.leads&bit == 0 {
			break
		}
		n = n.nodes[rank(n.leads, bit)]
	}
	var none V
	return none, false
}

// rank is the place of a slot among those that are used.
func rank(used, bit uint64) int { return bits.OnesCount64(used & (bit - 1)) }

// own returns a node that the batch may change: n itself when the batch made it.
func (n *node[K, V]) own(b *Batch) *node[K, V] {
	if n == nil {
		return &node[K, V]{batch: b}
	}
	if b != nil && n.batch == b {
		return n
	}
	// Room for one more: most changes add something.
	return &node[K, V]{
		batch: b, holds: n.holds, leads: n.leads,
		list:  append(make([]entry[K, V], 0, len(n.list)+1), n.list...),
		nodes: slices.Clone(n.nodes),
	}
}

// put returns the node with an entry set, and 1 when its key was not there.
func (n *node[K, V]) put(b *Batch, shift uint, e entry[K, V]) (*node[K, V], int) {
	out := n.own(b)
	if shift >= deep {
		if i := out.index(e.key); i >= 0 {
			out.list[i] = e
			return out, 0
		}
		out.list = append(out.list, e)
		return out, 1
	}
	bit := uint64(1) << (e.hash >> shift & mask)
	switch i, j := rank(out.holds, bit), rank(out.leads, bit); {
	case out.leads&bit != 0:
		child, more := out.nodes[j].put(b, shift+step, e)
		out.nodes[j] = child
		return out, more
	case out.holds&bit == 0:
		out.holds |= bit
		out.list = slices.Insert(out.list, i, e)
		return out, 1
	case out.list[i].key == e.key:
		out.list[i] = e
		return out, 0
	default: // two entries in one slot: both go a level down
		child, _ := (*node[K, V])(nil).put(b, shift+step, out.list[i])
		child, _ = child.put(b, shift+step, e)
		out.holds &^= bit
		out.leads |= bit
		out.list = slices.Delete(out.list, i, i+1)
		out.nodes = slices.Insert(out.nodes, j, child)
		return out, 1
	}
}

// drop returns the node without a key, nil when nothing is left, and 1 when the key was there.
func (n *node[K, V]) drop(b *Batch, shift uint, h uint64, k K) (*node[K, V], int) {
	if n == nil {
		return nil, 0
	}
	if shift >= deep {
		i := n.index(k)
		if i < 0 {
			return n, 0
		}
		return n.own(b).cut(i, 0)
	}
	bit := uint64(1) << (h >> shift & mask)
	i, j := rank(n.holds, bit), rank(n.leads, bit)
	if n.holds&bit != 0 {
		if n.list[i].key != k {
			return n, 0
		}
		return n.own(b).cut(i, bit)
	}
	if n.leads&bit == 0 {
		return n, 0
	}
	child, fewer := n.nodes[j].drop(b, shift+step, h, k)
	if fewer == 0 {
		return n, 0
	}
	out := n.own(b)
	// A node of one entry is never kept below another: that entry comes back up.
	if len(child.list) == 1 && len(child.nodes) == 0 {
		out.leads &^= bit
		out.holds |= bit
		out.nodes = slices.Delete(out.nodes, j, j+1)
		out.list = slices.Insert(out.list, i, child.list[0])
		return out, 1
	}
	out.nodes[j] = child
	return out, 1
}

// cut takes an entry out of a node that may be changed.
func (n *node[K, V]) cut(i int, bit uint64) (*node[K, V], int) {
	n.holds &^= bit
	n.list = slices.Delete(n.list, i, i+1)
	if len(n.list) == 0 && len(n.nodes) == 0 {
		return nil, 1
	}
	return n, 1
}

func (n *node[K, V]) index(k K) int {
	return slices.IndexFunc(n.list, func(e entry[K, V]) bool { return e.key == k })
}

func (n *node[K, V]) all(yield func(K, V) bool) bool {
	if n == nil {
		return true
	}
	for i := range n.list {
		if !yield(n.list[i].key, n.list[i].value) {
			return false
		}
	}
	for _, child := range n.nodes {
		if !child.all(yield) {
			return false
		}
	}
	return true
}

package schema

import (
	"container/list"
	"crypto/sha256"
	"sync"
	"sync/atomic"

	"github.com/ecotone-dev/ecotone/abi"
)

// Pair is what a capability's input and output are held to.
type Pair struct{ Input, Output *Schema }

// Cache keeps compiled schemas by their content, the least recently used going first, and the pair of
// each descriptor that was asked about by the descriptor itself: an invocation finds its schemas by
// one look without a lock, and hashes nothing. It is safe for concurrent use. Errors are not
// kept: what does not compile was refused at upload.
type Cache struct {
	max   int
	known atomic.Pointer[known]

	mu    sync.Mutex
	order *list.List // of *cached, most recent first
	byKey map[[sha256.Size]byte]*list.Element
}

// known are the pairs. When there are too many all are dropped at once: they are found again by their
// content.
type known struct {
	pairs sync.Map // *abi.Descriptor → Pair
	count atomic.Int64
}

type cached struct {
	key    [sha256.Size]byte
	schema *Schema
}

// NewCache makes a cache of at most max schemas (at least 1).
func NewCache(max int) *Cache {
	if max < 1 {
		max = 1
	}
	c := &Cache{max: max, order: list.New(), byKey: map[[sha256.Size]byte]*list.Element{}}
	c.known.Store(&known{})
	return c
}

// Of returns the schemas of a descriptor, which must not change any more.
func (c *Cache) Of(d *abi.Descriptor) (Pair, error) {
	k := c.known.Load()
	if p, ok := k.pairs.Load(d); ok {
		return p.(Pair), nil
	}
	in, err := c.Compile(d.InputSchema)
	if err != nil {
		return Pair{}, err
	}
	out, err := c.Compile(d.OutputSchema)
	if err != nil {
		return Pair{}, err
	}
	p := Pair{in, out}
	if _, was := k.pairs.LoadOrStore(d, p); !was && k.count.Add(1) > int64(c.max) {
		c.known.CompareAndSwap(k, &known{})
	}
	return p, nil
}

// Compile is [Compile] through the cache.
func (c *Cache) Compile(raw []byte) (*Schema, error) {
	key := sha256.Sum256(raw)
	if s := c.get(key); s != nil {
		return s, nil
	}
	s, err := Compile(raw) // outside the lock; two at once do the work twice
	if err != nil {
		return nil, err
	}
	return c.put(key, s), nil
}

func (c *Cache) get(key [sha256.Size]byte) *Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).schema
}

// put keeps s, unless another call was faster, and returns the one that is kept.
func (c *Cache) put(key [sha256.Size]byte, s *Schema) *Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[key]; e != nil {
		return e.Value.(*cached).schema
	}
	c.byKey[key] = c.order.PushFront(&cached{key, s})
	if c.order.Len() > c.max {
		last := c.order.Back()
		c.order.Remove(last)
		delete(c.byKey, last.Value.(*cached).key)
	}
	return s
}

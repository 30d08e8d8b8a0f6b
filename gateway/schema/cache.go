package schema

import (
	"container/list"
	"crypto/sha256"
	"sync"
)

// Cache keeps compiled schemas by their content, the least recently used going first. It is safe for
// concurrent use. Errors are not kept: what does not compile was refused at upload.
type Cache struct {
	mu    sync.Mutex
	max   int
	order *list.List // of *cached, most recent first
	byKey map[[sha256.Size]byte]*list.Element
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
	return &Cache{max: max, order: list.New(), byKey: map[[sha256.Size]byte]*list.Element{}}
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

package boundary

import "strings"

// copies is where what guests pass is copied to: few allocations for many calls, none for most.
// What was copied is never moved or written over, so that services may keep it for as long as they
// like. It is not safe for concurrent use.
type copies struct {
	names strings.Builder
	slab  []byte
}

const (
	firstChunk = 256
	laterChunk = 4 << 10
)

// chunk is how much to make for n bytes more, after had bytes turned out to be too few.
func chunk(n, had int) int {
	if had == 0 {
		return max(n, firstChunk)
	}
	return max(n, laterChunk)
}

// text returns a copy of view.
func (c *copies) text(view []byte) string {
	at := c.names.Len()
	if had := c.names.Cap(); len(view) > had-at {
		if len(view) > laterChunk/4 {
			return string(view)
		}
		// A builder never changes what it gave out: what was cut from the old one stays.
		c.names, at = strings.Builder{}, 0
		c.names.Grow(chunk(len(view), had))
	}
	c.names.Write(view)
	return c.names.String()[at:]
}

// bytes returns a copy of view, which is not nil.
func (c *copies) bytes(view []byte) []byte {
	at := len(c.slab)
	if had := cap(c.slab); c.slab == nil || len(view) > had-at {
		if len(view) > laterChunk/4 {
			return append(make([]byte, 0, len(view)), view...)
		}
		c.slab, at = make([]byte, 0, chunk(len(view), had)), 0
	}
	c.slab = append(c.slab, view...)
	return c.slab[at:len(c.slab):len(c.slab)]
}

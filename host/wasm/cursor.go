package wasm

import (
	"unicode/utf8"

	"github.com/ecotone-dev/ecotone/abi"
)

// cursor reads a part of the module. Its first failure is listed as a problem and makes
// every later read return zero values, so that callers look at failed where a loop could
// otherwise run on, and nowhere else.
type cursor struct {
	*problems
	data    []byte // the whole module
	pos     int
	end     int
	section string
	failed  bool
}

func (c *cursor) left() int { return c.end - c.pos }

// fail lists a problem at an offset and stops the cursor.
func (c *cursor) fail(code abi.Code, offset int, format string, args ...any) {
	if !c.failed {
		c.failed = true
		c.add(code, c.section, offset, "", format, args...)
	}
}

// refuse names a proposal and stops the cursor: what follows cannot be read.
func (c *cursor) refuse(offset int, name, what string) {
	if !c.failed {
		c.failed = true
		c.feature(c.section, offset, name, what)
	}
}

// invalid lists a problem after which reading can go on.
func (c *cursor) invalid(offset int, format string, args ...any) {
	if !c.failed {
		c.add(abi.CodeModuleInvalid, c.section, offset, "", format, args...)
	}
}

// over lists a limit that is exceeded.
func (c *cursor) over(offset int, limit abi.Limit, have, allowed int64, what string) {
	if !c.failed {
		c.add(limit.Info().Code, c.section, offset, "", "%s: %d; the limit %s is %d", what, have, limit.Info().Name, allowed)
	}
}

func (c *cursor) byte(what string) byte {
	if c.pos >= c.end {
		c.fail(abi.CodeModuleMalformed, c.pos, "ends before %s", what)
	}
	if c.failed {
		return 0
	}
	b := c.data[c.pos]
	c.pos++
	return b
}

// bytes skips n bytes and returns their range.
func (c *cursor) bytes(n uint32, what string) Range {
	if !c.failed && int64(n) > int64(c.left()) {
		c.fail(abi.CodeModuleMalformed, c.pos, "%s has %d bytes, %d remain", what, n, c.left())
	}
	if c.failed {
		return Range{}
	}
	r := Range{uint32(c.pos), uint32(c.pos) + n}
	c.pos += int(n)
	return r
}

// u32 reads an unsigned LEB128 of at most five bytes with no bit beyond the 32nd.
func (c *cursor) u32(what string) uint32 {
	// One byte is by far the most frequent form.
	if !c.failed && c.pos < c.end && c.data[c.pos] < 0x80 {
		b := c.data[c.pos]
		c.pos++
		return uint32(b)
	}
	return c.u32Long(what)
}

func (c *cursor) u32Long(what string) uint32 {
	at := c.pos
	var v uint32
	for shift := 0; shift < 35; shift += 7 {
		b := c.byte(what)
		if c.failed {
			return 0
		}
		if shift == 28 && b > 0x0f {
			c.fail(abi.CodeModuleMalformed, at, "%s is not an unsigned 32-bit LEB128 number", what)
			return 0
		}
		v |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	return 0 // not reached: a fifth byte with its high bit set is above 0x0f
}

// signed reads a signed LEB128 of the given width, in at most as many bytes as the width
// needs, with the unused bits of the last one repeating the sign.
func (c *cursor) signed(width int, what string) int64 {
	at := c.pos
	var v int64
	for shift := 0; ; shift += 7 {
		b := c.byte(what)
		if c.failed {
			return 0
		}
		v |= int64(b&0x7f) << shift
		if left := width - shift; left <= 7 {
			// The last byte there may be: no continuation, and bits from the sign bit on all equal.
			if top := int8(b<<1) >> left; b >= 0x80 || (top != 0 && top != -1) {
				c.fail(abi.CodeModuleMalformed, at, "%s is not a signed %d-bit LEB128 number", what, width)
				return 0
			}
		}
		if b < 0x80 {
			if s := shift + 7; s < 64 {
				v = v << (64 - s) >> (64 - s)
			}
			return v
		}
	}
}

// count reads the length of a vector whose items have at least minBytes each, so that what
// does not fit into the bytes that remain is refused before anything is made of it.
func (c *cursor) count(minBytes int, what string) int {
	at := c.pos
	n := c.u32("the number of " + what)
	if !c.failed && int64(n)*int64(minBytes) > int64(c.left()) {
		c.fail(abi.CodeModuleMalformed, at, "%d %s are announced, %d bytes remain", n, what, c.left())
	}
	if c.failed {
		return 0
	}
	return int(n)
}

// limited is [cursor.count] for a section whose items a limit bounds. It stops the cursor
// when there are more, since nothing may be kept of them.
func (c *cursor) limited(minBytes int, limit abi.Limit, allowed int64, what string) int {
	at := c.pos
	n := c.count(minBytes, what)
	if !c.failed && int64(n) > allowed {
		c.over(at, limit, int64(n), allowed, "too many "+what)
		c.failed = true
	}
	if c.failed {
		return 0
	}
	return n
}

// name reads a name: UTF-8 of bounded length.
func (c *cursor) name(allowed int64, what string) string {
	at := c.pos
	r := c.bytes(c.u32("the length of "+what), what)
	if c.failed {
		return ""
	}
	b := r.Of(c.data)
	if !utf8.Valid(b) {
		c.fail(abi.CodeModuleMalformed, at, "%s is not UTF-8", what)
		return ""
	}
	if int64(len(b)) > allowed {
		c.over(at, abi.LimitNameBytes, int64(len(b)), allowed, what+" is too long")
		b = b[:allowed]
		for len(b) > 0 && !utf8.Valid(b) {
			b = b[:len(b)-1]
		}
	}
	return string(b)
}

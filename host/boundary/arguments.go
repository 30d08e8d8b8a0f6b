package boundary

import (
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
)

// bound is how much of one copied argument a host call accepts. More is refused with code
// before anything is copied, or cut when the code is "".
type bound struct {
	code  abi.Code
	bytes func(*Invocation) int64
	text  bool // a name, a path, a pattern: it is copied as a string
	kept  bool // it outlives the invocation, and so shares memory with nothing
}

func upTo(code abi.Code, n int64) bound {
	return bound{code: code, bytes: func(*Invocation) int64 { return n }}
}

func upToLimit(code abi.Code, limit abi.Limit) bound {
	return bound{code: code, bytes: func(inv *Invocation) int64 { return inv.limits.Get(limit) }}
}

func (b bound) asText() bound { b.text = true; return b }

func (b bound) asKept() bound { b.kept = true; return b }

// maxArguments is more than any function has, of either kind; a test holds the table to it.
const maxArguments = 4

// argument is what one (pointer, length) pair pointed to: text when the function's handler says that
// it is, else bytes.
type argument struct {
	text  string
	bytes []byte
}

// copyArguments takes every (pointer, length) argument out of guest memory, once (S7).
// Lengths are unsigned: a negative one is a very large one and lies outside memory.
func (c *call) copyArguments(args []uint64) *abi.Error {
	words := 0
	for i := 0; i < len(c.handler.pairs); i++ {
		if !c.handler.pairs[i] {
			c.words[words] = args[i]
			words++
			continue
		}
		n, err := c.copyOne(uint32(args[i]), uint32(args[i+1]), &c.handler.data[c.given], &c.data[c.given])
		if err != nil {
			return err
		}
		c.given++
		c.line.In += int64(n)
		i++
	}
	return nil
}

// pairsOf says of each parameter of a table row whether it and the one after it are the pointer and
// length of one argument to copy.
func pairsOf(params []abi.Param) []bool {
	pairs := make([]bool, len(params))
	for i := range params {
		name, ok := strings.CutSuffix(params[i].Name, "_ptr")
		pairs[i] = ok && i+1 < len(params) && params[i+1].Name == name+"_len"
	}
	return pairs
}

func (c *call) copyOne(ptr, n uint32, b *bound, to *argument) (int, *abi.Error) {
	view, ok := c.mem.Read(ptr, n)
	if !ok {
		return 0, abi.Errorf(abi.CodePointer, "%s: %d bytes at %d lie outside the guest's memory", c.argumentName(), n, ptr)
	}
	if most := b.bytes(c.inv); int64(n) > most {
		if b.code != "" {
			if c.handler.tooBig != nil {
				c.handler.tooBig(c.inv)
			}
			return 0, abi.Errorf(b.code, "%s: %d bytes, at most %d are taken", c.argumentName(), n, most)
		}
		view = view[:most]
	}
	switch {
	case b.text:
		to.text = c.inv.copies.text(view)
	case b.kept:
		to.bytes = append(make([]byte, 0, len(view)), view...)
	default:
		to.bytes = c.inv.copies.bytes(view)
	}
	return len(view), nil
}

// argumentName is the table's name of the argument that is being copied.
func (c *call) argumentName() string {
	n := 0
	for i, pair := range c.handler.pairs {
		if pair {
			if n == c.given {
				return c.fn.Params[i].Name
			}
			n++
		}
	}
	return ""
}

// text is the i-th copied argument as a string.
func (c *call) text(i int) string {
	if a := &c.data[i]; a.bytes != nil {
		return string(a.bytes)
	}
	return c.data[i].text
}

// bytes is the i-th copied argument, which is not nil, as bytes. It must not be text.
func (c *call) bytes(i int) []byte { return c.data[i].bytes }

// word is the i-th other argument as the unsigned 32-bit number it is.
func (c *call) word(i int) uint32 { return uint32(c.words[i]) }

// window resolves (ptr, off, len) of the two functions that copy a part of a document into
// guest memory, and copies it. All of (ptr, len) must lie in memory, also what is not written.
func (c *call) window(document []byte) (Result, error) {
	ptr, off, n := c.word(0), c.word(1), c.word(2)
	if _, ok := c.mem.Read(ptr, n); !ok {
		return Result{}, abi.Errorf(abi.CodePointer, "%d bytes at %d lie outside the guest's memory", n, ptr)
	}
	rest := document[min(int64(off), int64(len(document))):]
	part := rest[:min(int64(n), int64(len(rest)))]
	if !c.mem.Write(ptr, part) {
		return Result{}, abi.Errorf(abi.CodePointer, "%d bytes at %d lie outside the guest's memory", len(part), ptr)
	}
	c.line.Out += int64(len(part))
	return value(int64(len(part))), nil
}

func value(v int64) Result { return Result{Value: v, HasValue: true} }

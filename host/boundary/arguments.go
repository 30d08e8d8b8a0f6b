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
}

func upTo(code abi.Code, n int64) bound {
	return bound{code, func(*Invocation) int64 { return n }}
}

func upToLimit(code abi.Code, limit abi.Limit) bound {
	return bound{code, func(inv *Invocation) int64 { return inv.limits.Get(limit) }}
}

// copyArguments takes every (pointer, length) argument out of guest memory, once (S7).
// Lengths are unsigned: a negative one is a very large one and lies outside memory.
func (c *call) copyArguments(args []uint64) *abi.Error {
	params := c.fn.Params
	for i := 0; i < len(params); i++ {
		if !isPair(params, i) {
			c.words = append(c.words, args[i])
			continue
		}
		data, err := c.copyOne(uint32(args[i]), uint32(args[i+1]), c.handler.data[len(c.data)], params[i].Name)
		if err != nil {
			return err
		}
		c.data = append(c.data, data)
		c.line.In += int64(len(data))
		i++
	}
	return nil
}

// isPair reports whether parameter i of a table row and the one after it are the pointer and
// length of one argument to copy.
func isPair(params []abi.Param, i int) bool {
	name, ok := strings.CutSuffix(params[i].Name, "_ptr")
	return ok && i+1 < len(params) && params[i+1].Name == name+"_len"
}

func (c *call) copyOne(ptr, n uint32, b bound, name string) ([]byte, *abi.Error) {
	view, ok := c.mem.Read(ptr, n)
	if !ok {
		return nil, abi.Errorf(abi.CodePointer, "%s: %d bytes at %d lie outside the guest's memory", name, n, ptr)
	}
	if most := b.bytes(c.inv); int64(n) > most {
		if b.code != "" {
			if c.handler.tooBig != nil {
				c.handler.tooBig(c.inv)
			}
			return nil, abi.Errorf(b.code, "%s: %d bytes, at most %d are taken", name, n, most)
		}
		view = view[:most]
	}
	// Not append to nil: an empty argument is there, and is not nil.
	data := make([]byte, len(view))
	copy(data, view)
	return data, nil
}

// text is the i-th copied argument as a string.
func (c *call) text(i int) string { return string(c.data[i]) }

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

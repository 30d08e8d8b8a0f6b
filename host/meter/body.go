package meter

import (
	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm"
)

// body writes function i with its size in front.
//
// A function whose frame is accounted becomes
//
//	take fuel and depth, block (its results) its code end, give depth back
//
// so that every way out but a trap comes by the end: a branch to the function's own label
// has the number of the block now, and return becomes a branch to it. Where depth is taken
// late there is no block: each way out gives it back.
func (r *rewriter) body(out *code, p *planner, i int) {
	fn, f := &r.m.Functions[i], &r.fact[i]
	segs := p.plan(i)
	c := append(r.scratch[:0], r.data[fn.Body.Start:fn.Code.Start]...)
	blocks, deepest := 0, 0
	next, depth := 0, uint64(0)
	var before wasm.Instruction
	var unlooked uint64
	early, taken := f.account && f.at == 0, false
	again := false // the segment at hand is a loop's that takes no parameters
	for in := range wasm.Instructions(r.data, fn.Code) {
		for ; next < len(segs) && segs[next].at == in.At.Start; next++ {
			s := &segs[next]
			switch {
			case s.check:
				enter := f.account && (next == 0 && early || s.at == f.at)
				taken = taken || enter
				r.charge(&c, max(s.price, 1))
				r.look(&c, f, max(s.price, 1), enter, s.dom < 0 && next > 0 && again)
				blocks++
				if enter && early {
					r.wrap(&c)
				}
			case int(s.paidIn) == next && s.price > 0:
				r.charge(&c, s.price)
				r.stats.Charges++
				unlooked += s.price
			}
		}
		switch in.Op {
		case opBlock, opLoop, opIf:
			depth++
			blocks++
			deepest = max(deepest, int(depth))
		case opEnd:
			if depth == 0 {
				if early {
					c.op(opEnd)
				}
				if taken {
					r.release(&c, f)
				}
				break
			}
			depth--
		case opReturn:
			if early {
				c.op(opBr)
				c.u(depth)
				before = in
				continue
			}
			if taken {
				r.release(&c, f)
			}
		case opBr:
			if taken && !early && uint64(in.Index) == depth {
				r.release(&c, f)
			}
		}
		again = in.Op == opLoop && (in.Block < 0 || len(r.m.Types[in.Block].Params) == 0)
		r.instruction(&c, in, before)
		before = in
	}
	r.scratch = c
	r.stats.MaxOverrun = max(r.stats.MaxOverrun, unlooked)
	r.stats.MaxBodyBytes = max(r.stats.MaxBodyBytes, len(c))
	r.limit(abi.LimitBodyBytes, 2, len(c), fn)
	r.limit(abi.LimitBlocks, 2, blocks, fn)
	r.limit(abi.LimitNesting, 1, deepest-2, fn)
	out.bytes(c)
}

// charge takes fuel.
func (r *rewriter) charge(c *code, price uint64) {
	c.global(r.fuel)
	c.i64(int64(price))
	c.op(opI64Sub)
	c.setGlobal(r.fuel)
}

// look asks the host when there is no fuel. Where an accounted function is entered it takes
// depth and looks at that too.
func (r *rewriter) look(c *code, f *fact, price uint64, enter, again bool) {
	r.stats.Checks++
	// A branch over the call, not an if around it: the engine's code for tight loops is faster by
	// half.
	c.op(opBlock, blockVoid)
	c.global(r.fuel)
	if enter {
		c.global(r.depth)
		c.i64(f.frame)
		c.op(opI64Sub)
		c.setGlobal(r.depth)
		c.global(r.depth)
		c.op(opI64Or)
	}
	c.i64(0)
	c.op(opI64GeS, opBrIf, 0)
	c.call(r.helpers.of(opSlow, 0))
	if again {
		// Back to the head, and pay again: the way on has one origin, so what the engine knew
		// before the look it still knows behind it.
		c.global(r.fuel)
		c.i64(int64(price))
		c.op(opI64Add)
		c.setGlobal(r.fuel)
		c.op(opBr, 1)
	}
	c.op(opEnd)
}

// wrap opens the block around an accounted function's code.
func (r *rewriter) wrap(c *code) {
	switch results := r.m.Types[r.m.Functions[r.current].Type].Results; len(results) {
	case 0:
		c.op(opBlock, blockVoid)
	case 1:
		c.op(opBlock, byte(results[0]))
	default:
		c.op(opBlock)
		c.s(int64(r.types.of(wasm.FuncType{Results: results})))
	}
}

// release gives an accounted function's depth back.
func (r *rewriter) release(c *code, f *fact) {
	c.global(r.depth)
	c.i64(f.frame)
	c.op(opI64Add)
	c.setGlobal(r.depth)
}

// instruction writes one instruction as it was, its function index moved, or what pays for
// its length first.
func (r *rewriter) instruction(c *code, in, before wasm.Instruction) {
	switch in.Op {
	case opCall:
		c.call(r.moved(in.Index))
		return
	case opRefFunc:
		c.op(opRefFunc)
		c.u(uint64(r.moved(in.Index)))
		return
	case opMemoryCopy, opMemoryFill, opMemoryInit:
		if _, ok := written(in, before); !ok {
			c.call(r.helpers.of(in.Op, in.Index))
			return
		}
	case opMemoryGrow:
		c.call(r.helpers.of(in.Op, 0))
		return
	case opTableGrow:
		c.call(r.helpers.of(in.Op, 0))
	case opTableCopy, opTableInit, opTableFill:
		c.call(r.helpers.of(opTableCopy, 0))
	}
	*c = append(*c, in.At.Of(r.data)...)
}

package meter

import "github.com/ecotone-dev/ecotone/host/wasm"

// Where fuel is taken, and where it is looked at.
//
// A function is cut into segments at branches, joins and calls. Each is dominated by an
// earlier one, and may be paid there: who gets here has been there. Paying early saves the
// instructions of paying, and makes a path that turns off pay for what it did not run; so
// only so much is paid early in one place.
const (
	foldSegment = 24 // the dearest segment that may be
	foldTotal   = 96
)

// Fuel is looked at in the entry and in loop heads, and where work begins that follows a call:
// a deep recursion that unwinds passes no entry and no loop head. A function may have some units of
// such work unlooked at for each byte of its frame, so that all of a stack together has no more than
// so many times the stack's bytes: with 16 MiB, some milliseconds.
const unlookedPerByte = 5

// segment is a stretch of code that runs from its begin to its end unless a branch leaves it.
type segment struct {
	at     uint32 // offset of its first instruction, where it would be paid
	price  uint64 // with what is paid here for others
	extra  uint64 // of that, for others
	owed   uint64 // what the function called just before took without a look
	dom    int32  // an earlier segment that always ran before; -1 for the entry and loop heads
	behind bool   // a call may lie between the two
	paidIn int32  // the segment it is paid in: itself, unless folded
	check  bool   // fuel is looked at
	late   bool   // a call may lie between the last look and here
}

// open is a block that is being gone through.
type open struct {
	op    uint16
	seg   int32
	calls int
}

// planner keeps its buffers from function to function.
type planner struct {
	r     *rewriter
	segs  []segment
	open  []open
	calls int
	dead  bool
}

// plan cuts function i into segments and decides where each is paid.
func (p *planner) plan(i int) []segment {
	fn, f := &p.r.m.Functions[i], &p.r.fact[i]
	if f.leaf {
		return nil
	}
	p.segs, p.open, p.calls, p.dead = p.segs[:0], p.open[:0], 0, false
	p.begin(fn.Code.Start, -1, false)
	p.segs[0].check = f.at == 0
	p.segs[0].price = priceEntry + uint64(p.r.locals(fn))/64
	var before wasm.Instruction
	for in := range wasm.Instructions(p.r.data, fn.Code) {
		p.instruction(in, before)
		before = in
	}
	p.fold(f.at, unlookedPerByte*uint64(f.frame))
	return p.segs
}

func (p *planner) begin(at uint32, dom int32, behind bool) {
	n := int32(len(p.segs))
	p.segs = append(p.segs, segment{at: at, dom: dom, behind: behind, paidIn: n})
}

func (p *planner) instruction(in, before wasm.Instruction) {
	cur, next := int32(len(p.segs)-1), in.At.End
	if !p.dead {
		p.segs[cur].price += p.r.price(in, before)
	}
	switch in.Op {
	case opBlock:
		p.open = append(p.open, open{in.Op, cur, p.calls})
	case opLoop:
		p.open = append(p.open, open{in.Op, cur, p.calls})
		p.begin(next, -1, false)
	case opIf:
		p.open = append(p.open, open{in.Op, cur, p.calls})
		p.begin(next, cur, false)
	case opElse:
		p.begin(next, p.open[len(p.open)-1].seg, false)
		p.dead = false
	case opEnd:
		if len(p.open) > 0 {
			b := p.open[len(p.open)-1]
			p.open = p.open[:len(p.open)-1]
			p.begin(next, b.seg, p.calls != b.calls)
			p.dead = false
		}
	case opBr, opBrTable, opReturn, opUnreachable:
		p.dead = true
	case opCall:
		if in.Index < p.r.imported || p.r.fact[in.Index-p.r.imported].leaf {
			return
		}
		p.calls++
		p.begin(next, cur, true)
		p.segs[cur+1].owed = p.r.fact[in.Index-p.r.imported].owed
	case opCallIndirect:
		p.calls++
		p.begin(next, cur, true)
	}
}

// fold decides, in order, which segments are paid in one that dominates them, and where fuel
// is looked at. at is where depth is taken, if that is not the entry.
func (p *planner) fold(at uint32, unlooked uint64) {
	for i := range p.segs {
		s := &p.segs[i]
		if s.dom < 0 {
			s.check = s.check || i > 0
			continue
		}
		if s.at == at {
			s.check = true
			continue
		}
		d := &p.segs[s.dom]
		s.late = d.late || s.behind
		if s.late && s.price+s.owed > unlooked {
			s.check, s.late = true, false
			continue
		}
		if s.late {
			unlooked -= s.price + s.owed
		}
		if to := &p.segs[d.paidIn]; s.price <= foldSegment && to.extra+s.price <= foldTotal {
			s.paidIn = d.paidIn
			to.price += s.price
			to.extra += s.price
		}
	}
}

// price is what an instruction costs where it stands: lengths that are written in the code
// and leaves that are called are part of it.
func (r *rewriter) price(in, before wasm.Instruction) uint64 {
	p := price(in)
	if in.Op == opCall && in.Index >= r.imported {
		if f := &r.fact[in.Index-r.imported]; f.leaf {
			p += f.price
		}
	}
	if n, ok := written(in, before); ok {
		p += byLength(n)
	}
	return p
}

// written returns the length of an instruction on memory when it is a constant just before
// it, and no more than a piece.
func written(in, before wasm.Instruction) (uint64, bool) {
	switch in.Op {
	case opMemoryCopy, opMemoryFill, opMemoryInit:
		n := uint32(before.Const)
		return uint64(n), before.Op == opI32Const && n <= PieceBytes
	}
	return 0, false
}

package meter

import "github.com/ecotone-dev/ecotone/host/wasm"

// Taking depth late.
//
// A recursion's last calls, which are the most, call nobody: they find that there is nothing to
// do and return. So a function that can be on the stack more than once need not have taken depth
// before its first call: of all on the stack only the last has not, and room for one such frame
// is kept free. Fuel is looked at in the same place. What is taken before is little, and those
// who call it count it as their own.
const (
	lateOwed  = 32      // the most that is taken before the first look
	lateFrame = 4 << 10 // the largest frame that is not accounted while its function calls nobody
)

// lateness finds the place in a function: the last segment outside of every block that begins
// before the first call. There must be no loop before it, nor a conditional branch out of the
// function anywhere, since depth is given back where the function is left.
type lateness struct {
	r     *rewriter
	f     *fact
	level int
	bound bool // nothing that follows moves the place
	never bool
}

func newLateness(r *rewriter, f *fact) lateness { return lateness{r: r, f: f} }

// instruction is told each instruction, and the price of all before it.
func (l *lateness) instruction(in wasm.Instruction, before uint64) {
	switch in.Op {
	case opBlock, opIf:
		l.level++
	case opLoop:
		l.level++
		l.bound = true
	case opEnd:
		if l.level--; l.level == 0 && !l.bound {
			l.f.at, l.f.owed = in.At.End, before
		}
	case opBrIf:
		l.never = l.never || int(in.Index) >= l.level
	case opBrTable:
		s := scanner{l.r.data, int(in.At.Start) + 1}
		for range s.u() + 1 {
			l.never = l.never || int(s.u()) >= l.level
		}
	case opCall, opCallIndirect, opMemoryCopy, opMemoryFill, opMemoryInit, opMemoryGrow,
		opTableInit, opTableCopy, opTableFill, opTableGrow:
		l.bound = true
	}
}

func (l *lateness) done() {
	if f := l.f; l.never || f.owed > lateOwed || f.frame > lateFrame {
		f.at, f.owed = 0, 0
	}
}

// lates decides, once it is known whose frames are accounted, which of them are so late: not
// those an indirect call reaches, since what it reaches is not known to the caller. It returns
// the bytes to keep free for the one that is not accounted.
func (r *rewriter) lates() (room int64) {
	for i := range r.fact {
		f := &r.fact[i]
		if !f.account || r.reachable[i] {
			f.at, f.owed = 0, 0
		}
		if f.at != 0 {
			room = max(room, f.frame)
		}
	}
	return room
}

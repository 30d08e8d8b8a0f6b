package meter

import "github.com/ecotone-dev/ecotone/host/wasm"

// way is an open block, going forward: what was written in it on the way at hand, and what differs
// at its end by the ways seen so far.
type way struct {
	block     int32
	loop      bool
	ways      int
	led       bool // by the branch at hand
	now, then int  // sets
}

// joins finds for each block which locals differ at its end by the way that leads there. It reports
// false when that takes too long.
func (e *frames) joins() bool {
	w := e.words
	e.sets = e.sets[:0]
	var open []way
	push := func(block int32, loop bool) *way {
		at := len(e.sets)
		e.sets = append(e.sets, make([]uint64, 2*w)...)
		open = append(open, way{block: block, loop: loop, now: at, then: at + w})
		return &open[len(open)-1]
	}
	push(-1, false)
	sum := make([]uint64, w)
	for i := range e.places {
		p := &e.places[i]
		top := &open[len(open)-1]
		switch p.op {
		case opBlock, opIf:
			push(int32(p.index), false)
			continue
		case opLoop:
			n := push(int32(p.index), true)
			copy(e.sets[n.now:n.now+w], e.inside[int(p.match)*w:])
			continue
		case opElse, opEnd:
			if !p.dead {
				union(e.sets[top.then:top.then+w], e.sets[top.now:top.now+w])
				top.ways++
			}
			if p.op == opElse {
				clear(e.sets[top.now : top.now+w])
				continue
			}
			if len(open) == 1 {
				continue
			}
			then := e.sets[top.then : top.then+w]
			if top.block >= 0 && top.ways+b2i(e.places[p.match].op == opIf) > 1 {
				copy(e.merged[int(top.block)*w:], then)
			}
			outer := &open[len(open)-2]
			union(e.sets[outer.now:outer.now+w], then)
			e.sets = e.sets[:top.now]
			open = open[:len(open)-1]
			continue
		}
		if p.dead {
			continue
		}
		switch p.op {
		case opLocalSet, opLocalTee:
			e.sets[top.now+int(p.index/64)] |= 1 << (p.index % 64)
		case opBr, opBrIf, opBrTable:
			far := 0
			e.branches(wasm.Instruction{Op: p.op, Index: p.index, At: wasm.Range{Start: p.at}}, func(label uint32) {
				o := &open[len(open)-1-int(label)]
				o.ways, o.led = o.ways+1, true
				far = max(far, int(label))
			})
			if e.work -= w * (far + 1); e.work < 0 {
				return false
			}
			clear(sum)
			for k := range far + 1 {
				o := &open[len(open)-1-k]
				union(sum, e.sets[o.now:o.now+w])
				if o.led && !o.loop {
					union(e.sets[o.then:o.then+w], sum)
				}
				o.led = false
			}
		}
	}
	return true
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

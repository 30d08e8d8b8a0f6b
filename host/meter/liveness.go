package meter

import (
	"math/bits"

	"github.com/ecotone-dev/ecotone/host/wasm"
)

// scopes going backward keep sets of locals; they lie one after the other in frames.sets.
type backScope struct {
	start     int32
	loop      int  // its number, or -1
	otherwise bool // the else was passed
	sets      int  // where its sets begin
}

// The sets of a backScope.
const (
	setLabel      = iota // alive where a branch to it goes
	setLabelCross        // and taken from its register after that
	setAfter             // alive behind the end
	setAfterCross
	setElse // alive where the else begins
	setElseCross
	setWritten // written inside
	setJoined  // taken behind the end
	setsEach
)

// backward finds which values of locals need a place, and what they take. The first time through,
// not counting, it only learns what is alive at the heads of loops: a way that goes round a loop
// finds nothing alive that it would not have found without.
func (e *frames) backward(counting bool) (bytes int64) {
	e.back, e.sets = e.back[:0], e.sets[:0]
	e.live, e.crossed = empty(e.live, e.words), empty(e.crossed, e.words)
	for i := len(e.places) - 1; i >= 0; i-- {
		p := &e.places[i]
		switch p.op {
		case opEnd:
			p.takes = p.match >= 0 && e.places[p.match].targeted
			e.close(p, counting)
			continue
		case opElse:
			s := &e.back[len(e.back)-1]
			copy(e.set(s, setElse), e.live)
			copy(e.set(s, setElseCross), e.crossed)
			s.otherwise = true
			copy(e.live, e.set(s, setAfter))
			copy(e.crossed, e.set(s, setAfterCross))
			continue
		case opBlock, opLoop, opIf:
			bytes += e.begin(p, counting)
		}
		if p.dead {
			continue
		}
		switch p.op {
		case opBr, opBrTable:
			clear(e.live)
			clear(e.crossed)
			e.reach(p)
		case opBrIf:
			e.reach(p)
		case opReturn, opUnreachable:
			clear(e.live)
			clear(e.crossed)
		case opLocalGet:
			e.live[p.index/64] |= 1 << (p.index % 64)
		case opLocalSet, opLocalTee:
			word, bit := p.index/64, uint64(1)<<(p.index%64)
			if counting && e.crossed[word]&bit != 0 {
				bytes += int64(slot(e.types[p.index]))
			}
			e.live[word] &^= bit
			e.crossed[word] &^= bit
			written := e.set(&e.back[len(e.back)-1], setWritten)
			written[word] |= bit
		}
		alive := int(p.height) + count(e.live)
		e.peak = max(e.peak, alive)
		if p.takes = p.takes || alive > crowded; p.takes {
			union(e.crossed, e.live)
		}
	}
	for x := range e.params {
		if e.crossed[x/64]&(1<<(x%64)) != 0 {
			bytes += int64(slot(e.types[x]))
		}
	}
	return bytes
}

func empty(set []uint64, words int) []uint64 { return append(set[:0], make([]uint64, words)...) }

// close is the end of a block, where going backward begins with it.
func (e *frames) close(p *place, counting bool) {
	parent := len(e.back) - 1
	e.back = append(e.back, backScope{start: p.match, sets: len(e.sets), loop: -1})
	e.sets = append(e.sets, make([]uint64, setsEach*e.words)...)
	s := &e.back[len(e.back)-1]
	copy(e.set(s, setJoined), e.crossed)
	if p.takes {
		union(e.crossed, e.live)
	}
	copy(e.set(s, setAfter), e.live)
	copy(e.set(s, setAfterCross), e.crossed)
	if p.match < 0 || e.places[p.match].op != opLoop {
		copy(e.set(s, setLabel), e.live)
		copy(e.set(s, setLabelCross), e.crossed)
		return
	}
	s.loop = int(e.places[p.match].match)
	if counting {
		head := e.set(s, setLabel)
		copy(head, e.heads[s.loop*e.words:(s.loop+1)*e.words])
		for ; parent >= 0; parent-- {
			if outer := &e.back[parent]; outer.loop >= 0 {
				union(head, e.set(outer, setLabel))
				break
			}
		}
		copy(e.set(s, setLabelCross), head)
	}
}

// begin is the beginning of a block, where going backward is done with it. It returns the room for
// what locals become where ways join.
func (e *frames) begin(p *place, counting bool) (bytes int64) {
	s := &e.back[len(e.back)-1]
	written := e.set(s, setWritten)
	switch {
	case p.op == opLoop && !counting:
		copy(e.heads[s.loop*e.words:], e.live)
		copy(e.inside[s.loop*e.words:], written)
	case p.op == opLoop:
		head := e.set(s, setLabel)
		union(e.live, head)
		bytes = e.sizeOf(head, written)
	case p.op == opIf:
		which := setAfter
		if s.otherwise {
			which = setElse
		}
		union(e.live, e.set(s, which))
		union(e.crossed, e.set(s, which+1))
		fallthrough
	default:
		if counting && e.places[s.start].targeted {
			bytes = e.sizeOf(e.set(s, setJoined), e.merged[int(p.index)*e.words:][:e.words])
		}
	}
	e.back = e.back[:len(e.back)-1]
	union(e.set(&e.back[len(e.back)-1], setWritten), written)
	e.sets = e.sets[:s.sets]
	return bytes
}

// reach adds what is alive where a branch goes.
func (e *frames) reach(p *place) {
	e.branches(wasm.Instruction{Op: p.op, Index: p.index, At: wasm.Range{Start: p.at}}, func(label uint32) {
		s := &e.back[len(e.back)-1-int(label)]
		union(e.live, e.set(s, setLabel))
		union(e.crossed, e.set(s, setLabelCross))
	})
}

// set returns a set of the scope's.
func (e *frames) set(s *backScope, which int) []uint64 {
	at := s.sets + which*e.words
	return e.sets[at : at+e.words : at+e.words]
}

func (e *frames) sizeOf(set, and []uint64) (bytes int64) {
	for w := range set {
		for b := set[w] & and[w]; b != 0; b &= b - 1 {
			bytes += int64(slot(e.types[w*64+bits.TrailingZeros64(b)]))
		}
	}
	return bytes
}

func union(to, from []uint64) {
	for w := range to {
		to[w] |= from[w]
	}
}

func count(set []uint64) (n int) {
	for _, w := range set {
		n += bits.OnesCount64(w)
	}
	return n
}

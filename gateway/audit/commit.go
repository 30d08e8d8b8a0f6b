package audit

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"runtime"
	"time"
)

// commitLoop takes what waits and commits it, a group at a time.
func (l *Log) commitLoop() {
	defer close(l.done)
	var batch []*request
	for last := false; !last; {
		// Before the queue is taken, whoever can run gets to put something in: the more share a
		// commit, the less each pays. When nobody can, nothing is lost.
		batch, last = l.queue.take(batch[:0], runtime.Gosched)
		for rest := batch; len(rest) > 0; {
			n, size := 1, rest[0].bytes()
			for ; n < len(rest) && size+rest[n].bytes() <= maxGroup; n++ {
				size += rest[n].bytes()
			}
			l.commit(rest[:n], size)
			rest = rest[n:]
		}
		clear(batch)
	}
}

// rowState is a row as the group being built sees it.
type rowState struct {
	exists, open, waits bool
	last                uint64
}

var errRowState = errors.New("the event does not fit the row's state")

// fits reports whether an event of kind k may follow in a row: decided opens it, ended closes it,
// and nothing comes before or after. What waits is resolved first, once. One id is one row (X48).
func (s rowState) fits(k Kind) bool {
	if k == KindDecided || standalone(k) {
		return !s.exists
	}
	if k == KindResolved {
		return s.waits
	}
	return s.open
}

// opens reports whether an event of this kind begins something. Those stop at the reserve; what ends
// something may use it, so that what runs can be closed.
func opens(k Kind) bool {
	return k != KindEffectClosed && k != KindEnded && k != KindSystem && k != KindResolved
}

// group is what the committer builds. It is kept from one commit to the next, so that an entry costs
// no garbage.
type group struct {
	tree   frontier
	leaf   leafHasher
	frames []byte
	nonces []byte
	rows   map[rowKey]rowState
	locs   []located
	kept   []*request
	sync   bool // before it is answered
}

// keptFrames bounds the buffer that is kept; few groups are larger.
const keptFrames = 1 << 20

// begin makes a group ready for n entries of size bytes that continue a tree.
func (g *group) begin(tree *frontier, n, size int) {
	if g.rows == nil {
		g.rows = map[rowKey]rowState{}
	}
	if cap(g.frames) > keptFrames {
		g.frames = nil
	}
	if cap(g.frames) < size {
		g.frames = make([]byte, 0, size+size/4)
	}
	if cap(g.nonces) < n*nonceBytes {
		g.nonces = make([]byte, n*nonceBytes)
	}
	g.nonces = g.nonces[:n*nonceBytes]
	rand.Read(g.nonces) // one system call for the group
	g.tree, g.frames = *tree, g.frames[:0]
	clear(g.rows)
	clear(g.kept)
	g.sync = false
	g.locs, g.kept = g.locs[:0], g.kept[:0]
}

// add seals a request whose header is complete into the group; at is the offset of its frame.
func (g *group) add(r *request, base uint64, at int64) error {
	aead, err := r.key.sealer(base)
	if err != nil {
		return err
	}
	start := len(g.frames)
	b := binary.BigEndian.AppendUint32(g.frames, 0)
	b = r.header.append(b)
	head := len(b)
	b = append(b, g.nonces[:nonceBytes]...)
	g.nonces = g.nonces[nonceBytes:]
	b = aead.Seal(b, b[head:], r.body, b[start+4:head])
	payload := b[start+4:]
	binary.BigEndian.PutUint32(b[start:], uint32(len(payload)))
	g.frames = binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
	g.tree.add(g.leaf.of(payload))
	g.locs = append(g.locs, located{header: r.header, base: base, offset: at + int64(start), length: len(payload)})
	g.kept = append(g.kept, r)
	g.sync = g.sync || r.kind == KindAdmin // what it is about is in a store that synchronises
	return nil
}

// commit makes requests durable, as the mode says, and answers them. Any failure to write poisons
// the log: what is on disk is then unknown, and only opening it again finds out.
func (l *Log) commit(requests []*request, size int) {
	err := l.failure()
	if err == nil {
		err = l.makeRoom(int64(size))
	}
	if err != nil {
		for _, r := range requests {
			r.answer(unavailable(err))
		}
		return
	}
	// Nobody else changes the tree, and nobody needs the lock to read what only this goroutine writes.
	g := &l.group
	g.begin(&l.tree, len(requests), size)
	low := l.space.take(uint64(size))
	now := max(l.o.Now().UnixMilli(), l.lastTime, 0)
	synced := uint64(l.onDisk.Load())
	for _, r := range requests {
		k := rowKey{r.org, r.id}
		state, ok := g.rows[k]
		if !ok {
			state = l.rowState(k)
		}
		var err error
		switch {
		case low != nil && opens(r.kind):
			err = low
		case !state.fits(r.kind):
			err = errRowState
		case r.key.gone.Load():
			err = errErased
		}
		if err == nil {
			r.index, r.time, r.keyID, r.synced = uint64(g.tree.size), now, r.key.id, synced
			if state.exists {
				r.prev = state.last + 1
			}
			r.at.Index, r.at.Time = r.index, time.UnixMilli(now).UTC()
			err = g.add(r, l.w.base, l.w.size)
		}
		if err != nil {
			r.answer(unavailable(err))
			continue
		}
		g.rows[k] = rowState{exists: true, open: r.open || (state.open && r.kind != KindEnded), waits: r.waits, last: r.index}
	}
	if len(g.kept) == 0 {
		return
	}
	g.sync = g.sync || l.o.Durability == DurabilityPower
	if err := l.w.append(g.frames, g.sync); err != nil {
		l.poison(err)
		for _, r := range g.kept {
			r.answer(unavailable(err))
		}
		return
	}
	l.lastTime = now
	l.publish(g)
	for _, r := range g.kept {
		r.answer(nil)
	}
}

// publish makes a written group visible to queries and to the heads.
func (l *Log) publish(g *group) {
	l.mu.Lock()
	for i := range g.locs {
		l.index.add(&g.locs[i])
	}
	l.tree, l.end = g.tree, l.w.size
	l.mu.Unlock()
	if g.sync {
		l.reached(g.tree.size)
	}
	select {
	case l.dirty <- struct{}{}:
	default: // a head is on its way that will cover this
	}
}

// rowState looks a row up in what is committed.
func (l *Log) rowState(k rowKey) rowState {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.index.state(k)
}

// makeRoom begins a new pair of files when the last is full, and keeps what no head covers within
// its bound.
func (l *Log) makeRoom(n int64) error {
	l.mu.RLock()
	uncovered := l.end - l.coveredEnd
	l.mu.RUnlock()
	switch {
	case l.w.size >= l.o.SegmentBytes && l.tree.size > int64(l.w.base):
		return l.rotate()
	case uncovered+n > maxUncovered:
		return l.cover()
	}
	return nil
}

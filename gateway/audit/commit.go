package audit

import (
	"errors"
	"time"
)

// request is an event on its way to the committer.
type request struct {
	header // kind, org, id, open; the committer fills in the rest
	body   []byte
	done   chan result // nil: nobody waits
}

type result struct {
	at  Position
	err error
}

func (r *request) answer(at Position, err error) {
	if r.done != nil {
		r.done <- result{at, err}
	}
}

// bytes bounds what the request adds to a group.
func (r *request) bytes() int {
	return len(r.body) + headerFixed + len(r.org) + sealOverhead + frameExtra
}

// commitLoop collects requests into groups and commits them: at once when somebody waits, after a
// short while otherwise.
func (l *Log) commitLoop() {
	defer close(l.done)
	var (
		group   []*request
		size    int
		waiting bool
		idle    = time.NewTimer(asyncDelay)
	)
	defer idle.Stop()
	flush := func() {
		if len(group) > 0 {
			l.commit(group)
			clear(group)
			group, size, waiting = group[:0], 0, false
		}
	}
	add := func(r *request) {
		if size+r.bytes() > maxGroup {
			flush()
		}
		if len(group) == 0 {
			idle.Reset(asyncDelay)
		}
		group, size, waiting = append(group, r), size+r.bytes(), waiting || r.done != nil
	}
	drain := func() {
		for range queueLength {
			select {
			case r := <-l.queue:
				add(r)
			default:
				return
			}
		}
	}
	for {
		select {
		case r := <-l.queue:
			add(r)
			drain()
			if waiting {
				flush()
			}
		case <-idle.C:
			flush()
		case <-l.stop: // nothing is sent any more
			drain()
			flush()
			return
		}
	}
}

// rowState is a row as the group being built sees it.
type rowState struct {
	exists, open bool
	last         uint64
}

var errRowState = errors.New("the event does not fit the row's state")

// fits reports whether an event of kind k may follow in a row: decided opens it, ended closes it,
// and nothing comes before or after. One id is one row (X48).
func (s rowState) fits(k Kind) bool {
	if k == KindDecided || standalone(k) {
		return !s.exists
	}
	return s.open
}

// opens reports whether an event of this kind begins something. Those stop at the reserve; what ends
// something may use it, so that what runs can be closed.
func opens(k Kind) bool { return k != KindEffectClosed && k != KindEnded && k != KindSystem }

// commit makes a group durable and answers it. Any failure to write poisons the log: what is on
// disk is then unknown, and only opening it again finds out.
func (l *Log) commit(group []*request) {
	l.mu.RLock()
	poison := l.poison
	l.mu.RUnlock()
	if poison != nil {
		for _, r := range group {
			r.answer(Position{}, unavailable(poison))
		}
		return
	}
	if l.w.size >= l.o.SegmentBytes && l.tree.size > int64(l.w.base) {
		if err := l.w.create(uint64(l.tree.size)); err != nil {
			l.fail(group, err)
			return
		}
	}
	total := 0
	for _, r := range group {
		total += r.bytes()
	}
	var (
		low    = l.room(int64(total))
		tree   = l.tree
		now    = max(l.o.Now().UnixMilli(), l.lastTime, 0)
		frames = make([]byte, 0, total)
		rows   = make(map[rowKey]rowState, len(group))
		locs   = make([]located, 0, len(group))
		kept   = make([]*request, 0, len(group))
	)
	for i, r := range group {
		if low != nil && opens(r.kind) {
			r.answer(Position{}, unavailable(low))
			continue
		}
		k := rowKey{r.org, r.id}
		state, ok := rows[k]
		if !ok {
			state = l.rowState(k)
		}
		if !state.fits(r.kind) {
			r.answer(Position{}, unavailable(errRowState))
			continue
		}
		aead, id, err := l.ring.aead(r.org, l.w.base, false)
		if err != nil {
			r.answer(Position{}, unavailable(err))
			continue
		}
		r.index, r.time, r.key = uint64(tree.size), now, id
		if state.exists {
			r.prev = state.last + 1
		}
		payload := r.header.append(make([]byte, 0, r.bytes()))
		payload = aead.Seal(payload, nil, r.body, payload)
		if err := tree.add(payload); err != nil {
			l.fail(append(kept, group[i:]...), err)
			return
		}
		locs = append(locs, located{header: r.header, base: l.w.base, offset: l.w.size + int64(len(frames)), length: len(payload)})
		frames = appendFrame(frames, payload)
		rows[k] = rowState{exists: true, open: r.open || (state.open && r.kind != KindEnded), last: r.index}
		kept = append(kept, r)
	}
	if len(kept) == 0 {
		return
	}
	root, err := tree.root()
	if err != nil {
		l.fail(kept, err)
		return
	}
	h, err := sign(l.sign, tree.size, root)
	if err == nil {
		err = l.w.group(frames, h.note)
	}
	if err != nil {
		l.fail(kept, err)
		return
	}
	l.tree, l.lastTime = tree, now
	l.mu.Lock()
	for _, e := range locs {
		l.index.add(e)
	}
	l.head = h.note
	l.mu.Unlock()
	for _, r := range kept {
		r.answer(Position{Index: r.index, ID: r.id.String(), Time: time.UnixMilli(now).UTC()}, nil)
	}
}

// rowState looks a row up in what is committed.
func (l *Log) rowState(k rowKey) rowState {
	l.mu.RLock()
	defer l.mu.RUnlock()
	ref, ok := l.index.row(k)
	_, open := l.index.open[k]
	return rowState{exists: ok, open: open, last: ref.last}
}

// fail poisons the log and answers a group.
func (l *Log) fail(group []*request, err error) {
	l.mu.Lock()
	l.poison = err
	l.mu.Unlock()
	for _, r := range group {
		r.answer(Position{}, unavailable(err))
	}
}

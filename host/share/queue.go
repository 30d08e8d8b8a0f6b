package share

// The slow path: a turn waits, here or already.

// enqueue has a turn wait, unless there is a token by now, which it takes: then it reports false.
func (s *Scheduler) enqueue(t *Turn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		w := s.word.Load()
		if free(w) > 0 {
			if s.word.CompareAndSwap(w, w-oneFree) {
				return false
			}
			continue
		}
		if s.word.CompareAndSwap(w, w+oneWaiting) {
			s.push(t)
			return true
		}
	}
}

// swap hands the token of a turn to the one that is furthest behind, and has the turn wait. It
// reports false when all that wait are ahead of the turn.
func (s *Scheduler) swap(t *Turn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	best := s.best()
	if best == nil || best.org.at.Load()-t.org.at.Load() > 0 {
		return false
	}
	s.remove(best)
	s.push(t)
	t.held = false
	best.ready <- struct{}{}
	return true
}

// release gives a token to the turn that is furthest behind, or makes it free.
func (s *Scheduler) release() {
	if s.give() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	best := s.best()
	if best == nil { // it withdrew
		s.word.Add(oneFree)
		return
	}
	s.remove(best)
	s.word.Add(^uint64(oneWaiting - 1))
	best.ready <- struct{}{}
}

// withdraw takes a turn out of the queue. It reports false when it is not in it any more.
func (s *Scheduler) withdraw(t *Turn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.queued {
		return false
	}
	s.remove(t)
	s.word.Add(^uint64(oneWaiting - 1))
	return true
}

// best is the first turn of the organisation that is furthest behind, or nil.
func (s *Scheduler) best() *Turn {
	var best *Turn
	var at int64
	for _, o := range s.queued {
		if here := o.at.Load(); best == nil || here-at < 0 || (here == at && o.first.came < best.came) {
			best, at = o.first, here
		}
	}
	return best
}

func (s *Scheduler) push(t *Turn) {
	if t.ready == nil {
		t.ready = make(chan struct{}, 1)
	}
	o := t.org
	s.came++
	t.queued, t.came, t.prev, t.next = true, s.came, o.last, nil
	if o.last == nil {
		o.first = t
		s.queued = append(s.queued, o)
	} else {
		o.last.next = t
	}
	o.last = t
}

func (s *Scheduler) remove(t *Turn) {
	o := t.org
	if t.prev == nil {
		o.first = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		o.last = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.queued, t.prev, t.next = false, nil, nil
	if o.first != nil {
		return
	}
	for i := range s.queued {
		if s.queued[i] == o {
			last := len(s.queued) - 1
			s.queued[i], s.queued[last] = s.queued[last], nil
			s.queued = s.queued[:last]
			return
		}
	}
}

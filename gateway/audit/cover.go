package audit

import "time"

// coverLoop makes a head [CoverEvery] after the first entry that none covers.
func (l *Log) coverLoop() {
	defer close(l.covered)
	pause := time.NewTimer(CoverEvery)
	defer pause.Stop()
	for {
		select {
		case <-l.dirty:
		case <-l.stop:
			return
		}
		pause.Reset(CoverEvery)
		select {
		case <-pause.C:
			_ = l.cover() // a failure has poisoned the log
		case <-l.stop:
			return
		}
	}
}

// cover signs a head over everything that is committed and makes it durable, entries first: a head
// on disk means that its entries are on disk, in either mode. It may be called from anywhere.
func (l *Log) cover() error {
	l.covering.Lock()
	defer l.covering.Unlock()
	return l.coverLocked()
}

// coverLocked is cover; l.covering must be held.
func (l *Log) coverLocked() error {
	l.mu.RLock()
	tree, end, size := l.tree, l.end, l.headSize
	l.mu.RUnlock()
	if tree.size == size {
		return nil
	}
	if err := l.failure(); err != nil {
		return err
	}
	if l.onDisk.Load() < tree.size {
		if err := l.w.entries.Sync(); err != nil {
			return l.poison(err)
		}
		l.reached(tree.size)
	}
	h, err := sign(l.sign, tree.size, tree.root())
	if err == nil {
		err = l.w.head(h.note)
	}
	if err != nil {
		return l.poison(err)
	}
	l.mu.Lock()
	l.head, l.headSize, l.coveredEnd = h.note, h.size, end
	l.mu.Unlock()
	return nil
}

// reached notes how many entries are on disk; both who writes and who covers find out.
func (l *Log) reached(n int64) {
	for {
		was := l.onDisk.Load()
		if was >= n || l.onDisk.CompareAndSwap(was, n) {
			return
		}
	}
}

// rotate ends the last pair of files with a head over its last entry and begins the next. Only the
// committer calls it.
func (l *Log) rotate() error {
	l.covering.Lock()
	defer l.covering.Unlock()
	if err := l.coverLocked(); err != nil {
		return err
	}
	if err := l.w.create(uint64(l.tree.size)); err != nil {
		return l.poison(err)
	}
	l.mu.Lock()
	l.end, l.coveredEnd = l.w.size, l.w.size
	l.mu.Unlock()
	return nil
}

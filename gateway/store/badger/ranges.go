package badger

import (
	"strings"
	"sync"
)

// ranges makes scans serialisable. Badger detects a conflict on keys that a transaction
// read; a key that appears in a range after it was scanned was never read and goes
// unnoticed. So every committing transaction claims its written keys first, and a claim is
// refused when a key that another transaction may have committed since this one began lies in
// a range this one scanned.
type ranges struct {
	mu      sync.Mutex
	clock   uint64             // last ticket given out
	running map[uint64]int     // began → how many transactions
	commits map[uint64]*commit // ticket → keys, kept while a running transaction may not have seen them
}

type commit struct {
	keys    []string
	settled uint64 // clock when the commit ended; 0 while it runs
}

// span is what one scan read: the keys with prefix, greater than after, up to last
// (inclusive) or, when open, without end.
type span struct {
	prefix, after, last string
	open                bool
}

func (s span) has(key string) bool {
	return strings.HasPrefix(key, s.prefix) && key > s.after && (s.open || key <= s.last)
}

// begin is called before the transaction takes its snapshot.
func (r *ranges) begin() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		r.running, r.commits = map[uint64]int{}, map[uint64]*commit{}
	}
	r.clock++
	r.running[r.clock]++
	return r.clock
}

// claim announces a commit, unless one that this transaction may not have seen touched what
// it scanned.
func (r *ranges) claim(began uint64, scanned []span, written []string) (ticket uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(scanned) > 0 {
		for _, c := range r.commits {
			if c.settled != 0 && c.settled < began {
				continue
			}
			for _, k := range c.keys {
				for _, s := range scanned {
					if s.has(k) {
						return 0, false
					}
				}
			}
		}
	}
	r.clock++
	if len(written) > 0 {
		r.commits[r.clock] = &commit{keys: written}
	}
	return r.clock, true
}

// settle is called when the commit has ended, well or not.
func (r *ranges) settle(ticket uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock++
	if c := r.commits[ticket]; c != nil {
		c.settled = r.clock
	}
}

// end forgets the transaction and the commits that every running one has seen.
func (r *ranges) end(began uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[began]--; r.running[began] == 0 {
		delete(r.running, began)
	}
	oldest := r.clock + 1
	for b := range r.running {
		oldest = min(oldest, b)
	}
	for t, c := range r.commits {
		if c.settled != 0 && c.settled < oldest {
			delete(r.commits, t)
		}
	}
}

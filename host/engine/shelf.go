package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/internal/percore"
)

// shelfKey is what the instances of a shelf have in common, beside the image (S9). The family
// of environments is in it because it decides the clock an initialiser reads.
type shelfKey struct {
	org, digest string
	set         LinkSet
	limits      abi.Limits
	boundary    bool
}

// shelf keeps the idle instances of one key of one image. Each core mostly uses a stack of its
// own.
type shelf struct {
	pool   *Pooled
	image  *Image
	key    shelfKey
	tenant *tenant
	names  []string // of the exported globals

	frozen atomic.Pointer[frozen] // nil until an initialiser has run; changed under mu
	used   atomic.Bool            // since the pool's last round
	last   time.Time              // the round that saw it used last; guarded by Pooled.mu
	stacks []stack

	mu   sync.Mutex
	shut bool

	// restoring counts the goroutines that put instances back, one for each stack at most. They
	// begin while their stack is open and take no lock but its own.
	restoring sync.WaitGroup
}

type stack struct {
	mu     sync.Mutex
	idle   []*kept // as they were made; most recently used last
	used   []*kept // to be put back
	busy   bool    // a goroutine puts back what is in used
	closed bool
	n      atomic.Int32 // of both, and what that goroutine has in its hands; looked at without the lock
	_      [64]byte     // the next stack is on another cache line
}

// newShelf makes an empty shelf, of no tenant yet.
func newShelf(p *Pooled, image *Image, key shelfKey) *shelf {
	return &shelf{pool: p, image: image, key: key, names: image.keeping.Globals, stacks: make([]stack, percore.Slots())}
}

func (s *shelf) is(spec *authority.Spec, set LinkSet, limits *abi.Limits) bool {
	k := &s.key
	return k.set == set && k.boundary == spec.Boundary && k.org == spec.Org && k.digest == spec.Digest && k.limits == *limits
}

func keyOf(inv *boundary.Invocation, set LinkSet) shelfKey {
	spec := inv.Authority().Spec()
	return shelfKey{org: spec.Org, digest: spec.Digest, set: set, limits: *inv.Limits(), boundary: spec.Boundary}
}

// each visits the stacks, the core's own first, until f is true.
func (s *shelf) each(f func(*stack) bool) bool {
	n := len(s.stacks)
	from := percore.Slot(n)
	for i := range n {
		if f(&s.stacks[(from+i)%n]) {
			return true
		}
	}
	return false
}

// pop takes the instance that was put back last, or nil. The caller owns it.
func (s *shelf) pop() (k *kept) {
	s.each(func(st *stack) bool {
		k = st.take(&st.idle)
		return k != nil
	})
	return k
}

// popUsed takes an instance that has yet to be put back, or nil. The caller owns it.
func (s *shelf) popUsed() (k *kept) {
	s.each(func(st *stack) bool {
		k = st.take(&st.used)
		return k != nil
	})
	return k
}

// take takes the last of one of the stack's lists.
func (st *stack) take(from *[]*kept) *kept {
	if st.n.Load() == 0 {
		return nil
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	k := last(from)
	if k != nil {
		st.n.Add(-1)
	}
	return k
}

// last cuts off the last of a list, or returns nil.
func last(list *[]*kept) *kept {
	n := len(*list) - 1
	if n < 0 {
		return nil
	}
	k := (*list)[n]
	(*list)[n] = nil
	*list = (*list)[:n]
	return k
}

// push puts an instance on a stack, as it was made, and reports whether the shelf took it; if not,
// the caller still owns it.
func (s *shelf) push(k *kept) bool {
	return s.each(func(st *stack) bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		if st.closed {
			return false
		}
		st.idle = append(st.idle, k)
		st.n.Add(1)
		return true
	})
}

// pushUsed leaves an instance to be put back, by a goroutine that it starts unless there is one,
// and reports whether the shelf took it.
func (s *shelf) pushUsed(k *kept) bool {
	return s.each(func(st *stack) bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		if st.closed {
			return false
		}
		st.used = append(st.used, k)
		st.n.Add(1)
		if !st.busy {
			st.busy = true
			s.restoring.Add(1)
			go s.putBack(st)
		}
		return true
	})
}

// putBack puts back what comes onto a stack until there is nothing.
func (s *shelf) putBack(st *stack) {
	defer s.restoring.Done()
	for k := st.nextUsed(); k != nil; k = st.nextUsed() {
		kept := s.pool.restore(k) && s.pool.fits(s)
		st.mu.Lock()
		if kept = kept && !st.closed; kept {
			st.idle = append(st.idle, k)
		} else {
			st.n.Add(-1)
		}
		st.mu.Unlock()
		if !kept {
			s.pool.discard(k)
		}
	}
}

// nextUsed takes what is to be put back next, which stays counted, or notes that there is nothing.
func (st *stack) nextUsed() *kept {
	st.mu.Lock()
	defer st.mu.Unlock()
	k := last(&st.used)
	st.busy = k != nil
	return k
}

// takeUntil takes the instances that were put back at a time or before, at most n unless n is
// negative. The caller owns them.
func (s *shelf) takeUntil(at time.Time, n int) (out []*kept) {
	s.each(func(st *stack) bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		for len(st.idle) > 0 && len(out) != n && !st.idle[0].since.After(at) {
			out = append(out, st.idle[0])
			st.idle[0] = nil
			st.idle = st.idle[1:]
			st.n.Add(-1)
		}
		return len(out) == n
	})
	return out
}

// empty makes the shelf take nothing more and returns what was on it. The caller owns that. What is
// being put back is not in it, and is closed by who does, before empty returns.
func (s *shelf) empty() (out []*kept) {
	for i := range s.stacks {
		st := &s.stacks[i]
		st.mu.Lock()
		st.closed = true
		out = append(append(out, st.idle...), st.used...)
		st.n.Add(-int32(len(st.idle) + len(st.used)))
		st.idle, st.used = nil, nil
		st.mu.Unlock()
	}
	s.restoring.Wait()
	return out
}

// idle counts the instances that nobody has, put back or not yet.
func (s *shelf) idle() (n int) {
	for i := range s.stacks {
		n += int(s.stacks[i].n.Load())
	}
	return n
}

// oldest is when the least recently used idle instance was put back.
func (s *shelf) oldest() (t time.Time, ok bool) {
	for i := range s.stacks {
		st := &s.stacks[i]
		st.mu.Lock()
		if len(st.idle) > 0 && (!ok || st.idle[0].since.Before(t)) {
			t, ok = st.idle[0].since, true
		}
		st.mu.Unlock()
	}
	return t, ok
}

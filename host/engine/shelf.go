package engine

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// shelfKey is what the instances of a shelf have in common, beside the image (S9). The family
// of environments is in it because it decides the clock an initialiser reads.
type shelfKey struct {
	org, digest string
	set         LinkSet
	limits      abi.Limits
	boundary    bool
}

// shelf keeps the idle instances of one key of one image. Each core tends to use a stack of
// its own.
type shelf struct {
	pool   *Pooled
	image  *Image
	key    shelfKey
	tenant *tenant
	names  []string // of the exported globals

	frozen atomic.Pointer[frozen] // nil until an initialiser has run; changed under mu
	used   atomic.Bool            // since the pool's last round
	quiet  int                    // rounds without use; guarded by Pooled.mu
	stacks []stack

	mu   sync.Mutex
	shut bool
}

type stack struct {
	mu     sync.Mutex
	idle   []*kept // most recently used last
	closed bool
	n      atomic.Int32 // len(idle), to be looked at without the lock
	_      [64]byte     // the next stack is on another cache line
}

// newShelf makes an empty shelf, of no tenant yet.
func newShelf(p *Pooled, image *Image, key shelfKey) *shelf {
	return &shelf{pool: p, image: image, key: key, names: image.keeping.Globals, stacks: make([]stack, runtime.GOMAXPROCS(0))}
}

func (s *shelf) is(spec *authority.Spec, set LinkSet, limits *abi.Limits) bool {
	k := &s.key
	return k.set == set && k.boundary == spec.Boundary && k.org == spec.Org && k.digest == spec.Digest && k.limits == *limits
}

func keyOf(inv *boundary.Invocation, set LinkSet) shelfKey {
	spec := inv.Authority().Spec()
	return shelfKey{org: spec.Org, digest: spec.Digest, set: set, limits: *inv.Limits(), boundary: spec.Boundary}
}

// each visits the stacks from a random one on, until f is true.
func (s *shelf) each(f func(*stack) bool) bool {
	n := uint32(len(s.stacks))
	from := rand.Uint32N(n)
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
		if st.n.Load() == 0 {
			return false
		}
		st.mu.Lock()
		defer st.mu.Unlock()
		if n := len(st.idle) - 1; n >= 0 {
			k = st.idle[n]
			st.idle[n] = nil
			st.idle = st.idle[:n]
			st.n.Store(int32(n))
		}
		return k != nil
	})
	return k
}

// push puts an instance back and reports whether the shelf took it; if not, the caller still
// owns it.
func (s *shelf) push(k *kept) bool {
	return s.each(func(st *stack) bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		if st.closed {
			return false
		}
		st.idle = append(st.idle, k)
		st.n.Store(int32(len(st.idle)))
		return true
	})
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
		}
		st.n.Store(int32(len(st.idle)))
		return len(out) == n
	})
	return out
}

// empty makes the shelf take nothing more and returns what was on it. The caller owns that.
func (s *shelf) empty() (out []*kept) {
	for i := range s.stacks {
		st := &s.stacks[i]
		st.mu.Lock()
		st.closed = true
		out = append(out, st.idle...)
		st.idle = nil
		st.n.Store(0)
		st.mu.Unlock()
	}
	return out
}

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

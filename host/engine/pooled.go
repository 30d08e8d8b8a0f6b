package engine

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/memory"
)

// PoolOptions configures a [Pooled]. The zero value is usable.
type PoolOptions struct {
	Bytes    int64         // what is held, images and idle instances may take together; 0 is 1 GiB
	Idle     time.Duration // after which what nobody used is closed, instances and images, or a quarter later; 0 is a minute
	SeedLife time.Duration // of an image with frozen randomness, before it is remade; 0 is a minute
	Retire   int           // invocations an instance serves at most; 0 is 10,000 (S11)
	// Verify compares every instance with its image, to the last byte, before it is lent
	// (S12). The environment variable ECOTONE_VERIFY=all sets it too.
	Verify bool
	Log    *slog.Logger // nil discards
}

// Pooled is the pool that keeps instances and puts them back to what they were right after
// initialisation. An instance belongs for life to one organisation, digest, link set and set
// of limits (S9), as does the image it is put back to (S13): what the initialiser left in the
// first invocation that needed one, run as [Fresh] runs it, with no authority.
//
// A module that cannot be put back, or whose initialiser asked for what may not be frozen, gets
// a new instance for each invocation, as from [Fresh]; [Image.FreshBecause] says why. An
// instance is closed instead of put back when its call neither returned nor exited by itself (trap,
// deadline, cancellation, fault of the host), when its memory grew, when it has served
// its number of invocations, and when the budget is used up by others.
//
// An instance always has one owner, who alone touches it: the goroutine that runs its guest, and
// after that call has returned (S1) the one that puts it back. Where there is much to put back that
// is another goroutine, so that no answer waits for it; where there is little, handing it on would
// take longer. Either way the organisation's share pays (S10).
//
// Over the budget, the organisation that takes most of it gives first, its least recently used
// instances first. The budget is for what is kept: guests that run take what their limits allow
// on top of it.
//
// It is safe for concurrent use. Lending and putting back touch no lock that all cores share.
// Locks are taken in the order Pooled.mu, shelf.mu, Image.mu, stack.mu; who waits for a shelf's
// restoring holds the first two, and who puts back takes the last only. Close it after the last Run
// has returned.
type Pooled struct {
	o     PoolOptions
	bytes atomic.Int64
	count counters

	mu      sync.Mutex
	tenants map[string]*tenant
	closed  bool

	stop func()
	done chan struct{}
}

// counters count what does not happen on the fast path.
type counters struct{ frozen, made, discarded, mismatches atomic.Int64 }

// PoolStats is what a pool has and did since it was made.
type PoolStats struct {
	Bytes      int64 // taken of the budget now
	Idle       int   // instances ready to be lent
	Frozen     int64 // images made
	Made       int64 // instances made
	Discarded  int64 // instances closed
	Mismatches int64 // instances found to differ from their image at checkout; anything but 0 is a fault
}

// maxShelves bounds the keys of one image. Environments are few, and so are the keys; what
// comes beyond is served as by [Fresh].
const maxShelves = 64

// NewPooled returns an empty pool. It has a goroutine, which Close ends.
func NewPooled(o PoolOptions) *Pooled {
	if o.Bytes <= 0 {
		o.Bytes = 1 << 30
	}
	if o.Idle <= 0 {
		o.Idle = time.Minute
	}
	if o.SeedLife <= 0 {
		o.SeedLife = time.Minute
	}
	if o.Retire <= 0 {
		o.Retire = 10_000
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Verify = o.Verify || os.Getenv("ECOTONE_VERIFY") == "all"
	o.Log.Info("instances are pooled", "restore", memory.Method(), "bytes", o.Bytes, "verify", o.Verify)
	ctx, stop := context.WithCancel(context.Background())
	p := &Pooled{o: o, tenants: make(map[string]*tenant), stop: stop, done: make(chan struct{})}
	go p.tidy(ctx)
	return p
}

// Take implements [Pool].
func (p *Pooled) Take(ctx context.Context, image *Image, inv *boundary.Invocation) (Instance, *abi.Error) {
	if !memory.Supported() || image.FreshBecause() != "" {
		return Fresh{}.Take(ctx, image, inv)
	}
	s := p.shelfOf(image, inv)
	if s == nil {
		return Fresh{}.Take(ctx, image, inv)
	}
	if !s.used.Load() {
		s.used.Store(true)
	}
	f := p.current(s, inv.Began())
	for k := s.pop(); k != nil; k = s.pop() {
		if p.lendable(k, f) {
			k.lent++
			return k, nil
		}
		p.discard(k)
	}
	// Nobody had the time to put these back. It is less work than a new instance.
	for k := s.popUsed(); k != nil; k = s.popUsed() {
		if p.restore(k) && p.lendable(k, f) {
			k.lent++
			return k, nil
		}
		p.discard(k)
	}
	return p.make(ctx, s, inv, f)
}

// current returns what the shelf's instances are put back to, or nil when it has to be made,
// for the first time or again.
func (p *Pooled) current(s *shelf, now time.Time) *frozen {
	f := s.frozen.Load()
	if f != nil && s.image.keeping.Seeded && now.Sub(f.made) > p.o.SeedLife {
		return nil
	}
	return f
}

// lendable reports whether an instance is what f says. Of one that was put back to an image that has
// been remade since, it is not.
func (p *Pooled) lendable(k *kept, f *frozen) bool {
	if k.of != f || k.module.IsClosed() {
		return false
	}
	if p.o.Verify && !k.pristine() {
		p.count.mismatches.Add(1)
		key := &k.shelf.key
		p.o.Log.Error("an instance differs from its image and was closed", "code", abi.CodeInternal, "org", key.org, "digest", key.digest)
		return false
	}
	return true
}

// shelfOf finds or makes the shelf of an invocation. It is nil when there cannot be one.
func (p *Pooled) shelfOf(image *Image, inv *boundary.Invocation) *shelf {
	set := LinkSetOf(inv.Authority())
	if s := p.findShelf(image, inv, set); s != nil {
		return s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.findShelf(image, inv, set); s != nil || p.closed {
		return s
	}
	s := newShelf(p, image, keyOf(inv, set))
	s.used.Store(true)
	if !image.addShelf(s) {
		return nil
	}
	s.tenant = p.tenantOf(s.key.org)
	s.tenant.shelves = append(s.tenant.shelves, s)
	return s
}

func (p *Pooled) findShelf(image *Image, inv *boundary.Invocation, set LinkSet) *shelf {
	spec, limits := inv.Authority().Spec(), inv.Limits()
	if all := image.shelves.Load(); all != nil {
		for _, s := range *all {
			if s.pool == p && s.is(spec, set, limits) {
				return s
			}
		}
	}
	return nil
}

// Stats says what the pool has and did.
func (p *Pooled) Stats() PoolStats {
	st := PoolStats{
		Bytes: p.bytes.Load(), Frozen: p.count.frozen.Load(), Made: p.count.made.Load(),
		Discarded: p.count.discarded.Load(), Mismatches: p.count.mismatches.Load(),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.tenants {
		for _, s := range t.shelves {
			st.Idle += s.idle()
		}
	}
	return st
}

// Close closes all that is idle. Later invocations are served as by [Fresh].
func (p *Pooled) Close() {
	p.stop()
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, t := range p.tenants {
		for _, s := range slices.Clone(t.shelves) {
			p.dropLocked(s)
		}
	}
}

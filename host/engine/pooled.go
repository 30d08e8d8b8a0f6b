package engine

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/memory"
)

// PoolOptions configures a [Pooled]. The zero value is usable.
type PoolOptions struct {
	Bytes    int64         // what images and instances may take together; 0 is 1 GiB
	Idle     time.Duration // after which an unused instance is closed; 0 is a minute
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
// instance is closed instead of put back when its call did not return by itself (trap,
// deadline, cancellation, exit, fault of the host), when its memory grew, when it has served
// its number of invocations, and when the budget is used up by others.
//
// Over the budget, the organisation that takes most of it gives first, its least recently used
// instances first.
//
// It is safe for concurrent use. Lending and putting back touch no lock that all cores share.
// Locks are taken in the order Pooled.mu, shelf.mu, Image.mu, stack.mu. Close it after the last
// Run has returned.
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

// tenant is an organisation and what it takes of the budget.
type tenant struct {
	bytes   atomic.Int64
	shelves []*shelf // guarded by Pooled.mu
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
	for k := s.pop(); k != nil; k = s.pop() {
		if p.lendable(k) {
			k.lent++
			return k, nil
		}
		p.discard(k)
	}
	return p.make(ctx, s, inv)
}

// current returns what the shelf's instances are put back to, or nil when it has to be made,
// for the first time or again.
func (p *Pooled) current(s *shelf) *frozen {
	f := s.frozen.Load()
	if f != nil && s.image.keeping.Seeded && time.Since(f.made) > p.o.SeedLife {
		return nil
	}
	return f
}

func (p *Pooled) lendable(k *kept) bool {
	if k.of != p.current(k.shelf) || k.module.IsClosed() {
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

// make makes an instance: from the image when there is one, else by running the initialiser in
// this invocation, which makes the image.
func (p *Pooled) make(ctx context.Context, s *shelf, inv *boundary.Invocation) (Instance, *abi.Error) {
	k, err := s.instantiate(ctx, inv)
	if err != nil {
		return nil, err
	}
	p.count.made.Add(1)
	k.lent = 1
	if f := p.current(s); f != nil {
		if k.become(f) != nil { // the image was replaced or dropped meanwhile
			p.discard(k)
			return Fresh{}.Take(ctx, s.image, inv)
		}
	} else if err := p.initialize(ctx, k, inv); err != nil {
		p.discard(k)
		return nil, err
	}
	p.recharge(k)
	return k, nil
}

// initialize runs the initialiser, without authority, and freezes what it left if that may be
// done.
func (p *Pooled) initialize(ctx context.Context, k *kept, inv *boundary.Invocation) *abi.Error {
	s := k.shelf
	if err := k.initialize(ctx, k.module, s.image, inv); err != nil {
		return err
	}
	if !s.image.learn(inv) {
		return nil // for this invocation only
	}
	inv.Refund()
	if !settled(ctx, inv) || k.region.Size() == 0 {
		return nil
	}
	f, err := k.freeze(time.Now())
	if err != nil {
		return abi.Errorf(abi.CodeInternal, "an image could not be made: %w", err)
	}
	p.publish(s, f)
	return nil
}

// publish makes f what the shelf's instances are put back to, unless another is by now.
func (p *Pooled) publish(s *shelf, f *frozen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut || p.current(s) != nil {
		_ = f.memory.Close() // its one instance has it still, and is not kept
		return
	}
	p.count.frozen.Add(1)
	p.charge(s.tenant, int64(f.memory.Size()))
	p.unfreeze(s, s.frozen.Swap(f))
}

func (p *Pooled) unfreeze(s *shelf, f *frozen) {
	if f != nil {
		p.charge(s.tenant, -int64(f.memory.Size()))
		_ = f.memory.Close()
	}
}

// release puts an instance back, on the goroutine that ran it, or closes it.
func (p *Pooled) release(k *kept) {
	s := k.shelf
	if !p.reusable(k) {
		p.discard(k)
		return
	}
	if err := k.restore(); err != nil {
		p.o.Log.Error("an instance could not be put back and was closed", "code", abi.CodeInternal, "digest", s.key.digest, "cause", err)
		p.discard(k)
		return
	}
	p.recharge(k)
	if p.bytes.Load() > p.o.Bytes && !p.reclaim(s) {
		p.discard(k)
		return
	}
	k.since = time.Now()
	if !s.push(k) {
		p.discard(k)
	}
}

func (p *Pooled) reusable(k *kept) bool {
	return k.intact && k.of != nil && k.of == k.shelf.frozen.Load() && k.lent < p.o.Retire &&
		k.region.Size() == k.of.memory.Size() && !k.module.IsClosed()
}

// discard closes an instance that the caller owns.
func (p *Pooled) discard(k *kept) {
	p.count.discarded.Add(1)
	p.charge(k.shelf.tenant, -k.cost)
	k.cost = 0
	if err := k.close(); err != nil {
		p.o.Log.Error("an instance was not freed", "code", abi.CodeInternal, "cause", err)
	}
}

// recharge brings what the budget has for an instance up to date.
func (p *Pooled) recharge(k *kept) {
	cost := k.shelf.image.keeping.Overhead + int64(k.region.Private())
	p.charge(k.shelf.tenant, cost-k.cost)
	k.cost = cost
}

func (p *Pooled) charge(t *tenant, n int64) {
	if n != 0 {
		t.bytes.Add(n)
		p.bytes.Add(n)
	}
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
	if !image.addShelf(s) {
		return nil
	}
	org := s.key.org
	if p.tenants[org] == nil {
		p.tenants[org] = new(tenant)
	}
	s.tenant = p.tenants[org]
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

// drop closes a shelf and what is on it. What is lent from it is closed when it comes back.
func (p *Pooled) drop(s *shelf) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropLocked(s)
}

func (p *Pooled) dropLocked(s *shelf) {
	s.mu.Lock()
	if s.shut {
		s.mu.Unlock()
		return
	}
	s.shut = true
	s.image.removeShelf(s)
	for _, k := range s.empty() {
		p.discard(k)
	}
	p.unfreeze(s, s.frozen.Swap(nil))
	s.mu.Unlock()
	t := s.tenant
	t.shelves = slices.DeleteFunc(t.shelves, func(other *shelf) bool { return other == s })
	if len(t.shelves) == 0 && p.tenants[s.key.org] == t {
		delete(p.tenants, s.key.org)
	}
}

// reclaim closes what is idle until the pool is well within its budget, and reports whether it
// is within. It leaves the shelf alone that something is about to be put on.
func (p *Pooled) reclaim(busy *shelf) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for goal := p.o.Bytes - p.o.Bytes/8; p.bytes.Load() > goal; {
		tenants := slices.SortedFunc(maps.Values(p.tenants), func(a, b *tenant) int {
			return cmp.Compare(b.bytes.Load(), a.bytes.Load())
		})
		if !slices.ContainsFunc(tenants, func(t *tenant) bool { return p.reclaimInstance(t) || p.reclaimImage(t, busy) }) {
			break
		}
	}
	return p.bytes.Load() <= p.o.Bytes
}

// reclaimInstance closes a tenant's least recently used idle instance.
func (p *Pooled) reclaimInstance(t *tenant) bool {
	var from *shelf
	var oldest time.Time
	for _, s := range t.shelves {
		if at, ok := s.oldest(); ok && (from == nil || at.Before(oldest)) {
			from, oldest = s, at
		}
	}
	if from == nil {
		return false
	}
	for _, k := range from.takeUntil(oldest, 1) {
		p.discard(k)
	}
	return true
}

// reclaimImage drops one of a tenant's images, rather one that was not used of late.
func (p *Pooled) reclaimImage(t *tenant, busy *shelf) bool {
	var victim *shelf
	for _, s := range t.shelves {
		if s != busy && s.frozen.Load() != nil && (victim == nil || !s.used.Load()) {
			victim = s
		}
	}
	if victim == nil {
		return false
	}
	p.dropLocked(victim)
	return true
}

// tidy closes what was idle for long: instances, and shelves that nobody came to in between.
func (p *Pooled) tidy(ctx context.Context) {
	defer close(p.done)
	round := time.NewTicker(max(p.o.Idle/2, time.Millisecond))
	defer round.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-round.C:
			p.tidyOnce(now.Add(-p.o.Idle))
		}
	}
}

func (p *Pooled) tidyOnce(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.tenants {
		for _, s := range slices.Clone(t.shelves) {
			for _, k := range s.takeUntil(until, -1) {
				p.discard(k)
			}
			if s.used.Swap(false) || s.idle() > 0 {
				s.quiet = 0
			} else if s.quiet++; s.quiet > 2 {
				p.dropLocked(s)
			}
		}
	}
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

// instantiate makes a new instance in memory of its own, before its initialiser ran. The
// memory is there before the engine asks for it (S11).
func (s *shelf) instantiate(ctx context.Context, inv *boundary.Invocation) (*kept, *abi.Error) {
	linked, err := s.image.linked(ctx, s.key.set)
	if err != nil {
		return nil, abi.AsError(err)
	}
	limit := inv.Limits().Get(abi.LimitMemoryBytes)
	region, err := memory.Reserve(uint64(min(max(limit, 0), s.image.mostSize)))
	if err != nil {
		return nil, abi.Errorf(abi.CodeOverloaded, "there is no memory for the guest: %w", err)
	}
	k := &kept{shelf: s, region: region}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	k.module, err = s.image.runtime.InstantiateModule(withMemory(linked.resolve(ctx), region), s.image.compiled, config)
	if err != nil {
		_ = region.Close()
		// Not the guest's code: a segment that lies outside its memory or table.
		return nil, abi.Errorf(abi.CodeInitializeFailed, "the module cannot be instantiated: %w", traced(err))
	}
	if !k.bindAll(s.names) {
		_ = k.close()
		return nil, abi.Errorf(abi.CodeInternal, "the prepared module does not export its globals")
	}
	return k, nil
}

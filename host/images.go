package host

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/engine"
	"github.com/ecotone-dev/ecotone/host/internal/percore"
)

// imageKey names a loaded image. Organisations share none (S13).
type imageKey struct{ org, digest string }

// images keeps images loaded, as many as fit its part of the memory budget, and drops the least
// recently used first. An image that is dropped while guests run in it is closed by the last of
// them, never under them (S1), and one that guests run in is not dropped to make room: what is in
// use is bounded by how many may run.
//
// Finding a loaded image takes no lock and writes to nothing that all cores share.
type images struct {
	most int64 // bytes of all that are loaded
	load func(ctx context.Context, digest string) (image *engine.Image, bytes int64, err error)
	hold func(org string, bytes int64) // told of what is loaded, and of what is not any more

	byKey atomic.Pointer[map[imageKey]*loaded] // replaced under mu, and never changed
	round atomic.Int64                         // counts loads: the clock by which use is told

	mu     sync.Mutex
	bytes  atomic.Int64 // of all that are loaded and findable; changed under mu
	closed bool
	wg     sync.WaitGroup // loads in progress
}

// loaded is one image, being loaded until ready is closed.
type loaded struct {
	of    *images
	key   imageKey
	users *percore.Users // whoever runs guests in it, and whoever loads it
	used  atomic.Int64   // the round in which it was last used
	ready chan struct{}
	image atomic.Pointer[engine.Image] // nil when err is not; both are set before ready is closed
	err   error
	bytes int64

	dropped bool // guarded by images.mu
	freed   sync.Once
}

func newImages(most int64, load func(context.Context, string) (*engine.Image, int64, error), hold func(string, int64)) *images {
	s := &images{most: most, load: load, hold: hold}
	s.byKey.Store(&map[imageKey]*loaded{})
	return s
}

// use is a hold on a loaded image. It is given up once, by leave.
type use struct {
	of   *loaded
	slot int
}

func (u use) image() *engine.Image { return u.of.image.Load() }

func (u use) leave() { u.of.leave(u.slot) }

// take returns a hold on a loaded image. Concurrent takers of one key share one load (PF-I3); a
// failed load is forgotten at once.
func (s *images) take(ctx context.Context, key imageKey) (use, error) {
	l, slot, ok := s.find(key)
	if !ok {
		var err error
		if l, slot, err = s.begin(ctx, key); err != nil {
			return use{}, err
		}
	}
	if now := s.round.Load(); l.used.Load() != now {
		l.used.Store(now)
	}
	if l.image.Load() != nil {
		return use{l, slot}, nil
	}
	select {
	case <-l.ready:
	case <-ctx.Done():
		l.leave(slot)
		return use{}, boundary.Ended(ctx)
	}
	if l.err != nil {
		l.leave(slot)
		return use{}, l.err
	}
	return use{l, slot}, nil
}

// find finds an image that is loaded, or being loaded, and enters it.
func (s *images) find(key imageKey) (l *loaded, slot int, ok bool) {
	if l = (*s.byKey.Load())[key]; l == nil {
		return nil, 0, false
	}
	if slot, ok = l.users.Enter(); !ok {
		l.leave(slot)
	}
	return l, slot, ok
}

// begin begins a load, unless somebody has by now, and enters it.
func (s *images) begin(ctx context.Context, key imageKey) (*loaded, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, 0, abi.Errorf(abi.CodeDraining, "the host is closed")
	}
	if l, slot, ok := s.find(key); ok {
		return l, slot, nil
	}
	l := &loaded{of: s, key: key, users: percore.NewUsers(), ready: make(chan struct{})}
	s.change(func(all map[imageKey]*loaded) { all[key] = l })
	s.wg.Add(1)
	loader, _ := l.users.Enter()
	slot, _ := l.users.Enter()
	// The load outlives the one who asked first: others wait for it too.
	go s.fill(context.WithoutCancel(ctx), l, loader)
	return l, slot, nil
}

// change replaces the map. s.mu is held.
func (s *images) change(f func(map[imageKey]*loaded)) {
	all := maps.Clone(*s.byKey.Load())
	f(all)
	s.byKey.Store(&all)
}

func (s *images) fill(ctx context.Context, l *loaded, slot int) {
	defer s.wg.Done()
	image, bytes, err := s.load(ctx, l.key.digest)
	if err == nil {
		s.hold(l.key.org, bytes)
	}
	s.mu.Lock()
	if l.err = err; err == nil {
		l.image.Store(image)
		l.bytes = bytes
		s.bytes.Add(bytes)
		l.used.Store(s.round.Add(1))
	} else {
		s.drop(l)
	}
	close(l.ready)
	gone := s.evict()
	s.mu.Unlock()
	free(gone)
	l.leave(slot)
}

// evict drops the least recently used images over the budget that nobody uses, and returns those
// that the caller must free. One image stays, however large it is. s.mu is held.
func (s *images) evict() (gone []*loaded) {
	for s.over() && len(*s.byKey.Load()) > 1 {
		var victim *loaded
		for _, l := range *s.byKey.Load() {
			if l.image.Load() != nil && !l.users.Any() && (victim == nil || l.used.Load() < victim.used.Load()) {
				victim = l
			}
		}
		if victim == nil {
			return gone // who uses them looks again when it is done
		}
		if s.drop(victim) {
			gone = append(gone, victim)
		}
	}
	return gone
}

// drop makes an image unfindable, and reports whether the caller must free it, when s.mu, which is
// held, is not any more.
func (s *images) drop(l *loaded) (last bool) {
	if l.dropped {
		return false
	}
	l.dropped = true
	s.change(func(all map[imageKey]*loaded) { delete(all, l.key) })
	s.bytes.Add(-l.bytes)
	return l.users.Close()
}

// leave ends a use. The last one frees what was dropped meanwhile, and makes room if there is too
// little.
func (l *loaded) leave(slot int) {
	if l.users.Leave(slot) {
		l.free()
		return
	}
	if s := l.of; s.over() && len(*s.byKey.Load()) > 1 {
		s.mu.Lock()
		gone := s.evict()
		s.mu.Unlock()
		free(gone)
	}
}

func free(gone []*loaded) {
	for _, l := range gone {
		l.free()
	}
}

// free closes a dropped image that nobody uses. It is not called with images.mu held: closing takes
// its time.
func (l *loaded) free() {
	l.freed.Do(func() {
		if image := l.image.Swap(nil); image != nil {
			_ = image.Close(context.Background())
			l.of.hold(l.key.org, -l.bytes)
		}
	})
}

// over reports whether more is loaded than should be.
func (s *images) over() bool { return s.bytes.Load() > s.most }

// forget drops the images of a digest.
func (s *images) forget(digest string) {
	s.dropAll(func(l *loaded) bool { return l.key.digest == digest })
}

// close drops everything and waits for loads in progress.
func (s *images) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.dropAll(func(*loaded) bool { return true })
	s.wg.Wait()
}

func (s *images) dropAll(which func(*loaded) bool) {
	s.mu.Lock()
	var gone []*loaded
	for _, l := range *s.byKey.Load() {
		if which(l) && s.drop(l) {
			gone = append(gone, l)
		}
	}
	s.mu.Unlock()
	free(gone)
}

// room reports whether another image as large as those that are loaded is likely to fit.
func (s *images) room() bool {
	n := int64(len(*s.byKey.Load()))
	used := s.bytes.Load()
	return n == 0 || used+used/n <= s.most
}

package host

import (
	"container/list"
	"context"
	"sync"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/engine"
)

// imageKey names a loaded image. Organisations share none (S13).
type imageKey struct{ org, digest string }

// images keeps the most recently used images loaded. An image that is dropped while guests
// run in it is closed by the last of them, never under them (S1).
type images struct {
	most int
	load func(ctx context.Context, digest string) (*engine.Image, error)

	mu     sync.Mutex
	byKey  map[imageKey]*loaded
	recent *list.List // of *loaded, most recently used first
	closed bool
	wg     sync.WaitGroup // loads in progress
}

// loaded is one image, being loaded until ready is closed.
type loaded struct {
	key   imageKey
	ready chan struct{}
	image *engine.Image // nil when err is not; both are set before ready is closed
	err   error

	// The rest is guarded by images.mu.
	at      *list.Element
	users   int
	dropped bool
}

func newImages(most int, load func(context.Context, string) (*engine.Image, error)) *images {
	return &images{most: most, load: load, byKey: make(map[imageKey]*loaded), recent: list.New()}
}

// take returns a loaded image and what to call, once, when its user is done with it.
// Concurrent takers of one key share one load; a failed load is forgotten at once.
func (s *images) take(ctx context.Context, key imageKey) (*engine.Image, func(), error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, nil, abi.Errorf(abi.CodeDraining, "the host is closed")
	}
	l := s.byKey[key]
	if l == nil {
		l = &loaded{key: key, ready: make(chan struct{})}
		l.at = s.recent.PushFront(l)
		s.byKey[key] = l
		s.wg.Add(1)
		// The load outlives the one who asked first: others wait for it too.
		go s.fill(context.WithoutCancel(ctx), l)
		s.evict()
	}
	l.users++
	s.recent.MoveToFront(l.at)
	s.mu.Unlock()

	release := sync.OnceFunc(func() { s.release(l) })
	select {
	case <-l.ready:
	case <-ctx.Done():
		release()
		return nil, nil, boundary.Ended(ctx)
	}
	if l.err != nil {
		release()
		return nil, nil, l.err
	}
	return l.image, release, nil
}

func (s *images) fill(ctx context.Context, l *loaded) {
	defer s.wg.Done()
	l.image, l.err = s.load(ctx, l.key.digest)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.err != nil {
		s.drop(l)
	}
	close(l.ready)
	s.closeUnused(l)
}

func (s *images) release(l *loaded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.users--
	s.closeUnused(l)
}

// evict drops the least recently used images over the bound. s.mu is held.
func (s *images) evict() {
	for s.recent.Len() > s.most {
		s.drop(s.recent.Back().Value.(*loaded))
	}
}

// drop makes an image unfindable. s.mu is held.
func (s *images) drop(l *loaded) {
	if l.dropped {
		return
	}
	l.dropped = true
	delete(s.byKey, l.key)
	s.recent.Remove(l.at)
	s.closeUnused(l)
}

// closeUnused closes a dropped image that is loaded and that nobody uses. s.mu is held.
func (s *images) closeUnused(l *loaded) {
	select {
	case <-l.ready:
	default:
		return
	}
	if l.dropped && l.users == 0 && l.image != nil {
		_ = l.image.Close(context.Background())
		l.image = nil
	}
}

// forget drops the images of a digest.
func (s *images) forget(digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, l := range s.byKey {
		if key.digest == digest {
			s.drop(l)
		}
	}
}

// close drops everything and waits for loads in progress.
func (s *images) close() {
	s.mu.Lock()
	s.closed = true
	for _, l := range s.byKey {
		s.drop(l)
	}
	s.mu.Unlock()
	s.wg.Wait()
}

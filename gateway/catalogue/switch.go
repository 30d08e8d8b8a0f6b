package catalogue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// ErrStopped is the answer of a stopped catalogue.
var ErrStopped = errors.New("catalogue: stopped")

// Switch is a catalogue that can be stopped and slowed, so that an outage can be had at will
// (X13, X14). Safe for concurrent use.
type Switch struct {
	next Catalogue

	mu      sync.Mutex
	stopped bool
	delay   time.Duration
}

var _ Catalogue = (*Switch)(nil)

// NewSwitch puts a switch before next, running and at full speed.
func NewSwitch(next Catalogue) *Switch { return &Switch{next: next} }

// Stop makes every question fail until Start.
func (s *Switch) Stop() { s.set(func() { s.stopped = true }) }

// Start ends Stop and Delay.
func (s *Switch) Start() { s.set(func() { s.stopped, s.delay = false, 0 }) }

// Delay makes every answer come d later.
func (s *Switch) Delay(d time.Duration) { s.set(func() { s.delay = d }) }

func (s *Switch) set(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn()
}

// Reach implements [Catalogue].
func (s *Switch) Reach(ctx context.Context, org, digest string, ref abi.CapabilityRef) (abi.Reach, bool, error) {
	s.mu.Lock()
	stopped, delay := s.stopped, s.delay
	s.mu.Unlock()
	if stopped {
		return 0, false, ErrStopped
	}
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return 0, false, ctx.Err()
		case <-timer.C:
		}
	}
	return s.next.Reach(ctx, org, digest, ref)
}

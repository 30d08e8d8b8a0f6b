package invoke

import (
	"context"
	"sync/atomic"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// slots bounds how many invocations run and how many wait to (LimitRunning, LimitWaiting). A
// child runs in its parent's slot, so nesting cannot deadlock.
type slots struct {
	free    chan struct{}
	waiting atomic.Int64
	most    int64
}

func newSlots(running, waiting int64) *slots {
	return &slots{free: make(chan struct{}, running), most: waiting}
}

// take waits for a place as long as ctx lives; release gives it back.
func (s *slots) take(ctx context.Context) (release func(), refusal *abi.Error) {
	release = func() { <-s.free }
	select {
	case s.free <- struct{}{}:
		return release, nil
	default:
	}
	if s.waiting.Add(1) > s.most {
		s.waiting.Add(-1)
		return nil, abi.Errorf(abi.CodeOverloaded, "%d invocations run and %d wait", cap(s.free), s.most)
	}
	defer s.waiting.Add(-1)
	select {
	case s.free <- struct{}{}:
		return release, nil
	case <-ctx.Done():
		return nil, boundary.Ended(ctx)
	}
}

package policy

import (
	"sync/atomic"
	"time"
)

// clock is the time of policy: what ran out stays so, whatever becomes of the machine's clock (S18). It
// is the latest of the wall clock and of all times it knows of (the mark's, the audit log's), each
// carried on by the monotonic clock. A wall clock that is set forward takes it along, one that is set
// back does not. It says nothing of how long something took: deadlines are kept by the machine's own.
//
// Safe for concurrent use.
type clock struct {
	// read answers the wall clock's time and what the monotonic clock counted since origin.
	read   func() (wall time.Time, since time.Duration)
	origin time.Time    // by the wall clock
	ahead  atomic.Int64 // nanoseconds by which policy is ahead of origin carried on
}

// newClock makes a clock that is not before floor.
func newClock(wall func() time.Time, floor time.Time) *clock {
	origin := wall()
	return clockOf(func() (time.Time, time.Duration) {
		now := wall()
		return now, now.Sub(origin)
	}, origin.Round(0), floor)
}

func clockOf(read func() (time.Time, time.Duration), origin, floor time.Time) *clock {
	c := &clock{read: read, origin: origin}
	c.ahead.Store(int64(max(0, floor.Sub(origin))))
	return c
}

// noise is what two readings of the machine's clocks may differ by when nobody set them.
const noise = time.Millisecond

func (c *clock) now() time.Time {
	wall, since := c.read()
	lead := int64((wall.Round(0).Sub(c.origin) - since).Truncate(noise)) // by which the wall clock was set forward
	ahead := c.ahead.Load()
	for lead > ahead && !c.ahead.CompareAndSwap(ahead, lead) {
		ahead = c.ahead.Load()
	}
	if ahead = max(ahead, lead); ahead == lead {
		return wall
	}
	return wall.Round(0).Add(time.Duration(ahead - lead))
}

package percore

import "sync/atomic"

// Users counts who uses a thing that is to be closed when nobody does. Entering and leaving touch
// one of several counters, so that cores do not share one. It is safe for concurrent use.
type Users struct {
	closed atomic.Bool
	counts []count
}

type count struct {
	n atomic.Int64
	_ [56]byte // the next count is on another cache line
}

// NewUsers returns a count of no users.
func NewUsers() *Users { return &Users{counts: make([]count, Slots())} }

// Enter makes the caller a user, unless the thing was closed. The slot is for Leave.
func (u *Users) Enter() (slot int, ok bool) {
	slot = Slot(len(u.counts))
	u.counts[slot].n.Add(1)
	// In this order: whoever closes looks at the counts after it said so, and sees this user or is
	// seen here.
	if u.closed.Load() {
		return slot, false
	}
	return slot, true
}

// Leave ends what Enter began, also when that said no. It reports whether the thing is closed and
// nobody uses it any more, which more than one caller may be told.
func (u *Users) Leave(slot int) (last bool) {
	u.counts[slot].n.Add(-1)
	return u.closed.Load() && !u.Any()
}

// Close lets nobody in any more, and reports whether nobody is.
func (u *Users) Close() (last bool) {
	u.closed.Store(true)
	return !u.Any()
}

// Any reports whether anybody uses the thing, at some moment of the call for each counter.
func (u *Users) Any() bool {
	for i := range u.counts {
		if u.counts[i].n.Load() != 0 {
			return true
		}
	}
	return false
}

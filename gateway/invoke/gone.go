package invoke

import (
	"sync/atomic"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// Caller is who waits for an answer.
type Caller interface {
	// Gone reports whether nobody waits any more. It may be asked from any goroutine and must not wait.
	Gone() bool
	// Address is where the caller is, for the record of a refusal.
	Address() string
}

// patience is how long an invocation runs before anyone asks whether its caller is still there and its
// rights have not run out. Most have ended by then, and cost nothing but a look at a flag.
const patience = 50 * time.Millisecond

// watch notices callers that go away, and cancels what they asked for (PF-I9); and rights that end with
// time, a grant's or a session's, of invocations that wait and so do not notice (S18). One goroutine
// looks at all invocations, and it is there only while there are some: a timer for each would cost
// every invocation what hardly one needs.
type watch struct {
	live *live
	on   atomic.Bool
}

// wake starts the goroutine unless it runs. It is called once for each invocation, after that was added.
func (w *watch) wake() {
	if !w.on.Load() && w.on.CompareAndSwap(false, true) {
		go w.run()
	}
}

func (w *watch) run() {
	every := time.NewTicker(patience / 2)
	defer every.Stop()
	for {
		<-every.C
		w.look(time.Now())
		if w.live.count() > 0 {
			continue
		}
		// One that was added since is seen here, or saw that the goroutine ends and starts another.
		if w.on.Store(false); w.live.count() == 0 || !w.on.CompareAndSwap(false, true) {
			return
		}
	}
}

// look stops the invocations that have run for a while and whose callers, or rights, are gone.
func (w *watch) look(now time.Time) {
	w.live.each(func(r *running) {
		if now.Sub(r.began) < patience {
			return
		}
		if r.caller != nil && r.caller.Gone() {
			r.abandon(now)
		}
		r.recheck()
	})
}

// abandon stops an invocation whose caller went away. Its row says so as of one that its caller cancelled.
func (r *running) abandon(now time.Time) {
	r.requested.CompareAndSwap(0, now.UnixMilli())
	r.stop(abi.Errorf(abi.CodeCanceled, "the caller went away"))
}

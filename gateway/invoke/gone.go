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

// patience is how long an invocation runs before anyone asks whether its caller is still there. Most
// have ended by then, and cost nothing but a look at a flag.
const patience = 50 * time.Millisecond

// watch notices callers that go away, and cancels what they asked for (PF-I9). One goroutine looks at
// all invocations, and it is there only while there are some.
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

// look cancels the invocations that have run for a while and whose callers are gone.
func (w *watch) look(now time.Time) {
	w.live.each(func(r *running) {
		if r.caller != nil && now.Sub(r.began) >= patience && r.caller.Gone() {
			r.abandon(now)
		}
	})
}

// abandon stops an invocation whose caller went away. Its row says so as of one that its caller cancelled.
func (r *running) abandon(now time.Time) {
	r.requested.CompareAndSwap(0, now.UnixMilli())
	r.stop(abi.Errorf(abi.CodeCanceled, "the caller went away"))
}

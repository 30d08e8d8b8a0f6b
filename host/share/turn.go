package share

import "context"

// Turn is one guest's claim to a token, and those of the guests it waits for: only one of them
// computes at a time. It belongs to one goroutine. The zero value asks for no token, and neither
// does nil.
type Turn struct {
	org  *Org
	held bool

	// Of a turn that waits, guarded by Scheduler.mu.
	queued     bool
	came       uint64
	prev, next *Turn
	ready      chan struct{} // holds one; a token is handed over by it
}

// Begin makes the turn an organisation's; nil leaves it one that asks for nothing. It holds no token.
func (t *Turn) Begin(o *Org) { *t = Turn{org: o} }

// Spend accounts for fuel. See [Org.Debit].
func (t *Turn) Spend(fuel int64) {
	if t != nil {
		t.org.Debit(fuel)
	}
}

// Pass is what a turn does before its guest computes, and between any two slices of it. A turn
// without a token takes one and waits for it. A turn with a token hands it on, and waits for
// another, when one waits that is not ahead of it. Pass reports whether it waited. When ctx
// ended meanwhile the turn holds no token, and its guest must not compute.
func (t *Turn) Pass(ctx context.Context) (waited bool) {
	if !t.Claim() {
		return false
	}
	t.Await(ctx)
	return true
}

// Claim is the first half of Pass, which does not wait. It reports whether Await must follow.
func (t *Turn) Claim() bool {
	if t == nil || t.org == nil {
		return false
	}
	s := t.org.s
	if t.held {
		if waiting(s.word.Load()) > 0 && s.swap(t) {
			return true
		}
	} else {
		t.org.catchUp()
		if !s.take() && s.enqueue(t) {
			return true
		}
	}
	t.hold()
	return false
}

// Leave gives the token back, if there is one. It does not wait.
func (t *Turn) Leave() {
	if t == nil || !t.held {
		return
	}
	t.held = false
	t.org.s.release()
}

// Held reports whether the turn has a token.
func (t *Turn) Held() bool { return t != nil && t.held }

func (t *Turn) hold() {
	t.held = true
	t.org.s.took(t.org)
}

// Await is the second half of Pass: it waits for the token that a turn in the queue will get.
func (t *Turn) Await(ctx context.Context) {
	select {
	case <-t.ready:
		t.hold()
		return
	case <-ctx.Done():
	}
	if !t.org.s.withdraw(t) {
		<-t.ready // it was handed over meanwhile, and is another's now
		t.org.s.release()
	}
}

package boundary_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/share"
)

// witness remembers what it was told.
type witness []*abi.Error

func (w *witness) Over(why *abi.Error) { *w = append(*w, why) }

// shared is a guest of an organisation's, under one token for all.
func shared(t *testing.T, s *share.Scheduler, org string, w boundary.Witness, revoked *atomic.Pointer[abi.Error]) *guest {
	r := newRig(t)
	spec := *r.inv.Authority().Spec()
	r.inv = boundary.New(boundary.Spec{
		Authority: authority.New(spec, revoked.Load), Services: r.out.services(), Share: s.Org(org), Witness: w,
	})
	r.inv.Enter(boundary.PhaseInitialize)
	r.inv.Enter(boundary.PhaseRun)
	return r.metered()
}

func stands() *atomic.Pointer[abi.Error] { return new(atomic.Pointer[abi.Error]) }

// free reports whether a turn of another organisation would have a token now.
func free(s *share.Scheduler) bool {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var other share.Turn
	other.Begin(s.Org("other"))
	waited := other.Pass(ctx)
	other.Leave()
	return !waited
}

// A guest has a token while it computes and at no other time: not while the host waits for something
// outside for it, and not after its end. What the host does in memory it does in the guest's turn.
func TestOnlyComputingHoldsAToken(t *testing.T) {
	s := share.New(share.Options{Tokens: 1})
	g := shared(t, s, "org", nil, stands())
	if !free(s) {
		t.Error("a token before the first instruction")
	}
	g.work(10)
	if free(s) {
		t.Error("it computes without a token")
	}
	for _, call := range []struct {
		name string
		args []any
	}{
		{"kv_get", []any{"k"}},
		{"kv_put", []any{"k", "v"}},
		{"file_stat", []any{"a"}},
		{"http_fetch", []any{`{"method":"GET","url":"https://api.example.com/v1/a"}`, ""}},
		{"capability_invoke", []any{"probe:other.run@1", "{}"}},
	} {
		within := false
		g.out.during = func(context.Context, boundary.Scope, ...[]byte) {
			within = true
			if !free(s) {
				t.Errorf("%s waits with a token", call.name)
			}
		}
		g.call(call.name, call.args...)
		if !within {
			t.Errorf("%s did not act", call.name)
		}
		if g.inv.Over() != nil || free(s) {
			t.Errorf("after %s: over %v, or without a token", call.name, g.inv.Over())
		}
	}
	g.call("time_now")
	g.inv.Unmeter()
	if !free(s) {
		t.Error("a token after its end")
	}
}

// A child computes in its parent's turn, so that nesting cannot wait for itself.
func TestChildrenComputeInTheirParentsTurn(t *testing.T) {
	s := share.New(share.Options{Tokens: 1})
	g := shared(t, s, "org", nil, stands())
	g.work(10)
	ran := false
	g.out.during = func(context.Context, boundary.Scope, ...[]byte) {
		child := g.below()
		c := child.metered()
		if ran = c.work(10); free(s) {
			t.Error("a child computes without a token")
		}
		c.inv.Unmeter()
		if !free(s) {
			t.Error("a child has ended and has a token")
		}
	}
	g.call("capability_invoke", "probe:other.run@1", "{}")
	if !ran || free(s) {
		t.Error("the parent does not compute again")
	}
	g.inv.Unmeter()
}

// The token goes round between those that compute, slice by slice.
func TestTokensGoRoundAtSlices(t *testing.T) {
	s := share.New(share.Options{Tokens: 1})
	first, second := shared(t, s, "one", nil, stands()), shared(t, s, "two", nil, stands())
	first.work(10)
	var turns atomic.Int64
	done := make(chan bool)
	go func() {
		ok := true
		for range 5 {
			ok = second.work(share.Slice) && ok
			turns.Add(1)
		}
		second.inv.Unmeter()
		done <- ok
	}()
	for end := time.Now().Add(time.Minute); ; {
		select {
		case ok := <-done:
			if !ok || second.inv.Over() != nil {
				t.Errorf("the other was ended: %v", second.inv.Over())
			}
			return
		default:
		}
		if !first.work(share.Slice/50) || time.Now().After(end) {
			t.Fatalf("one computes all the time, the other had %d turns: %v", turns.Load(), first.inv.Over())
		}
	}
}

// Who waits for a token ends at its deadline and when it is cancelled, and does not begin a slice
// with an authority that was lost while it waited; none of them takes the token along.
func TestWaitingForATokenEnds(t *testing.T) {
	ending := map[abi.Code]func(*share.Turn, *atomic.Pointer[abi.Error], context.CancelCauseFunc){
		abi.CodeDeadline: nil,
		abi.CodeCanceled: func(_ *share.Turn, _ *atomic.Pointer[abi.Error], cancel context.CancelCauseFunc) {
			cancel(abi.Errorf(abi.CodeCanceled, "asked to"))
		},
		abi.CodeGrantRevoked: func(holder *share.Turn, revoked *atomic.Pointer[abi.Error], _ context.CancelCauseFunc) {
			revoked.Store(abi.Errorf(abi.CodeGrantRevoked, "gone"))
			holder.Leave()
		},
	}
	for code, end := range ending {
		s := share.New(share.Options{Tokens: 1})
		holder := new(share.Turn)
		holder.Begin(s.Org("holder"))
		holder.Pass(t.Context())
		var told witness
		revoked := stands()
		g := shared(t, s, "waits", &told, revoked)
		ctx, cancel := context.WithCancelCause(t.Context())
		soon, stop := context.WithTimeout(ctx, 30*time.Millisecond)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if <-soon.Done(); end != nil {
				end(holder, revoked, cancel)
			}
		}()
		g.fuel = -1
		if end == nil {
			g.inv.Refuel(soon)
		} else {
			g.inv.Refuel(ctx)
		}
		<-done
		if over := g.inv.Over(); over == nil || over.Code != code {
			t.Errorf("%s: %v", code, over)
		}
		if len(told) != 1 || told[0] != g.inv.Over() {
			t.Errorf("%s: the witness was told %v", code, told)
		}
		g.inv.Unmeter()
		holder.Leave()
		if !free(s) {
			t.Errorf("%s: a token is lost", code)
		}
		stop()
		cancel(nil)
	}
}

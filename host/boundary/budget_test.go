package boundary_test

import (
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// below starts a child of r, with a budget of its own as large.
func (r *rig) below() *rig {
	child := *r
	spec := *r.inv.Authority().Spec()
	child.inv = boundary.New(boundary.Spec{
		Authority: authority.New(spec, func() *abi.Error { return nil }), Services: r.out.services(), Parent: r.inv,
	})
	child.inv.Enter(boundary.PhaseInitialize)
	child.inv.Enter(boundary.PhaseRun)
	return &child
}

// S4: an invocation gets no more out of the gateway by making children, however deep.
func TestChildrenSpendTheBudgetsAboveThem(t *testing.T) {
	r := newRig(t, func(s *authority.Spec) {
		s.Limits[abi.LimitHTTPRequests], s.Limits[abi.LimitChildren], s.Limits[abi.LimitRandomBytes] = 3, 3, 300
	})
	child := r.below()
	grandchild := child.below()
	fetch, random := argumentsFor(function(t, "http_fetch")), []any{0, 100}
	invoke := argumentsFor(function(t, "capability_invoke"))
	for name, args := range map[string][]any{"http_fetch": fetch, "random": random, "capability_invoke": invoke} {
		for _, one := range []*rig{r, child, grandchild} {
			one.ok(one.call(name, args...))
		}
		for _, one := range []*rig{r, child, grandchild} {
			one.want(one.call(name, args...), abi.EQUOTA)
		}
	}
	if got := r.conclude().Receipt; got.HTTPRequests != 1 || got.RandomBytes != 100 || got.Children != 1 {
		t.Errorf("a receipt is about the invocation's own calls: %+v", got)
	}
}

// S4: host calls of children count above, and a child that goes on after its parent's are used up
// does not take the parent's last words.
func TestChildrenSpendTheHostCallsAboveThem(t *testing.T) {
	r := newRig(t, func(s *authority.Spec) { s.Limits[abi.LimitHostCalls] = 10 })
	first := r.below()
	for range 6 {
		first.ok(first.call("time_now"))
	}
	second := r.below()
	for range 4 {
		second.ok(second.call("time_now"))
	}
	for range 5 {
		second.want(second.call("time_now"), abi.EQUOTA)
	}
	second.ok(second.call("output", `"partial"`))
	r.want(r.call("time_now"), abi.EQUOTA)
	r.ok(r.call("output", `"partial"`))
	if o := r.conclude(); o.Err != nil || string(o.Output) != `"partial"` {
		t.Errorf("outcome %v %s", o.Err, o.Output)
	}
}

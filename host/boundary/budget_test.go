package boundary_test

import (
	"slices"
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
	codes := map[*rig][]abi.Code{}
	for name, c := range map[string]struct {
		args []any
		code abi.Code
	}{
		"http_fetch":        {argumentsFor(function(t, "http_fetch")), abi.CodeHTTPBudget},
		"random":            {[]any{0, 100}, abi.CodeRandomLimit},
		"capability_invoke": {argumentsFor(function(t, "capability_invoke")), abi.CodeChildLimit},
	} {
		for _, one := range []*rig{r, child, grandchild} {
			one.ok(one.call(name, c.args...))
		}
		for _, one := range []*rig{r, child, grandchild} {
			one.want(one.call(name, c.args...), abi.EQUOTA)
			codes[one] = append(codes[one], c.code)
		}
	}
	for _, one := range []*rig{grandchild, child} {
		var got []abi.Code
		for _, l := range one.conclude().Receipt.Lines {
			if l.Code != "" {
				got = append(got, l.Code)
			}
		}
		if !slices.Equal(got, codes[one]) {
			t.Errorf("refused with %s, not with %s", got, codes[one])
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

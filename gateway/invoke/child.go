package invoke

import (
	"context"
	"encoding/json"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/problem"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// children runs invocations that guests ask for. A child is decided, recorded and run as any
// invocation is; it has its parent's session, at most its parent's authority, its parent's
// place to run, and its own row that names the parent (X32, S4).
type children struct{ p *Pipeline }

// childMeta is what the result register says of a child.
type childMeta struct {
	Invocation     string             `json:"invocation"`
	Classification abi.Classification `json:"classification,omitzero"`
}

// InvokeChild implements [boundary.Invoker]. The boundary has settled what the authority alone
// settles: the install grant's calls, depth, cycles and the budget.
func (ch children) InvokeChild(ctx context.Context, s boundary.Scope, ref abi.CapabilityRef, input []byte) (boundary.Result, error) {
	spec := s.Authority.Spec()
	parent := ch.p.live.get(spec.Invocation)
	if parent == nil {
		return boundary.Result{}, abi.Errorf(abi.CodeInternal, "the invoking invocation is not running")
	}
	c := &attempt{
		p: ch.p, id: ch.p.ids.next(ch.p.o.Now()), face: "capability", parent: parent, input: input,
		terms: terms{ref: ref, trace: parent.trace.child()}, snapshot: ch.p.o.Policy.Snapshot(),
	}
	c.facts = ch.p.o.Policy.ChildFacts(ctx, ch.p.o.Catalogue, c.snapshot, parent.facts, s.Authority, s.Flow.Label(), ref)
	if refused := c.checkInputSize(); refused != nil {
		return boundary.Result{}, refused
	}
	if denial := c.decide(ctx); denial != nil {
		if err := c.recordDecision(ctx, denial, true); err != nil {
			return boundary.Result{}, err
		}
		d := c.denial(denial)
		parent.told = append(parent.told, d.Suggestions...)
		return c.childFailed(d, 0), nil
	}
	return ch.run(ctx, c, s)
}

func (ch children) run(ctx context.Context, c *attempt, s boundary.Scope) (boundary.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	live := &running{
		id: c.id, root: c.parent.outermost(), session: c.facts.Session, facts: c.facts, trace: c.terms.trace, cancel: cancel,
	}
	if refused := c.authorize(live); refused != nil {
		return boundary.Result{}, refused
	}
	ch.p.live.addChild(live)
	defer ch.p.live.remove(c.id)
	c.live = live
	out := c.execute(ctx, live.authority)
	if out.broken != nil {
		return boundary.Result{}, out.broken
	}
	// The parent is raised before anything of the child reaches it, failure included (S6).
	withheld := out.err != nil && out.err.Code == abi.CodeClassificationFlow
	if !withheld && s.Flow.Observe(out.label) != nil {
		withheld = true
	}
	if !withheld {
		c.parent.told = append(c.parent.told, c.told...)
	}
	switch {
	case withheld:
		return c.childFailed(problem.Withheld(c.id), 0), nil
	case out.err != nil:
		return c.childFailed(c.failure(out), out.label), nil
	}
	return boundary.Result{Body: out.output, Meta: c.meta(out.label), Target: string(c.facts.Capability)}, nil
}

// childFailed puts the child's problem document into the register; the guest sees ECHILD.
func (c *attempt) childFailed(d problem.Document, label abi.Classification) boundary.Result {
	return boundary.Result{Body: d.Encode(), Meta: c.meta(label), Target: string(c.facts.Capability), Code: d.Code}
}

func (c *attempt) meta(label abi.Classification) json.RawMessage {
	raw, err := json.Marshal(childMeta{Invocation: c.id, Classification: label})
	if err != nil {
		return nil
	}
	return raw
}

var _ boundary.Invoker = children{}

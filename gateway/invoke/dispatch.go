package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/approval"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/host/lifetime"
)

// Decide records a person's word on what waits, and does what follows: what is rejected is over, what is
// approved is run. It answers how far that is, and does not wait for the run's end.
func (p *Pipeline) Decide(ctx context.Context, who session.Principal, org, id string, v approval.Verdict, reason string) (approval.Standing, error) {
	ctx = context.WithoutCancel(ctx)
	s, err := p.o.Policy.DecideApproval(ctx, who, org, id, v, reason)
	if err != nil {
		return approval.Standing{}, err
	}
	err = p.follow(ctx, &s)
	now, standing := p.o.Policy.Standing(ctx, org, id)
	if standing != nil {
		return approval.Standing{}, standing
	}
	if err != nil && now.State(p.o.Policy.Now()) != approval.Approved { // what may still come of it is no failure
		return approval.Standing{}, err
	}
	return now, nil
}

// follow does what follows from how far a request is. It may be called again and from anywhere: of each
// step there is at most one.
func (p *Pipeline) follow(ctx context.Context, s *approval.Standing) error {
	r := &s.Request
	switch s.State(p.o.Policy.Now()) {
	case approval.Rejected:
		return p.over(ctx, s, approval.Rejected, audit.Resolved{Resolution: audit.ResolvedRejected, Code: abi.CodeApprovalRejected, By: s.Decision.By})
	case approval.Withdrawn:
		return p.over(ctx, s, approval.Withdrawn, audit.Resolved{Resolution: audit.ResolvedWithdrawn, Code: abi.CodeCanceled, By: s.Withdrawal.By})
	case approval.Expired:
		return p.over(ctx, s, approval.Expired, audit.Resolved{Resolution: audit.ResolvedExpired, Code: abi.CodeApprovalStale})
	case approval.Approved:
		switch r.Kind {
		case approval.Invocation:
			return p.dispatch(ctx, s)
		case approval.Promotion: // was done in the same change
			return p.over(ctx, s, approval.Done, audit.Resolved{})
		}
	case approval.Dispatched:
		return p.abandoned(ctx, s)
	}
	return nil
}

// over ends a request: first its row, where there is one, then its record.
func (p *Pipeline) over(ctx context.Context, s *approval.Standing, st approval.State, b audit.Resolved, changed ...string) error {
	r := &s.Request
	if r.Kind == approval.Invocation {
		if _, err := p.resolve(ctx, r, b); err != nil {
			return err
		}
	}
	return p.o.Policy.SettleApproval(ctx, approval.Result{Approval: r.ID, Org: r.Org, State: st, Code: b.Code, Changed: changed}, nil)
}

// resolve ends the waiting of a row, unless it is over, and returns the row as it was before.
func (p *Pipeline) resolve(ctx context.Context, r *approval.Request, b audit.Resolved) (audit.Row, error) {
	row, err := p.o.Audit.Get(ctx, r.Org, r.ID)
	if err != nil || row.Resolution != nil {
		return row, err
	}
	_, err = p.o.Audit.Append(ctx, audit.Event{Org: r.Org, ID: r.ID, Body: b})
	return row, err
}

// abandoned ends what a process that died had begun. What it did is unknown; it is not done again.
func (p *Pipeline) abandoned(ctx context.Context, s *approval.Standing) error {
	r := &s.Request
	if _, here := p.dispatched.Load(r.ID); here {
		return nil // it runs
	}
	if r.Kind != approval.Invocation {
		return p.o.Policy.SettleApproval(ctx, approval.Result{Approval: r.ID, Org: r.Org, State: approval.Interrupted}, nil)
	}
	row, err := p.resolve(ctx, r, audit.Resolved{Resolution: audit.ResolvedApproved, By: s.Decision.By})
	if err != nil {
		return err
	}
	out := approval.Result{Approval: r.ID, Org: r.Org, State: approval.Interrupted}
	switch {
	case row.Resolution == nil: // it died between the use and the run
		_, err = p.o.Audit.Append(ctx, audit.Event{Org: r.Org, ID: r.ID, Body: audit.Ended{Outcome: audit.OutcomeInterrupted, Label: r.Basis.Ceiling}})
		if err != nil {
			return err
		}
	case row.Ended == nil:
		return nil // it is about to end, or the log's recovery closes it
	case row.Ended.Outcome == audit.OutcomeCompleted:
		out.State = approval.Done
	case row.Ended.Outcome == audit.OutcomeFailed:
		out.State, out.Code = approval.Failed, row.Ended.Code
	}
	return p.o.Policy.SettleApproval(ctx, out, nil)
}

// placeWait bounds how long an approved invocation waits for a place to run before it is left for later.
const placeWait = 5 * time.Second

// dispatch runs what was approved, once, as the invocation that asked: the gate decides again, on the facts
// of then, under the policy of now, and what differs voids the approval (S17).
func (p *Pipeline) dispatch(ctx context.Context, s *approval.Standing) error {
	id := s.Request.ID
	if _, busy := p.dispatched.LoadOrStore(id, true); busy {
		return nil
	}
	runs := false
	defer func() {
		if !runs {
			p.dispatched.Delete(id)
		}
	}()
	c, refused := p.resume(ctx, s)
	if refused != nil {
		return p.void(ctx, s, refused)
	}
	if refused := p.live.reserve(); refused != nil {
		return refused
	}
	defer func() {
		if !runs {
			p.live.ended()
		}
	}()
	wait := lifetime.Begin(ctx, time.Now().Add(placeWait))
	release, refused := p.slots.take(wait, p.slots.of(c.facts.Org))
	wait.Over()
	if refused != nil {
		return refused
	}
	defer func() {
		if !runs {
			release()
		}
	}()
	live, err := c.use(ctx, s)
	if err != nil {
		return p.void(ctx, s, abi.AsError(err))
	}
	life := lifetime.Begin(ctx, live.authority.Spec().Deadline)
	live.cancel = life.Cancel
	c.live = live
	p.live.put(live)
	p.watch.wake()
	runs = true
	go func() {
		defer p.dispatched.Delete(id)
		defer p.live.remove(id)
		defer life.Over()
		defer release()
		c.finish(ctx, life)
	}()
	return nil
}

// resume makes the attempt again that asked, and decides it.
func (p *Pipeline) resume(ctx context.Context, s *approval.Standing) (*attempt, *abi.Error) {
	r := &s.Request
	input, err := p.Input(ctx, r)
	if err != nil {
		return nil, abi.AsError(err)
	}
	sess := p.o.Policy.OpenSessionOf(r.Context.Session)
	if sess == nil {
		return nil, approval.StaleBecause([]string{"session"})
	}
	c := &attempt{
		p: p, id: r.ID, face: r.Context.Origin, session: sess, input: input, snapshot: p.o.Policy.Snapshot(), approved: s,
		terms: terms{ref: r.Capability, declared: r.Context.Declared, trace: traced{id: r.Context.Trace}},
	}
	c.facts = p.o.Policy.Facts(ctx, p.o.Catalogue, c.snapshot, sess, c.terms.ref, c.terms.declared)
	c.facts.Approved, c.facts.Rate = true, gate.Within // it was counted when it asked
	if denial := c.decide(ctx); denial != nil {
		if denial.Code == abi.CodeUnclassified {
			return nil, abi.Errorf(abi.CodeNotReady, "the catalogue cannot say the capability's reach; it is tried again")
		}
		return nil, approval.StaleBecause(nil)
	}
	return c, nil
}

// use uses the approval up and makes the authority of what runs by it.
func (c *attempt) use(ctx context.Context, s *approval.Standing) (*running, error) {
	files, _, err := c.p.named(ctx, c.facts.Workspace, c.decision.Ceiling, c.input)
	if err != nil {
		return nil, err
	}
	c.snapshot, c.decision, err = c.p.o.Policy.UseApproval(ctx, c.facts.Org, c.id, c.facts, files)
	if err != nil {
		return nil, err
	}
	live := &running{
		id: c.id, session: c.facts.Session, facts: c.facts, trace: c.terms.trace, declared: c.terms.declared, began: time.Now(),
	}
	if refused := c.authorize(live); refused != nil {
		return nil, approval.StaleBecause([]string{"session"})
	}
	return live, nil
}

// void ends an approval that what changed has voided. What is only not possible now is left for later.
func (p *Pipeline) void(ctx context.Context, s *approval.Standing, why *abi.Error) error {
	if why.Code != abi.CodeApprovalStale {
		return why
	}
	if now, err := p.o.Policy.Standing(ctx, s.Request.Org, s.Request.ID); err == nil && now.Result != nil {
		return nil // somebody else was first
	}
	err := p.over(ctx, s, approval.Stale, audit.Resolved{
		Resolution: audit.ResolvedStale, Code: abi.CodeApprovalStale, By: s.Decision.By,
	}, approval.ChangedOf(why)...)
	if err != nil {
		return err
	}
	return why
}

// fetched is what is kept of a run until its session fetches it: one of the two.
type fetched struct {
	Output  json.RawMessage `json:"output,omitempty"`
	Problem json.RawMessage `json:"problem,omitempty"`
}

// finish runs what was approved and keeps what came of it.
func (c *attempt) finish(ctx context.Context, life context.Context) {
	out := approval.Result{Approval: c.id, Org: c.facts.Org, State: approval.Interrupted}
	var kept []byte
	defer func() {
		if broken := recover(); broken != nil {
			c.p.o.Log.Error("an approved invocation failed inside", "invocation", c.id, "error", fmt.Errorf("panic: %v\n%s", broken, debug.Stack()))
		}
		if err := c.p.o.Policy.SettleApproval(ctx, out, kept); err != nil {
			c.p.o.Log.Error("what came of an approved invocation was not kept", "invocation", c.id, "error", err)
		}
	}()
	r := c.execute(life, c.live.authority)
	if r.broken != nil {
		c.p.o.Log.Error("an invocation could not be run or recorded", "invocation", c.id, "error", r.broken)
		return
	}
	f := fetched{Output: r.output}
	out.State = approval.Done
	if r.err != nil {
		out.State, out.Code = approval.Failed, r.err.Code
		f = fetched{Problem: c.failure(r).Encode()}
	}
	if raw, err := json.Marshal(f); err == nil && len(raw) <= approval.MaxKept {
		kept = c.p.o.Box.Seal(out.Org, c.id, approval.Output, raw)
	}
}

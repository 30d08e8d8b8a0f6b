package invoke

import (
	"context"
	"sync"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/problem"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/host"
)

// What every invocation appends is kept for reuse: the log takes a copy.
var (
	decisions = sync.Pool{New: func() any { return new(audit.Decided) }}
	outcomes  = sync.Pool{New: func() any { return new(audit.Ended) }}
)

// keptLines bounds the receipt whose room is kept.
const keptLines = 64

// recordDecision appends the decision with the whole envelope (X28, X48). A denial is waited
// for; an allow is durable with the entry that follows it.
func (c *attempt) recordDecision(ctx context.Context, denial *abi.Error, wait bool) error {
	envelope, err := c.envelope()
	if err != nil {
		return err
	}
	d := decisions.Get().(*audit.Decided)
	defer decisions.Put(d)
	*d = audit.Decided{
		Envelope: envelope, Verdict: audit.VerdictAllow, Checks: d.Checks[:0],
		Biome: c.decision.Biome, Digest: c.decision.Digest, Generation: c.decision.Generation, Grants: c.decision.Grants(),
		ReachCheck: "enforced", Reach: c.decision.Reach,
		Declared: c.terms.declared, Label: c.decision.Start, Ceiling: c.decision.Ceiling, Clearance: c.facts.Clearance,
		Lifecycle: string(c.decision.Ending.State), ReplacedBy: c.decision.Ending.ReplacedBy,
		Declassification: c.lowered,
	}
	if c.decision.ReachDeferred {
		d.ReachCheck = "deferred"
	}
	names := gate.Checks()
	for i, r := range c.decision.Checks { // as Explain has them
		if r.State != gate.NotApplicable {
			d.Checks = append(d.Checks, audit.Check{Name: names[i].Name, Verdict: r.State.String(), Code: r.Code})
		}
	}
	if denial == nil && c.decision.Verdict == gate.NeedsApproval {
		d.Verdict, d.Code = audit.VerdictNeedsApproval, c.decision.Code
	}
	if denial != nil {
		d.Verdict, d.Code = audit.VerdictDeny, denial.Code
	}
	if denial != nil {
		c.tell(denial.Code, nil)
	}
	if d.Verdict != audit.VerdictAllow {
		d.Suggestions = recorded(c.suggestions())
	}
	return c.append(ctx, d, wait)
}

// recordStart appends that it runs now: the decision, or, of what waited for a person, that person's.
func (c *attempt) recordStart(ctx context.Context) error {
	if c.approved == nil {
		return c.recordDecision(ctx, nil, false)
	}
	return c.append(ctx, audit.Resolved{Resolution: audit.ResolvedApproved, By: c.approved.Decision.By}, false)
}

// append appends an event of this invocation. A caller that leaves does not leave a gap, and so its
// context is not the one that is waited with.
func (c *attempt) append(_ context.Context, body audit.Body, wait bool) error {
	ev, ctx := audit.Event{Org: c.facts.Org, ID: c.id, Body: body}, context.Background()
	if !wait {
		return c.p.o.Audit.AppendAsync(ctx, ev)
	}
	_, err := c.p.o.Audit.Append(ctx, ev)
	return err
}

func (c *attempt) envelope() (audit.Envelope, error) {
	digest, err := c.p.o.Audit.Digest(c.facts.Org, c.input)
	if err != nil {
		return audit.Envelope{}, err
	}
	e := audit.Envelope{
		Subject: audit.RefOf(c.facts.Subject), CallerKind: string(c.facts.Subject.Kind()), Origin: c.face,
		Space: c.facts.Space, Environment: c.facts.Environment, Capability: c.facts.Capability,
		Session: c.facts.Session, Workspace: c.facts.Workspace, Trace: c.terms.trace.id,
		InputDigest: digest, InputBytes: int64(len(c.input)),
	}
	if c.facts.User != "" {
		u := audit.RefOf(c.facts.User)
		e.User = &u
	}
	if c.parent != nil {
		e.Parent, e.Root, e.CallerKind = c.parent.id, c.parent.outermost(), string(abi.SubjectBiome)
		above := c.parent.authority.Spec()
		for _, ref := range above.Chain {
			e.Chain = append(e.Chain, string(ref))
		}
		e.Chain = append(e.Chain, string(above.Capability))
	}
	return e, nil
}

// recordOutcome appends the outcome and the receipt, durably: nothing is answered before. A
// child's outcome is durable with its parent's, which comes later in the log.
func (c *attempt) recordOutcome(ctx context.Context, o *host.Outcome, released bool, generation uint64) error {
	r := &o.Receipt
	told := abi.Code("")
	if o.Err != nil {
		told = o.Err.Code
	}
	c.p.o.Meter.Ran(r, told != abi.CodeClassificationFlow)
	c.tell(told, r)
	ended := outcomes.Get().(*audit.Ended)
	defer outcomes.Put(ended)
	*ended = audit.Ended{
		Outcome: audit.OutcomeCompleted, Released: released, Label: o.Label, OutputBytes: int64(len(o.Output)), Lines: ended.Lines[:0],
		DurationMS: r.Took.Milliseconds(), Fuel: r.Fuel, PeakMemory: r.PeakMemory, HostCalls: r.HostCalls,
		Generation: generation,
	}
	if o.Cause != nil {
		ended.Outcome, ended.Code = audit.OutcomeFailed, o.Cause.Code
	}
	if ended.Code == abi.CodeCanceled {
		c.live.Over(o.Cause) // also where it was seen after the guest had returned by itself
	}
	ended.Cancel = c.live.cancelled()
	for _, l := range r.Logs {
		ended.LogBytes += int64(len(l.Text))
	}
	for _, l := range r.Lines {
		ended.Lines = append(ended.Lines, audit.Line{
			Line: int(l.Call), Function: l.Function, Target: l.Target, Secret: l.Secret, Code: l.Code, BytesIn: l.In, BytesOut: l.Out, Label: l.Label,
		})
	}
	c.told = c.suggestLines(r)
	ended.Suggestions = recorded(c.told)
	err := c.append(ctx, ended, c.parent == nil)
	if cap(ended.Lines) > keptLines {
		ended.Lines = nil
	}
	return err
}

// refuse answers and records a request that became no invocation (PF-G1). s is nil when nobody is known.
func (p *Pipeline) refuse(ctx context.Context, s *session.Session, r *Request, why *abi.Error) Answer {
	d := problem.From(why, p.recordRefusal(ctx, s, r, why))
	return Answer{Problem: &d}
}

// Refused is refuse for a listener that turned a request away itself.
func (p *Pipeline) Refused(ctx context.Context, r Request, why *abi.Error) problem.Document {
	return problem.From(why, p.recordRefusal(ctx, nil, &r, why))
}

// RefusedCaller is Refused where the request may carry a session's token: then the refusal is on the record of
// that session's organisation.
func (p *Pipeline) RefusedCaller(ctx context.Context, r Request, why *abi.Error) problem.Document {
	s, _ := p.authenticate(&r)
	return problem.From(why, p.recordRefusal(ctx, s, &r, why))
}

func (p *Pipeline) recordRefusal(ctx context.Context, s *session.Session, r *Request, why *abi.Error) string {
	listener := "invoke"
	if r.Face == "mcp" {
		listener = r.Face
	}
	ev := audit.Refused{
		Code: why.Code, Listener: listener, Method: r.Method, Route: r.Route, Remote: r.remote(), Detail: why.Message,
	}
	if why.Code == abi.CodeInternal {
		p.o.Log.Error("a request failed inside", "route", r.Route, "error", why)
	}
	if s == nil {
		return p.o.Refusals.Record(ctx, "", ev)
	}
	ref := audit.RefOf(s.Subject)
	ev.Subject = &ref
	return p.o.Refusals.Record(ctx, s.Org, ev)
}

// denial is the problem document of a decision against the caller (X46).
func (c *attempt) denial(why *abi.Error) problem.Document {
	d := problem.From(why, c.id)
	d.Subject = &problem.Subject{Kind: c.facts.Subject.Kind(), Ref: string(c.facts.Subject)}
	d.Capability, d.Environment = string(c.facts.Capability), string(c.facts.Environment)
	d.Decision = string(audit.VerdictDeny)
	d.Hint = why.Hint
	for _, r := range c.decision.Explain() {
		if r.State == gate.Failed {
			info, _ := r.Code.Info()
			d.Reasons = append(d.Reasons, problem.Reason{Code: r.Code, Detail: info.Meaning})
		}
	}
	if len(d.Reasons) == 0 {
		d.Reasons = []problem.Reason{{Code: why.Code, Detail: why.Message}}
	}
	d.Suggestions, d.ReplacedBy = c.suggestions(), string(c.decision.Ending.ReplacedBy)
	return d
}

// failure is the problem document of a run that ended badly, as its receiver may see it.
func (c *attempt) failure(r result) problem.Document {
	if r.err.Code == abi.CodeClassificationFlow {
		return problem.Withheld(c.id)
	}
	d := problem.From(r.err, c.id)
	d.Capability, d.Environment = string(c.facts.Capability), string(c.facts.Environment)
	d.Suggestions = c.told
	if r.guest != nil {
		d.Guest = &problem.Guest{Code: r.guest.Code, Message: r.guest.Message}
		d.Detail = "the capability answered with an error of its own"
	}
	return d
}

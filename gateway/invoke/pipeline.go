package invoke

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/approval"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/catalogue"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/gateway/problem"
	"github.com/ecotone-dev/ecotone/gateway/rate"
	"github.com/ecotone-dev/ecotone/gateway/refusal"
	"github.com/ecotone-dev/ecotone/gateway/schema"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/host"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/lifetime"
	"github.com/ecotone-dev/ecotone/host/share"
)

// Options are the parts an invocation passes through. All but Meter, Tracer and Now are required.
type Options struct {
	Policy    *policy.Service
	Catalogue catalogue.Catalogue
	Host      *host.Host
	Audit     *audit.Log
	Refusals  *refusal.Recorder
	Schemas   *schema.Cache
	Limiter   rate.Limiter
	Box       approval.Box // seals what waits for a person
	// Versions looks at files that an input names; see [files.Service.Versions].
	Versions func(ctx context.Context, workspace string, ceiling abi.Classification, paths []string) (map[string]string, abi.Classification, error)
	Services boundary.Services // Journal, Children and Audit are the pipeline's own
	// Workspace makes a session's workspace with a root of the given label, or finds it there.
	Workspace func(ctx context.Context, id string, root abi.Classification) error
	Limits    abi.Limits // of the server: running and waiting invocations
	Shares    *share.Scheduler
	Log       *slog.Logger
	Meter     Meter            // nil counts nothing
	Tracer    Tracer           // nil traces nothing
	Now       func() time.Time // nil: time.Now
}

// Pipeline is safe for concurrent use.
type Pipeline struct {
	o     Options
	slots *slots
	live  *live
	ids   *ids
	watch watch
	rooms sync.Map // workspaces that were made or found by this process

	dispatched sync.Map // ids of approved invocations that are run, or about to be, by this process
}

// New makes a pipeline.
func New(o Options) *Pipeline {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Meter == nil {
		o.Meter = unmetered{}
	}
	p := &Pipeline{
		o: o, live: newLive(), ids: newIDs(),
		slots: newSlots(o.Limits.Get(abi.LimitRunning), o.Limits.Get(abi.LimitWaiting), o.Shares),
	}
	p.watch.live = p.live
	p.o.Services.Journal = journal{o.Audit}
	p.o.Services.Children = children{p}
	p.o.Services.Audit = rows{o.Audit}
	p.o.Policy.OnChange(p.changed)
	return p
}

// Invoke takes one request to its answer.
func (p *Pipeline) Invoke(ctx context.Context, r Request) Answer {
	began := p.o.Now()
	a := p.invoke(ctx, &r, began)
	p.o.Meter.Answered(a.code(), p.o.Now().Sub(began))
	return a
}

// invoke is Invoke, uncounted. now is when the request came.
func (p *Pipeline) invoke(ctx context.Context, r *Request, now time.Time) Answer {
	s, refused := p.authenticate(r)
	if refused != nil {
		return p.refuse(ctx, nil, r, refused)
	}
	t, refused := parseTerms(r, now)
	if refused != nil {
		return p.refuse(ctx, s, r, refused)
	}
	c := &attempt{
		p: p, id: p.ids.next(now), face: r.Face, session: s, caller: r.Caller, input: r.Input, terms: t,
		snapshot: p.o.Policy.Snapshot(),
	}
	c.facts = p.o.Policy.Facts(ctx, p.o.Catalogue, c.snapshot, s, t.ref, t.declared)
	if refused := c.checkInputSize(); refused != nil {
		return p.refuse(ctx, s, r, refused)
	}
	var lowering *abi.Error
	if r.HasDeclassification {
		lowering = c.approvedLowering(ctx, r.Declassification)
	}
	denial := c.decide(ctx)
	switch {
	case denial != nil && c.decision.Verdict == gate.NeedsApproval && !r.HasDeclassification:
		return c.await(ctx)
	case denial != nil:
		return c.deny(ctx, denial)
	case lowering != nil:
		return c.deny(ctx, lowering)
	case c.lowered != "":
		if refused := c.lower(ctx); refused != nil {
			return c.deny(ctx, refused)
		}
	}
	return c.run(ctx)
}

// attempt is one invocation on its way: of a caller, or of a guest.
type attempt struct {
	p        *Pipeline
	id       string
	face     string
	session  *session.Session // nil for a child
	parent   *running         // nil for a caller's
	caller   Caller           // nil for a child
	input    []byte
	terms    terms
	snapshot *gate.Snapshot
	facts    *gate.Facts
	decision gate.Decision
	live     *running             // nil until it is allowed
	schemas  schema.Pair          // of the capability, once the input is judged
	asks     bool                 // it only asks: nothing is run and nothing used up
	wait     time.Duration        // until the limiter would let it pass
	told     []problem.Suggestion // for the host calls that were refused, once it has ended
	lowered  string               // id of the declassification it uses up
	approved *approval.Standing   // what it is run by, when it waited for a person
	own      running              // what live is of a caller's
	life     lifetime.Context
}

// checkInputSize holds the input to the environment's limit before anything looks at it.
func (c *attempt) checkInputSize() *abi.Error {
	env := c.snapshot.EnvironmentIn(c.facts.Org, c.facts.Environment)
	if env == nil {
		return nil // the gate refuses it
	}
	if most := env.Limits.Get(abi.LimitInputBytes); int64(len(c.input)) > most {
		return abi.Errorf(abi.CodeInputLimit, "the input has %d bytes; this environment takes %d", len(c.input), most)
	}
	return nil
}

// decide asks the gate. The attempt is counted, and then its input judged, only when everything
// before passed; the input is never coerced (X59).
func (c *attempt) decide(ctx context.Context) *abi.Error {
	c.decision = gate.Decide(c.snapshot, c.facts)
	judged := c.decision.Pending == gate.CheckSchema
	if c.decision.Pending == gate.CheckRate {
		c.count(ctx)
		// The input's check is the next one: when the attempt is within its rates, only that is still open.
		judged = c.facts.Rate == gate.Within && c.decision.Checks[gate.CheckSchema].State == gate.Pending
		if !judged {
			c.decision = gate.Decide(c.snapshot, c.facts)
		}
	}
	if !judged {
		return c.refusal()
	}
	violation := c.judgeInput()
	c.facts.Schema = gate.Satisfied
	if violation != nil {
		c.facts.Schema = gate.Violated
	}
	c.decision = gate.Decide(c.snapshot, c.facts)
	if violation != nil && c.decision.Code == abi.CodeInputSchema {
		return violation
	}
	return c.refusal()
}

// refusal is the decision's, with how long to wait when that is all it takes.
func (c *attempt) refusal() *abi.Error {
	err := c.decision.Err()
	switch {
	case err != nil && err.Code == abi.CodeRateExceeded:
		return err.After(seconds(c.wait))
	case err != nil && err.Code == abi.CodeClassificationCeiling && c.decision.Ceiling.Valid():
		return c.aboveCeiling().WithHint(err.Hint)
	}
	return err
}

// aboveCeiling names which of the labels it would begin with is above which ceilings: where data lives is one
// thing, what trust applies another (X69).
func (c *attempt) aboveCeiling() *abi.Error {
	labels, ceilings := gate.Bounds(c.snapshot, c.facts)
	var above, below []string
	for _, l := range labels {
		if l.Level > c.decision.Ceiling {
			above = append(above, fmt.Sprintf("%s by the %s", l.Level, l.Of))
		}
	}
	for _, l := range ceilings {
		if l.Level < c.decision.Start {
			below = append(below, fmt.Sprintf("the %s takes up to %s", l.Of, l.Level))
		}
	}
	return abi.Errorf(abi.CodeClassificationCeiling, "it would begin %s, and %s", strings.Join(above, ", "), strings.Join(below, ", "))
}

func (c *attempt) judgeInput() *abi.Error {
	var err error
	if c.schemas, err = c.p.o.Schemas.Of(c.decision.Descriptor); err == nil {
		err = c.schemas.Input.Validate(c.input)
	}
	if err != nil {
		return abi.AsError(err)
	}
	return nil
}

// deny records a refusal and answers it: durable first.
func (c *attempt) deny(ctx context.Context, denial *abi.Error) Answer {
	err := c.recordDecision(ctx, denial, true)
	if err != nil {
		return c.p.broken(c.id, err)
	}
	d := c.denial(denial)
	return Answer{Invocation: c.id, Problem: &d, ReplacedBy: c.decision.Ending.ReplacedBy}
}

// run runs an allowed invocation of a caller: it takes a place and waits for one if it must.
func (c *attempt) run(ctx context.Context) Answer {
	live := &c.own
	*live = running{
		id: c.id, session: c.facts.Session, facts: c.facts, trace: c.terms.trace, declared: c.terms.declared,
		began: time.Now(), caller: c.caller,
	}
	if refused := c.authorize(live); refused != nil {
		return c.deny(ctx, refused)
	}
	life := &c.life
	life.Start(ctx, live.authority.Spec().Deadline)
	defer life.Over()
	live.cancel = life.Cancel
	if refused := c.p.live.add(live); refused != nil {
		return c.deny(ctx, refused)
	}
	c.live = live
	defer c.p.live.remove(c.id)
	c.p.watch.wake()
	release, refused := c.p.slots.take(life, c.p.slots.of(c.facts.Org))
	if refused != nil {
		return c.deny(ctx, refused)
	}
	defer release()
	out := c.execute(life, live.authority)
	if out.broken != nil {
		return c.p.broken(c.id, out.broken)
	}
	return c.answer(out)
}

// authorize makes the authority of an allowed invocation.
func (c *attempt) authorize(live *running) *abi.Error {
	live.authority = c.p.o.Policy.Authorize(c.snapshot, c.facts, &c.decision, c.id, c.terms.deadline, live.stands)
	if live.authority == nil {
		return abi.Errorf(abi.CodeGrantRevoked, "the session was closed")
	}
	return nil
}

// result is how an execution ended, as its receiver may see it.
type result struct {
	output []byte
	err    *abi.Error
	guest  *boundary.GuestError
	label  abi.Classification
	fuel   int64
	broken error // the gateway itself failed, the audit most of all: nothing is answered but that
}

// execute is the middle that callers' and guests' invocations share: decision on record, run,
// outcome on record.
func (c *attempt) execute(ctx context.Context, a *authority.Authority) result {
	// A log that is known to be broken refuses before anything runs (M58). One that breaks from
	// here on stops the first effect, or the answer.
	if err := c.p.o.Audit.Err(); err != nil {
		return result{broken: err}
	}
	// The decision is in the log's order before the run, and durable with whatever comes
	// first: the intent of an effect, or the outcome.
	if err := c.recordStart(ctx); err != nil {
		return result{broken: err}
	}
	outcome := c.outcome(ctx, a)
	released, told, fuel := outcome.Err == nil, outcome.Label, outcome.Receipt.Fuel
	if err := c.release(ctx, &outcome); err != nil {
		withdraw(&outcome, err)
		released, told, fuel = false, 0, 0 // not even the label: the mark did not take it on
	}
	// What the guest says leaves only if the authority still stands when all else is done: under the
	// policy of this generation (S18).
	generation := c.p.o.Policy.Snapshot().Concerning(c.facts.Org)
	if outcome.Err == nil || outcome.Guest != nil {
		if err := a.Current(); err != nil {
			withdraw(&outcome, err)
			released = false
		}
	}
	if err := c.recordOutcome(ctx, &outcome, released, generation); err != nil {
		return result{broken: err}
	}
	return result{output: outcome.Output, err: outcome.Err, guest: outcome.Guest, label: told, fuel: fuel}
}

// outcome runs the guest and judges what comes back. A panic on the way becomes an outcome like
// any other: what began has an end on record, and one invocation takes no other along.
func (c *attempt) outcome(ctx context.Context, a *authority.Authority) (o host.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			e := abi.Errorf(abi.CodeInternal, "the invocation could not be run: %w", fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			c.p.o.Log.Error("an invocation failed inside", "invocation", c.id, "error", e.Cause)
			o = host.Outcome{Err: e, Cause: e, Label: a.Spec().Ceiling}
		}
	}()
	if err := c.p.room(ctx, a.Spec()); err != nil {
		e := abi.AsError(err)
		return host.Outcome{Err: e, Cause: e, Label: a.Spec().Start}
	}
	o = c.p.o.Host.Invoke(ctx, boundary.Spec{
		Authority: a, Input: c.input, Services: c.p.o.Services, Log: c.p.o.Log, Parent: boundary.From(ctx),
		Work: c.schemas.Input.Price(len(c.input)), Share: c.p.o.Shares.Org(c.facts.Org), Witness: c.live,
	})
	c.judgeOutput(&o)
	c.settleLabel(&o, a.Spec().Clearance)
	return o
}

// room makes the session's workspace when an invocation first needs it. Names in its root are
// as sensitive as the space's floor.
func (p *Pipeline) room(ctx context.Context, spec *authority.Spec) error {
	if spec.Workspace == "" {
		return nil
	}
	if _, known := p.rooms.Load(spec.Workspace); known {
		return nil
	}
	if err := p.o.Workspace(ctx, spec.Workspace, spec.Floor); err != nil {
		return err
	}
	p.rooms.Store(spec.Workspace, true)
	return nil
}

// judgeOutput holds the output to the capability's own schema: what comes back is untrusted too
// (H14). Its guest has ended, so the organisation's share of the processors pays for the work (S10).
func (c *attempt) judgeOutput(o *host.Outcome) {
	if o.Err != nil {
		return
	}
	c.p.o.Shares.Org(c.facts.Org).Debit(c.schemas.Output.Price(len(o.Output)))
	if err := c.schemas.Output.Validate(o.Output); err != nil {
		e := abi.Errorf(abi.CodeOutputInvalid, "the output does not satisfy the capability's schema: %w", err)
		o.Err, o.Cause, o.Output = e, e, nil
	}
}

// settleLabel joins what the capability declares of its output into the label: a declaration
// raises, never lowers (X22). Above the ceiling, or what the authority is cleared for, nothing of the outcome
// leaves.
func (c *attempt) settleLabel(o *host.Outcome, clearance abi.Classification) {
	o.Label = abi.Join(o.Label, c.decision.Descriptor.OutputClassification)
	clearance = abi.Meet(c.decision.Ceiling, clearance)
	if o.Label.FlowsTo(clearance) {
		return
	}
	withheld := abi.Errorf(abi.CodeClassificationFlow, "the answer is %s; this session may receive up to %s", o.Label, clearance)
	if o.Cause == nil {
		o.Cause = withheld
	}
	o.Err, o.Output, o.Guest = withheld, nil, nil
}

// release joins the label of what leaves into the session's mark, durably and before it leaves (S3). A
// withheld answer is one constant document and carries nothing.
func (c *attempt) release(ctx context.Context, o *host.Outcome) *abi.Error {
	if c.parent != nil || (o.Err != nil && o.Err.Code == abi.CodeClassificationFlow) {
		return nil
	}
	if err := c.p.o.Policy.Release(context.WithoutCancel(ctx), c.facts.Session, o.Label); err != nil {
		return abi.AsError(err)
	}
	return nil
}

// withdraw leaves nothing of an outcome but why nothing is left.
func withdraw(o *host.Outcome, why *abi.Error) {
	o.Output, o.Guest, o.Err, o.Cause = nil, nil, why, why
}

func (c *attempt) answer(r result) Answer {
	if r.err == nil {
		return Answer{Invocation: c.id, Output: r.output, Label: r.label, Fuel: r.fuel, ReplacedBy: c.decision.Ending.ReplacedBy}
	}
	d := c.failure(r)
	if d.Code == abi.CodeClassificationFlow {
		return Answer{Invocation: c.id, Problem: &d} // not even label and fuel: the document is constant
	}
	return Answer{Invocation: c.id, Problem: &d, Label: r.label, Fuel: r.fuel, ReplacedBy: c.decision.Ending.ReplacedBy}
}

// broken answers an invocation whose decision or outcome could not be written, or that the
// gateway could not run: that is the one thing that may be said (PF-G5).
func (p *Pipeline) broken(id string, err error) Answer {
	p.o.Log.Error("an invocation could not be run or recorded", "invocation", id, "error", err)
	d := problem.From(abi.AsError(err), id)
	return Answer{Invocation: id, Problem: &d}
}

// Drain stops new invocations, waits for the running ones until ctx ends, then tells them to
// stop and waits for grace more.
func (p *Pipeline) Drain(ctx context.Context, grace time.Duration) error {
	return p.live.drain(ctx, grace)
}

// Waiting counts the invocations that wait for a place to run.
func (p *Pipeline) Waiting() int {
	_, waiting := split(p.slots.word.Load())
	return int(waiting)
}

// Running counts the invocations that run or wait.
func (p *Pipeline) Running() int { return p.live.count() }

package invoke

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/approval"
	"github.com/ecotone-dev/ecotone/gateway/problem"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// collectWait bounds how long [Pipeline.Collect] waits for a run that was approved, and collectEvery is how
// often it looks.
const (
	collectWait  = 10 * time.Second
	collectEvery = 20 * time.Millisecond
)

// Collect answers for an invocation of the caller's own session that needed a person's word, as its caller
// would have been answered: with what it waits for while it waits, with the output or the refusal once
// nothing more comes of it. It runs nothing, and may be asked again until the approval expires. final is
// whether the answer is the last there will be. What is approved and runs is waited for, for a while.
func (p *Pipeline) Collect(ctx context.Context, r Request, id string) (a Answer, final bool) {
	s, refused := p.authenticate(&r)
	if refused != nil {
		return p.refuse(ctx, nil, &r, refused), false
	}
	of, err := p.o.Policy.Standing(ctx, s.Org, id)
	if err != nil || of.Request.Kind != approval.Invocation || of.Request.Context.Session != s.ID {
		if e := abi.AsError(err); e != nil && e.Code != abi.CodeNotFound {
			return p.refuse(ctx, s, &r, e), false
		}
		return p.refuse(ctx, s, &r, noInvocation()), true
	}
	p.awaitRun(ctx, s, id)
	out, label, refused := p.show(ctx, s, id)
	if refused != nil {
		return p.refuse(ctx, s, &r, refused), false
	}
	if out.Approval == nil {
		return p.refuse(ctx, s, &r, noInvocation()), true
	}
	return p.collected(&of.Request, out.Approval, label)
}

// awaitRun waits while something is approved and has not ended.
func (p *Pipeline) awaitRun(ctx context.Context, s *session.Session, id string) {
	end := time.NewTimer(collectWait)
	defer end.Stop()
	every := time.NewTicker(collectEvery)
	defer every.Stop()
	for {
		of, err := p.o.Policy.Standing(ctx, s.Org, id)
		if err != nil || !slices.Contains([]approval.State{approval.Approved, approval.Dispatched}, of.State(p.o.Now())) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			return
		case <-every.C:
		}
	}
}

// collected is the answer for how far a request is.
func (p *Pipeline) collected(r *approval.Request, w *Waited, label abi.Classification) (Answer, bool) {
	fail := func(why *abi.Error) (Answer, bool) {
		d := problem.From(why, r.ID)
		d.Capability, d.Environment = string(r.Capability), string(r.Context.Environment)
		return Answer{Invocation: r.ID, Problem: &d}, true
	}
	switch w.Status {
	case approval.Pending, approval.Approved, approval.Dispatched:
		a := jsonAnswer(http.StatusAccepted, Waiting{
			Invocation: r.ID, Status: string(w.Status), Code: abi.CodeApprovalRequired, Approval: r.ID, Expires: r.Expires,
			Subject: r.Subject, Capability: r.Capability, Environment: r.Context.Environment, Label: r.Label,
		})
		a.Invocation, a.Location = r.ID, "/v1/invocations/"+r.ID
		return a, false
	case approval.Rejected:
		return fail(abi.Errorf(abi.CodeApprovalRejected, "an approver rejected it"))
	case approval.Expired:
		return fail(abi.Errorf(abi.CodeApprovalStale, "nobody approved it in time"))
	case approval.Stale:
		return fail(approval.StaleBecause(w.Changed))
	case approval.Done, approval.Failed:
		if w.Code == abi.CodeClassificationFlow {
			d := problem.Withheld(r.ID)
			return Answer{Invocation: r.ID, Problem: &d}, true // the constant document: not even a label (S6)
		}
		if w.Output != nil {
			return Answer{Invocation: r.ID, Output: w.Output, Label: label}, true
		}
		var d problem.Document
		if w.Problem != nil && json.Unmarshal(w.Problem, &d) == nil {
			return Answer{Invocation: r.ID, Problem: &d, Label: label}, true
		}
	}
	return fail(abi.Errorf(abi.CodeConflict, "it was run, and what came of it is not kept; its row says how it ended"))
}

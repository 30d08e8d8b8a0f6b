package invoke

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/problem"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// Explanation is every check of an invocation that was not run.
type Explanation struct {
	AuditID     string               `json:"auditId"`
	Decision    string               `json:"decision"`
	Code        abi.Code             `json:"code,omitempty"`
	Subject     abi.Subject          `json:"subject"`
	Capability  abi.CapabilityRef    `json:"capability"`
	Environment abi.EnvironmentRef   `json:"environment"`
	Checks      []gate.Report        `json:"checks"`
	ReachCheck  string               `json:"reachCheck"`
	Label       abi.Classification   `json:"label,omitzero"`
	Ceiling     abi.Classification   `json:"ceiling,omitzero"`
	Labels      []gate.Bound         `json:"labels,omitempty"`     // what the label is the highest of
	Ceilings    []gate.Bound         `json:"ceilings,omitempty"`   // what the ceiling is the lowest of
	State       grant.State          `json:"lifecycle,omitempty"`  // deprecated or retired, when the capability is
	ReplacedBy  abi.CapabilityRef    `json:"replacedBy,omitempty"` // what to invoke instead of such a one
	Config      []string             `json:"config,omitempty"`     // names of what its install grant tells the biome
	Suggestions []problem.Suggestion `json:"suggestions,omitempty"`
}

// Explain answers what [Pipeline.Judge] finds.
func (p *Pipeline) Explain(ctx context.Context, r Request) Answer {
	e, refused := p.Judge(ctx, r)
	if refused != nil {
		return *refused
	}
	return jsonAnswer(http.StatusOK, e)
}

// Judge judges an invocation of the caller's own and runs nothing. It is recorded. Exactly one of its results
// is nil, the second when it was judged.
func (p *Pipeline) Judge(ctx context.Context, r Request) (*Explanation, *Answer) {
	refuse := func(s *session.Session, why *abi.Error) (*Explanation, *Answer) {
		a := p.refuse(ctx, s, &r, why)
		return nil, &a
	}
	now := p.o.Now()
	s, refused := p.authenticate(&r)
	if refused != nil {
		return refuse(nil, refused)
	}
	t, refused := parseTerms(&r, now)
	if refused != nil {
		return refuse(s, refused)
	}
	c := &attempt{p: p, id: p.ids.next(now), face: r.Face, session: s, input: r.Input, terms: t, snapshot: p.o.Policy.Snapshot(), asks: true}
	if refused := p.countQuestion(ctx, c.snapshot, s); refused != nil {
		return refuse(s, refused)
	}
	c.facts = p.o.Policy.Facts(ctx, p.o.Catalogue, c.snapshot, s, t.ref, t.declared)
	if refused := c.checkInputSize(); refused != nil {
		return refuse(s, refused)
	}
	denial := c.decide(ctx)
	e := &Explanation{
		AuditID: c.id, Decision: c.decision.Verdict.String(), Subject: s.Subject, Capability: t.ref, Environment: s.Environment,
		Checks: c.decision.Explain(), ReachCheck: "enforced", Label: c.decision.Start, Ceiling: c.decision.Ceiling,
		Config: c.decision.Config(), Suggestions: c.suggestions(), State: c.decision.Ending.State, ReplacedBy: c.decision.Ending.ReplacedBy,
	}
	if c.decision.ReachDeferred {
		e.ReachCheck = "deferred"
	}
	if c.decision.Ceiling.Valid() { // the caller may know
		e.Labels, e.Ceilings = gate.Bounds(c.snapshot, c.facts)
	}
	if denial != nil {
		e.Code = denial.Code
	}
	_, err := p.o.Audit.Append(context.WithoutCancel(ctx), audit.Event{Org: s.Org, ID: c.id, Body: audit.Admin{
		Operation: "invocation.explained", Actor: string(s.Subject), ObjectKind: "capability", Object: string(t.ref), Code: e.Code,
	}})
	if err != nil {
		a := p.broken(c.id, err)
		return nil, &a
	}
	return e, nil
}

// Invocation shows one row of the caller's own session, as far as the session is cleared. What
// is shown raises the session's mark, as an answer does (S3). Somebody else's row and no row are
// the same answer.
func (p *Pipeline) Invocation(ctx context.Context, r Request, id string) Answer {
	s, refused := p.authenticate(&r)
	if refused != nil {
		return p.refuse(ctx, nil, &r, refused)
	}
	out, _, refused := p.show(ctx, s, id)
	if refused != nil {
		return p.refuse(ctx, s, &r, refused)
	}
	return jsonAnswer(http.StatusOK, out)
}

// show is one row of a session's own, with its label, which the session's mark has taken on.
func (p *Pipeline) show(ctx context.Context, s *session.Session, id string) (out Shown, label abi.Classification, refused *abi.Error) {
	live := p.live.get(id) // before the row: what ends in between is proven there
	row, err := p.o.Audit.Get(ctx, s.Org, id)
	if e := abi.AsError(err); e != nil && e.Code != abi.CodeNotFound && e.Code != abi.CodeInvalidRequest {
		return out, 0, e
	}
	if err != nil || row.Decision == nil || row.Decision.Session != s.ID {
		return out, 0, noInvocation()
	}
	shown := row.View(s.Clearance)
	if live != nil && shown.Cancel == "" {
		shown.Cancel = live.cancelState()
	}
	out, label = Shown{ownRow: toOwner(shown)}, shown.Label()
	if row.Decision.Verdict == audit.VerdictNeedsApproval {
		var also abi.Classification
		if out.Approval, also, err = p.waited(ctx, s, &shown); err != nil {
			return out, 0, abi.AsError(err)
		}
		label = abi.Join(label, also)
	}
	if err := p.o.Policy.Release(context.WithoutCancel(ctx), s.ID, label); err != nil {
		return out, 0, abi.AsError(err)
	}
	return out, label, nil
}

// Shown is one row of a session's own, with what came of waiting for a person.
type Shown struct {
	ownRow
	Approval *Waited `json:"approval,omitempty"`
}

// Cancellation is the answer to a request to cancel.
type Cancellation struct {
	Invocation string            `json:"invocation"`
	Cancel     audit.CancelState `json:"cancel"`
}

// Cancel asks a running invocation of the caller's own session to end, and answers how far that is. One that
// waits for a person's word is withdrawn: nobody is asked any more, and it never runs.
// Asking again changes nothing and answers the state of now, after the end too. What has ended
// without having been asked cannot be cancelled any more.
func (p *Pipeline) Cancel(ctx context.Context, r Request, id string) Answer {
	s, refused := p.authenticate(&r)
	if refused != nil {
		return p.refuse(ctx, nil, &r, refused)
	}
	live := p.live.get(id)
	if live == nil {
		return p.cancelEnded(ctx, s, r, id)
	}
	if live.session != s.ID {
		return p.refuse(ctx, s, &r, noInvocation())
	}
	if live.requestCancel(p.o.Now()) {
		_, err := p.o.Audit.Append(context.WithoutCancel(ctx), audit.Event{Org: s.Org, Body: audit.Admin{
			Operation: "invocation.cancelled", Actor: string(s.Subject), ObjectKind: "invocation", Object: id,
		}})
		if err != nil {
			return p.broken(id, err) // it was asked to stop all the same
		}
	}
	return cancellation(id, live.cancelState())
}

// cancelEnded answers for what does not run: from its row.
func (p *Pipeline) cancelEnded(ctx context.Context, s *session.Session, r Request, id string) Answer {
	row, err := p.o.Audit.Get(ctx, s.Org, id)
	switch e := abi.AsError(err); {
	case e != nil && e.Code != abi.CodeNotFound && e.Code != abi.CodeInvalidRequest:
		return p.refuse(ctx, s, &r, e)
	case e != nil || row.Decision == nil || row.Decision.Session != s.ID:
		return p.refuse(ctx, s, &r, noInvocation())
	case row.Cancel == "" && row.Decision.Verdict == audit.VerdictNeedsApproval && row.Resolution == nil:
		return p.withdraw(ctx, s, r, id)
	case row.Cancel == "":
		return p.refuse(ctx, s, &r, abi.Errorf(abi.CodeConflict, "the invocation does not run any more"))
	}
	return cancellation(id, row.Cancel)
}

// withdraw takes back what waits for a person's word.
func (p *Pipeline) withdraw(ctx context.Context, s *session.Session, r Request, id string) Answer {
	ctx = context.WithoutCancel(ctx)
	of, err := p.o.Policy.WithdrawApproval(ctx, s, id)
	if err == nil {
		err = p.follow(ctx, &of)
	}
	if err != nil {
		return p.refuse(ctx, s, &r, abi.AsError(err))
	}
	return cancellation(id, audit.CancelProven)
}

func cancellation(id string, state audit.CancelState) Answer {
	a := jsonAnswer(http.StatusAccepted, Cancellation{id, state})
	a.Invocation = id
	return a
}

func noInvocation() *abi.Error {
	return abi.Errorf(abi.CodeNotFound, "there is no such invocation of this session")
}

// Capability is what a caller is shown of something it may invoke.
type Capability struct {
	Biome  string `json:"biome"`  // provenance, stamped by the gateway
	Digest string `json:"digest"` // of the version that serves it, likewise
	*abi.Descriptor
	State      grant.State       `json:"lifecycle,omitempty"`  // deprecated, when it is; retired ones are not listed
	ReplacedBy abi.CapabilityRef `json:"replacedBy,omitempty"` // what to invoke instead of a deprecated one
}

// listingWait bounds how long one listing waits for the catalogue, over all it lists. After it the
// catalogue could not say.
const listingWait = 2 * time.Second

// Capabilities answers what [Pipeline.List] lists.
func (p *Pipeline) Capabilities(ctx context.Context, r Request) Answer {
	items, refused := p.List(ctx, r)
	if refused != nil {
		return Answer{Problem: refused}
	}
	return jsonAnswer(http.StatusOK, map[string]any{"items": items})
}

// List lists what the caller may invoke now, in order of refs, and nothing else: what is denied is absent,
// not flagged. It asks the gate as an invocation does, and uses nothing up. Exactly one of its results is nil.
func (p *Pipeline) List(ctx context.Context, r Request) ([]Capability, *problem.Document) {
	s, err := p.authenticate(&r)
	if err != nil {
		return nil, p.refuse(ctx, nil, &r, err).Problem
	}
	ctx, cancel := context.WithTimeout(ctx, listingWait)
	defer cancel()
	snapshot := p.o.Policy.Snapshot()
	if snapshot.Stale {
		return nil, p.refuse(ctx, s, &r, abi.Errorf(abi.CodePolicyStale, "the policy that is known may not be the newest")).Problem
	}
	items := []Capability{}
	for _, org := range []string{s.Org, gate.SystemOrg} {
		o := snapshot.Orgs.At(org)
		if o == nil {
			continue
		}
		for ref := range o.Routes.All() {
			f := p.o.Policy.Facts(ctx, p.o.Catalogue, snapshot, s, ref, 0)
			f.Rate, f.Schema = gate.Within, gate.Satisfied // listing uses nothing up
			if d := gate.Decide(snapshot, f); d.Verdict != gate.Deny && d.Owner == org {
				items = append(items, Capability{Biome: d.Biome, Digest: d.Digest, Descriptor: d.Descriptor, State: d.Ending.State, ReplacedBy: d.Ending.ReplacedBy})
			}
		}
		if s.Org == gate.SystemOrg {
			break
		}
	}
	slices.SortFunc(items, func(a, b Capability) int { return cmp.Compare(a.Ref, b.Ref) })
	return items, nil
}

func jsonAnswer(status int, v any) Answer {
	raw, err := json.Marshal(v)
	if err != nil {
		d := problem.From(err, "")
		return Answer{Problem: &d}
	}
	return Answer{Status: status, Output: raw}
}

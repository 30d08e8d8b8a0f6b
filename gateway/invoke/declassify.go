package invoke

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/approval"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// Declassifying is the answer to a request to declassify: what was asked, and until when somebody may say so.
type Declassifying struct {
	Approval   string             `json:"approval"`
	Status     string             `json:"status"`
	Expires    time.Time          `json:"expires"`
	Capability abi.CapabilityRef  `json:"capability"`
	From       abi.Classification `json:"from"`
	To         abi.Classification `json:"to"`
	Sink       string             `json:"sink"`
}

// lowering is what a request to declassify binds beside the input.
type lowering struct {
	From abi.Classification `json:"from"`
	To   abi.Classification `json:"to"`
	Sink string             `json:"sink"`
}

// Declassify asks that one invocation, with exactly this input, may begin lower than the session's mark, for
// one sink (S3). Nothing is run. Approved, it is invoked with the approval's id, once; the mark does
// not fall.
func (p *Pipeline) Declassify(ctx context.Context, r Request) Answer {
	now := p.o.Now()
	s, refused := p.authenticate(&r)
	if refused != nil {
		return p.refuse(ctx, nil, &r, refused)
	}
	t, refused := parseTerms(&r, now)
	if refused != nil {
		return p.refuse(ctx, s, &r, refused)
	}
	to, err := abi.ParseClassification(r.To)
	switch {
	case err != nil:
		return p.refuse(ctx, s, &r, abi.AsError(err).At("Ecotone-Declassify-To"))
	case to >= s.Mark:
		return p.refuse(ctx, s, &r, abi.Errorf(abi.CodeInvalidRequest, "the session's mark is %s, and %s is not below it", s.Mark, to).At("Ecotone-Declassify-To"))
	case r.Sink != gate.SinkOutput && !strings.HasPrefix(r.Sink, gate.SinkEndpoint):
		return p.refuse(ctx, s, &r, abi.Errorf(abi.CodeInvalidRequest, "the sink is output, or endpoint: and its name").At("Ecotone-Declassify-Sink"))
	}
	c := &attempt{p: p, id: p.ids.next(now), face: r.Face, session: s, input: r.Input, terms: t, snapshot: p.o.Policy.Snapshot(), asks: true}
	if refused := p.countQuestion(ctx, c.snapshot, s); refused != nil {
		return p.refuse(ctx, s, &r, refused)
	}
	c.facts = p.o.Policy.Facts(ctx, p.o.Catalogue, c.snapshot, s, t.ref, t.declared)
	c.facts.Lower, c.facts.Approved = &gate.Lowering{From: s.Mark, To: to, Sink: r.Sink}, true
	if refused := c.checkInputSize(); refused != nil {
		return p.refuse(ctx, s, &r, refused)
	}
	if denial := c.decide(ctx); denial != nil {
		return p.refuse(ctx, s, &r, denial)
	}
	if refused := approval.Check(c.input); refused != nil {
		return p.refuse(ctx, s, &r, refused)
	}
	name, endpoint := strings.CutPrefix(r.Sink, gate.SinkEndpoint)
	if endpoint && !slices.ContainsFunc(c.decision.Kept(c.snapshot, c.facts).Endpoints, func(e *egress.Endpoint) bool { return e.Name == name }) {
		return p.refuse(ctx, s, &r, abi.Errorf(abi.CodeInvalidRequest, "the capability's biome may not use an endpoint %s", abi.Quote(name)).At("Ecotone-Declassify-Sink"))
	}
	return c.askToLower(ctx, &r)
}

// askToLower puts the request before people.
func (c *attempt) askToLower(ctx context.Context, r *Request) Answer {
	digest, err := c.p.o.Audit.Digest(c.facts.Org, c.input)
	if err != nil {
		return c.p.refuse(ctx, c.session, r, abi.AsError(err))
	}
	l := c.facts.Lower
	binding, err := json.Marshal(lowering{l.From, l.To, l.Sink})
	if err != nil {
		return c.p.refuse(ctx, c.session, r, abi.AsError(err))
	}
	a, err := c.p.o.Policy.RequestApproval(context.WithoutCancel(ctx), policy.Ask{
		Request: approval.Request{
			ID: c.id, Org: c.facts.Org, Kind: approval.Declassify, Subject: c.facts.Subject, User: c.facts.User, Requester: c.facts.Client,
			Label: abi.Join(l.From, c.decision.Start), Capability: c.facts.Capability, Biome: c.decision.Biome, Context: c.context(),
			InputDigest: digest, InputBytes: int64(len(c.input)), Binding: binding, Expires: c.lasts(),
		},
		Facts: c.facts, Sealed: c.p.o.Box.Seal(c.facts.Org, c.id, approval.Input, c.input),
	})
	if err != nil {
		return c.p.refuse(ctx, c.session, r, abi.AsError(err))
	}
	return jsonAnswer(http.StatusAccepted, Declassifying{
		Approval: a.ID, Status: gate.NeedsApproval.String(), Expires: a.Expires, Capability: a.Capability, From: l.From, To: l.To, Sink: l.Sink,
	})
}

// approvedLowering finds the declassification that an invocation names and puts it into the facts. What it is
// not for is one refusal: another session, capability, input or declaration, and none at all.
func (c *attempt) approvedLowering(ctx context.Context, id string) *abi.Error {
	s, err := c.p.o.Policy.Standing(ctx, c.facts.Org, id)
	if err != nil && abi.CodeOf(err) != abi.CodeNotFound && abi.CodeOf(err) != abi.CodeInvalidRequest {
		return abi.AsError(err)
	}
	r := &s.Request
	digest, digestErr := c.p.o.Audit.Digest(c.facts.Org, c.input)
	var l lowering
	switch {
	case digestErr != nil:
		return abi.AsError(digestErr)
	case err != nil, r.Kind != approval.Declassify, r.Context.Session != c.facts.Session, r.Capability != c.facts.Capability,
		r.InputDigest != digest, r.InputBytes != int64(len(c.input)), r.Context.Declared != c.terms.declared,
		abi.DecodeStrict(r.Binding, &l) != nil:
		return approval.StaleBecause([]string{"request"})
	}
	switch st := s.State(c.p.o.Now()); st {
	case approval.Approved:
	case approval.Pending:
		return abi.Errorf(abi.CodeApprovalRequired, "nobody has said yet that it may be declassified")
	case approval.Rejected:
		return abi.Errorf(abi.CodeApprovalRejected, "it may not be declassified, and that is final")
	default:
		return abi.Errorf(abi.CodeApprovalStale, "the declassification is %s", st)
	}
	c.facts.Lower, c.facts.Approved, c.lowered = &gate.Lowering{From: l.From, To: l.To, Sink: l.Sink}, true, id
	return nil
}

// lower uses the declassification up, durably, before anything runs by it.
func (c *attempt) lower(ctx context.Context) *abi.Error {
	var err error
	c.snapshot, c.decision, err = c.p.o.Policy.UseApproval(context.WithoutCancel(ctx), c.facts.Org, c.lowered, c.facts, nil)
	if err != nil {
		return abi.AsError(err)
	}
	err = c.p.o.Policy.SettleApproval(ctx, approval.Result{Approval: c.lowered, Org: c.facts.Org, State: approval.Done}, nil)
	if err != nil {
		return abi.AsError(err)
	}
	return nil
}

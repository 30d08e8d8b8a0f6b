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
	"github.com/ecotone-dev/ecotone/gateway/session"
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

// DeclassifyRequest is what a principal asks in the place of a session.
type DeclassifyRequest struct {
	Capability     string `json:"capability"`
	Input          string `json:"input"` // the text that will be sent, byte for byte
	To             string `json:"to"`
	Sink           string `json:"sink"`
	Classification string `json:"classification,omitempty"` // how sensitive the input is said to be, here and then
}

// Declassify asks that one invocation, with exactly this input, may begin lower than the session's mark, for
// one sink (S3). Nothing is run. Approved, it is invoked with the approval's id, once; the mark does
// not fall.
func (p *Pipeline) Declassify(ctx context.Context, r Request) Answer {
	s, refused := p.authenticate(&r)
	if refused != nil {
		return p.refuse(ctx, nil, &r, refused)
	}
	t, refused := parseTerms(&r, p.o.Now())
	if refused != nil {
		return p.refuse(ctx, s, &r, refused)
	}
	d, refused := p.askToLower(ctx, &wish{
		session: s, face: r.Face, input: r.Input, terms: t, to: r.To, sink: r.Sink, toAt: "Ecotone-Declassify-To", sinkAt: "Ecotone-Declassify-Sink",
	})
	if refused != nil {
		return p.refuse(ctx, s, &r, refused)
	}
	return jsonAnswer(http.StatusAccepted, d)
}

// DeclassifyFor is [Pipeline.Declassify] for a principal that asks in the place of an open session. The session
// uses it as if it had asked itself; neither who asked nor who opened the session decides it. NOT_FOUND is
// that the organisation has no such open session.
func (p *Pipeline) DeclassifyFor(ctx context.Context, who session.Principal, org, id string, r DeclassifyRequest) (Declassifying, error) {
	if err := policy.Allowed(who, policy.OpDeclassify, org); err != nil {
		return Declassifying{}, err
	}
	s := p.o.Policy.OpenSessionOf(id)
	if s == nil || s.Org != org {
		return Declassifying{}, abi.Errorf(abi.CodeNotFound, "there is no open session %s", abi.Quote(id))
	}
	t, refused := parseTerms(&Request{Ref: r.Capability, Classification: r.Classification, HasClassification: r.Classification != ""}, p.o.Now())
	if refused != nil {
		return Declassifying{}, refused
	}
	d, refused := p.askToLower(ctx, &wish{
		session: s, face: "admin", input: []byte(r.Input), terms: t, to: r.To, sink: r.Sink, toAt: "/to", sinkAt: "/sink", by: who,
	})
	if refused != nil {
		return Declassifying{}, refused
	}
	return d, nil
}

// wish is a request to declassify, whoever makes it.
type wish struct {
	session      *session.Session
	face         string
	input        []byte
	terms        terms
	to, sink     string
	toAt, sinkAt string            // what its maker calls these
	by           session.Principal // in the place of the session; none: the session asks
}

// lowering reads where to, and what for.
func (w *wish) lowering() (*gate.Lowering, *abi.Error) {
	to, err := abi.ParseClassification(w.to)
	switch mark := w.session.Mark; {
	case err != nil:
		return nil, abi.AsError(err).At(w.toAt)
	case to >= mark:
		return nil, abi.Errorf(abi.CodeInvalidRequest, "the session's mark is %s, and %s is not below it", mark, to).At(w.toAt)
	case w.sink != gate.SinkOutput && !strings.HasPrefix(w.sink, gate.SinkEndpoint):
		return nil, abi.Errorf(abi.CodeInvalidRequest, "the sink is output, or endpoint: and its name").At(w.sinkAt)
	}
	return &gate.Lowering{From: w.session.Mark, To: to, Sink: w.sink}, nil
}

// askToLower decides a request to declassify as if it had been approved, and puts it before people.
func (p *Pipeline) askToLower(ctx context.Context, w *wish) (Declassifying, *abi.Error) {
	none := Declassifying{}
	lower, refused := w.lowering()
	if refused != nil {
		return none, refused
	}
	c := &attempt{
		p: p, id: p.ids.next(p.o.Now()), face: w.face, session: w.session, input: w.input, terms: w.terms, snapshot: p.o.Policy.Snapshot(), asks: true,
	}
	if refused := p.countQuestion(ctx, c.snapshot, w.session); refused != nil {
		return none, refused
	}
	c.facts = p.o.Policy.Facts(ctx, p.o.Catalogue, c.snapshot, w.session, w.terms.ref, w.terms.declared)
	c.facts.Lower, c.facts.Approved = lower, true
	if refused := c.checkInputSize(); refused != nil {
		return none, refused
	}
	if denial := c.decide(ctx); denial != nil {
		return none, denial
	}
	if refused := approval.Check(c.input); refused != nil {
		return none, refused
	}
	name, endpoint := strings.CutPrefix(w.sink, gate.SinkEndpoint)
	if endpoint && !slices.ContainsFunc(c.decision.Kept(c.snapshot, c.facts).Endpoints, func(e *egress.Endpoint) bool { return e.Name == name }) {
		return none, abi.Errorf(abi.CodeInvalidRequest, "the capability's biome may not use an endpoint %s", abi.Quote(name)).At(w.sinkAt)
	}
	a, err := c.requestLowering(ctx, w.by)
	if err != nil {
		return none, abi.AsError(err)
	}
	return Declassifying{
		Approval: a.ID, Status: gate.NeedsApproval.String(), Expires: a.Expires, Capability: a.Capability, From: lower.From, To: lower.To, Sink: lower.Sink,
	}, nil
}

func (c *attempt) requestLowering(ctx context.Context, by session.Principal) (approval.Request, error) {
	digest, err := c.p.o.Audit.Digest(c.facts.Org, c.input)
	if err != nil {
		return approval.Request{}, err
	}
	l := c.facts.Lower
	binding, err := json.Marshal(lowering{l.From, l.To, l.Sink})
	if err != nil {
		return approval.Request{}, err
	}
	return c.p.o.Policy.RequestApproval(context.WithoutCancel(ctx), policy.Ask{
		Request: approval.Request{
			ID: c.id, Org: c.facts.Org, Kind: approval.Declassify, Subject: c.facts.Subject, User: c.facts.User, Requester: c.facts.Client,
			Label: abi.Join(l.From, c.decision.Start), Capability: c.facts.Capability, Biome: c.decision.Biome, Context: c.context(),
			InputDigest: digest, InputBytes: int64(len(c.input)), Binding: binding, Expires: c.lasts(),
		},
		Facts: c.facts, Sealed: c.p.o.Box.Seal(c.facts.Org, c.id, approval.Input, c.input), By: by,
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
	switch st := s.State(c.p.o.Policy.Now()); st {
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
	ctx = context.WithoutCancel(ctx)
	c.snapshot, c.decision, err = c.p.o.Policy.UseApproval(ctx, c.facts.Org, c.lowered, c.facts, nil)
	if changed := approval.ChangedOf(err); changed != nil { // what voided it voids it for good
		stale := approval.Result{Approval: c.lowered, Org: c.facts.Org, State: approval.Stale, Code: abi.CodeApprovalStale, Changed: changed}
		if err := c.p.o.Policy.SettleApproval(ctx, stale, nil); err != nil {
			return abi.AsError(err)
		}
	}
	if err != nil {
		return abi.AsError(err)
	}
	err = c.p.o.Policy.SettleApproval(ctx, approval.Result{Approval: c.lowered, Org: c.facts.Org, State: approval.Done}, nil)
	if err != nil {
		return abi.AsError(err)
	}
	return nil
}

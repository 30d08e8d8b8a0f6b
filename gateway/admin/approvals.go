package admin

import (
	"encoding/json"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/approval"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/policy"
)

// approvalShown is a request as people see it. What others wrote is escaped: see [approval.Show].
type approvalShown struct {
	ID          string             `json:"id"`
	Org         string             `json:"org"`
	Kind        approval.Kind      `json:"kind"`
	State       approval.State     `json:"state"`
	Subject     abi.Subject        `json:"subject,omitempty"`
	User        abi.Subject        `json:"user,omitempty"`
	Requester   string             `json:"requester"`
	AskedBy     string             `json:"askedBy,omitempty"` // a principal, in the place of the session
	Label       abi.Classification `json:"label"`
	Capability  abi.CapabilityRef  `json:"capability,omitempty"`
	Biome       string             `json:"biome,omitempty"`
	Context     *approval.Context  `json:"context,omitempty"`
	Input       *inputShown        `json:"input,omitempty"`
	Basis       *approval.Basis    `json:"basis,omitempty"`
	Binding     json.RawMessage    `json:"binding,omitempty"`
	RequestedAt time.Time          `json:"requestedAt"`
	Expires     time.Time          `json:"expires"`
	Decision    *approval.Decision `json:"decision,omitempty"`
	UsedAt      *time.Time         `json:"usedAt,omitempty"`
	Code        abi.Code           `json:"code,omitempty"`
	Changed     []string           `json:"changed,omitempty"`
}

// inputShown is the input that was asked about, whole, and who wrote it.
type inputShown struct {
	From   abi.Subject `json:"from"`
	Digest string      `json:"digest"`
	Bytes  int64       `json:"bytes"`
	Text   string      `json:"text,omitempty"` // escaped; absent once the request has expired
}

// summary is what a list shows of a request: nothing of the input, and nothing of what it is bound to.
func summary(s approval.Standing, now time.Time) approvalShown {
	r := &s.Request
	out := approvalShown{
		ID: r.ID, Org: r.Org, Kind: r.Kind, State: s.State(now), Subject: r.Subject, User: r.User, Requester: r.Requester, AskedBy: r.AskedBy, Label: r.Label,
		Capability: r.Capability, Biome: r.Biome, RequestedAt: r.RequestedAt, Expires: r.Expires, Decision: s.Decision,
	}
	if s.Use != nil {
		out.UsedAt = &s.Use.At
	}
	if s.Result != nil {
		out.Code, out.Changed = s.Result.Code, s.Result.Changed
	}
	return out
}

// whole is all there is to a request.
func (s *Server) whole(c *call, a approval.Standing) (approvalShown, error) {
	r, now := &a.Request, s.o.Policy.Now()
	out := summary(a, now)
	out.Binding = r.Binding
	if r.Kind == approval.Promotion {
		return out, nil
	}
	out.Context, out.Basis = &r.Context, &r.Basis
	out.Input = &inputShown{From: r.Subject, Digest: r.InputDigest, Bytes: r.InputBytes}
	text, err := s.o.Pipeline.Input(c.ctx, r)
	if abi.CodeOf(err) == abi.CodeNotFound {
		return out, nil // it has expired, and its input is gone
	}
	if err != nil {
		return out, err
	}
	out.Input.Text = approval.Show(text)
	return out, err
}

func (s *Server) listApprovals(c *call) (*reply, error) {
	state := approval.State(c.r.URL.Query().Get("state"))
	return cut(c, func(part policy.Cut) (policy.Page[approvalShown], error) {
		p, err := s.o.Policy.Approvals(c.ctx, c.principal, c.org, state, part)
		out := policy.Page[approvalShown]{Items: []approvalShown{}, Next: p.Next}
		for _, a := range p.Items {
			out.Items = append(out.Items, summary(a, s.o.Policy.Now()))
		}
		return out, err
	})
}

func (s *Server) getApproval(c *call) (*reply, error) {
	a, err := s.o.Policy.Approval(c.ctx, c.principal, c.org, c.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	out, err := s.whole(c, a)
	return ok(out, err)
}

func (s *Server) approve(c *call) (*reply, error) { return s.decide(c, approval.Approve) }
func (s *Server) reject(c *call) (*reply, error)  { return s.decide(c, approval.Reject) }

func (s *Server) decide(c *call, v approval.Verdict) (*reply, error) {
	var in decisionBody
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	a, err := s.o.Pipeline.Decide(c.ctx, c.principal, c.org, c.r.PathValue("id"), v, in.Reason)
	return ok(summary(a, s.o.Policy.Now()), err)
}

func (s *Server) listApproveGrants(c *call) (*reply, error) {
	return cut(c, func(part policy.Cut) (policy.Page[grant.ApproveGrant], error) {
		return s.o.Policy.ApproveGrants(c.ctx, c.principal, c.org, part)
	})
}

func (s *Server) createApproveGrant(c *call) (*reply, error) {
	var in policy.ApproveGrantRequest
	if err := into(c, &in, &in.Org); err != nil {
		return nil, err
	}
	g, err := s.o.Policy.CreateApproveGrant(c.ctx, c.principal, in)
	return created("/v1/approve-grants/"+g.ID, g, err)
}

func (s *Server) revokeApproveGrant(c *call) (*reply, error) {
	r, err := s.o.Policy.RevokeApproveGrant(c.ctx, c.principal, c.org, c.r.PathValue("id"))
	return ok(r, err)
}

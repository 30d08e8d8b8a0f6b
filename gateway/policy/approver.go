package policy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/approval"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// actorGateway is who does what the gateway does by itself.
const actorGateway = "gateway"

// mayDecide refuses who may not decide a request: who is not cleared for what it shows, for whom it is not
// there; who asked, or has an agent that did; and an approver without a grant to approve it (S17).
func (o *orgState) mayDecide(p session.Principal, r *approval.Request, now time.Time) error {
	if !o.sees(p, r, now) {
		return notThere("approval", r.ID)
	}
	if p.Name() == r.Requester || p.Name() == r.AskedBy {
		return abi.Errorf(abi.CodeForbidden, "who asks does not decide: this principal opened the session that asks, or asked itself")
	}
	if p.User != "" && (p.User == r.Subject || p.User == r.User || p.User == r.AskedFor) {
		return abi.Errorf(abi.CodeForbidden, "who asks does not decide: it is asked for %s", abi.Quote(string(p.User)))
	}
	return nil
}

// sees reports whether a request is there for a principal. An approver sees what it may decide.
func (o *orgState) sees(p session.Principal, r *approval.Request, now time.Time) bool {
	return r.Label.FlowsTo(p.Cleared()) && (p.Role != session.Approver || o.approves(p.Name(), r.Capability, now))
}

// approves reports whether a grant to approve covers a capability. "*" covers what is no invocation, too.
func (o *orgState) approves(principal string, ref abi.CapabilityRef, now time.Time) bool {
	for id, g := range o.approveGrants {
		if _, revoked := o.revoked[id]; !revoked && g.Covers(principal, ref) && grant.Active(g.Expires, now) {
			return true
		}
	}
	return false
}

// stillApproved holds that whoever approved a request might do so now.
func (o *orgState) stillApproved(a *approval.Standing, now time.Time) error {
	id, own := strings.CutPrefix(a.Decision.By, "principal:"+o.record.ID+"/")
	p, there := o.principals[id]
	if own && (!there || !o.sees(p, &a.Request, now)) {
		return approval.StaleBecause([]string{"approver"})
	}
	return nil
}

// CreateApproveGrant lets a principal of the role approver decide requests for one capability, or, with "*",
// for any.
func (s *Service) CreateApproveGrant(ctx context.Context, p session.Principal, r ApproveGrantRequest) (grant.ApproveGrant, error) {
	var out grant.ApproveGrant
	in := intent{by: p, op: OpApproveGrant, org: r.Org, fields: []string{"principal", "capability", "expires"}}
	err := s.apply(ctx, in, func(st *state) (*change, error) {
		o := st.orgs[r.Org]
		if o == nil {
			return nil, notThere("organisation", r.Org)
		}
		who, ok := o.principals[r.Principal]
		if !ok {
			return nil, abi.AsError(notThere("principal", r.Principal)).At("/principal")
		}
		if who.Role != session.Approver {
			return nil, abi.Errorf(abi.CodeInvalidRequest, "the principal's role is %s, and grants to approve are for approvers", who.Role).At("/principal")
		}
		if r.Capability != grant.AnyCapability {
			if _, err := abi.ParseCapabilityRef(r.Capability); err != nil {
				return nil, abi.AsError(err).At("/capability")
			}
		}
		now := s.clock().UTC()
		if r.Expires != nil && !now.Before(*r.Expires) {
			return nil, abi.Errorf(abi.CodeInvalidRequest, "it would have expired already").At("/expires")
		}
		out = grant.ApproveGrant{
			ID: session.NewID(now), Org: r.Org, Principal: who.Name(), Capability: r.Capability, Expires: r.Expires, CreatedBy: p.Name(), CreatedAt: now,
		}
		return &change{records: []any{out}, target: out.ID}, nil
	})
	return out, err
}

// RevokeApproveGrant ends a grant to approve. What was approved by it and not used yet is void.
func (s *Service) RevokeApproveGrant(ctx context.Context, p session.Principal, org, id string) (grant.Revocation, error) {
	return s.revoke(ctx, p, OpApproveRevoke, org, id, func(o *orgState) bool { _, ok := o.approveGrants[id]; return ok })
}

// ApproveGrants lists an organisation's grants to approve that were not revoked.
func (s *Service) ApproveGrants(ctx context.Context, p session.Principal, org string, cut Cut) (Page[grant.ApproveGrant], error) {
	return listing(ctx, s, p, OpRead, "approve-grant", org, cut, func(tx store.Tx, g *grant.ApproveGrant) (grant.ApproveGrant, bool, error) {
		r, err := lookup[grant.Revocation](tx, keyOf(grant.Revocation{Org: org, Grant: g.ID}))
		return *g, r == nil, err
	})
}

// Approval shows one request to who may see it.
func (s *Service) Approval(ctx context.Context, p session.Principal, org, id string) (out approval.Standing, err error) {
	err = s.read(p, OpReadApprovals, org, func(_ *state, o *orgState) error {
		if out, err = s.standing(ctx, o, org, id); err == nil && !o.sees(p, &out.Request, s.clock()) {
			err = notThere("approval", id)
		}
		return err
	})
	return out, err
}

// Approvals lists the requests a principal may see, oldest first, in one state unless that is "".
func (s *Service) Approvals(ctx context.Context, p session.Principal, org string, in approval.State, cut Cut) (Page[approval.Standing], error) {
	if in != "" && !slices.Contains(approval.States(), in) {
		return Page[approval.Standing]{}, abi.Errorf(abi.CodeInvalidRequest, "%s is not a state of an approval", abi.Quote(string(in))).At("state")
	}
	now := s.clock()
	return listing(ctx, s, p, OpReadApprovals, "approval", org, cut, func(tx store.Tx, r *approval.Request) (approval.Standing, bool, error) {
		out := approval.Standing{Request: *r}
		err := outcomes(tx, &out)
		s.mu.RLock()
		defer s.mu.RUnlock()
		return out, (in == "" || out.State(now) == in) && s.state.orgs[org].sees(p, r, now), err
	})
}

// standing reads a request and what came of it: from memory while something may come of it, from the store
// afterwards. s.mu is held.
func (s *Service) standing(ctx context.Context, o *orgState, org, id string) (out approval.Standing, err error) {
	if o != nil && o.approvals[id] != nil {
		return *o.approvals[id], nil
	}
	err = s.store.View(ctx, func(tx store.Tx) error {
		r, err := lookup[approval.Request](tx, keyOf(approval.Request{Org: org, ID: id}))
		if err != nil || r == nil {
			return errors.Join(err, whenNil(r == nil, "approval", id))
		}
		out.Request = *r
		return outcomes(tx, &out)
	})
	if err != nil {
		return approval.Standing{}, readable(err)
	}
	return out, nil
}

func whenNil(missing bool, what, name string) error {
	if !missing {
		return nil
	}
	return notThere(what, name)
}

// outcomes reads what came of a request.
func outcomes(tx store.Tx, out *approval.Standing) (err error) {
	org, id := out.Request.Org, out.Request.ID
	if out.Decision, err = lookup[approval.Decision](tx, keyOf(approval.Decision{Org: org, Approval: id})); err != nil {
		return err
	}
	if out.Withdrawal, err = lookup[approval.Withdrawal](tx, keyOf(approval.Withdrawal{Org: org, Approval: id})); err != nil {
		return err
	}
	if out.Use, err = lookup[approval.Use](tx, keyOf(approval.Use{Org: org, Approval: id})); err != nil {
		return err
	}
	out.Result, err = lookup[approval.Result](tx, keyOf(approval.Result{Org: org, Approval: id}))
	return err
}

// approvalKey is where a sealed part of an approval is kept.
func approvalKey(org, id string, part approval.Part) []byte {
	return store.Key(keySpace, "approval-"+string(part), org, id)
}

// maxPurged bounds what one purge looks at in one organisation.
const maxPurged = 1000

// PurgeApprovals removes what approvals kept sealed, once they have expired: who waits longest is looked at
// first. It is no change of policy: what was asked, and what came of it, stays.
func (s *Service) PurgeApprovals(ctx context.Context) error {
	s.mu.RLock()
	orgs := make([]string, 0, len(s.state.orgs))
	for id := range s.state.orgs {
		orgs = append(orgs, id)
	}
	s.mu.RUnlock()
	now := s.clock()
	for _, org := range orgs {
		for _, part := range []approval.Part{approval.Input, approval.Output} {
			if err := s.purge(ctx, org, part, now); err != nil {
				return readable(err)
			}
		}
	}
	return nil
}

// purge writes only when there is something to remove, which there seldom is.
func (s *Service) purge(ctx context.Context, org string, part approval.Part, now time.Time) error {
	var expired [][]byte
	err := s.store.View(ctx, func(tx store.Tx) (err error) {
		expired, err = expiredParts(tx, org, part, now)
		return err
	})
	if err != nil || len(expired) == 0 {
		return err
	}
	return s.store.Update(ctx, func(tx store.Tx) error {
		for _, k := range expired {
			if err := tx.Delete(k); err != nil {
				return err
			}
		}
		return nil
	})
}

// expiredParts are the keys of what is kept of requests that have expired. When a request expires never
// changes.
func expiredParts(tx store.Tx, org string, part approval.Part, now time.Time) (keys [][]byte, err error) {
	looked := 0
	err = tx.Scan(store.Key(keySpace, "approval-"+string(part), org), nil, func(k, _ []byte) (bool, error) {
		parts, err := store.Split(k)
		if err != nil {
			return false, err
		}
		r, err := lookup[approval.Request](tx, keyOf(approval.Request{Org: org, ID: parts[len(parts)-1]}))
		if err == nil && r != nil && !now.Before(r.Expires) {
			keys = append(keys, k)
		}
		looked++
		return looked < maxPurged, err
	})
	return keys, err
}

package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/approval"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// approvals are the requests of an organisation that nothing final has come of. What is settled is in the
// store only.
type approvals map[string]*approval.Standing

// at is the standing of an id, made when it is not there: records are loaded with what came of a
// request before the request itself, so that what is settled takes no room.
func (a approvals) at(id string) *approval.Standing {
	s := a[id]
	if s == nil {
		s = &approval.Standing{}
		a[id] = s
	}
	return s
}

// settle forgets what is settled.
func (a approvals) settle(id string) {
	if s := a[id]; s.Request.ID != "" && s.Result != nil {
		delete(a, id)
	}
}

// applyApproval takes one step of a request into the state.
func (st *state) applyApproval(rec any) error {
	step := func(org, id string, set func(*approval.Standing)) error {
		return st.within(org, func(o *orgState) error {
			set(o.approvals.at(id))
			o.approvals.settle(id)
			return nil
		})
	}
	switch r := rec.(type) {
	case approval.Request:
		return step(r.Org, r.ID, func(s *approval.Standing) { s.Request = r })
	case approval.Decision:
		return step(r.Org, r.Approval, func(s *approval.Standing) { s.Decision = &r })
	case approval.Withdrawal:
		return step(r.Org, r.Approval, func(s *approval.Standing) { s.Withdrawal = &r })
	case approval.Use:
		return step(r.Org, r.Approval, func(s *approval.Standing) { s.Use = &r })
	case approval.Result:
		return step(r.Org, r.Approval, func(s *approval.Standing) { s.Result = &r })
	}
	return fmt.Errorf("no such step of an approval: %T", rec)
}

// waiting counts the requests that wait for somebody.
func (a approvals) waiting(now time.Time) int64 {
	n := int64(0)
	for _, s := range a {
		if s.Request.ID != "" && s.State(now) == approval.Pending {
			n++
		}
	}
	return n
}

// Pending counts the requests of all organisations that wait for somebody.
func (s *Service) Pending() int64 {
	now := s.clock().UTC()
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := int64(0)
	for _, o := range s.state.orgs {
		n += o.approvals.waiting(now)
	}
	return n
}

// Ask is a request for an approval of an invocation: what it is, and what it was decided from.
type Ask struct {
	Request approval.Request // ID, Org, Kind and what the caller knows; the basis is found out
	Facts   *gate.Facts
	Files   map[string]string // the versions of the files the input names
	Sealed  []byte            // the input
	By      session.Principal // who asks in the place of the session; none: the session itself
}

// RequestApproval records, durably, that an invocation waits for an approval. The basis of the decision is
// that of the policy it is recorded under. QUOTA_EXCEEDED is that as many wait as may; an error of
// the decision is what it comes to by now.
func (s *Service) RequestApproval(ctx context.Context, a Ask) (approval.Request, error) {
	r := a.Request
	in := intent{
		op: OpApprovalRequested, org: r.Org, target: r.ID, actor: string(r.Subject), fields: []string{"capability", "input", "expires"},
		may: func(*state) error { return nil }, // who may invoke was decided by the gate
	}
	if a.By.ID != "" {
		in.by, in.op, in.actor, in.may = a.By, OpDeclassify, "", nil
		r.AskedBy, r.AskedFor = a.By.Name(), a.By.User
	}
	err := s.apply(ctx, in, func(st *state) (*change, error) {
		o := st.orgs[r.Org]
		if o == nil {
			return nil, notThere("organisation", r.Org)
		}
		now := s.clock().UTC()
		snap := s.snap.Load() // nothing changes it here
		f := *a.Facts
		f.Now = now
		d := gate.Decide(snap, &f)
		if d.Verdict == gate.Deny || r.Kind == approval.Invocation && d.Verdict != gate.NeedsApproval {
			if err := d.Err(); err != nil {
				return nil, err
			}
			return nil, abi.Errorf(abi.CodeConflict, "the policy has changed; ask again")
		}
		r.Basis = st.basis(snap, &f, &d)
		r.Basis.Files = a.Files
		if err := s.newApproval(o, &r, now); err != nil {
			return nil, err
		}
		return &change{records: []any{r}, extra: []pair{{approvalKey(r.Org, r.ID, approval.Input), a.Sealed}}}, nil
	})
	return r, err
}

// newApproval completes a request of any kind and holds it to what may wait.
func (s *Service) newApproval(o *orgState, r *approval.Request, now time.Time) error {
	if have := o.approvals.waiting(now); have >= s.maxApprovals {
		return abi.Errorf(abi.CodeQuotaExceeded, "%d approvals wait to be decided, and no more may", have)
	}
	r.RequestedAt = now
	switch {
	case r.Expires.IsZero():
		r.Expires = now.Add(approval.DefaultLife)
	case !now.Before(r.Expires) || r.Expires.After(now.Add(approval.MaxLife)):
		return abi.Errorf(abi.CodeInvalidRequest, "an approval expires between now and %d hours from now", int(approval.MaxLife.Hours())).At("/expires")
	}
	return nil
}

// basis is what a decision rests on, in a form that outlives the process.
func (st *state) basis(snap *gate.Snapshot, f *gate.Facts, d *gate.Decision) approval.Basis {
	kept, owner := d.Kept(snap, f), st.orgs[d.Owner]
	b := approval.Basis{
		Generation: d.Generation, Digest: d.Digest, Install: d.Install, Grants: d.Grants(),
		Reach: d.Reach, Start: d.Start, Ceiling: d.Ceiling, Calls: kept.Calls,
	}
	for _, e := range kept.Endpoints {
		if b.Endpoints == nil {
			b.Endpoints = map[string]uint64{}
		}
		b.Endpoints[e.Name] = owner.endpoints[e.Name].record.Revision
	}
	for _, n := range kept.Secrets {
		if b.Secrets == nil {
			b.Secrets = map[string]uint64{}
		}
		b.Secrets[n] = owner.secrets[n].Version
	}
	return b
}

// approving is what approving a request of a kind changes, in the same change as the decision; a kind that
// is not here changes nothing. An error is answered, and nothing is decided.
var approving = map[approval.Kind]func(*Service, *state, session.Principal, *approval.Request) (*change, error){}

// DecideApproval records a person's word on what waits. It is final: saying the same again answers the
// first time, and the other thing is refused: APPROVAL_REJECTED after a rejection, CONFLICT after an
// approval. What is too late is APPROVAL_STALE. Whoever asked, or has an agent ask, decides nothing
// of it; for who is not cleared for it, it is not there.
func (s *Service) DecideApproval(ctx context.Context, p session.Principal, org, id string, v approval.Verdict, reason string) (approval.Standing, error) {
	op := OpApprovalApprove
	if v == approval.Reject {
		op = OpApprovalReject
	}
	var out approval.Standing
	err := s.apply(ctx, intent{by: p, op: op, org: org, target: id, fields: []string{"reason"}}, func(st *state) (*change, error) {
		o, now := st.orgs[org], s.clock().UTC()
		if o == nil {
			return nil, notThere("approval", id)
		}
		var err error
		if out, err = s.standing(ctx, o, org, id); err != nil {
			return nil, err
		}
		if err := o.mayDecide(p, &out.Request, now); err != nil {
			return nil, err
		}
		if len(reason) > approval.MaxReason {
			return nil, abi.Errorf(abi.CodeInvalidRequest, "a reason has at most %d bytes", approval.MaxReason).At("/reason")
		}
		if out.Decision != nil && out.Withdrawal == nil {
			return nil, again(&out, v)
		}
		if out.State(now) != approval.Pending {
			return nil, tooLate(out.State(now))
		}
		c := &change{}
		if on := approving[out.Request.Kind]; on != nil && v == approval.Approve {
			if c, err = on(s, st, p, &out.Request); err != nil {
				return nil, err
			}
		}
		d := approval.Decision{Approval: id, Org: org, Verdict: v, By: p.Name(), User: p.User, Reason: reason, At: now}
		out.Decision = &d
		c.records = append([]any{d}, c.records...)
		return c, nil
	})
	return out, err
}

// WithdrawApproval takes a request back, for the session that made it: nobody is asked any more, and what was
// approved and does not run yet never does. Doing it again answers the first time. NOT_FOUND is that there
// is no such request of the session; CONFLICT, that it runs, or is over.
func (s *Service) WithdrawApproval(ctx context.Context, sess *session.Session, id string) (approval.Standing, error) {
	var out approval.Standing
	in := intent{op: OpApprovalWithdrawn, org: sess.Org, target: id, actor: string(sess.Subject), may: func(*state) error { return nil }}
	err := s.apply(ctx, in, func(st *state) (*change, error) {
		var err error
		if out, err = s.standing(ctx, st.orgs[sess.Org], sess.Org, id); err != nil {
			return nil, err
		}
		now := s.clock().UTC()
		switch state := out.State(now); {
		case out.Request.Context.Session != sess.ID:
			return nil, notThere("approval", id)
		case state == approval.Withdrawn:
			return nil, nil
		case state != approval.Pending && state != approval.Approved:
			return nil, abi.Errorf(abi.CodeConflict, "it cannot be withdrawn any more: it is %s", state)
		}
		out.Withdrawal = &approval.Withdrawal{Approval: id, Org: sess.Org, By: string(sess.Subject), At: now}
		return &change{records: []any{*out.Withdrawal}}, nil
	})
	return out, err
}

// again is what a second word on a request comes to.
func again(s *approval.Standing, v approval.Verdict) error {
	switch {
	case s.Decision.Verdict == v:
		return nil
	case s.Decision.Verdict == approval.Reject:
		return abi.Errorf(abi.CodeApprovalRejected, "it was rejected, and that is final")
	}
	return abi.Errorf(abi.CodeConflict, "it was approved already")
}

func tooLate(st approval.State) error {
	return abi.Errorf(abi.CodeApprovalStale, "nobody can decide this any more: it is %s", st)
}

// UseApproval uses an approval up, durably, under the policy of this moment. It holds that the newest policy
// decides on the same basis what was approved, with the facts of now, and that who approved it still might:
// otherwise APPROVAL_STALE. What it answers is what the invocation is authorized from.
func (s *Service) UseApproval(ctx context.Context, org, id string, f *gate.Facts, files map[string]string) (*gate.Snapshot, gate.Decision, error) {
	var snap *gate.Snapshot
	var d gate.Decision
	in := intent{op: OpApprovalUsed, org: org, target: id, actor: actorGateway, may: func(*state) error { return nil }}
	err := s.apply(ctx, in, func(st *state) (*change, error) {
		o, now := st.orgs[org], s.clock().UTC()
		if o == nil || o.approvals[id] == nil {
			return nil, abi.Errorf(abi.CodeApprovalStale, "it was used, or is not waiting to be")
		}
		a := o.approvals[id]
		if a.State(now) != approval.Approved {
			return nil, tooLate(a.State(now))
		}
		if err := o.stillApproved(a, now); err != nil {
			return nil, err
		}
		snap = s.snap.Load()
		f.Now = now
		d = gate.Decide(snap, f)
		if d.Verdict != gate.Allow {
			return nil, approval.StaleBecause(nil)
		}
		b := st.basis(snap, f, &d)
		b.Files = files
		if changed := a.Request.Basis.Changed(&b); len(changed) > 0 {
			return nil, approval.StaleBecause(changed)
		}
		return &change{records: []any{approval.Use{Approval: id, Org: org, At: now}}}, nil
	})
	return snap, d, err
}

// SettleApproval records what came of a request in the end, with what is to be fetched of it. It is no
// change of policy. Settling twice changes nothing.
func (s *Service) SettleApproval(ctx context.Context, r approval.Result, output []byte) error {
	s.writer.Lock()
	defer s.writer.Unlock()
	s.mu.RLock()
	o := s.state.orgs[r.Org]
	there := o != nil && o.approvals[r.Approval] != nil
	s.mu.RUnlock()
	if !there {
		return nil
	}
	r.At = s.clock().UTC()
	err := s.store.Update(context.WithoutCancel(ctx), func(tx store.Tx) error {
		if err := put(tx, r); err != nil || output == nil {
			return err
		}
		return tx.Set(approvalKey(r.Org, r.Approval, approval.Output), output)
	})
	if err != nil {
		return abi.Errorf(abi.CodeNotReady, "what came of an approval could not be kept: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.apply(r)
}

// Unsettled lists the requests of all organisations that nothing final has come of, oldest first.
func (s *Service) Unsettled() []approval.Standing {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []approval.Standing
	for _, o := range s.state.orgs {
		for _, a := range o.approvals {
			if a.Request.ID != "" {
				out = append(out, *a)
			}
		}
	}
	slices.SortFunc(out, func(a, b approval.Standing) int { return a.Request.RequestedAt.Compare(b.Request.RequestedAt) })
	return out
}

// Standing is one request with what has come of it, for the invoking session's own questions: it asks nobody's
// role. NOT_FOUND is that there is none.
func (s *Service) Standing(ctx context.Context, org, id string) (out approval.Standing, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.standing(ctx, s.state.orgs[org], org, id)
}

// Kept reads a sealed part of an approval, or NOT_FOUND.
func (s *Service) Kept(ctx context.Context, org, id string, part approval.Part) (out []byte, err error) {
	err = s.store.View(ctx, func(tx store.Tx) error {
		out, err = tx.Get(approvalKey(org, id, part))
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, notThere("approval", id)
	case err != nil:
		return nil, readable(err)
	}
	return out, nil
}

// OpenSessionOf is an open session with its mark, or nil. It must not be changed.
func (s *Service) OpenSessionOf(id string) *session.Session {
	l := s.live.get(id)
	if l == nil || l.stands(s.clock()) != nil {
		return nil
	}
	return l.now()
}

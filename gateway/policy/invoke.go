package policy

import (
	"context"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/catalogue"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/lifetime"
)

// catalogueWait bounds how long a decision waits for the catalogue. After it the catalogue
// could not answer.
const catalogueWait = 250 * time.Millisecond

// Facts gathers what the gate needs to decide about an invocation of ref in a session.
// declared is the caller's classification of the input, or invalid.
func (s *Service) Facts(ctx context.Context, c catalogue.Catalogue, snap *gate.Snapshot, sess *session.Session, ref abi.CapabilityRef, declared abi.Classification) *gate.Facts {
	f := gate.FactsOf(sess, ref, s.clock())
	f.Declared = declared
	f.Reach = reach(ctx, c, snap, &f)
	return &f
}

// ChildFacts is [Service.Facts] for an invocation that another one makes, whose facts,
// authority and present label are given.
func (s *Service) ChildFacts(ctx context.Context, c catalogue.Catalogue, snap *gate.Snapshot, parent *gate.Facts, a *authority.Authority, label abi.Classification, ref abi.CapabilityRef) *gate.Facts {
	f := parent.Child(a, label, ref, s.clock())
	f.Reach = reach(ctx, c, snap, &f)
	return &f
}

// reach asks the catalogue about the version that would serve the invocation. Invalid is "it
// cannot say".
func reach(ctx context.Context, c catalogue.Catalogue, snap *gate.Snapshot, f *gate.Facts) abi.Reach {
	if snap.Stale { // nothing is decided by it
		return 0
	}
	b, served := snap.Route(f.Org, f.Capability, f.Environment)
	if b == nil {
		return 0
	}
	wait := lifetime.Begin(ctx, time.Now().Add(catalogueWait))
	defer wait.Over()
	r, known, err := c.Reach(wait, b.Org, served.Digest, f.Capability)
	if err != nil || !known {
		return 0
	}
	return r
}

// Authorize is [gate.Authorize] for an invocation of an open session: the authority ends with
// the session, with whatever stands answers besides (nil: nothing), and with any change of
// policy that would not allow it again. It answers nil for a decision that does not allow.
func (s *Service) Authorize(snap *gate.Snapshot, f *gate.Facts, d *gate.Decision, invocation string, deadline time.Time, stands func() *abi.Error) *authority.Authority {
	l := s.live.get(f.Session)
	if l == nil {
		return nil
	}
	return gate.Authorize(snap, f, d, gate.Terms{
		Invocation: invocation, Deadline: deadline, Began: s.wall(), Latest: s.Snapshot, Clock: s.clock,
		Stands: func() *abi.Error {
			if err := l.stands(s.clock()); err != nil || stands == nil {
				return err
			}
			return stands()
		},
	})
}

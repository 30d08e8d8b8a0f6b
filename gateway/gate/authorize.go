package gate

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/host/authority"
)

// Terms is what an authority needs besides the decision. The functions are called from the
// invocation's goroutines, at every host call.
type Terms struct {
	Invocation string    // ULID
	Deadline   time.Time // the caller's; zero when only the limits bind
	Began      time.Time // by the clock that deadlines are kept by; zero: the facts' time
	// Latest returns the newest snapshot.
	Latest func() *Snapshot
	// Stands returns why the invocation must stop for reasons outside policy (the session was
	// closed, the invocation cancelled, the server drains), or nil.
	Stands func() *abi.Error
	Clock  func() time.Time
}

// Authorize makes the authority of an allowed invocation, or nil when d is not an allow of
// [Decide]. s and f are what d was made from; f must not change afterwards.
//
// The authority stands as long as the newest policy decides the same on the same facts: when
// nothing changed that concerns the organisation this costs a comparison, otherwise the gate
// decides again (S18). A decision that still allows, on another basis or with less, is a
// revocation too: an authority never changes.
func Authorize(s *Snapshot, f *Facts, d *Decision, t Terms) *authority.Authority {
	if d.Verdict != Allow || d.served == nil || t.Latest == nil || t.Stands == nil || t.Clock == nil {
		return nil
	}
	env, org := s.EnvironmentIn(f.Org, f.Environment), s.Orgs.At(f.Org)
	kept := d.served.kept(env)
	began := t.Began
	if began.IsZero() {
		began = f.Now
	}
	spec := authority.Spec{
		Invocation: t.Invocation, Org: f.Org, Space: f.Space, Session: f.Session, Workspace: f.Workspace,
		Subject: f.Subject, User: f.User,
		Biome: d.Biome, Digest: d.Digest, Capability: f.Capability, Export: d.Descriptor.Export,
		Face: d.served.Face, Arguments: d.Descriptor.Arguments,
		InputEncoding: d.Descriptor.InputEncoding, OutputEncoding: d.Descriptor.OutputEncoding,

		Environment: env.Ref, Boundary: env.Boundary(), Reach: d.Reach,
		Floor: org.Spaces.At(f.Space).Floor, Start: d.Start, Ceiling: d.Ceiling, Clearance: f.Clearance.Sink(),

		Endpoints: kept.Endpoints, Secrets: kept.Secrets, Calls: kept.Calls, Config: d.served.Config,
		Limits:     env.Limits,
		Deadline:   earliest(t.Deadline, began.Add(time.Duration(env.Limits.Get(abi.LimitWall))*time.Millisecond)),
		Generation: d.Generation, Grants: d.Grants(),
	}
	asks := d.Obligations()
	if asks.Duration > 0 {
		spec.Deadline = earliest(spec.Deadline, began.Add(asks.Duration))
	}
	if asks.Clearance.Valid() {
		spec.Clearance = abi.Meet(spec.Clearance, asks.Clearance)
	}
	spec.Egress = asks.Egress
	var expires time.Time
	for _, g := range d.grants {
		if g != nil {
			if names := g.Resources(); names != nil {
				spec.Resources = append(spec.Resources, names)
			}
			if g.Expires != nil {
				expires = earliest(expires, *g.Expires)
			}
		}
	}
	f.Lower.narrow(&spec)
	w := &watch{facts: f, basis: d.basis(), kept: kept, terms: t, expires: expires}
	if f.Parent != nil {
		w.parent = f.Parent.Authority
		p := w.parent.Spec()
		spec.Parent = p.Invocation
		spec.Chain = append(slices.Clone(p.Chain), p.Capability)
		spec.Clearance = abi.Meet(spec.Clearance, p.Clearance)
		spec.Limits = spec.Limits.Tighten(p.Limits)
		spec.Deadline = earliest(spec.Deadline, p.Deadline)
		spec.Egress = slices.Concat(spec.Egress, p.Egress)
		spec.Resources = slices.Concat(spec.Resources, p.Resources)
	}
	w.seen.Store(s.Concerning(f.Org))
	w.newest.Store(s)
	return authority.New(spec, w.current)
}

// watch asks whether an authority still stands. Safe for concurrent use.
type watch struct {
	facts   *Facts
	basis   basis
	kept    *Kept
	terms   Terms
	expires time.Time
	parent  *authority.Authority     // a child never outlives its parent's rights
	seen    atomic.Uint64            // policy that was last found to allow
	newest  atomic.Pointer[Snapshot] // of which it is known that it has that policy
}

func (w *watch) current() *abi.Error {
	if w.parent != nil {
		if err := w.parent.Current(); err != nil {
			return err
		}
	}
	if err := w.terms.Stands(); err != nil {
		return err
	}
	if !w.expires.IsZero() && !w.terms.Clock().Before(w.expires) {
		return abi.Errorf(abi.CodeGrantRevoked, "the grant has expired")
	}
	s := w.terms.Latest()
	if s.Stale {
		return abi.Errorf(abi.CodePolicyStale, "the policy that is known may not be the newest")
	}
	if s == w.newest.Load() {
		return nil
	}
	g := s.Concerning(w.facts.Org)
	if g == w.seen.Load() {
		w.newest.Store(s)
		return nil
	}
	f := *w.facts
	f.Now = w.terms.Clock()
	if d := Decide(s, &f); !w.basis.within(&d) || !w.kept.equal(d.served.kept(s.EnvironmentIn(f.Org, f.Environment))) {
		return abi.Errorf(abi.CodeGrantRevoked, "the policy that allowed this invocation has changed")
	}
	w.seen.Store(g)
	return nil
}

// basis is what a decision gave, and by what.
type basis struct {
	Digest, Install string
	Ceiling         abi.Classification
	Reach           abi.Reach
	grants          [numGrants]*grant.Grant
}

func (d *Decision) basis() basis { return basis{d.Digest, d.Install, d.Ceiling, d.Reach, d.grants} }

// within reports whether all that old gave is given by d as well, on the same basis.
func (old *basis) within(d *Decision) bool {
	if d.Verdict != Allow || d.Digest != old.Digest || d.Install != old.Install || d.Ceiling < old.Ceiling || d.Reach < old.Reach {
		return false
	}
	for i := range old.grants {
		if (old.grants[i] == nil) != (d.grants[i] == nil) || old.grants[i] != nil && old.grants[i].ID != d.grants[i].ID {
			return false
		}
	}
	return true
}

// earliest is the earliest of the times that are set.
func earliest(times ...time.Time) time.Time {
	var out time.Time
	for _, t := range times {
		if !t.IsZero() && (out.IsZero() || t.Before(out)) {
			out = t
		}
	}
	return out
}

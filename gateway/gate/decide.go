package gate

import (
	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/space"
)

// Decide judges every check over one snapshot. It is pure, does not allocate, and may be
// called from any number of goroutines. The first failed check in table order names the code.
func Decide(s *Snapshot, f *Facts) Decision {
	var d Decision
	if s == nil || f == nil {
		d.Code = abi.CodeMissingGrant
		return d
	}
	d.Generation = s.Concerning(f.Org)
	if s.Stale {
		d.Code = abi.CodePolicyStale
		return d
	}
	v := look(s, f)
	d.Checks[CheckEnvironment] = v.judge(CheckEnvironment)
	if d.Checks[CheckEnvironment].State != Passed {
		d.Code = d.Checks[CheckEnvironment].Code
		return d
	}
	if !v.mayKnow() {
		d.Checks[CheckGrant] = Result{State: Failed, Code: checks[CheckGrant].Code}
		d.Code = checks[CheckGrant].Code
		return d
	}
	var pending CheckID
	for i := int(CheckLifecycle); i < NumChecks; i++ {
		r := v.judge(CheckID(i))
		d.Checks[i] = r
		switch {
		case r.State == Pending && d.Code == "" && pending == 0:
			pending = CheckID(i)
		case r.State == Pending:
		case r.State != Failed && r.State != NotReached:
		case d.Code == "" && pending == 0: // what comes after a check that is pending cannot be the first failure yet
			d.Code = r.Code
			if d.Code == "" {
				d.Code = checks[i].Code
			}
		}
	}
	d.found(v)
	switch {
	case d.Code == abi.CodeApprovalRequired && f.Parent == nil: // by the last check: nothing else is in the way
		d.Verdict, d.served = NeedsApproval, v.served
	case d.Code != "":
	case pending != 0:
		d.Pending, d.Code = pending, checks[pending].Code
	default:
		d.Verdict, d.served = Allow, v.served
	}
	return d
}

func (v view) judge(id CheckID) Result {
	r := checks[id].judge(v)
	if r.State == Failed && r.Code == "" {
		r.Code = checks[id].Code
	}
	return r
}

// look finds everything the checks ask about.
func look(s *Snapshot, f *Facts) view {
	v := view{f: f, env: s.EnvironmentIn(f.Org, f.Environment), space: space.Resolve()}
	if f.Parent != nil && f.Parent.Authority != nil {
		v.parent = f.Parent.Authority.Spec()
	}
	org := s.Orgs.At(f.Org)
	if org == nil || v.env == nil {
		v.env = nil
		return v
	}
	if e, ok := org.Spaces.Get(f.Space); ok {
		v.space = e
	}
	if v.biome = s.provider(f.Org, f.Capability); v.biome != nil {
		v.served = v.biome.serving(f.Capability, v.env)
		v.desc = v.served.Capabilities[f.Capability]
		v.ending = v.biome.Endings[f.Capability]
	}
	held := org.Held(f.Subject, f.Capability)
	v.known, v.subject = len(held) > 0, held.In(f.Environment)
	if f.User != "" {
		v.user = org.Held(f.User, f.Capability).In(f.Environment)
	}
	v.lookCaller(s, org)
	v.lookCeilings(org)
	return v
}

// lookCaller finds what the calling biome may call, as policy has it now: the version that
// runs must still be the one that serves.
func (v *view) lookCaller(s *Snapshot, org *Org) {
	if v.parent == nil {
		return
	}
	b := s.provider(v.f.Org, v.parent.Capability)
	if b == nil || b.Name != v.parent.Biome || b.Disabled {
		return
	}
	if a := b.serving(v.parent.Capability, v.env); a.Digest == v.parent.Digest {
		v.callerKept = a.kept(v.env)
	}
	v.callerGrant = org.Held(b.Subject, v.f.Capability).In(v.f.Environment)
}

// lookCeilings composes floors as a join and ceilings as a meet: each may restrict, none can
// loosen (X20, X22).
func (v *view) lookCeilings(org *Org) {
	f := v.f
	v.bound = v.env.Reach
	v.reach = f.Reach
	if !v.reach.Valid() {
		v.reach = abi.ReachOwner
	}
	v.start = abi.Join(v.space.Floor, f.mark())
	if f.Declared.Valid() {
		v.start = abi.Join(v.start, f.Declared)
	}
	v.ceiling = abi.Meet(v.env.Effective(org.Overrides.At(f.Environment)), v.space.Clearance, f.Clearance)
	if v.parent != nil {
		v.bound = abi.MinReach(v.bound, v.parent.Reach)
		v.start = abi.Join(v.start, f.Parent.Label)
		v.ceiling = abi.Meet(v.ceiling, v.parent.Ceiling)
	}
}

// mayKnow reports whether the caller may learn more about the capability than that it holds
// no grant.
func (v view) mayKnow() bool { return v.env.Waives || v.biome != nil && v.known }

// found fills in what the decision rests on.
func (d *Decision) found(v view) {
	if v.biome == nil {
		return
	}
	d.Biome, d.Owner = v.biome.Name, v.biome.Org
	d.Digest, d.Install, d.Descriptor = v.served.Digest, v.served.Install, v.desc
	d.Ending = v.ending
	d.ReachDeferred = d.Checks[CheckReach].State == Deferred
	d.Reach = abi.MinReach(v.reach, v.bound)
	d.Start, d.Ceiling = v.start, v.ceiling
	for i, g := range [numGrants]struct {
		check CheckID
		grant *grant.Grant
	}{
		grantOfSubject: {CheckGrant, v.subject},
		grantOfUser:    {CheckUserGrant, v.user},
		grantOfCaller:  {CheckCallerGrant, v.callerGrant},
	} {
		if d.Checks[g.check].State == Passed {
			d.grants[i] = g.grant
		}
	}
}

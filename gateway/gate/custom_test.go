package gate

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
)

const ownRef = abi.EnvironmentRef("environment:own")

// derive puts an environment of the world's organisation's own into a world: everything that is
// admitted and granted in its base is admitted and granted there.
func derive(w world, c environment.Custom) *Snapshot {
	for k, globs := range w.grants {
		if k.Environment == c.Base {
			o := grantKey{k.Subject, k.Capability, ownRef}
			w.grants[o] = globs
			if at, ok := w.expiry[k]; ok {
				w.expiry[o] = at
			}
		}
	}
	for _, list := range []*[]abi.EnvironmentRef{&w.calleeInstalled, &w.callerInstalled} {
		if slices.Contains(*list, c.Base) {
			*list = append(slices.Clone(*list), ownRef)
		}
	}
	s := w.snapshot()
	org := s.Orgs.At(w.org)
	e := c.Resolve(s.EnvironmentIn(w.org, c.Base), org.Overrides.At(c.Base))
	org.Environments = org.Environments.With(nil, e.Ref, &e)
	return s
}

func drawCustom(t *rapid.T) environment.Custom {
	bases := slices.DeleteFunc(allEnvironments(), func(e abi.EnvironmentRef) bool { return e == ref(environment.TrustedDev) })
	c := environment.Custom{
		Org: "acme", Slug: "own", Base: rapid.SampledFrom(bases).Draw(t, "base"), Reach: abi.Reach(rapid.IntRange(0, 3).Draw(t, "own reach")),
		MaxData: abi.Classification(rapid.IntRange(0, 5).Draw(t, "own max")), Boundary: rapid.IntRange(0, 3).Draw(t, "boundary") == 0, Revision: 1,
	}
	if rapid.Bool().Draw(t, "list") {
		c.Allowed = rapid.SliceOfNDistinct(rapid.SampledFrom([]abi.CapabilityRef{callee, caller, "x:y.z@1"}), 1, 2, rapid.ID[abi.CapabilityRef]).Draw(t, "allowed")
	}
	return c
}

// X56, X20, promise 2: whatever an environment of an organisation's own says, it allows nothing that the
// base, with the same rights there, would not; and what it allows carries no more. Of a child as well.
func TestCustomNeverWidens(t *testing.T) {
	allowed := map[bool]int{}
	property := func(t *rapid.T) {
		w := drawWorld(t)
		c := drawCustom(t)
		s := derive(w, c)
		f := drawFacts(t, w)
		f.Environment = ownRef
		base := f
		base.Environment = c.Base
		child := rapid.Bool().Draw(t, "child")
		if child {
			for _, facts := range []*Facts{&f, &base} {
				p := *facts
				p.Capability, p.Reach = caller, abi.ReachOwner
				d := Decide(s, &p)
				if d.Verdict != Allow {
					return // then there is no parent in one of the two to compare
				}
				next := p.Child(Authorize(s, &p, &d, terms(func() *Snapshot { return s })), p.Mark, callee, noon)
				next.Reach, next.Rate, next.Schema = facts.Reach, Within, Satisfied
				*facts = next
			}
		}
		own := Decide(s, &f)
		if own.Verdict != Allow {
			return
		}
		allowed[child]++
		there := Decide(s, &base)
		if there.Verdict != Allow {
			t.Fatalf("the base refuses with %s, what derives from it allows", there.Code)
		}
		if own.Ceiling > there.Ceiling || own.Start < there.Start || own.Reach > there.Reach {
			t.Fatalf("it carries more: %+v, the base %+v", own, there)
		}
		if c.Allowed != nil && !slices.Contains(c.Allowed, callee) {
			t.Fatal("it is not in the list")
		}
	}
	for round := 0; (allowed[false] == 0 || allowed[true] == 0) && round < 100; round++ {
		rapid.Check(t, property)
	}
	if allowed[false] == 0 || allowed[true] == 0 {
		t.Errorf("allowed %v: the property says nothing", allowed)
	}
}

// X54, X55: a list admits what it names and nothing else; no list is no check.
func TestAllowList(t *testing.T) {
	c := environment.Custom{Org: "acme", Slug: "own", Base: ref("project"), Reach: abi.ReachIntegration, MaxData: abi.Regulated}
	for name, want := range map[string]struct {
		list  []abi.CapabilityRef
		code  abi.Code
		state State
	}{
		"none":    {nil, "", NotApplicable},
		"named":   {[]abi.CapabilityRef{caller, callee}, "", Passed},
		"another": {[]abi.CapabilityRef{caller}, abi.CodeNotInAllowList, Failed},
		"a major": {[]abi.CapabilityRef{"notes:note.read@2"}, abi.CodeNotInAllowList, Failed},
	} {
		c.Allowed = want.list
		w := full()
		f := w.facts(ownRef, callee, abi.ReachOwner)
		d := Decide(derive(w, c), &f)
		wantCode(t, d, want.code)
		if got := d.Checks[CheckAllowList].State; got != want.state {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, e := range environment.BuiltIns() {
		if d := decide(full(), full().facts(e.Ref, callee, abi.ReachOwner)); d.Checks[CheckAllowList].State != NotApplicable {
			t.Errorf("%s: %s", e.Slug, d.Checks[CheckAllowList].State)
		}
	}
}

// X53: what the system organisation provides is admitted where its install grant admits the base; an
// environment of the system's that has the same name says nothing about it, and an upload that nobody
// admitted runs in none.
func TestSystemBiomesInOwnEnvironments(t *testing.T) {
	decide := func(base string, installed []abi.EnvironmentRef) Decision {
		w := full()
		w.org, w.calleeInstalled = SystemOrg, installed
		s := w.snapshot()
		acme := full()
		mine := derive(acme, environment.Custom{Org: "acme", Slug: "own", Base: ref(base), Reach: abi.ReachOwner, MaxData: abi.Regulated}).Orgs.At("acme")
		mine.Routes, mine.Biomes = mine.Routes.Without(nil, callee), mine.Biomes.Without(nil, "notes")
		s.Orgs = s.Orgs.With(nil, "acme", mine)
		f := acme.facts(ownRef, callee, abi.ReachOwner)
		return Decide(s, &f)
	}
	wantCode(t, decide("project", []abi.EnvironmentRef{ref("project")}), "")
	wantCode(t, decide("project", []abi.EnvironmentRef{ref("org"), ownRef}), abi.CodeEnvironmentNotGranted)
	wantCode(t, decide("sandbox", []abi.EnvironmentRef{ref("sandbox")}), "")
	wantCode(t, decide("sandbox", nil), abi.CodeEnvironmentNotGranted)
}

// X13, X56: without a catalogue the family is the base's, or a boundary where it was made one.
func TestCustomInAnOutage(t *testing.T) {
	for _, e := range environment.BuiltIns() {
		if e.Waives {
			continue
		}
		for _, boundary := range []bool{false, true} {
			w := full()
			s := derive(w, environment.Custom{Org: "acme", Slug: "own", Base: e.Ref, Reach: e.Reach, MaxData: abi.Regulated, Boundary: boundary})
			f := w.facts(ownRef, callee, 0)
			d := Decide(s, &f)
			if e.Boundary() || boundary {
				wantCode(t, d, abi.CodeUnclassified)
			} else if wantCode(t, d, ""); !d.ReachDeferred {
				t.Errorf("of %s: not deferred", e.Slug)
			}
		}
	}
}

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

// S18: an authority ends with the environment it was given in: when that is tightened so that it would
// give less, or is gone; not when it is loosened within its base, or when another is changed.
func TestAuthorityInOwnEnvironment(t *testing.T) {
	was := environment.Custom{
		Org: "acme", Slug: "own", Base: ref("project"), Reach: abi.ReachOwner, MaxData: abi.Secret, Allowed: []abi.CapabilityRef{callee}, Revision: 1,
	}
	for name, c := range map[string]struct {
		ends   bool
		change func(*world, *environment.Custom)
	}{
		"nothing":                {false, func(*world, *environment.Custom) {}},
		"listed no more":         {true, func(_ *world, c *environment.Custom) { c.Allowed = []abi.CapabilityRef{caller} }},
		"no list any more":       {false, func(_ *world, c *environment.Custom) { c.Allowed = nil }},
		"a lower ceiling":        {true, func(_ *world, c *environment.Custom) { c.MaxData = abi.Confidential }},
		"a higher ceiling":       {false, func(_ *world, c *environment.Custom) { c.MaxData = abi.Regulated }},
		"a longer reach":         {false, func(_ *world, c *environment.Custom) { c.Reach = abi.ReachIntegration }},
		"none":                   {true, func(_ *world, c *environment.Custom) { c.Reach = 0 }},
		"its base is overridden": {true, func(w *world, _ *environment.Custom) { w.overrides[ref("project")] = abi.Internal }},
		"another is overridden":  {false, func(w *world, _ *environment.Custom) { w.overrides[ref("org")] = abi.Internal }},
		"it is gone":             {true, func(_ *world, c *environment.Custom) { c.Slug = "other" }},
	} {
		t.Run(name, func(t *testing.T) {
			w := full()
			latest := derive(w, was)
			f := w.facts(ownRef, callee, abi.ReachOwner)
			d := Decide(latest, &f)
			a := Authorize(latest, &f, &d, terms(func() *Snapshot { return latest }))
			if a == nil {
				t.Fatalf("refused: %+v", d.Explain())
			}
			next := was
			w.generation++
			c.change(&w, &next)
			latest = derive(w, next)
			if err := a.Current(); (err != nil) != c.ends || err != nil && err.Code != abi.CodeGrantRevoked {
				t.Errorf("it says %v", err)
			}
		})
	}
}

// X23, promise 2: what is allowed in a space is, with the same rights, allowed in the one around it, and
// carries there at least as much.
func TestInnerSpaceNeverWidens(t *testing.T) {
	allowed := 0
	property := func(t *rapid.T) {
		w := drawWorld(t)
		s := w.snapshot()
		org := s.Orgs.At(w.org)
		inner := org.Spaces.At("main")
		inner.Floor, inner.Clearance = abi.Join(inner.Floor, drawLabel(t, "inner floor")), abi.Meet(inner.Clearance, drawLabel(t, "inner clearance"))
		inner.Production, inner.Dev = inner.Production || rapid.Bool().Draw(t, "inner production"), inner.Dev && rapid.Bool().Draw(t, "inner dev")
		org.Spaces = org.Spaces.With(nil, "inner", inner)
		f := drawFacts(t, w)
		outer := f
		f.Space = "inner"
		in := Decide(s, &f)
		if in.Verdict != Allow {
			return
		}
		allowed++
		out := Decide(s, &outer)
		if out.Verdict != Allow || in.Ceiling > out.Ceiling || in.Start < out.Start || in.Reach > out.Reach {
			t.Fatalf("%+v, around it %+v", in, out)
		}
	}
	for round := 0; allowed == 0 && round < 100; round++ {
		rapid.Check(t, property)
	}
	if allowed == 0 {
		t.Error("nothing was ever allowed: the property says nothing")
	}
}

// X70: whoever a grant is of, it does not hold in a user's space that it does not name; whose data it is was
// settled by the subject's grant, so a calling biome's is asked only for what it names itself.
func TestGrantsInAUsersSpace(t *testing.T) {
	w := full()
	env := ref("project")
	for name, c := range map[string]struct {
		subject, biome []string
		personal       bool
		code           abi.Code
	}{
		"of everybody's":            {nil, nil, false, ""},
		"a user's":                  {nil, nil, true, abi.CodeMissingGrant},
		"a user's, named":           {[]string{"main"}, nil, true, ""},
		"another's, named":          {[]string{"theirs"}, nil, true, abi.CodeMissingGrant},
		"a biome's, named":          {[]string{"main"}, []string{"main"}, true, ""},
		"a biome's, named another":  {[]string{"main"}, []string{"theirs"}, true, abi.CodeMissingGrant},
		"everybody's, not named":    {[]string{"theirs"}, nil, false, abi.CodeMissingGrant},
		"a biome's, not named here": {nil, []string{"theirs"}, false, abi.CodeMissingGrant},
	} {
		s := w.snapshot()
		org := s.Orgs.At("acme")
		f := w.child(t, env, abi.ReachOwner, abi.ReachOwner, abi.Public)
		e := org.Spaces.At("main")
		e.Personal = c.personal
		org.Spaces = org.Spaces.With(nil, "main", e)
		for subject, spaces := range map[abi.Subject][]string{user: c.subject, relay: c.biome} {
			held := *org.Held(subject, callee).In(env)
			held.Spaces = spaces
			org.Grants = org.Grants.With(nil, Holder{subject, callee}, Held{&held})
		}
		if d := Decide(s, &f); d.Code != c.code {
			t.Errorf("%s: %q: %+v", name, d.Code, d.Explain())
		}
	}
}

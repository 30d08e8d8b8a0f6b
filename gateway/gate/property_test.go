package gate

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
)

func drawLabel(t *rapid.T, name string) abi.Classification {
	return rapid.SampledFrom(abi.Classifications()).Draw(t, name)
}

func drawEnvironments(t *rapid.T, name string) []abi.EnvironmentRef {
	var out []abi.EnvironmentRef
	for _, e := range allEnvironments() {
		if rapid.IntRange(0, 3).Draw(t, name) > 0 {
			out = append(out, e)
		}
	}
	return out
}

var someGlobs = []string{"**", "a/**", "a/b", "b/*", "*.md"}

// drawWorld draws policy that allows often enough to say something.
func drawWorld(t *rapid.T) world {
	mostly := func(name string) bool { return rapid.IntRange(0, 4).Draw(t, name) > 0 }
	w := full()
	w.calleeDisabled = !mostly("enabled")
	w.calleeInstalled, w.callerInstalled = drawEnvironments(t, "installed"), drawEnvironments(t, "caller installed")
	w.calleeNewer, w.calleeApproval = rapid.Bool().Draw(t, "newer"), !mostly("no approval")
	w.callerCalls, w.callerDeclares = mostly("calls"), mostly("declares")
	w.dev, w.prod = mostly("dev"), !mostly("not prod")
	w.floor = min(drawLabel(t, "floor"), drawLabel(t, "floor too"))
	w.clearance = max(drawLabel(t, "clearance"), drawLabel(t, "clearance too"))
	for _, k := range grantKeys(w) {
		switch {
		case !mostly("granted"):
			delete(w.grants, k)
		default:
			w.grants[k] = rapid.SliceOfNDistinct(rapid.SampledFrom(someGlobs), 1, 3, rapid.ID[string]).Draw(t, "globs")
		}
		if rapid.IntRange(0, 9).Draw(t, "expires") == 0 {
			w.expiry[k] = noon.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "when")) * time.Hour)
		}
	}
	for _, e := range drawEnvironments(t, "overridden") {
		w.overrides[e] = max(drawLabel(t, "override"), drawLabel(t, "override too"))
	}
	return w
}

func grantKeys(w world) []grantKey {
	return slices.SortedFunc(maps.Keys(w.grants), func(a, b grantKey) int {
		return slices.Compare([]string{string(a.Subject), string(a.Capability), string(a.Environment)},
			[]string{string(b.Subject), string(b.Capability), string(b.Environment)})
	})
}

func drawFacts(t *rapid.T, w world) Facts {
	f := w.facts(rapid.SampledFrom(allEnvironments()).Draw(t, "environment"), callee, 0)
	f.Reach = abi.Reach(rapid.IntRange(0, 3).Draw(t, "reach"))
	f.Mark, f.Clearance = min(drawLabel(t, "mark"), drawLabel(t, "mark too")), max(drawLabel(t, "session"), drawLabel(t, "session too"))
	f.Declared = abi.Classification(rapid.IntRange(0, 3).Draw(t, "declared"))
	if rapid.Bool().Draw(t, "agent") {
		f.Subject, f.User = agent, user
	}
	return f
}

// restrict changes policy or facts in one way that only takes away.
func restrict(t *rapid.T, w world, f Facts) (world, Facts) {
	w.grants, w.expiry, w.overrides = maps.Clone(w.grants), maps.Clone(w.expiry), maps.Clone(w.overrides)
	changes := []func(){
		func() { w.calleeDisabled = true },
		func() { w.calleeApproval = true },
		func() { w.calleeInstalled = lessOne(t, w.calleeInstalled) },
		func() { w.callerInstalled = lessOne(t, w.callerInstalled) },
		func() { w.callerCalls = false },
		func() { w.callerDeclares = false },
		func() { w.callerDigest = "d-replaced" },
		func() { w.dev = false },
		func() { w.prod = true },
		func() { w.floor = abi.Join(w.floor, drawLabel(t, "raise")) },
		func() { w.clearance = abi.Meet(w.clearance, drawLabel(t, "lower")) },
		func() { f.Clearance = abi.Meet(f.Clearance, drawLabel(t, "lower session")) },
		func() { f.Mark = abi.Join(f.Mark, drawLabel(t, "mark up")) },
		func() { f.Declared = max(f.Declared, drawLabel(t, "declare more")) },
		func() { f.Schema = Violated },
		func() { // X20: an override, or a lower one
			e := f.Environment
			c := drawLabel(t, "override down")
			if old, ok := w.overrides[e]; ok {
				c = min(c, old)
			}
			w.overrides[e] = c
		},
		func() {
			if keys := grantKeys(w); len(keys) > 0 {
				delete(w.grants, rapid.SampledFrom(keys).Draw(t, "revoke"))
			}
		},
		func() {
			if keys := grantKeys(w); len(keys) > 0 {
				w.expiry[rapid.SampledFrom(keys).Draw(t, "expire")] = noon
			}
		},
	}
	rapid.SampledFrom(changes).Draw(t, "restriction")()
	return w, f
}

func lessOne(t *rapid.T, envs []abi.EnvironmentRef) []abi.EnvironmentRef {
	if len(envs) < 2 {
		return envs // none at all is another change: it falls back to the upload
	}
	i := rapid.IntRange(0, len(envs)-1).Draw(t, "which")
	return slices.Concat(envs[:i], envs[i+1:])
}

// Promise 2, X20, X11: with anything more restrictive, what is allowed was allowed before, and
// carries at most what it carried.
func TestRestrictionNeverWidens(t *testing.T) {
	allowed := 0
	property := func(t *rapid.T) {
		w := drawWorld(t)
		f := drawFacts(t, w)
		before := decide(w, f)
		w2, f2 := restrict(t, w, f)
		after := decide(w2, f2)
		if after.Verdict != Allow {
			return
		}
		allowed++
		if before.Verdict != Allow {
			t.Fatalf("refused with %s, and allowed with less", before.Code)
		}
		if after.Ceiling > before.Ceiling || after.Start < before.Start || after.Reach > before.Reach {
			t.Fatalf("it carries more: %+v, then %+v", before, after)
		}
	}
	// Few random worlds allow what is asked: look until some did.
	for round := 0; allowed == 0 && round < 100; round++ {
		rapid.Check(t, property)
	}
	if allowed == 0 {
		t.Error("nothing was ever allowed: the property says nothing")
	}
}

// X22: the ceiling is at most each ceiling, the start at least each label, and an allow has
// every one of its grounds.
func TestAllowNeedsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		f := drawFacts(t, w)
		d := decide(w, f)
		if d.Verdict != Allow {
			if d.Code == "" {
				t.Fatal("a refusal without a code")
			}
			return
		}
		env, _ := environment.BuiltIn(f.Environment)
		over, ok := w.overrides[f.Environment]
		if !ok {
			over = abi.Regulated
		}
		for _, c := range []abi.Classification{env.MaxData, over, w.clearance, f.Clearance} {
			if d.Ceiling > c {
				t.Fatalf("the ceiling %s is above %s", d.Ceiling, c)
			}
		}
		for _, c := range []abi.Classification{w.floor, f.Mark, f.Declared} {
			if d.Start < c {
				t.Fatalf("the start %s is below %s", d.Start, c)
			}
		}
		if d.Start > d.Ceiling || !d.Reach.Within(env.Reach) || f.Reach.Valid() && !f.Reach.Within(env.Reach) {
			t.Fatalf("allowed above a ceiling: %+v", d)
		}
		if w.calleeDisabled || !env.Waives && (w.calleeApproval || len(d.Grants()) == 0) {
			t.Fatalf("allowed without its grounds: %+v", d)
		}
		for i, r := range d.Checks {
			switch r.State {
			case Failed, NotReached, Pending:
				t.Fatalf("allowed with the check %s %s", checks[i].Name, r.State)
			}
		}
	})
}

// S4: what a child may do is part of what its parent and its subject may.
func TestChildIsPartOfParent(t *testing.T) {
	allowed := 0
	property := func(t *rapid.T) {
		w := drawWorld(t)
		pf := drawFacts(t, w)
		pf.Capability = caller
		s := w.snapshot()
		pd := Decide(s, &pf)
		if pd.Verdict != Allow {
			return
		}
		latest := func() *Snapshot { return s }
		parent := Authorize(s, &pf, &pd, terms(latest))
		cf := pf.Child(parent, drawLabel(t, "parent's label"), callee, noon)
		cf.Reach, cf.Rate, cf.Schema = abi.Reach(rapid.IntRange(0, 3).Draw(t, "callee reach")), Within, Satisfied
		cd := Decide(s, &cf)
		if cd.Verdict != Allow {
			return
		}
		allowed++
		direct := cf
		direct.Parent = nil
		if d := Decide(s, &direct); d.Verdict != Allow {
			t.Fatalf("the subject may not call it: %s", d.Code)
		}
		p, c := parent.Spec(), Authorize(s, &cf, &cd, terms(latest)).Spec()
		if c.Ceiling > p.Ceiling || c.Clearance > p.Clearance || !c.Reach.Within(p.Reach) || c.Start < cf.Parent.Label ||
			c.Deadline.After(p.Deadline) || c.Limits.Tighten(p.Limits) != c.Limits {
			t.Fatalf("the child has more: %+v, parent %+v", c, p)
		}
		if c.Parent != p.Invocation || !slices.Equal(c.Chain, []abi.CapabilityRef{caller}) {
			t.Fatalf("the lineage is %s %v", c.Parent, c.Chain)
		}
		for _, path := range somePaths {
			if c.Resources.Match(path) && !p.Resources.Match(path) {
				t.Fatalf("the child reaches %s, its parent does not", path)
			}
		}
	}
	// Few random worlds let a child run: look until some did.
	for round := 0; allowed == 0 && round < 100; round++ {
		rapid.Check(t, property)
	}
	if allowed == 0 {
		t.Error("no child was ever allowed: the property says nothing")
	}
}

var somePaths = []string{"a", "a/b", "a/b/c", "b", "b/c", "x.md", "a/x.md", "c"}

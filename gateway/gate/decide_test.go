package gate

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/rate"
)

func wantCode(t *testing.T, d Decision, want abi.Code) {
	t.Helper()
	if d.Code != want || (d.Verdict == Allow) != (want == "") {
		t.Errorf("%s %q, want %q: %+v", d.Verdict, d.Code, want, d.Explain())
	}
}

// PF-A20, PF-A1: nothing known is nothing allowed.
func TestZeroDenies(t *testing.T) {
	if (Decision{}).Verdict != Deny {
		t.Error("the zero decision allows")
	}
	for name, d := range map[string]Decision{
		"no snapshot":    Decide(nil, &Facts{}),
		"no facts":       Decide(full().snapshot(), nil),
		"zero snapshot":  Decide(&Snapshot{}, &Facts{}),
		"zero facts":     Decide(full().snapshot(), &Facts{}),
		"full facts":     decide(world{}, full().facts(ref("org"), callee, abi.ReachOwner)),
		"empty org":      decide(world{org: "acme"}, full().facts(ref("org"), callee, abi.ReachOwner)),
		"forged parent":  forgedParent(),
		"unknown space":  decide(full(), without(func(f *Facts) { f.Space = "elsewhere" })),
		"zero clearance": decide(full(), without(func(f *Facts) { f.Clearance = 0; f.Mark = abi.Internal })),
		"zero mark":      decide(full(), without(func(f *Facts) { f.Mark = 0; f.Clearance = abi.Secret })),
		"unknown org":    decide(full(), without(func(f *Facts) { f.Org = "other" })),
	} {
		if d.Verdict != Deny || d.Code == "" {
			t.Errorf("%s: %s %q", name, d.Verdict, d.Code)
		}
		if d.Err() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// without changes facts that would be allowed.
func without(change func(*Facts)) Facts {
	f := full().facts(ref("org"), callee, abi.ReachOwner)
	change(&f)
	return f
}

// forgedParent is a child of an authority that nobody made.
func forgedParent() Decision {
	return decide(full(), without(func(f *Facts) { f.Parent = &Parent{} }))
}

// X9, X10: nine environments by three reaches, with full grants: exactly what the table says.
func TestReachMatrix(t *testing.T) {
	allowed := 0
	for _, e := range environment.BuiltIns() {
		for _, r := range abi.Reaches() {
			d := decide(full(), full().facts(e.Ref, callee, r))
			if r <= e.Reach {
				allowed++
				wantCode(t, d, "")
				if d.Reach != r {
					t.Errorf("%s: authority reaches %s for %s", e.Slug, d.Reach, r)
				}
			} else {
				wantCode(t, d, abi.CodeReachCeiling)
			}
		}
	}
	// system, org, project, app and session, sandbox, public and store-review, trusted-dev:
	// 3·3 + 3·2 + 3·1.
	if allowed != 18 {
		t.Errorf("%d of 27 allowed", allowed)
	}
}

// X18, X19, X20: nine environments by five classifications, under every override there can be.
func TestClassificationMatrix(t *testing.T) {
	for _, over := range append([]abi.Classification{0}, abi.Classifications()...) {
		for _, e := range environment.BuiltIns() {
			for _, c := range abi.Classifications() {
				w := full()
				ceiling := e.MaxData
				if over.Valid() {
					w.overrides[e.Ref] = over
					ceiling = min(ceiling, over)
				}
				f := w.facts(e.Ref, callee, abi.ReachOwner)
				f.Declared = c
				want := abi.Code("")
				if c > ceiling {
					want = abi.CodeClassificationCeiling
				}
				wantCode(t, decide(w, f), want)

				other := full() // X19: another organisation is not affected
				other.org = "other"
				f.Org = "other"
				s := w.snapshot()
				s.Orgs = s.Orgs.With(nil, "other", other.snapshot().Orgs.At("other"))
				wantCode(t, Decide(s, &f), "")
			}
		}
	}
}

// X11: a ceiling is no grant. Without one nothing is allowed, wherever and whatever it is.
func TestCeilingIsNoGrant(t *testing.T) {
	for _, e := range environment.BuiltIns() {
		if e.Waives {
			continue
		}
		for _, r := range abi.Reaches() {
			w := full()
			delete(w.grants, grantKey{user, callee, e.Ref})
			if d := decide(w, w.facts(e.Ref, callee, r)); d.Code != abi.CodeMissingGrant {
				t.Errorf("%s, %s: %q", e.Slug, r, d.Code)
			}
		}
	}
}

// X13, X14, X15: no reach is no answer. Boundary environments deny; the others defer to the
// grant, say so, and hold host functions to owner (S9).
func TestCatalogueCannotAnswer(t *testing.T) {
	for _, e := range environment.BuiltIns() {
		w := full()
		d := decide(w, w.facts(e.Ref, callee, 0))
		if e.Enforcement == environment.Boundary {
			wantCode(t, d, abi.CodeUnclassified)
			continue
		}
		wantCode(t, d, "")
		if !d.ReachDeferred || d.Checks[CheckReach].State != Deferred || d.Reach != abi.ReachOwner {
			t.Errorf("%s: deferred %v, reach %s", e.Slug, d.ReachDeferred, d.Reach)
		}
		if !e.Waives {
			delete(w.grants, grantKey{user, callee, e.Ref})
			wantCode(t, decide(w, w.facts(e.Ref, callee, 0)), abi.CodeMissingGrant)
		}
	}
}

// X26, X36: outside what the install grant admits nothing runs; an upload that nobody admitted
// is callable in sandbox (and trusted-dev) only.
func TestEnvironmentAdmitted(t *testing.T) {
	for _, e := range environment.BuiltIns() {
		w := full()
		w.calleeInstalled = []abi.EnvironmentRef{ref("project")}
		fresh := e.Slug == "sandbox" || e.Waives
		want := abi.CodeEnvironmentNotGranted
		if e.Slug == "project" || fresh {
			want = ""
		}
		wantCode(t, decide(w, w.facts(e.Ref, callee, abi.ReachOwner)), want)

		w.calleeInstalled = nil
		if !fresh {
			want = abi.CodeEnvironmentNotGranted
		}
		wantCode(t, decide(w, w.facts(e.Ref, callee, abi.ReachOwner)), want)
	}
}

// A newer upload runs where uploads are tried; everywhere else the install grant's digest does.
func TestInstallIsBoundToDigest(t *testing.T) {
	w := full()
	w.calleeNewer = true
	for env, digest := range map[string]string{"project": "d-notes", "org": "d-notes", "sandbox": "d-notes-new", "trusted-dev": "d-notes-new"} {
		d := decide(w, w.facts(ref(env), callee, abi.ReachOwner))
		if d.Verdict != Allow || d.Digest != digest {
			t.Errorf("%s: %s runs %s", env, d.Verdict, d.Digest)
		}
	}
	// A capability that only the newer upload has is not in what was admitted.
	s := w.snapshot()
	delete(s.Orgs.At("acme").Biomes.At("notes").Installed.Capabilities, callee)
	s.Orgs.At("acme").Biomes.At("notes").Installed.Capabilities = map[abi.CapabilityRef]*abi.Descriptor{}
	f := w.facts(ref("project"), callee, abi.ReachOwner)
	if d := Decide(s, &f); d.Code != abi.CodeMissingGrant || d.Checks[CheckInstall].State != Failed {
		t.Errorf("%q: %+v", d.Code, d.Explain())
	}
}

// X33: a grant is for one subject, one capability, one environment, until it expires.
func TestGrantIsExact(t *testing.T) {
	key := grantKey{user, callee, ref("project")}
	only := full()
	clear(only.grants)
	only.grants[key] = []string{"**"}
	wantCode(t, decide(only, only.facts(ref("project"), callee, abi.ReachOwner)), "")
	wantCode(t, decide(only, only.facts(ref("session"), callee, abi.ReachOwner)), abi.CodeMissingGrant)
	f := only.facts(ref("project"), callee, abi.ReachOwner)
	f.Subject = "user:eve"
	wantCode(t, decide(only, f), abi.CodeMissingGrant)
	f.Subject = "app:ada"
	wantCode(t, decide(only, f), abi.CodeMissingGrant)
	wantCode(t, decide(only, only.facts(ref("project"), caller, abi.ReachOwner)), abi.CodeMissingGrant)
	for at, want := range map[time.Duration]abi.Code{time.Hour: "", 0: abi.CodeMissingGrant, -time.Hour: abi.CodeMissingGrant} {
		only.expiry[key] = noon.Add(at)
		wantCode(t, decide(only, only.facts(ref("project"), callee, abi.ReachOwner)), want)
	}
}

// X38: an agent has what it and its user both hold, never more.
func TestAgentNeverExceedsUser(t *testing.T) {
	env := ref("project")
	act := func(change func(*world, *Facts)) Decision {
		w := full()
		f := w.facts(env, callee, abi.ReachOwner)
		f.Subject, f.User = agent, user
		change(&w, &f)
		return decide(w, f)
	}
	wantCode(t, act(func(*world, *Facts) {}), "")
	wantCode(t, act(func(w *world, _ *Facts) { delete(w.grants, grantKey{agent, callee, env}) }), abi.CodeMissingGrant)
	wantCode(t, act(func(w *world, _ *Facts) { delete(w.grants, grantKey{user, callee, env}) }), abi.CodeSubjectNotCovered)
	wantCode(t, act(func(w *world, _ *Facts) { w.expiry[grantKey{user, callee, env}] = noon }), abi.CodeSubjectNotCovered)
	wantCode(t, act(func(_ *world, f *Facts) { f.User = "" }), abi.CodeSubjectNotCovered)
}

// X37, in the order of this gateway: everything is wrong at first, and is put right one thing at
// a time; the code advances through the table.
func TestOrderOfChecks(t *testing.T) {
	w := full()
	w.callerCalls = true
	env := ref("project")
	f := w.child(t, env, abi.ReachIntegration, abi.ReachPlatform, abi.Public)
	f.Subject, f.Rate, f.Schema, f.Declared = user, Exceeded, Violated, abi.Secret

	w.calleeDisabled, w.callerCalls, w.calleeApproval = true, false, true
	w.calleeInstalled = []abi.EnvironmentRef{ref("org")}
	w.overrides[env] = abi.Internal
	delete(w.grants, grantKey{relay, callee, env})
	delete(w.grants, grantKey{user, callee, env})
	f.Environment = ref("nowhere")

	for _, step := range []struct {
		check CheckID
		code  abi.Code
		right func()
	}{
		{CheckEnvironment, abi.CodeEnvironmentUnusable, func() { f.Environment = env }},
		{CheckLifecycle, abi.CodeBiomeDisabled, func() { w.calleeDisabled = false }},
		{CheckCalls, abi.CodeMissingGrant, func() { w.callerCalls = true }},
		{CheckAdmitted, abi.CodeEnvironmentNotGranted, func() { w.calleeInstalled = append(w.calleeInstalled, env) }},
		{CheckCallerGrant, abi.CodeMissingGrant, func() { w.grants[grantKey{relay, callee, env}] = []string{"**"} }},
		{CheckGrant, abi.CodeMissingGrant, func() { w.grants[grantKey{user, callee, env}] = []string{"**"} }},
		{CheckReach, abi.CodeReachCeiling, func() { f.Reach = abi.ReachOwner }},
		{CheckClassification, abi.CodeClassificationCeiling, func() { f.Declared = abi.Internal }},
		{CheckRate, abi.CodeRateExceeded, func() { f.Rate = Within }},
		{CheckSchema, abi.CodeInputSchema, func() { f.Schema = Satisfied }},
		{CheckApproval, abi.CodeApprovalRequired, func() { w.calleeApproval = false }},
	} {
		d := decide(w, f)
		if d.Code != step.code {
			t.Fatalf("expected %s at %s, got %s: %+v", step.code, checks[step.check].Name, d.Code, d.Explain())
		}
		first := slices.IndexFunc(d.Checks[:], func(r Result) bool { return r.State == Failed })
		if CheckID(first) != step.check {
			t.Fatalf("the first failure is %s, not %s", checks[first].Name, checks[step.check].Name)
		}
		step.right()
	}
	wantCode(t, decide(w, f), "")
}

// The design's order, held by name: a row may be added, none may move.
func TestTableOrder(t *testing.T) {
	var got []string
	for _, c := range Checks() {
		got = append(got, c.Name)
		if _, known := c.Code.Info(); !known || c.Suggest == "" || c.judge == nil {
			t.Errorf("the row %q is incomplete", c.Name)
		}
	}
	want := []string{
		"environment", "lifecycle", "install", "calls", "environment-admitted", "caller-grant", "grant", "user-grant",
		"reach", "classification", "allow-list", "rate", "schema", "approval",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// S4: a child needs the callee in the calling biome's install grant, a grant of the biome, a
// grant of the subject, and a reach within the caller's and the environment's.
func TestChildNeedsAllFour(t *testing.T) {
	env := ref("project")
	act := func(change func(*world, *Facts)) Decision {
		w := full()
		f := w.child(t, env, abi.ReachIntegration, abi.ReachIntegration, abi.Public)
		change(&w, &f)
		return decide(w, f)
	}
	wantCode(t, act(func(*world, *Facts) {}), "")
	for name, c := range map[string]struct {
		code   abi.Code
		change func(*world, *Facts)
	}{
		"not kept":            {abi.CodeMissingGrant, func(w *world, _ *Facts) { w.callerCalls = false }},
		"biome not granted":   {abi.CodeMissingGrant, func(w *world, _ *Facts) { delete(w.grants, grantKey{relay, callee, env}) }},
		"biome elsewhere":     {abi.CodeMissingGrant, func(w *world, _ *Facts) { delete(w.grants, grantKey{relay, callee, env}) }},
		"subject not granted": {abi.CodeMissingGrant, func(w *world, _ *Facts) { delete(w.grants, grantKey{user, callee, env}) }},
		"reach above env":     {abi.CodeReachCeiling, func(_ *world, f *Facts) { f.Reach = abi.ReachPlatform }},
		"caller's new digest": {abi.CodeMissingGrant, func(w *world, _ *Facts) { w.callerDigest = "d-other" }},
		"caller uninstalled":  {abi.CodeMissingGrant, func(w *world, _ *Facts) { w.callerInstalled = nil }},
		"other environment":   {abi.CodeEnvironmentUnusable, func(_ *world, f *Facts) { f.Environment = ref("org") }},
		"other subject":       {abi.CodeEnvironmentUnusable, func(_ *world, f *Facts) { f.Subject = agent }},
		"other space":         {abi.CodeEnvironmentUnusable, func(_ *world, f *Facts) { f.Space = "else" }},
		"other session":       {abi.CodeEnvironmentUnusable, func(_ *world, f *Facts) { f.Session = "else" }},
	} {
		t.Run(name, func(t *testing.T) { wantCode(t, act(c.change), c.code) })
	}
	w := full()
	wantCode(t, decide(w, w.child(t, env, abi.ReachOwner, abi.ReachIntegration, abi.Public)), abi.CodeReachCeiling)
}

// What an ungranted subject is told of a capability that exists, disabled or not, in whatever
// environment, is exactly what it is told of one that does not.
func TestUngrantedIsUnknown(t *testing.T) {
	for _, e := range environment.BuiltIns() {
		if e.Waives {
			continue
		}
		for name, change := range map[string]func(*world){
			"there": func(*world) {}, "disabled": func(w *world) { w.calleeDisabled = true },
			"not installed": func(w *world) { w.calleeInstalled = nil }, "approval": func(w *world) { w.calleeApproval = true },
		} {
			w := full()
			for _, env := range allEnvironments() {
				delete(w.grants, grantKey{user, callee, env})
			}
			change(&w)
			known := decide(w, w.facts(e.Ref, callee, abi.ReachPlatform))
			f := w.facts(e.Ref, "no:such.thing@1", 0)
			unknown := decide(w, f)
			if known != unknown {
				t.Errorf("%s, %s: it shows:\n%s", e.Slug, name, cmp.Diff(unknown.Explain(), known.Explain()))
			}
			wantCode(t, known, abi.CodeMissingGrant)
		}
	}
	// In trusted-dev nothing is hidden.
	w := full()
	wantCode(t, decide(w, w.facts(ref("trusted-dev"), "no:such.thing@1", 0)), abi.CodeCapabilityUnknown)
}

// X5: trusted-dev waives install, grant and approval, and nothing else.
func TestTrustedDevWaives(t *testing.T) {
	env := ref("trusted-dev")
	w := full()
	clear(w.grants)
	w.calleeInstalled, w.callerInstalled, w.callerCalls, w.calleeApproval = nil, nil, false, true
	w.callerDigest = "d-relay"
	wantCode(t, decide(w, w.facts(env, callee, abi.ReachPlatform)), "")

	child := w.child(t, env, abi.ReachPlatform, abi.ReachOwner, abi.Public)
	wantCode(t, decide(w, child), "")
	undeclared := w
	undeclared.callerDeclares = false
	wantCode(t, decide(undeclared, child), abi.CodeMissingGrant)

	for name, c := range map[string]struct {
		code   abi.Code
		change func(*world, *Facts)
	}{
		"lifecycle": {abi.CodeBiomeDisabled, func(w *world, _ *Facts) { w.calleeDisabled = true }},
		"reach":     {abi.CodeReachCeiling, func(_ *world, f *Facts) { *f = w.child(t, env, abi.ReachOwner, abi.ReachPlatform, abi.Public) }},
		"label":     {abi.CodeClassificationCeiling, func(w *world, f *Facts) { w.clearance = abi.Internal; f.Declared = abi.Secret }},
		"override": {abi.CodeClassificationCeiling, func(w *world, f *Facts) {
			w.overrides = map[abi.EnvironmentRef]abi.Classification{env: abi.Public}
			f.Declared = abi.Internal
		}},
		"schema":        {abi.CodeInputSchema, func(_ *world, f *Facts) { f.Schema = Violated }},
		"no --dev":      {abi.CodeEnvironmentUnusable, func(w *world, _ *Facts) { w.dev = false }},
		"production":    {abi.CodeEnvironmentUnusable, func(w *world, _ *Facts) { w.prod = true }},
		"other session": {abi.CodeEnvironmentUnusable, func(_ *world, f *Facts) { f.Dev = false }}, // S19
	} {
		t.Run(name, func(t *testing.T) { // X7
			w, f := w, w.facts(env, callee, abi.ReachPlatform)
			c.change(&w, &f)
			wantCode(t, decide(w, f), c.code)
		})
	}
}

// The schema is judged when everything before it has passed, and only then.
func TestSchemaComesLazily(t *testing.T) {
	w := full()
	f := w.facts(ref("project"), callee, abi.ReachOwner)
	f.Schema = Unjudged
	d := decide(w, f)
	if d.Pending != CheckSchema || d.Verdict != Deny || d.Code != abi.CodeInputSchema {
		t.Errorf("%+v", d)
	}
	// An approval comes after the input: whether it is needed does not spare judging the input.
	w.calleeApproval = true
	if d := decide(w, f); d.Pending != CheckSchema || d.Verdict != Deny || d.Checks[CheckApproval].State != Failed {
		t.Errorf("%+v", d)
	}
	f.Schema = Violated
	wantCode(t, decide(w, f), abi.CodeInputSchema)
	f.Schema = Satisfied
	wantCode(t, decide(w, f), abi.CodeApprovalRequired)
	f.Schema, w.calleeApproval = Unjudged, false
	delete(w.grants, grantKey{user, callee, ref("project")})
	if d := decide(w, f); d.Pending != 0 || d.Code != abi.CodeMissingGrant {
		t.Errorf("pending %d, %s", d.Pending, d.Code)
	}
}

// X40, X41: the limiter is asked when everything before it has passed, and only then; what it says, or
// that it says nothing, is final; the input is judged after it.
func TestRateComesLazily(t *testing.T) {
	w := full()
	f := w.facts(ref("project"), callee, abi.ReachOwner)
	f.Rate, f.Schema = Uncounted, Unjudged
	if d := decide(w, f); d.Pending != CheckRate || d.Verdict != Deny || d.Code != abi.CodeRateExceeded {
		t.Errorf("%+v", d)
	}
	for rate, code := range map[Rate]abi.Code{Exceeded: abi.CodeRateExceeded, Uncountable: abi.CodeRateUnavailable, Uncountable + 1: abi.CodeRateExceeded} {
		f.Rate = rate
		if d := decide(w, f); d.Pending != 0 || d.Code != code || d.Verdict != Deny {
			t.Errorf("%d: %+v", rate, d)
		}
	}
	f.Rate = Within
	if d := decide(w, f); d.Pending != CheckSchema {
		t.Errorf("%+v", d)
	}
	f.Rate, f.Environment, f.Dev = Exceeded, ref("trusted-dev"), true
	if d := decide(w, f); d.Checks[CheckRate].State != Waived {
		t.Errorf("trusted-dev counts: %+v", d.Checks[CheckRate])
	}
	f = w.facts(ref("project"), callee, abi.ReachOwner)
	f.Rate = Uncounted
	delete(w.grants, grantKey{user, callee, ref("project")})
	if d := decide(w, f); d.Pending != 0 || d.Code != abi.CodeMissingGrant {
		t.Errorf("pending %d, %s", d.Pending, d.Code)
	}
}

// X40: an invocation counts for its subject, its client and each limited grant it uses, and a child
// for the same subject and client.
func TestBuckets(t *testing.T) {
	w := full()
	s := w.snapshot()
	s.Orgs.At(w.org).Rates = Rates{Subject: 5, Client: 50}
	limited := &grant.Grant{ID: "limited", Rate: &grant.Rate{PerHour: 3}}
	f := w.facts(ref("project"), callee, abi.ReachOwner)
	f.Client = "ops"
	d := Decide(s, &f)
	d.grants[grantOfSubject] = limited
	want := []rate.Ask{
		{Key: rate.Key{Kind: rate.Subject, Org: w.org, Client: "ops", ID: string(user)}, Limit: 5},
		{Key: rate.Key{Kind: rate.Client, Org: w.org, Client: "ops"}, Limit: 50},
		{Key: rate.Key{Kind: rate.Grant, Org: w.org, ID: "limited"}, Limit: 3},
	}
	if diff := cmp.Diff(want, Buckets(nil, s, &f, &d)); diff != "" {
		t.Error(diff)
	}
	child := f.Child(invoke(t, w, w.facts(ref("project"), caller, abi.ReachOwner)), abi.Public, callee, noon)
	if diff := cmp.Diff(want[:2], Buckets(nil, s, &child, &Decision{})); diff != "" {
		t.Error(diff)
	}
	if child.Rate != Uncounted {
		t.Error("a child is not counted")
	}
	f.Org = "nobody"
	for _, a := range Buckets(nil, s, &f, &Decision{}) {
		if a.Limit.Valid() {
			t.Errorf("an organisation that is not there has the ceiling %d", a.Limit)
		}
	}
}

// A start label is the join of all that is said of the input, and never less than any of it
// (X22, S3).
func TestStartLabel(t *testing.T) {
	for _, floor := range abi.Classifications() {
		for _, mark := range abi.Classifications() {
			for _, declared := range append(abi.Classifications(), 0) {
				w := full()
				w.floor = floor
				f := w.facts(ref("project"), callee, abi.ReachOwner)
				f.Mark, f.Declared = mark, declared
				if d := decide(w, f); d.Start != max(floor, mark, declared) {
					t.Errorf("floor %s, mark %s, declared %s: starts at %s", floor, mark, declared, d.Start)
				}
			}
		}
	}
}

func TestDecideDoesNotAllocate(t *testing.T) {
	w := full()
	s := w.snapshot()
	direct := w.facts(ref("project"), callee, abi.ReachOwner)
	child := w.child(t, ref("project"), abi.ReachIntegration, abi.ReachOwner, abi.Internal)
	denied := w.facts(ref("sandbox"), callee, abi.ReachPlatform)
	bot := direct
	bot.Subject, bot.User = agent, user
	for name, f := range map[string]*Facts{"direct": &direct, "child": &child, "denied": &denied, "agent": &bot} {
		if n := testing.AllocsPerRun(100, func() { Decide(s, f) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	w := full()
	s := w.snapshot()
	f := w.facts(ref("project"), callee, abi.ReachOwner)
	b.ReportAllocs()
	for b.Loop() {
		Decide(s, &f)
	}
}

package servertest_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
)

// judged is one check as explain and the audit row show it.
type judged struct {
	Check string // in an explanation
	Name  string // in a row
	State string
	Code  abi.Code
	Verd  string `json:"verdict"`
}

func (j judged) name() string { return j.Check + j.Name }

func (j judged) failed() bool { return j.State+j.Verd == gate.Failed.String() }

// fault is what is wrong with an invocation in one check, and what puts it right.
type fault struct {
	check gate.CheckID
	code  abi.Code
	right func()
}

// firstFailed is the first check that failed, in the order in which they are shown.
func firstFailed(all []judged) string {
	if i := slices.IndexFunc(all, judged.failed); i >= 0 {
		return all[i].name()
	}
	return ""
}

// inOrder holds that checks are shown in the order of the gate's one table.
func inOrder(t *testing.T, all []judged) {
	t.Helper()
	at := -1
	for _, j := range all {
		i := slices.IndexFunc(gate.Checks(), func(c gate.Check) bool { return c.Name == j.name() })
		if i <= at {
			t.Errorf("%q is not at its place in the table: %+v", j.name(), all)
		}
		at = i
	}
}

// walked is a biome whose one capability is made as wrong as can be, version by version.
type walked struct {
	g *servertest.Gateway
}

func (w walked) upload(reach abi.Reach, approval bool, more ...action) {
	w.g.T.Helper()
	shape := func(d *abi.Descriptor) {
		d.RequiresApproval = approval
		d.InputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
	}
	w.g.Upload(script("walk", nil, append(more, action{ref: "walk:a.do@1", reach: reach, shape: shape})...)).Want(201)
}

func (w walked) install(environments ...string) {
	w.g.T.Helper()
	w.g.Install("walk", environments, nil).Want(200)
}

func (w walked) set(what string) {
	w.g.T.Helper()
	tag := w.g.Control("GET", "/v1/biomes/walk", nil).Want(200).Header.Get("ETag")
	w.g.Control("POST", "/v1/biomes/walk/"+what, nil, "If-Match", tag).Want(200)
}

func (w walked) override(level, header, value string) {
	w.g.T.Helper()
	w.g.Control("PUT", "/v1/orgs/default/overrides/project", map[string]string{"maxDataClassification": level}, header, value).Want(200)
}

// X37, X38, in the order of design 3.2, over the real server: an agent's invocation in which everything
// is wrong is put right one fault at a time. The code advances through the gate's table; explain and
// the row name the same check first; what is right stays right; and until the last fault is gone
// no guest runs. A check that is shown in the end and has had no fault here fails the test.
func TestWalk(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	w := walked{g}
	g.Upload(script("walk", nil, action{ref: "walk:other.do@1", reach: abi.ReachOwner})).Want(201)
	w.install("org")
	// An environment of the organisation's own, so that there is a list to fail at; all else is the base's.
	own(g, "walked", "project", map[string]any{"allowedCapabilities": []string{"walk:other.do@1"}}).Want(201)
	w.upload(abi.ReachPlatform, true)
	w.set("disable")
	w.override("internal", "If-None-Match", "*")
	g.Grant("agent:bot", "walk:a.do@1", "org")
	s := g.Open("agent:bot", "walked", map[string]any{"user": "user:alice"})
	var input any = none
	declared := []string{"Ecotone-Classification", "confidential"}

	faults := []fault{
		{gate.CheckLifecycle, abi.CodeBiomeDisabled, func() { w.set("enable") }},
		{gate.CheckInstall, abi.CodeMissingGrant, func() { w.install("org") }},
		{gate.CheckAdmitted, abi.CodeEnvironmentNotGranted, func() { w.install("org", "walked") }},
		{gate.CheckGrant, abi.CodeMissingGrant, func() { g.Grant("agent:bot", "walk:a.do@1", "walked") }},
		{gate.CheckUserGrant, abi.CodeSubjectNotCovered, func() {
			g.Control("POST", "/v1/grants", map[string]any{
				"subject": "user:alice", "capability": "walk:a.do@1", "environment": "environment:walked", "rate": map[string]int{"perHour": 1},
			}).Want(201)
		}},
		{gate.CheckReach, abi.CodeReachCeiling, func() { w.upload(abi.ReachIntegration, true); w.install("walked") }},
		{gate.CheckClassification, abi.CodeClassificationCeiling, func() {
			w.override("regulated", "If-Match", `"1"`)
		}},
		{gate.CheckAllowList, abi.CodeNotInAllowList, func() {
			setOwn(g, "walked", map[string]any{"allowedCapabilities": []string{"walk:a.do@1"}}).Want(200)
			// The user's grant is used up by the user, who gets as far as the approval.
			g.Open("user:alice", "walked", nil).Invoke("walk:a.do@1", map[string]int{"n": 1}).Waits()
		}},
		{gate.CheckRate, abi.CodeRateExceeded, func() {
			revokeAll(g, "user:alice", "walk:a.do@1")
			g.Grant("user:alice", "walk:a.do@1", "walked")
		}},
		{gate.CheckSchema, abi.CodeInputSchema, func() { input = map[string]int{"n": 1} }},
		{gate.CheckApproval, abi.CodeApprovalRequired, func() { w.upload(abi.ReachIntegration, false); w.install("walked") }},
	}
	explain := func() (string, []judged) {
		var e struct {
			Decision string
			Checks   []judged
		}
		s.Explain("walk:a.do@1", input, declared...).Want(200).JSON(&e)
		inOrder(t, e.Checks)
		return e.Decision, e.Checks
	}
	right := map[string]bool{} // checks that were put right, or passed already
	for _, f := range faults {
		name := gate.Checks()[f.check].Name
		decision, shown := explain()
		want := "deny"
		if f.code == abi.CodeApprovalRequired {
			want = "needs_approval"
		}
		if got := firstFailed(shown); decision != want || got != name {
			t.Fatalf("explain says %s and %q first, not %q: %+v", decision, got, name, shown)
		}
		for _, j := range shown {
			if j.failed() && right[j.name()] {
				t.Errorf("at %q the check %q fails again", name, j.name())
			}
			right[j.name()] = right[j.name()] || j.State == gate.Passed.String()
		}
		n := started(g, func() {
			r := s.Invoke("walk:a.do@1", input, declared...)
			var d struct{ AuditID string }
			if r.JSON(&d); f.check == gate.CheckApproval {
				d.AuditID = r.Waits()
			} else {
				r.Refused(f.code)
			}
			if got := row(g, r); got.ID != d.AuditID || firstFailed(checksOf(t, got)) != name || got.Decision.Code != f.code || got.Ended != nil {
				t.Errorf("at %q the row says %s", name, got.Raw)
			}
		})
		if n != 0 {
			t.Errorf("at %q a guest was started", name)
		}
		f.right()
		right[name] = true
	}
	decision, shown := explain()
	if decision != "allow" || firstFailed(shown) != "" {
		t.Fatalf("in the end explain says %s: %+v", decision, shown)
	}
	r := s.Invoke("walk:a.do@1", input, declared...).Want(200)
	if d := row(g, r).Decision; d.Verdict != "allow" || d.User == nil || len(d.Grants) != 2 {
		t.Errorf("%+v", d)
	}
	for _, j := range shown {
		fails := func(f fault) bool { return gate.Checks()[f.check].Name == j.name() }
		if j.name() != gate.Checks()[gate.CheckEnvironment].Name && !slices.ContainsFunc(faults, fails) {
			t.Errorf("the check %q has no fault in this walk", j.name())
		}
	}
}

// checksOf are the checks of a row's decision.
func checksOf(t *testing.T, r auditRow) []judged {
	t.Helper()
	var raw struct{ Decision struct{ Checks []judged } }
	if err := json.Unmarshal(r.Raw, &raw); err != nil {
		t.Fatal(err)
	}
	inOrder(t, raw.Decision.Checks)
	return raw.Decision.Checks
}

// The walk's first step, which takes another server: an environment that is not available here refuses
// before anything else is said, and the session works again where it is.
func TestWalkEnvironment(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, servertest.Dev)
	g.Upload(script("walk", nil, action{ref: "walk:a.do@1", reach: abi.ReachPlatform})).Want(201)
	s := g.Open("user:alice", "trusted-dev", map[string]any{"space": "dev"})
	s.Invoke("walk:a.do@1", none).Want(200)
	g.Stop()
	g = servertest.Start(t, servertest.In(g.Dir))
	s.G = g
	r := s.Invoke("walk:a.do@1", none).Refused(abi.CodeEnvironmentUnusable)
	checks := checksOf(t, row(g, r))
	if len(checks) == 0 || firstFailed(checks) != gate.Checks()[gate.CheckEnvironment].Name {
		t.Errorf("%+v", checks)
	}
	for _, j := range checks[min(1, len(checks)):] {
		if j.Verd != gate.NotReached.String() {
			t.Errorf("%q is said to be %s", j.name(), j.Verd)
		}
	}
	g.Stop()
	g = servertest.Start(t, servertest.Dev, servertest.In(g.Dir))
	s.G = g
	s.Invoke("walk:a.do@1", none).Want(200)
}

// S4, X32: the same for an invocation that a biome makes: what the calling biome lacks stands among the
// rest, in the table's order, and its receipt says the code.
func TestWalkOfAChild(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	w := walked{g}
	w.upload(abi.ReachPlatform, false)
	w.install("org")
	w.set("disable")
	g.Grant("user:alice", "walk:a.do@1", "org")
	admit(g, "caller", script("caller", requires("walk:a.do@1"),
		action{ref: "caller:a.do@1", reach: abi.ReachIntegration, steps: []step{do("capability_invoke", "walk:a.do@1", `{"n":1}`)}}), []string{"project"}, nil)
	s := g.Open("user:alice", "project", nil)
	calls := func() {
		g.Install("caller", []string{"project"}, map[string]any{"calls": []string{"walk:a.do@1"}}).Want(200)
	}
	calls()
	revokeAll(g, "biome:caller", "walk:a.do@1")
	g.Install("caller", []string{"project"}, nil).Want(200)

	for _, f := range []fault{
		{gate.CheckCalls, abi.CodeMissingGrant, func() {
			calls()
			revokeAll(g, "biome:caller", "walk:a.do@1")
		}},
		{gate.CheckLifecycle, abi.CodeBiomeDisabled, func() { w.set("enable") }},
		{gate.CheckAdmitted, abi.CodeEnvironmentNotGranted, func() { w.install("project") }},
		{gate.CheckCallerGrant, abi.CodeMissingGrant, func() { g.Grant("biome:caller", "walk:a.do@1", "project") }},
		{gate.CheckGrant, abi.CodeMissingGrant, func() { g.Grant("user:alice", "walk:a.do@1", "project") }},
		{gate.CheckReach, abi.CodeReachCeiling, func() { w.upload(abi.ReachIntegration, false); w.install("project") }},
	} {
		name := gate.Checks()[f.check].Name
		r := s.Invoke("caller:a.do@1", none)
		if errno(r) == 0 {
			t.Fatalf("at %q the call is allowed", name)
		}
		if got := linesOf(g, r, "capability_invoke"); !slices.Equal(got, []abi.Code{f.code}) {
			t.Errorf("at %q the receipt says %q, not %q", name, got, f.code)
		}
		children := childrenOf(g, r)
		if f.check == gate.CheckCalls { // the boundary settles it: there is nothing to decide
			if len(children) != 0 {
				t.Errorf("%d children", len(children))
			}
		} else if len(children) != 1 {
			t.Fatalf("at %q there are %d children", name, len(children))
		} else if got := firstFailed(checksOf(t, rowByID(g, children[0].ID))); got != name {
			t.Errorf("the child's row names %q, not %q", got, name)
		}
		f.right()
	}
	if r := s.Invoke("caller:a.do@1", none); errno(r) != 0 {
		t.Errorf("in the end: %s", row(g, r).Raw)
	}
}

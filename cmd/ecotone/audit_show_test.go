package main

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/problem"
)

var update = flag.Bool("update", false, "write the goldens")

// rowsToShow are a denial of a child with everything that can be suggested, what called it, what ran with refused host
// calls, and a row of each other kind.
func rowsToShow() (denied, parent, ran audit.Row, others []audit.Row) {
	at := time.Date(2026, 11, 30, 1, 2, 3, 4_000_000, time.UTC)
	decided := func(ref abi.CapabilityRef, v audit.Verdict) *audit.Decided {
		return &audit.Decided{
			Envelope: audit.Envelope{
				Subject: audit.SubjectRef{Kind: "agent", ID: "bot"}, User: &audit.SubjectRef{Kind: "user", ID: "alice"}, CallerKind: "agent", Origin: "http",
				Space: "default", Environment: "environment:project", Capability: ref, Session: "01KB0000000000000000000009",
			},
			Verdict: v, Biome: "kb", Digest: "0f1e2d", Generation: 42, ReachCheck: "enforced", Grants: []string{"01KB0000000000000000000007"},
			Label: abi.Public, Ceiling: abi.Regulated, Clearance: abi.Internal,
			Checks: []audit.Check{{Name: "environment", Verdict: "passed"}, {Name: "lifecycle", Verdict: "passed"}, {Name: "grant", Verdict: "passed"}},
		}
	}
	parent = audit.Row{ID: "01KB0000000000000000000001", Kind: audit.RowInvocation, Time: at, Decision: decided("kb:page.list@1", audit.VerdictAllow)}
	parent.Ended = &audit.Ended{Outcome: audit.OutcomeCompleted, Released: true, Label: abi.Public, HostCalls: 1}
	d := decided("kb:page.read@1", audit.VerdictDeny)
	d.Parent, d.Code, d.Grants = parent.ID, abi.CodeMissingGrant, nil
	d.Checks[2] = audit.Check{Name: "grant", Verdict: "failed", Code: abi.CodeMissingGrant}
	env := string(d.Environment)
	for _, s := range []problem.Suggestion{
		{Kind: problem.RequestGrant, Subject: "user:alice", Capability: "kb:page.read@1", Environment: env},
		{Kind: problem.RequestGrant, Subject: "agent:bot", Capability: "kb:page.read@1", Environment: env, Grant: "01KB0000000000000000000007", Globs: []string{"a[*]b", "c"}, URL: "https://example.com/a", Space: "home"},
		{Kind: problem.RequestInstall, Biome: "kb", Environment: env, Call: "notes:note.get@1", Endpoint: "origin", Secret: "token"},
		{Kind: problem.RequestEnable, Biome: "kb"},
		{Kind: problem.RequestEndpoint, Biome: "kb", URL: "https://example.com/a"},
		{Kind: problem.RequestCeiling, Environment: env, Classification: abi.Secret},
		{Kind: problem.SwitchEnv, Subject: "agent:bot", Environment: "environment:org"},
		{Kind: problem.OpenSession, Subject: "agent:bot", Environment: env},
		{Kind: problem.OpenSession, Subject: "agent:bot", Environment: env, Classification: abi.Secret},
		{Kind: problem.UseSuccessor, Capability: "kb:page.read@2"},
		{Kind: problem.UseAnother, Detail: "for the check lifecycle"},
		{Kind: problem.UseLess, Classification: abi.Internal},
		{Kind: problem.CorrectInput, Capability: "kb:page.read@1"},
		{Kind: problem.Wait, Seconds: 3},
		{Kind: problem.AwaitApproval},
	} {
		d.Suggestions = append(d.Suggestions, audit.Suggestion(s))
	}
	denied = audit.Row{ID: "01KB0000000000000000000002", Kind: audit.RowInvocation, Time: at.Add(time.Millisecond), Decision: d}
	ran = audit.Row{ID: "01KB0000000000000000000003", Kind: audit.RowInvocation, Time: at, Decision: decided("kb:page.put@1", audit.VerdictAllow)}
	ran.Effects = []audit.EffectRow{{Line: 2, Function: "http_fetch", Target: "https://example.com/a", Outcome: audit.EffectFailed, Code: abi.CodeEndpointRefused}}
	ran.Ended = &audit.Ended{
		Outcome: audit.OutcomeFailed, Code: abi.CodeGuestError, Label: abi.Internal, HostCalls: 2, Fuel: 1234, DurationMS: 5, LinesOmitted: 3,
		Lines: []audit.Line{
			{Line: 1, Function: "kv_put", Target: "other", Code: abi.CodeResourceNotInGlob},
			{Line: 2, Function: "http_fetch", Target: "https://example.com/a", Code: abi.CodeEndpointRefused},
			{Line: 3, Function: "kv_get", Target: "mine"},
		},
		Suggestions: []audit.Suggestion{{Kind: problem.RequestGrant, Subject: "user:alice", Capability: "kb:page.put@1", Environment: env, Grant: "01KB0000000000000000000007", Globs: []string{"other"}}},
	}
	others = []audit.Row{
		{ID: "01KB0000000000000000000004", Kind: audit.RowAdmin, Time: at, Admin: &audit.Admin{Operation: "secret.updated", Actor: "principal:default/root", Role: "operator", ObjectKind: "secret", Object: "k", Fields: []string{"value"}, Code: abi.CodeForbidden}},
		{ID: "01KB0000000000000000000005", Kind: audit.RowRefused, Time: at, Refused: &audit.Refused{Code: abi.CodeInvalidJSON, Listener: "admin", Method: "POST", Route: "/v1/grants", Remote: "127.0.0.1", Detail: "the body ends early"}},
		{ID: "01KB0000000000000000000006", Kind: audit.RowSystem, Time: at, System: &audit.System{Event: "started"}},
		{ID: "01KB0000000000000000000008", Kind: audit.RowInvocation, Time: at, Decision: decided("kb:page.put@1", audit.VerdictAllow)},
	}
	waited := audit.Row{ID: "01KB000000000000000000000A", Kind: audit.RowInvocation, Time: at, Decision: decided("kb:page.put@1", audit.VerdictNeedsApproval), Ended: ran.Ended}
	waited.Decision.Code = abi.CodeApprovalRequired
	return denied, parent, ran, append(others, waited)
}

// A row as text: why it was denied, check by check, with what would help and the chain it is part of.
func TestRowAsText(t *testing.T) {
	denied, parent, ran, others := rowsToShow()
	var out bytes.Buffer
	show := func(r audit.Row, chain, children []audit.Row) {
		if out.Len() > 0 {
			out.WriteString("\n----\n")
		}
		if err := explainRow(&out, r, chain, children); err != nil {
			t.Fatal(err)
		}
	}
	show(denied, []audit.Row{parent}, nil)
	show(parent, nil, []audit.Row{denied})
	show(ran, nil, nil)
	for _, r := range others {
		show(r, nil, nil)
	}
	const golden = "testdata/audit_show.golden"
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("testdata/audit_show.golden (-update writes it):\n%s", diff)
	}
}

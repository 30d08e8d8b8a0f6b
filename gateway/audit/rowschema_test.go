package audit

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/schema"
)

// PF-G6, X46: rows of every kind satisfy the published schema, which is closed: a renamed field, an
// unknown verdict or a stray value would not.
func TestRowSchema(t *testing.T) {
	s, err := schema.Compile(RowSchema)
	if err != nil {
		t.Fatal(err)
	}
	l := mustOpen(t, Options{Dir: t.TempDir()})
	done, denied, running := NewID(), NewID(), NewID()
	d := decision(VerdictAllow)
	d.Parent, d.Root, d.Chain, d.Trace, d.Workspace, d.Origin = denied, denied, []string{"kb:page.outer@1"}, "t", "w", "o"
	d.Lifecycle, d.ReplacedBy = "deprecated", "kb:page.read@2"
	mustAppend(t, l, "acme", done, d)
	mustAppend(t, l, "acme", done, Started{})
	mustAppend(t, l, "acme", done, Effect{Line: 1, Function: "http_fetch", Target: strings.Repeat("x", 9999)})
	mustAppend(t, l, "acme", done, EffectClosed{Line: 1, Code: abi.CodeUpstreamFailed})
	mustAppend(t, l, "acme", done, Ended{
		Outcome: OutcomeFailed, Code: abi.CodeGuestTrap, Label: abi.Secret, DurationMS: 1, Fuel: 2, PeakMemory: 3, HostCalls: 1,
		LogBytes: 4, Generation: 7, Lines: []Line{{Line: 1, Function: "http_fetch", Target: "x", Secret: "s", Code: abi.CodeUpstreamFailed, BytesIn: 1, BytesOut: 2, Label: abi.Secret}},
		LinesOmitted: 1, Unknown: []int{2},
		Suggestions: []Suggestion{{
			Kind: "request-grant", Subject: "user:a", Capability: "a:b.c@1", Environment: "environment:project", Space: "s", Grant: "g", Biome: "b",
			Call: "d:e.f@1", Endpoint: "e", Secret: "s", URL: "https://example.com/", Globs: []string{"**"}, Classification: abi.Secret, Seconds: 1, Detail: "d",
		}},
	})
	mustAppend(t, l, "acme", denied, decision(VerdictDeny))
	mustAppend(t, l, "acme", running, decision(VerdictAllow))
	waits, rejected, approved := NewID(), NewID(), NewID()
	for _, id := range []string{waits, rejected, approved} {
		mustAppend(t, l, "acme", id, decision(VerdictNeedsApproval))
	}
	mustAppend(t, l, "acme", rejected, Resolved{Resolution: ResolvedStale, Code: abi.CodeApprovalStale, By: "principal:acme/p"})
	mustAppend(t, l, "acme", approved, Resolved{Resolution: ResolvedApproved, By: "principal:acme/p"})
	mustAppend(t, l, "acme", approved, Ended{Outcome: OutcomeCompleted, Label: abi.Secret})
	mustAppend(t, l, "acme", "", Refused{Code: abi.CodeInvalidJSON, Listener: "admin", Method: "POST", Route: "/v1/x", Remote: "127.0.0.1", Subject: &SubjectRef{"user", "a"}, Detail: "d"})
	mustAppend(t, l, "acme", "", Admin{Operation: "secret.updated", Actor: "root", Role: "operator", ObjectKind: "secret", Object: "k", Fields: []string{"value"}, Code: abi.CodeForbidden})
	mustAppend(t, l, "acme", "", System{Event: "recovered", Version: "1", Org: "x", Interrupted: 1, CutBytes: 2, Detail: "d"})
	page, err := l.Rows(ctx, "acme", Query{})
	if err != nil || len(page.Rows) != 9 {
		t.Fatalf("%d rows, %v", len(page.Rows), err)
	}
	for _, row := range page.Rows {
		for _, r := range []Row{row, row.View(abi.Public)} {
			data, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(data); err != nil {
				t.Errorf("%s row: %v\n%s", r.Kind, err, data)
			}
		}
	}
	bad, _ := json.Marshal(page.Rows[0])
	bad = []byte(strings.Replace(string(bad), `"auditId"`, `"auditID"`, 1))
	if s.Validate(bad) == nil {
		t.Error("the schema accepts a renamed field")
	}
}

package audit

import (
	"slices"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
)

// X42: a row that waits for a person outlives the process and is not interrupted by its end; it is resolved
// once, goes on only when it was approved, and is one row for all that.
func TestWaitingRows(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, Options{Dir: dir, SegmentBytes: 1}) // every group in a file of its own
	waits, rejected, approved := NewID(), NewID(), NewID()
	for _, id := range []string{waits, rejected, approved} {
		mustAppend(t, l, "acme", id, decision(VerdictNeedsApproval))
	}
	refused := func(id string, b Body) {
		t.Helper()
		if _, err := l.Append(ctx, Event{Org: "acme", ID: id, Body: b}); err == nil {
			t.Errorf("%T is taken", b)
		}
	}
	yes := Resolved{Resolution: ResolvedApproved, By: "p"}
	refused(waits, Started{})
	refused(waits, Ended{Outcome: OutcomeCompleted})
	refused(waits, decision(VerdictAllow))
	refused(waits, Resolved{Resolution: "maybe"})
	refused(waits, Resolved{Resolution: ResolvedRejected})
	refused(NewID(), yes)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = mustOpen(t, Options{Dir: dir, SegmentBytes: 1})
	if n, err := l.Recover(ctx); n != 0 || err != nil {
		t.Errorf("%d rows were interrupted, %v", n, err)
	}
	if got := l.Waiting(); len(got) != 3 || !slices.Contains(got, RowID{"acme", waits}) {
		t.Errorf("%v wait", got)
	}
	mustAppend(t, l, "acme", rejected, Resolved{Resolution: ResolvedRejected, Code: abi.CodeApprovalRejected, By: "p"})
	mustAppend(t, l, "acme", approved, yes)
	refused(rejected, yes)
	refused(rejected, Started{})
	refused(approved, yes)
	mustAppend(t, l, "acme", approved, Started{})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = mustOpen(t, Options{Dir: dir, SegmentBytes: 1})
	if n, err := l.Recover(ctx); n != 1 || err != nil {
		t.Errorf("%d rows were interrupted, %v", n, err)
	}
	row, err := l.Get(ctx, "acme", approved)
	if err != nil || row.Resolution == nil || row.ResolvedAt == nil || row.StartedAt == nil || row.Ended == nil || row.Ended.Outcome != OutcomeInterrupted || row.Entries != 4 {
		t.Errorf("%+v %v", row, err)
	}
	if got := row.View(abi.Public); !got.Withheld || got.Resolution == nil || got.Ended != nil {
		t.Errorf("who is not cleared for it is shown %+v", got)
	}
	page, err := l.Rows(ctx, "acme", Query{Verdict: VerdictNeedsApproval})
	if err != nil || len(page.Rows) != 3 {
		t.Errorf("%d rows, %v", len(page.Rows), err)
	}
}

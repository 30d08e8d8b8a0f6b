package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
)

// X48: one invocation is one row, whole after the process is gone. X28: the envelope is in it.
// X49: every effect is an event under its row. PF-G9: a row has its outcome, duration and bytes.
func TestRow(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, Options{Dir: dir})
	id := NewID()
	d := decision(VerdictAllow)
	d.Parent, d.Root, d.Chain = NewID(), NewID(), []string{"kb:page.outer@1"}
	mustAppend(t, l, "acme", id, d)
	mustAppend(t, l, "acme", id, Started{})
	mustAppend(t, l, "acme", id, Effect{Line: 1, Function: "http_fetch", Target: "GET https://a.example/x"})
	if err := l.AppendAsync(ctx, Event{Org: "acme", ID: id, Body: EffectClosed{Line: 1}}); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, "acme", id, Effect{Line: 2, Function: "http_fetch", Target: "GET https://b.example/"})
	mustAppend(t, l, "acme", id, EffectClosed{Line: 2, Code: abi.CodeUpstreamTimeout})
	mustAppend(t, l, "acme", id, completed())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	mustVerify(t, dir, nil)

	l = mustOpen(t, Options{Dir: dir})
	row, err := l.Get(ctx, "acme", id)
	if err != nil {
		t.Fatal(err)
	}
	if row.ID != id || row.Invocation != id || row.Kind != RowInvocation || row.Entries != 7 || row.StartedAt == nil || row.EndedAt == nil {
		t.Errorf("row = %+v", row)
	}
	if diff := cmp.Diff(&d, row.Decision); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
	end := completed()
	if diff := cmp.Diff(&end, row.Ended); diff != "" {
		t.Errorf("end (-want +got):\n%s", diff)
	}
	effects := []EffectRow{
		{Line: 1, Function: "http_fetch", Target: "GET https://a.example/x", Outcome: EffectDone},
		{Line: 2, Function: "http_fetch", Target: "GET https://b.example/", Outcome: EffectFailed, Code: abi.CodeUpstreamTimeout},
	}
	if diff := cmp.Diff(effects, row.Effects); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
	if n, err := l.Recover(ctx); n != 0 || err != nil {
		t.Errorf("Recover = %d, %v; nothing was open", n, err)
	}
	if _, err := l.Get(ctx, "other", id); abi.CodeOf(err) != abi.CodeNotFound {
		t.Errorf("another organisation's row: %v", err)
	}
}

// PF-G1, P6: what is refused before there is a session, and what administrators do, are rows too.
func TestStandaloneRows(t *testing.T) {
	l := mustOpen(t, Options{Dir: t.TempDir()})
	r := mustAppend(t, l, "", "", Refused{Code: abi.CodeUnauthenticated, Listener: "invoke", Method: "POST", Route: "/v1/invoke/{ref}"})
	a := mustAppend(t, l, "acme", "", Admin{Operation: "environment.updated", Actor: "root", ObjectKind: "environment", Object: "project", Fields: []string{"limits"}})
	row, err := l.Get(ctx, SystemOrg, r.ID)
	if err != nil || row.Kind != RowRefused || row.Refused.Code != abi.CodeUnauthenticated || row.Invocation != "" {
		t.Errorf("refused row = %+v, %v", row, err)
	}
	row, err = l.Get(ctx, "acme", a.ID)
	if err != nil || row.Kind != RowAdmin || !cmp.Equal(row.Admin.Fields, []string{"limits"}) {
		t.Errorf("admin row = %+v, %v", row, err)
	}
}

// X43: decisions are exactly three; anything else, and anything incomplete, is not recorded.
// X28: the mandatory fields are mandatory.
func TestRefusesIncompleteEvents(t *testing.T) {
	l := mustOpen(t, Options{Dir: t.TempDir()})
	broken := func(change func(*Decided)) Decided { d := decision(VerdictAllow); change(&d); return d }
	bodies := map[string]Body{
		"verdict":     broken(func(d *Decided) { d.Verdict = "allow_with_warning" }),
		"no verdict":  broken(func(d *Decided) { d.Verdict = "" }),
		"subject":     broken(func(d *Decided) { d.Subject.ID = "" }),
		"caller":      broken(func(d *Decided) { d.CallerKind = "" }),
		"space":       broken(func(d *Decided) { d.Space = "" }),
		"environment": broken(func(d *Decided) { d.Environment = "" }),
		"capability":  broken(func(d *Decided) { d.Capability = "" }),
		"session":     broken(func(d *Decided) { d.Session = "" }),
		"code":        broken(func(d *Decided) { d.Code = "NO_SUCH_CODE" }),
		"bare denial": broken(func(d *Decided) { d.Verdict = VerdictDeny }),
		"parent":      broken(func(d *Decided) { d.Parent = "x" }),
		"root":        broken(func(d *Decided) { d.Root = "x" }),
		"no root":     broken(func(d *Decided) { d.Parent, d.Root = NewID(), "" }),
		"no body":     nil,
		"refused":     Refused{},
		"admin":       Admin{Operation: "x"},
		"system":      System{},
	}
	for name, b := range bodies {
		id := NewID()
		if _, err := l.Append(ctx, Event{Org: "acme", ID: id, Body: b}); abi.CodeOf(err) != abi.CodeAuditUnavailable {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := l.Get(ctx, "acme", id); abi.CodeOf(err) != abi.CodeNotFound {
			t.Errorf("%s left a row: %v", name, err)
		}
	}
	for _, ev := range []Event{
		{Org: "acme", ID: "lower", Body: decision(VerdictAllow)},
		{Org: "acme", Body: decision(VerdictAllow)},
		{Org: "../escape", ID: NewID(), Body: decision(VerdictAllow)},
		{Org: "acme", ID: NewID(), Body: Started{}},
		{Org: "acme", ID: NewID(), Body: completed()},
	} {
		if _, err := l.Append(ctx, ev); abi.CodeOf(err) != abi.CodeAuditUnavailable {
			t.Errorf("%+v: %v", ev, err)
		}
	}
	if !l.Healthy() {
		t.Errorf("a refused event made the log unhealthy: %v", l.Err())
	}
}

// X48: a second decision, an event after the end, an event after a denial do not fit a row.
func TestRowStates(t *testing.T) {
	l := mustOpen(t, Options{Dir: t.TempDir()})
	id, denied := NewID(), NewID()
	mustAppend(t, l, "acme", id, decision(VerdictAllow))
	mustAppend(t, l, "acme", denied, decision(VerdictDeny))
	for _, ev := range []Event{{ID: id, Body: decision(VerdictAllow)}, {ID: denied, Body: Started{}}, {ID: denied, Body: completed()}} {
		ev.Org = "acme"
		if _, err := l.Append(ctx, ev); err == nil {
			t.Errorf("accepted %v", ev.Body.Kind())
		}
	}
	mustAppend(t, l, "acme", id, completed())
	if _, err := l.Append(ctx, Event{Org: "acme", ID: id, Body: completed()}); err == nil {
		t.Error("accepted a second end")
	}
}

// PF-H15, names_control: text with control bytes, bad UTF-8 or without end is bounded and escaped.
func TestHostileText(t *testing.T) {
	l := mustOpen(t, Options{Dir: t.TempDir()})
	id := NewID()
	mustAppend(t, l, "acme", id, decision(VerdictAllow))
	mustAppend(t, l, "acme", id, Effect{Line: 1, Function: "file_write", Target: "a\n{\"forged\":1}\xff" + strings.Repeat("é", 1<<16)})
	long := completed()
	long.Lines = make([]Line, 3*MaxLines)
	for i := range long.Lines {
		long.Lines[i] = Line{Line: i, Function: "file_read", Target: strings.Repeat("\x01", 4096)}
	}
	mustAppend(t, l, "acme", id, long)
	row, err := l.Get(ctx, "acme", id)
	if err != nil {
		t.Fatal(err)
	}
	if got := row.Effects[0].Target; len(got) > maxText || !strings.HasPrefix(got, "a\n{\"forged\":1}�é") || !strings.HasSuffix(got, "…") {
		t.Errorf("target = %.40q… (%d bytes)", got, len(got))
	}
	if n := len(row.Ended.Lines); n == 0 || n > MaxLines || n+row.Ended.LinesOmitted != 3*MaxLines {
		t.Errorf("%d lines and %d omitted of %d", n, row.Ended.LinesOmitted, 3*MaxLines)
	}
}

// S6, PF-G8: digests are keyed per organisation, and no value of an input is in any file.
func TestDigest(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, Options{Dir: dir})
	digest := func(org, in string) string {
		d, err := l.Digest(org, []byte(in))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	a := digest("acme", `{"q":1}`)
	if a != digest("acme", `{"q":1}`) || a == digest("acme", `{"q":2}`) || a == digest("other", `{"q":1}`) {
		t.Error("the digest does not tell inputs and organisations apart")
	}
	if !strings.HasPrefix(a, "hmac-sha256:") || len(a) != len("hmac-sha256:")+64 {
		t.Errorf("digest = %q", a)
	}
	id := NewID()
	mustAppend(t, l, "acme", id, decision(VerdictAllow))
	raw, err := os.ReadFile(filepath.Join(Dir(dir), fileName(0, entriesExt)))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"kb:page.read", "helper", "environment:"} {
		if bytes.Contains(raw, []byte(word)) {
			t.Errorf("%q is in the file in clear", word)
		}
	}
}

// S8: what was open when the process died ends as interrupted; an announced effect without an
// end is unknown, one that was never announced is not there.
func TestRecover(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, Options{Dir: dir})
	running, decided, denied, done := NewID(), NewID(), NewID(), NewID()
	mustAppend(t, l, "acme", running, decision(VerdictAllow))
	mustAppend(t, l, "acme", running, Started{})
	mustAppend(t, l, "acme", running, Effect{Line: 1, Function: "http_fetch", Target: "a"})
	mustAppend(t, l, "acme", running, EffectClosed{Line: 1})
	mustAppend(t, l, "acme", running, Effect{Line: 4, Function: "http_fetch", Target: "b"})
	mustAppend(t, l, "acme", decided, decision(VerdictAllow))
	mustAppend(t, l, "acme", denied, decision(VerdictDeny))
	mustAppend(t, l, "acme", done, decision(VerdictAllow))
	mustAppend(t, l, "acme", done, completed())
	l.Close()

	l = mustOpen(t, Options{Dir: dir})
	if n, err := l.Recover(ctx); n != 2 || err != nil {
		t.Fatalf("Recover = %d, %v", n, err)
	}
	row, err := l.Get(ctx, "acme", running)
	if err != nil {
		t.Fatal(err)
	}
	if row.Ended.Outcome != OutcomeInterrupted || !cmp.Equal(row.Ended.Unknown, []int{4}) {
		t.Errorf("end = %+v", row.Ended)
	}
	if row.Effects[0].Outcome != EffectDone || row.Effects[1].Outcome != EffectUnknown || len(row.Effects) != 2 {
		t.Errorf("effects = %+v", row.Effects)
	}
	if row, _ := l.Get(ctx, "acme", decided); row.Ended == nil || row.Ended.Outcome != OutcomeInterrupted {
		t.Errorf("decided: %+v", row.Ended)
	}
	if row, _ := l.Get(ctx, "acme", denied); row.Ended != nil {
		t.Error("a denial was given an end")
	}
	page, err := l.Rows(ctx, SystemOrg, Query{Kind: RowSystem})
	if err != nil || len(page.Rows) != 1 || page.Rows[0].System.Interrupted != 2 {
		t.Errorf("system rows = %+v, %v", page, err)
	}
	if n, err := l.Recover(ctx); n != 0 || err != nil {
		t.Errorf("second Recover = %d, %v", n, err)
	}
	mustVerify(t, dir, nil)
}

// Erasing an organisation destroys its key: its rows are gone, the others' are not, the tree verifies.
func TestErase(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, Options{Dir: dir})
	gone, open, kept := NewID(), NewID(), NewID()
	mustAppend(t, l, "acme", gone, decision(VerdictDeny))
	mustAppend(t, l, "acme", open, decision(VerdictAllow))
	mustAppend(t, l, "other", kept, decision(VerdictDeny))
	head := l.Head()
	if err := l.Erase(ctx, "acme"); err != nil {
		t.Fatal(err)
	}
	check := func(l *Log) {
		t.Helper()
		if _, err := l.Get(ctx, "acme", gone); abi.CodeOf(err) != abi.CodeNotFound {
			t.Errorf("erased row: %v", err)
		}
		if page, err := l.Rows(ctx, "acme", Query{}); err != nil || len(page.Rows) != 0 {
			t.Errorf("erased rows: %v, %v", page, err)
		}
		if _, err := l.Append(ctx, Event{Org: "acme", ID: NewID(), Body: decision(VerdictDeny)}); abi.CodeOf(err) != abi.CodeAuditUnavailable {
			t.Errorf("append for an erased organisation: %v", err)
		}
		if _, err := l.Get(ctx, "other", kept); err != nil {
			t.Errorf("another organisation's row: %v", err)
		}
	}
	check(l)
	mustVerify(t, dir, head)
	if _, err := os.Stat(filepath.Join(dir, "keys", orgKeysName, "acme")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the key file is still there: %v", err)
	}
	l.Close()
	l = mustOpen(t, Options{Dir: dir})
	if n, err := l.Recover(ctx); n != 0 || err != nil {
		t.Errorf("Recover = %d, %v", n, err)
	}
	check(l)
	mustVerify(t, dir, head)
	for _, org := range []string{SystemOrg, "../x", ""} {
		if err := l.Erase(ctx, org); abi.CodeOf(err) != abi.CodeInvalidRequest {
			t.Errorf("Erase(%q) = %v", org, err)
		}
	}
}

// The reserve stops what begins and lets end what runs; with room again the log goes on.
func TestDiskReserve(t *testing.T) {
	var free atomic.Uint64
	free.Store(1 << 30)
	dir := t.TempDir()
	l := mustOpen(t, Options{Dir: dir, Reserve: 1 << 20, Free: func(string) (uint64, error) { return free.Load(), nil }})
	id := NewID()
	mustAppend(t, l, "acme", id, decision(VerdictAllow))
	mustAppend(t, l, "acme", id, Effect{Line: 1, Function: "http_fetch"})
	free.Store(1<<20 + 100)
	if _, err := l.Append(ctx, Event{Org: "acme", ID: NewID(), Body: decision(VerdictAllow)}); abi.CodeOf(err) != abi.CodeAuditUnavailable {
		t.Errorf("decision on a full disk: %v", err)
	}
	if _, err := l.Append(ctx, Event{Org: "acme", ID: id, Body: Effect{Line: 2, Function: "http_fetch"}}); abi.CodeOf(err) != abi.CodeAuditUnavailable {
		t.Errorf("effect on a full disk: %v", err)
	}
	mustAppend(t, l, "acme", id, EffectClosed{Line: 1})
	mustAppend(t, l, "acme", id, completed())
	free.Store(0)
	if l.Healthy() {
		t.Error("healthy on a full disk")
	}
	free.Store(1 << 30)
	if err := l.Err(); err != nil {
		t.Errorf("with room again: %v", err)
	}
	mustAppend(t, l, "acme", NewID(), decision(VerdictDeny))
	if _, err := Open(Options{Dir: t.TempDir(), Free: func(string) (uint64, error) { return 0, errors.ErrUnsupported }}); abi.CodeOf(err) != abi.CodeAuditUnavailable {
		t.Errorf("a reserve that cannot be kept: %v", err)
	}
}

// PF-G5: after a failed write or sync nothing is accepted any more, by anyone; what was acknowledged
// is still there when the log is opened again.
func TestPoisoned(t *testing.T) {
	for _, c := range []struct {
		name     string
		mode     Durability
		budget   int64 // bytes that can still be written
		syncs    int64 // which of the next synchronisations fails
		answered bool  // the event is acknowledged; what fails comes after
	}{
		{name: "write", budget: 100, syncs: 1 << 30},
		{name: "sync entries", budget: 1 << 20, syncs: 1},
		{name: "sync heads", budget: 1 << 20, syncs: 2, answered: true},
		{name: "write, process", mode: DurabilityProcess, budget: 100, syncs: 1 << 30},
		{name: "sync entries, process", mode: DurabilityProcess, budget: 1 << 20, syncs: 1, answered: true},
		{name: "sync heads, process", mode: DurabilityProcess, budget: 1 << 20, syncs: 2, answered: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			d := &brokenDisk{budget: 1 << 20}
			l := mustOpen(t, Options{Dir: dir, Durability: c.mode, open: d.open})
			id := NewID()
			mustAppend(t, l, "acme", id, decision(VerdictAllow))
			l.Head() // nothing is under way
			d.mu.Lock()
			d.budget, d.syncs = c.budget, d.count+c.syncs
			d.mu.Unlock()
			_, err := l.Append(ctx, Event{Org: "acme", ID: id, Body: completed()})
			if (err == nil) != c.answered || (err != nil && abi.CodeOf(err) != abi.CodeAuditUnavailable) {
				t.Fatalf("Append on a broken disk: %v", err)
			}
			l.Head() // now, if not already
			d.mu.Lock()
			d.broken, d.budget, d.syncs = false, 1<<20, 0 // it recovers; the log must not
			d.mu.Unlock()
			if l.Healthy() || abi.CodeOf(l.Err()) != abi.CodeAuditUnavailable {
				t.Error("healthy after a failed write")
			}
			if _, err := l.Append(ctx, Event{Org: "acme", ID: NewID(), Body: decision(VerdictDeny)}); abi.CodeOf(err) != abi.CodeAuditUnavailable {
				t.Errorf("Append after a failed write: %v", err)
			}
			if err := l.AppendAsync(ctx, Event{Org: "acme", ID: NewID(), Body: decision(VerdictDeny)}); abi.CodeOf(err) != abi.CodeAuditUnavailable {
				t.Errorf("AppendAsync after a failed write: %v", err)
			}
			l.Close()
			l = mustOpen(t, Options{Dir: dir})
			if _, err := l.Recover(ctx); err != nil {
				t.Fatal(err)
			}
			if row, err := l.Get(ctx, "acme", id); err != nil || row.Ended == nil {
				t.Errorf("row = %+v, %v", row, err)
			}
			mustVerify(t, dir, nil)
		})
	}
}

// One process at a time; a closed log answers, and says no.
func TestOpenTwiceAndClosed(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, Options{Dir: dir})
	if _, err := Open(Options{Dir: dir}); abi.CodeOf(err) != abi.CodeAuditUnavailable {
		t.Errorf("second Open: %v", err)
	}
	l.Close()
	if _, err := l.Append(ctx, Event{Body: System{Event: "x"}}); abi.CodeOf(err) != abi.CodeAuditUnavailable {
		t.Errorf("Append: %v", err)
	}
	if _, err := l.Rows(ctx, "acme", Query{}); abi.CodeOf(err) != abi.CodeAuditUnavailable {
		t.Errorf("Rows: %v", err)
	}
	if l.Healthy() {
		t.Error("healthy after Close")
	}
}

// PF-G2: a slow disk makes callers wait; nothing is dropped, and those who give up know that nothing
// was recorded.
func TestBackpressure(t *testing.T) {
	gate := make(chan struct{})
	var slow atomic.Bool
	dir := t.TempDir()
	l := mustOpen(t, Options{Dir: dir, Free: func(string) (uint64, error) {
		if slow.Load() {
			<-gate
		}
		return 1 << 40, nil
	}})
	slow.Store(true)
	const calls = 3 * queueLength
	var wg sync.WaitGroup
	var answered, gaveUp atomic.Int64
	short, cancel := context.WithCancel(ctx)
	for i := range calls {
		wg.Go(func() {
			c := ctx
			if i%2 == 1 {
				c = short
			}
			switch _, err := l.Append(c, Event{Org: "acme", ID: NewID(), Body: decision(VerdictDeny)}); {
			case err == nil:
				answered.Add(1)
			case errors.Is(err, context.Canceled):
				gaveUp.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	eventually(t, "the queue is full", func() bool { return l.queue.length() == queueLength })
	cancel()
	eventually(t, "somebody gave up", func() bool { return gaveUp.Load() > 0 })
	slow.Store(false)
	close(gate)
	wg.Wait()
	if answered.Load()+gaveUp.Load() != calls {
		t.Errorf("%d answered + %d gave up of %d", answered.Load(), gaveUp.Load(), calls)
	}
	if n := countRows(t, l, "acme"); n != int(answered.Load()) {
		t.Errorf("%d rows, %d answers", n, answered.Load())
	}
}

func countRows(t testing.TB, l *Log, org string) int {
	t.Helper()
	n := 0
	for q := (Query{Limit: MaxPage}); ; {
		page, err := l.Rows(ctx, org, q)
		if err != nil {
			t.Fatal(err)
		}
		n += len(page.Rows)
		if page.Next == "" {
			return n
		}
		q.After = page.Next
	}
}

// X48: 1,000 mixed calls by many callers are 1,000 rows, in several files.
func TestThousandMixedRows(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, Options{Dir: dir, SegmentBytes: 64 << 10})
	const callers, each = 20, 50
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				id := NewID()
				verdicts := []Verdict{VerdictAllow, VerdictDeny, VerdictNeedsApproval}
				v := verdicts[(c+i)%3]
				if err := l.AppendAsync(ctx, Event{Org: "acme", ID: id, Body: decision(v)}); err != nil {
					t.Error(err)
				}
				if v != VerdictAllow {
					continue
				}
				if _, err := l.Append(ctx, Event{Org: "acme", ID: id, Body: completed()}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	mustAppend(t, l, "", "", System{Event: "stopped"}) // durable together with all before it
	if n := countRows(t, l, "acme"); n != callers*each {
		t.Errorf("%d rows for %d calls", n, callers*each)
	}
	l.Close()
	r := mustVerify(t, dir, nil)
	if r.Files < 3 {
		t.Errorf("only %d files", r.Files)
	}
	l = mustOpen(t, Options{Dir: dir})
	if n := countRows(t, l, "acme"); n != callers*each {
		t.Errorf("%d rows after opening again", n)
	}
}

func TestQuery(t *testing.T) {
	l := mustOpen(t, Options{Dir: t.TempDir()})
	var ids []string
	parent := NewID()
	for i := range 10 {
		id := NewID()
		ids = append(ids, id)
		d := decision(VerdictDeny)
		if i%2 == 0 {
			d = decision(VerdictAllow)
		}
		if i == 3 {
			d.Capability, d.Subject, d.Parent, d.Root = "kb:page.write@1", SubjectRef{"user", "bob"}, parent, parent
		}
		mustAppend(t, l, "acme", id, d)
	}
	mustAppend(t, l, "acme", "", Admin{Operation: "grant.created", Actor: "root"})
	count := func(q Query) int {
		page, err := l.Rows(ctx, "acme", q)
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Rows)
	}
	for name, c := range map[string]struct {
		q    Query
		want int
	}{
		"all":        {Query{}, 11},
		"kind":       {Query{Kind: RowAdmin}, 1},
		"invocation": {Query{Invocation: ids[4]}, 1},
		"no such":    {Query{Invocation: NewID()}, 0},
		"verdict":    {Query{Verdict: VerdictAllow}, 5},
		"capability": {Query{Capability: "kb:page.write@1"}, 1},
		"subject":    {Query{Subject: "user:bob"}, 1},
		"parent":     {Query{Parent: parent}, 1}, // X32
		"both":       {Query{Subject: "user:bob", Verdict: VerdictAllow}, 0},
	} {
		if got := count(c.q); got != c.want {
			t.Errorf("%s: %d rows, want %d", name, got, c.want)
		}
	}
	for _, oldest := range []bool{false, true} {
		var seen []string
		for q := (Query{Limit: 3, Oldest: oldest, Kind: RowInvocation}); ; {
			page, err := l.Rows(ctx, "acme", q)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Rows {
				seen = append(seen, r.ID)
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		if len(seen) != len(ids) {
			t.Errorf("oldest=%v: pages hold %d of %d rows", oldest, len(seen), len(ids))
		}
		for i := 1; i < len(seen); i++ {
			if (seen[i-1] < seen[i]) != oldest {
				t.Errorf("oldest=%v: out of order at %d", oldest, i)
			}
		}
	}
	for _, q := range []Query{{Limit: -1}, {Limit: MaxPage + 1}, {Verdict: "maybe"}, {Kind: "x"}, {After: "x"}, {Invocation: "x"}, {Parent: "x"}, {Root: "x"}} {
		if _, err := l.Rows(ctx, "acme", q); abi.CodeOf(err) != abi.CodeInvalidRequest {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// S6: for a reader who is not cleared, rows that differ only in what happened are the same.
func TestView(t *testing.T) {
	rows := make([]Row, 2)
	for i := range rows {
		d := decision(VerdictAllow)
		d.InputBytes = int64(i)
		e := completed()
		e.Label, e.Fuel, e.HostCalls, e.DurationMS = abi.Secret, int64(i), int64(i), int64(i)
		entries := []Entry{{Index: 1, ID: "A", Body: d}}
		if i == 1 {
			entries = append(entries, Entry{Index: 2, ID: "A", Body: Started{}}, Entry{Index: 3, ID: "A", Body: Effect{Line: 1, Function: "http_fetch"}})
			e.Outcome, e.Code = OutcomeFailed, abi.CodeGuestTrap
		}
		row, err := Fold(append(entries, Entry{Index: 9, ID: "A", Body: e}))
		if err != nil {
			t.Fatal(err)
		}
		rows[i] = row
	}
	if diff := cmp.Diff(rows[0].View(abi.Internal), rows[1].View(abi.Internal)); diff != "" {
		t.Errorf("the low view differs:\n%s", diff)
	}
	if v := rows[1].View(abi.Internal); !v.Withheld || v.Decision == nil || v.Ended != nil {
		t.Errorf("low view = %+v", v)
	}
	if diff := cmp.Diff(rows[1], rows[1].View(abi.Secret)); diff != "" {
		t.Errorf("the high view differs:\n%s", diff)
	}
	denied, _ := Fold([]Entry{{Body: decision(VerdictDeny)}})
	if denied.View(abi.Public).Withheld {
		t.Error("a denial is withheld")
	}
	if v := denied.View(abi.Regulated); v.Decision.InputDigest != denied.Decision.InputDigest {
		t.Error("a cleared reader does not see a denial whole")
	}
	denied.Decision.Label = abi.Secret
	if v := denied.View(abi.Internal); v.Decision.InputBytes != 0 || v.Decision.InputDigest != "" || denied.Decision.InputDigest == "" {
		t.Errorf("the low view of a denial = %+v", v.Decision)
	}
	running := rows[1]
	running.Ended = nil
	if v := running.View(abi.Regulated); !v.Withheld || v.Effects != nil || v.Label() != abi.Public || running.Label() != abi.Regulated {
		t.Errorf("the view of what runs = %+v", v)
	}
	var zero abi.Classification
	if !rows[0].View(zero).Withheld {
		t.Error("no clearance sees a secret row")
	}
}

func TestFoldRefuses(t *testing.T) {
	d, e := decision(VerdictAllow), completed()
	for name, entries := range map[string][]Entry{
		"nothing":         {},
		"no decision":     {{Body: e}},
		"two decisions":   {{Index: 0, Body: d}, {Index: 1, Body: d}},
		"after the end":   {{Index: 0, Body: d}, {Index: 1, Body: e}, {Index: 2, Body: Started{}}},
		"other row":       {{Index: 0, ID: "A", Body: d}, {Index: 1, ID: "B", Body: e}},
		"other org":       {{Index: 0, Org: "a", Body: d}, {Index: 1, Org: "b", Body: e}},
		"order":           {{Index: 5, Body: d}, {Index: 4, Body: e}},
		"standalone late": {{Index: 0, Body: d}, {Index: 1, Body: System{}}},
	} {
		if row, err := Fold(entries); err == nil {
			t.Errorf("%s: folded to %+v", name, row)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			l := mustOpen(b, Options{Dir: b.TempDir()})
			d := decision(VerdictDeny)
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for range writers {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := l.Append(ctx, Event{Org: "acme", ID: NewID(), Body: d}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// X32: a lineage is the outermost invocation and all that were made for it, however deep, and nobody else's:
// in both orders, in pages, while it runs and after, and without a look at what is older or newer.
func TestLineage(t *testing.T) {
	l := mustOpen(t, Options{Dir: t.TempDir()})
	noise := func() { mustAppend(t, l, "acme", NewID(), decision(VerdictDeny)) }
	noise()
	root := NewID()
	mustAppend(t, l, "acme", root, decision(VerdictAllow))
	want := []string{root}
	parent, chain := root, []string{"kb:page.read@1"}
	for i := range 4 {
		for range 3 {
			time.Sleep(2 * time.Millisecond) // ids in the order of time
			noise()
			id := NewID()
			d := decision(VerdictDeny)
			d.Parent, d.Root, d.Chain = parent, root, chain
			mustAppend(t, l, "acme", id, d)
			want = append(want, id)
		}
		parent, chain = want[len(want)-1], append(slices.Clip(chain), fmt.Sprintf("kb:level.n%d@1", i))
	}
	other := NewID()
	d := decision(VerdictDeny)
	d.Parent, d.Root = NewID(), other
	mustAppend(t, l, "acme", NewID(), d)
	check := func() {
		t.Helper()
		for _, oldest := range []bool{true, false} {
			for _, limit := range []int{1, 2, 50} {
				var got []string
				for q := (Query{Root: root, Oldest: oldest, Limit: limit}); ; {
					page, err := l.Rows(ctx, "acme", q)
					if err != nil {
						t.Fatal(err)
					}
					for _, r := range page.Rows {
						got = append(got, r.ID)
					}
					if q.After = page.Next; q.After == "" {
						break
					}
				}
				if !oldest {
					slices.Reverse(got)
				}
				if !slices.Equal(got, want) {
					t.Errorf("oldest %v, by %d: %d rows of %d", oldest, limit, len(got), len(want))
				}
			}
		}
	}
	check()
	mustAppend(t, l, "acme", root, Ended{Outcome: OutcomeCompleted, Label: abi.Public})
	check()
	for org, id := range map[string]string{"acme": NewID(), "rival": root} {
		if page, err := l.Rows(ctx, org, Query{Root: id}); err != nil || len(page.Rows) != 0 || page.Next != "" {
			t.Errorf("%s, %s: %+v, %v", org, id, page, err)
		}
	}
}

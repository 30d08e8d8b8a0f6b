package crashtest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"slices"
	"sync"

	"github.com/ecotone-dev/ecotone/gateway/audit"
)

// verify holds the files of the log to themselves and to a head from before. The server may be
// dead or running.
func (w *world) verify() {
	w.t.Helper()
	w.mu.Lock()
	heads := slices.Clone(w.heads)
	w.mu.Unlock()
	kept := [][]byte{nil}
	if n := len(heads); n > 0 {
		kept = append(kept, heads[0], heads[n/2], heads[n-1])
	}
	for _, head := range kept {
		report, err := audit.Verify(audit.Dir(w.dir), audit.VerifyOptions{Head: head})
		if err != nil || !report.OK {
			w.t.Fatalf("the log does not verify: %+v %v", report.Problem, err)
		}
	}
}

// readRows reads the rows that are new. None of them may be open: the server has recovered and
// nothing runs.
func (w *world) readRows(p *process) {
	w.t.Helper()
	for {
		var page struct {
			Items []audit.Row `json:"items"`
			Next  string      `json:"next"`
		}
		q := url.Values{"limit": {"500"}, "oldest": {"true"}}
		if w.lastRow != "" {
			q.Set("after", w.lastRow)
		}
		w.must(p, "GET", "/v1/audit?"+q.Encode(), nil, http.StatusOK, &page)
		for _, r := range page.Items {
			w.rows[r.ID], w.lastRow = r, r.ID
			w.holdRow(&r)
		}
		if page.Next == "" {
			return
		}
		w.lastRow = page.Next
	}
}

// holdRow holds one row to what every row of an invocation must be once nothing runs.
func (w *world) holdRow(r *audit.Row) {
	w.t.Helper()
	if r.Decision == nil || r.Decision.Verdict != audit.VerdictAllow {
		return
	}
	if r.Ended == nil {
		w.t.Errorf("row %s is still open", r.ID)
		return
	}
	unknown := 0
	for _, e := range r.Effects {
		switch e.Outcome {
		case audit.EffectDone, audit.EffectFailed:
		case audit.EffectUnknown:
			unknown++
			if r.Ended.Outcome != audit.OutcomeInterrupted || !slices.Contains(r.Ended.Unknown, e.Line) {
				w.t.Errorf("row %s ended as %s and does not say that the effect of line %d is unknown", r.ID, r.Ended.Outcome, e.Line)
			}
		default:
			w.t.Errorf("row %s has an effect that is %s", r.ID, e.Outcome)
		}
		id := path.Base(e.Target)
		if other := w.byID[id]; other != "" && other != r.ID {
			w.t.Errorf("the effect of %s is announced by %s and by %s", id, other, r.ID)
		}
		w.byID[id] = r.ID
	}
	if unknown != len(r.Ended.Unknown) {
		w.t.Errorf("row %s lists %d unknown effects and has %d", r.ID, len(r.Ended.Unknown), unknown)
	}
}

// holdEffects: what the origin saw was announced, once, under a row; what a row calls done was
// seen.
func (w *world) holdEffects() {
	w.t.Helper()
	seen := w.origin.all()
	for id, n := range seen {
		if n != 1 {
			w.t.Errorf("the origin saw %s %d times", id, n)
		}
		if w.byID[id] == "" {
			w.t.Errorf("the origin saw %s, and no row announces it", id)
		}
	}
	for id, invocation := range w.byID {
		for _, e := range w.rows[invocation].Effects {
			if e.Outcome == audit.EffectDone && seen[id] == 0 {
				w.t.Errorf("row %s says that %s is done, and the origin never saw it", invocation, id)
			}
		}
	}
}

// holdAnswers: every answer has a row with an outcome that says the same.
func (w *world) holdAnswers() {
	w.t.Helper()
	for invocation, id := range w.done {
		r, ok := w.rows[invocation]
		if !ok || r.Ended == nil || r.Ended.Outcome != audit.OutcomeCompleted || !r.Ended.Released {
			w.t.Errorf("%s was answered for %s; its row: %v %+v", invocation, id, ok, r.Ended)
		}
	}
	for invocation, code := range w.failed {
		r, ok := w.rows[invocation]
		denied := ok && r.Decision != nil && r.Decision.Verdict == audit.VerdictDeny && string(r.Decision.Code) == code
		if !denied && (!ok || r.Ended == nil || r.Ended.Outcome != audit.OutcomeFailed || string(r.Ended.Code) != code) {
			w.t.Errorf("%s was answered with %s; its row: %v %+v", invocation, code, ok, r.Ended)
		}
	}
}

// holdWrites: keys and files of the answered invocations are there, with their bytes.
func (w *world) holdWrites(p *process, ids []string) {
	w.t.Helper()
	var wg sync.WaitGroup
	work := make(chan string)
	for range clients {
		wg.Go(func() {
			for id := range work {
				for _, ref := range []string{refKV, refRead} {
					if r, err := w.invoke(p, ref, id); err != nil || r.status != http.StatusOK {
						w.t.Errorf("%s of %s, which was acknowledged: %v %d %s", ref, id, err, r.status, r.body)
					}
				}
			}
		})
	}
	for _, id := range ids {
		work <- id
	}
	close(work)
	wg.Wait()
}

// each walks a listing to its end.
func (w *world) each(p *process, list string, f func(json.RawMessage)) {
	w.t.Helper()
	for after := ""; ; {
		var page struct {
			Items []json.RawMessage `json:"items"`
			Next  string            `json:"next"`
		}
		w.must(p, "GET", list+"?limit=500&after="+url.QueryEscape(after), nil, http.StatusOK, &page)
		for _, item := range page.Items {
			f(item)
		}
		if after = page.Next; after == "" {
			return
		}
	}
}

// check is everything the promise says, asked of a server that was started again.
func (w *world) check(p *process) {
	w.t.Helper()
	w.verify()
	w.readRows(p)
	w.holdEffects()
	w.holdAnswers()
	w.holdAdmin(p)
	fresh := w.fresh
	w.fresh = nil
	w.holdWrites(p, fresh)
	if w.t.Failed() {
		w.t.FailNow()
	}
}

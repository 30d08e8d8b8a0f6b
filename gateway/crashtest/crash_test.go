package crashtest

import (
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
)

// setting reads a number from the environment.
func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// deaths are the points at which a round ends. Each loads p and kills it.
var deaths = []struct {
	name string
	die  func(w *world, p *process, r *rand.Rand)
}{
	{"in the origin's handler", func(w *world, p *process, r *rand.Rand) {
		at := 1 + r.IntN(clients*perClient/2)
		w.origin.on(func(n int, id string) {
			if n == at {
				w.mu.Lock()
				w.killedIn = id
				w.mu.Unlock()
				p.kill()
			}
		})
		w.load(p, func(int) {})
	}},
	{"right after an answer", func(w *world, p *process, r *rand.Rand) {
		at := 1 + r.IntN(clients*perClient/2)
		w.load(p, func(n int) {
			if n == at {
				p.kill()
			}
		})
	}},
	{"at any time", func(w *world, p *process, r *rand.Rand) {
		// Some invocations first, so that the time falls into the work on a slow machine too.
		after := time.Duration(r.IntN(300)) * time.Millisecond
		w.load(p, func(n int) {
			if n == 1 {
				time.AfterFunc(after, p.kill)
			}
		})
		<-p.done
	}},
	{"while it starts", func(w *world, p *process, r *rand.Rand) {
		at := 1 + r.IntN(clients)
		w.load(p, func(n int) {
			if n == at {
				p.kill()
			}
		})
		// It has rows to close now. What kills it may come before, during and after that.
		again := launch(w.t, w.dir, w.mode)
		select {
		case <-time.After(time.Duration(r.IntN(400)) * time.Millisecond):
		case <-again.ready:
		}
		again.kill()
		again.wasKilled()
	}},
}

// S8, X48, M9, promise 4: the server is killed again and again at points nobody chose, with requests
// under way. Whatever the origin saw has its row; whatever was answered has its outcome, its
// key, its file; grants, revocations and secrets that were acknowledged are there; no row stays
// open; and the log verifies, against heads from before too. In both durabilities of the audit.
func TestKill(t *testing.T) {
	modes := []audit.Durability{audit.DurabilityPower, audit.DurabilityProcess}
	rounds := int(setting(t, "ECOTONE_CRASH_ROUNDS", uint64(len(modes)*len(deaths))))
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) { testKill(t, mode, rounds/len(modes)) })
	}
}

func testKill(t *testing.T, mode audit.Durability, rounds int) {
	seed := setting(t, "ECOTONE_CRASH_SEED", uint64(time.Now().UnixNano()))
	t.Logf("ECOTONE_CRASH_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))

	w, p := newWorld(t, mode)
	interrupted, unknown := 0, 0
	for round := range rounds {
		d := deaths[round%len(deaths)]
		d.die(w, p, r)
		w.origin.on(nil)
		p.kill()
		p.wasKilled()
		w.verify()
		before := len(w.rows)
		p = w.start()
		w.check(p)
		w.holdKilledIn()
		t.Logf("round %d, %s: %d new rows, %d requests at the origin", round, d.name, len(w.rows)-before, len(w.origin.all()))
	}
	for _, row := range w.rows {
		if row.Ended != nil && row.Ended.Outcome == audit.OutcomeInterrupted {
			interrupted++
			unknown += len(row.Ended.Unknown)
		}
	}
	t.Logf("%d rows, %d interrupted, %d effects unknown", len(w.rows), interrupted, unknown)
	if len(w.done) == 0 || interrupted == 0 || unknown == 0 {
		t.Error("nothing was interrupted: this shows nothing")
	}

	var all []string
	for invocation, id := range w.done {
		if row := w.rows[invocation]; row.Decision != nil && row.Decision.Capability == refDo {
			all = append(all, id)
		}
	}
	w.holdWrites(p, all)
	p.stop()
	p = w.start()
	w.ledgerIsGone(p, all[0])
	w.tailCut(p)
	p.stop()
	w.verify()
	w.codeGone(all[0])
}

// holdKilledIn: the request in whose handler the server died happened, and nobody was told. Its row
// says that it is unknown.
func (w *world) holdKilledIn() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.killedIn == "" {
		return
	}
	row := w.rows[w.byID[w.killedIn]]
	if row.Ended == nil || row.Ended.Outcome != audit.OutcomeInterrupted || len(row.Effects) != 1 || row.Effects[0].Outcome != audit.EffectUnknown {
		w.t.Errorf("the server died inside of %s, and its row says %+v %+v", w.killedIn, row.Ended, row.Effects)
	}
	w.killedIn = ""
}

// ledgerIsGone: the read ledger is the running process's, so that a file which was written before
// it must be read again before it is overwritten; and nothing of the file was lost. M9.
func (w *world) ledgerIsGone(p *process, id string) {
	w.t.Helper()
	r, err := w.invoke(p, refPut, id)
	if err != nil {
		w.t.Fatal(err)
	}
	if r.status == http.StatusOK {
		w.t.Fatal("a file that this process never read was overwritten")
	}
	var row audit.Row
	w.must(p, "GET", "/v1/audit/"+r.header.Get("Ecotone-Invocation"), nil, http.StatusOK, &row)
	if row.Ended == nil || !slices.ContainsFunc(row.Ended.Lines, func(l audit.Line) bool { return l.Function == "file_write" && l.Code == abi.CodeReadRequired }) {
		w.t.Errorf("the write was not refused for want of a read: %+v", row.Ended)
	}
	for _, ref := range []string{refRead, refPut} {
		if r, err := w.invoke(p, ref, id); err != nil || r.status != http.StatusOK {
			w.t.Fatalf("%s: %v %d %s", ref, err, r.status, r.body)
		}
	}
}

// tailCut: a log that lost its end verifies by itself, for its files cannot know; it does not
// verify against a head that was kept elsewhere. Without a byte that one of its
// own heads covers, it does not verify at all. S8.
func (w *world) tailCut(p *process) {
	w.t.Helper()
	if _, err := send("GET", p.Admin+"/v1/audit/head", w.operator, nil); err != nil { // over everything
		w.t.Fatal(err)
	}
	shorter := filepath.Join(w.t.TempDir(), "audit")
	if err := os.CopyFS(shorter, os.DirFS(audit.Dir(w.dir))); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.invoke(p, refDo, newID()); err != nil {
		w.t.Fatal(err)
	}
	head, err := send("GET", p.Admin+"/v1/audit/head", w.operator, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	verify := func(dir string, head []byte) bool {
		w.t.Helper()
		report, err := audit.Verify(dir, audit.VerifyOptions{Head: head})
		if err != nil {
			w.t.Fatal(err)
		}
		return report.OK
	}
	if !verify(audit.Dir(w.dir), head.body) || !verify(shorter, nil) {
		w.t.Error("a whole log does not verify")
	}
	if verify(shorter, head.body) {
		w.t.Error("a log without its end verifies against a head that covered it")
	}
	entries, err := filepath.Glob(filepath.Join(shorter, "*.entries"))
	if err != nil || len(entries) == 0 {
		w.t.Fatalf("%v %v", entries, err)
	}
	last := entries[len(entries)-1]
	info, err := os.Stat(last)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.Truncate(last, info.Size()-1); err != nil {
		w.t.Fatal(err)
	}
	if verify(shorter, nil) {
		w.t.Error("a log that lost a byte verifies")
	}
}

// codeGone: a server that finds its compiled code gone or damaged says that it is not ready for the
// module, makes the code again, and answers as before. S14.
func (w *world) codeGone(id string) {
	w.t.Helper()
	for name, damage := range map[string]func(path string) error{
		"gone":      os.Remove,
		"truncated": func(path string) error { return os.Truncate(path, 100) },
	} {
		files, err := filepath.Glob(filepath.Join(w.dir, "cache", "*"))
		if err != nil || len(files) == 0 {
			w.t.Fatalf("no compiled code: %v", err)
		}
		for _, f := range files {
			if err := damage(f); err != nil {
				w.t.Fatal(err)
			}
		}
		p := w.start()
		for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			r, err := w.invoke(p, refKV, id)
			if err == nil && r.status == http.StatusOK {
				break
			}
			if err != nil || r.status != http.StatusServiceUnavailable || time.Now().After(end) {
				w.t.Fatalf("%s: %v %d %s", name, err, r.status, r.body)
			}
		}
		p.stop()
	}
}

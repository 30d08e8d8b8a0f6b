package crashtest

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
)

// asked is a world with a session whose invocations want an approval, and somebody who gives it.
type asked struct {
	*world
	bob, approver string
}

func newAsked(t *testing.T) (*asked, *process) {
	t.Helper()
	w, p := newWorld(t, audit.DurabilityPower)
	a := &asked{world: w}
	var made struct{ Token string }
	w.must(p, "POST", "/v1/tokens", []byte(`{"principal":"eve","role":"org-admin"}`), http.StatusCreated, &made)
	a.approver = made.Token
	w.must(p, "POST", "/v1/grants", []byte(`{"subject":"user:bob","capability":"`+refDo+`","environment":"environment:project","approval":true}`), http.StatusCreated, nil)
	w.must(p, "POST", "/v1/sessions", []byte(`{"subject":"user:bob","environment":"environment:project","files":true}`), http.StatusCreated, &made)
	a.bob = made.Token
	return a, p
}

// ask asks for an invocation with an id and returns the approval's; the error is that no answer came.
func (a *asked) ask(p *process, id string) (string, error) {
	a.t.Helper()
	r, err := send("POST", p.Invoke+"/v1/invoke/"+refDo, a.bob, []byte(document(a.origin.URL, id)))
	if err != nil {
		return "", err
	}
	var w struct{ Approval string }
	if r.status != http.StatusAccepted || json.Unmarshal(r.body, &w) != nil || w.Approval == "" {
		a.t.Fatalf("%d %s", r.status, r.body)
	}
	return w.Approval, nil
}

func (a *asked) approve(p *process, approval string) (response, error) {
	return send("POST", p.Admin+"/v1/approvals/"+approval+"/approve", a.approver, []byte(`{}`))
}

// state is how far an approval is, with the row of its invocation.
func (a *asked) state(p *process, approval string) (string, audit.Row) {
	a.t.Helper()
	r, err := send("GET", p.Admin+"/v1/approvals/"+approval, a.approver, nil)
	if err != nil || r.status != http.StatusOK {
		a.t.Fatalf("%v %d %s", err, r.status, r.body)
	}
	var doc struct{ State string }
	if err := json.Unmarshal(r.body, &doc); err != nil {
		a.t.Fatal(err)
	}
	var row audit.Row
	a.must(p, "GET", "/v1/audit/"+approval, nil, http.StatusOK, &row)
	return doc.State, row
}

// settle waits until nothing more comes of an approval, and approves it again on the way when the word was lost.
func (a *asked) settle(p *process, approval string) (string, audit.Row) {
	a.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		state, row := a.state(p, approval)
		switch state {
		case "pending":
			if r, err := a.approve(p, approval); err != nil || r.status != http.StatusOK {
				a.t.Fatalf("%v %d %s", err, r.status, r.body)
			}
		case "approved", "dispatched":
		default:
			return state, row
		}
		if time.Now().After(end) {
			a.t.Fatalf("it is still %s", state)
		}
	}
}

// holdOnce: the effect happened at most once, exactly once when it is said to be done, and the row is whole.
func (a *asked) holdOnce(p *process, approval, id string) string {
	a.t.Helper()
	state, row := a.settle(p, approval)
	seen := a.origin.all()[id]
	if seen > 1 || state == "done" && seen != 1 {
		a.t.Errorf("it is %s, and the origin saw it %d times", state, seen)
	}
	if row.Resolution == nil || row.Resolution.Resolution != audit.ResolvedApproved || row.Ended == nil || state != "done" && state != "interrupted" {
		a.t.Errorf("it is %s, and its row says %+v %+v", state, row.Resolution, row.Ended)
	}
	if seen == 1 && len(row.Effects) != 1 {
		a.t.Errorf("an effect without its record: %+v", row)
	}
	if r, err := a.approve(p, approval); err != nil || r.status != http.StatusOK {
		a.t.Errorf("again: %v %d %s", err, r.status, r.body)
	}
	if again, _ := a.settle(p, approval); again != state || a.origin.all()[id] != seen {
		a.t.Errorf("approved again it is %s, and was %s; the origin saw it %d times", again, state, a.origin.all()[id])
	}
	a.verify()
	return state
}

// S17, X42, S8: the server is killed before and after each of its writes, from the approval to the kept result:
// whatever was approved runs at most once, what was not used yet still runs, and every row is whole.
func TestKillWhileApproving(t *testing.T) {
	a, p := newAsked(t)
	states := map[string]int{}
	for at := 1; ; at++ {
		id := newID()
		approval, err := a.ask(p, id)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(between(a.dir), []byte(strconv.Itoa(at)), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := a.approve(p, approval)
		if err == nil && r.status != http.StatusOK {
			t.Fatalf("%d %s", r.status, r.body)
		}
		for end := time.Now().Add(patience); !p.dead(); time.Sleep(5 * time.Millisecond) {
			res, err := send("GET", p.Admin+"/v1/approvals/"+approval, a.approver, nil)
			var doc struct{ State string }
			if err == nil && json.Unmarshal(res.body, &doc) == nil && doc.State == "done" {
				break
			}
			if time.Now().After(end) {
				t.Fatal("it neither ends nor dies")
			}
		}
		survived := !p.dead()
		if err := os.Remove(between(a.dir)); err != nil {
			t.Fatal(err)
		}
		p.kill()
		p.wasKilled()
		p = a.start()
		states[a.holdOnce(p, approval, id)]++
		if survived {
			t.Logf("%d points: %v", at-1, states)
			break
		}
		p.kill()
		p = a.start()
	}
	if states["interrupted"] == 0 || states["done"] < 2 {
		t.Errorf("%v: this shows nothing", states)
	}
	// While it acts: nobody knows whether that happened, and it does not happen again.
	id := newID()
	approval, err := a.ask(p, id)
	if err != nil {
		t.Fatal(err)
	}
	a.origin.on(func(int, string) { p.kill() })
	_, _ = a.approve(p, approval)
	<-p.done
	a.origin.on(nil)
	p = a.start()
	if state := a.holdOnce(p, approval, id); state != "interrupted" {
		t.Errorf("killed in the origin's handler it is %s", state)
	}
}

// X42: killed while it is asked, a request is there or not; what is not there says so in its row, and does not
// wait for ever.
func TestKillWhileAsking(t *testing.T) {
	a, p := newAsked(t)
	for at := 1; at <= 2; at++ {
		id := newID()
		if err := os.WriteFile(between(a.dir), []byte(strconv.Itoa(at)), 0o600); err != nil {
			t.Fatal(err)
		}
		if approval, err := a.ask(p, id); err == nil {
			t.Fatalf("%s was answered", approval)
		}
		<-p.done
		if err := os.Remove(between(a.dir)); err != nil {
			t.Fatal(err)
		}
		p = a.start()
		var page struct{ Items []audit.Row }
		a.must(p, "GET", "/v1/audit?limit=1&kind=invocation&subject=user:bob", nil, http.StatusOK, &page)
		if len(page.Items) != 1 || page.Items[0].Decision.Verdict != audit.VerdictNeedsApproval {
			t.Fatalf("%+v", page)
		}
		row := page.Items[0]
		if at == 1 {
			if row.Resolution == nil || row.Resolution.Resolution != audit.ResolvedRefused || row.Resolution.Code != abi.CodeNotReady {
				t.Errorf("nobody was asked, and the row says %+v", row.Resolution)
			}
			continue
		}
		if state := a.holdOnce(p, row.ID, id); row.Resolution != nil || state != "done" {
			t.Errorf("it was asked, and is %s: %+v", state, row.Resolution)
		}
	}
}

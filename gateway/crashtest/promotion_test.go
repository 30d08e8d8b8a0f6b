package crashtest

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"testing"

	"github.com/ecotone-dev/ecotone/gateway/audit"
)

// promotions is a world whose administrator asks for versions, and somebody else who admits them.
type promotions struct {
	*world
	digest, approver string
}

func newPromotions(t *testing.T) (*promotions, *process) {
	t.Helper()
	w, p := newWorld(t, audit.DurabilityPower)
	a := &promotions{world: w}
	var made struct{ Token, Digest string }
	w.must(p, "GET", "/v1/biomes/crash", nil, http.StatusOK, &made)
	a.digest = made.Digest
	// Who uploaded a version does not admit it.
	w.must(p, "POST", "/v1/tokens", []byte(`{"principal":"eve","role":"org-admin"}`), http.StatusCreated, &made)
	a.approver = made.Token
	return a, p
}

// admitted is what is installed now.
type admitted struct {
	Digest, Approval string
	Environments     []string
	Endpoints        []string
	Revision         int
}

func (a *promotions) installed(p *process) (out admitted) {
	a.t.Helper()
	a.must(p, "GET", "/v1/installs/crash", nil, http.StatusOK, &out)
	return out
}

// ask asks for the version to be admitted to an environment, with what it needs.
func (a *promotions) ask(p *process, environment string) string {
	a.t.Helper()
	var made struct{ Approval string }
	a.must(p, "POST", "/v1/biomes/crash/promote", []byte(`{"digest":"`+a.digest+`","environments":["environment:`+environment+`"],"endpoints":["origin"]}`), http.StatusAccepted, &made)
	return made.Approval
}

// state is how far an approval is, and what it binds.
func (a *promotions) state(p *process, id string) (state string, binding string) {
	a.t.Helper()
	var doc struct {
		State   string
		Binding json.RawMessage
	}
	a.must(p, "GET", "/v1/approvals/"+id, nil, http.StatusOK, &doc)
	return doc.State, string(doc.Binding)
}

// S17, X62: the server is killed before and after each of the writes of a promotion's approval: afterwards it is
// approved with its install grant, or it waits with the binding it had and is approved then; what is admitted
// is what was asked for, once.
func TestKillWhilePromoting(t *testing.T) {
	a, p := newPromotions(t)
	waited, done := 0, 0
	environments := []string{"app", "project"}
	for at := 1; ; at++ {
		before := a.installed(p)
		id := a.ask(p, environments[at%2])
		_, bound := a.state(p, id)
		if err := os.WriteFile(between(a.dir), []byte(strconv.Itoa(at)), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := send("POST", p.Admin+"/v1/approvals/"+id+"/approve", a.approver, []byte(`{}`))
		survived := err == nil
		if survived && r.status != http.StatusOK {
			t.Fatalf("%d %s", r.status, r.body)
		}
		if err := os.Remove(between(a.dir)); err != nil {
			t.Fatal(err)
		}
		p.kill()
		p.wasKilled()
		p = a.start()
		state, binding := a.state(p, id)
		switch state {
		case "pending":
			if now := a.installed(p); now.Revision != before.Revision {
				t.Errorf("it waits, and revision %d became %d", before.Revision, now.Revision)
			}
			waited++
		case "done":
			done++
		default:
			t.Fatalf("it is %s", state)
		}
		if binding != bound {
			t.Errorf("it was bound to %s, and is to %s", bound, binding)
		}
		for range 2 { // the second time changes nothing
			if r, err := send("POST", p.Admin+"/v1/approvals/"+id+"/approve", a.approver, []byte(`{}`)); err != nil || r.status != http.StatusOK {
				t.Fatalf("again: %v %d %s", err, r.status, r.body)
			}
		}
		now := a.installed(p)
		if state, _ := a.state(p, id); state != "done" || now.Revision != before.Revision+1 || now.Approval != id || now.Digest != a.digest ||
			len(now.Environments) != 1 || now.Environments[0] != "environment:"+environments[at%2] || len(now.Endpoints) != 1 {
			t.Errorf("it is %s, and installed is %+v after %+v", state, now, before)
		}
		a.verify()
		if survived {
			t.Logf("%d points: %d waited, %d were done", at-1, waited, done)
			break
		}
		p.kill()
		p = a.start()
	}
	if waited == 0 || done < 2 {
		t.Errorf("%d waited, %d were done: this shows nothing", waited, done)
	}
}

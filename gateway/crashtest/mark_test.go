package crashtest

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/ecotone-dev/ecotone/gateway/audit"
)

// S18: the server is killed when a change of policy is in the store and not in the mark, which are two
// files on two disks, perhaps. The next start finds the change, makes the mark of it, and serves: nobody
// is told that policy is stale after a mere crash, and a revocation that was not answered is in force.
func TestKillBetweenStoreAndMark(t *testing.T) {
	w, p := newWorld(t, audit.DurabilityPower)
	grants := func() map[string]bool {
		out := map[string]bool{}
		w.each(p, "/v1/grants", func(item json.RawMessage) {
			var g struct {
				ID      string
				Subject string
				Revoked *struct{}
			}
			if err := json.Unmarshal(item, &g); err != nil {
				t.Fatal(err)
			}
			if g.Subject == "user:bob" {
				out[g.ID] = g.Revoked != nil
			}
		})
		return out
	}
	die := func(method, path string, body []byte) {
		t.Helper()
		if err := os.WriteFile(between(w.dir), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := send(method, p.Admin+path, w.operator, body); err == nil {
			t.Fatalf("it was answered: %d %s", r.status, r.body)
		}
		<-p.done
		p.wasKilled()
		if err := os.Remove(between(w.dir)); err != nil {
			t.Fatal(err)
		}
		p = w.start()
	}
	for range 3 {
		die("POST", "/v1/grants", []byte(`{"subject":"user:bob","capability":"`+refDo+`","environment":"environment:project"}`))
		var made string
		for id, revoked := range grants() {
			if !revoked {
				made = id
			}
		}
		if made == "" {
			t.Fatal("the grant was in the store, and is not there")
		}
		die("DELETE", "/v1/grants/"+made, nil)
		if !grants()[made] {
			t.Fatal("the revocation was in the store, and is not there")
		}
	}
	p.stop()
	w.verify()
}

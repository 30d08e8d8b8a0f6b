package crashtest

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
)

// faults take the audit log away from a server that works, and give it back.
var faults = map[string]func(w *world, p *process) (repair func()){
	"disk down to the reserve": func(w *world, _ *process) func() {
		if err := os.WriteFile(fullDisk(w.dir), nil, 0o600); err != nil {
			w.t.Error(err)
		}
		return func() {
			if err := os.Remove(fullDisk(w.dir)); err != nil {
				w.t.Error(err)
			}
		}
	},
}

// M58, S8: the audit log cannot be written any more, while the server works. From then on nothing
// runs and nothing is changed, each request is told so, /readyz is red and /livez is not; what was
// under way is answered or not, and its row says the truth after the next start.
func TestAuditTakenAway(t *testing.T) {
	for name, take := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := newWorld(t, audit.DurabilityPower)
			if got := ready(t, p); got != http.StatusOK {
				t.Fatalf("/readyz is %d before", got)
			}
			var repair func()
			w.load(p, func(n int) {
				if n == clients {
					repair = take(w, p)
				}
			})
			if p.dead() {
				t.Fatalf("the server ended: %v\n%s", p.err, p.stderr.String())
			}
			if w.unrecorded == 0 || len(w.done) == 0 {
				t.Fatalf("%d answered, %d refused: this shows nothing", len(w.done), w.unrecorded)
			}

			seen := w.origin.count()
			for range 5 {
				r, err := w.invoke(p, refDo, newID())
				if err != nil || r.code() != string(abi.CodeAuditUnavailable) || r.status != http.StatusServiceUnavailable {
					t.Errorf("an invocation: %v %d %s", err, r.status, r.body)
				}
				if strings.Contains(string(r.body), w.dir) {
					t.Errorf("the answer shows a path: %s", r.body)
				}
			}
			if n := w.origin.count(); n != seen {
				t.Errorf("%d effects without a record", n-seen)
			}
			refused := w.operatorRefused(p)
			if got := ready(t, p); got != http.StatusServiceUnavailable {
				t.Errorf("/readyz is %d", got)
			}
			if r, err := send("GET", p.Ops+"/livez", "", nil); err != nil || r.status != http.StatusOK {
				t.Errorf("/livez: %v %d", err, r.status)
			}

			repair()
			p.kill()
			p.wasKilled()
			w.verify()
			p = w.start()
			w.check(p)
			w.each(p, "/v1/grants", func(item json.RawMessage) {
				if strings.Contains(string(item), refused) {
					t.Errorf("a grant that was refused is there: %s", item)
				}
			})
			if r, err := w.invoke(p, refDo, newID()); err != nil || r.status != http.StatusOK {
				t.Errorf("after the repair: %v %d %s", err, r.status, r.body)
			}
			p.stop()
		})
	}
}

// operatorRefused tries to give a grant and returns the subject that it was for.
func (w *world) operatorRefused(p *process) string {
	w.t.Helper()
	subject := "user:u" + newID()
	r, err := send("POST", p.Admin+"/v1/grants", w.operator, []byte(`{"subject":"`+subject+`","capability":"`+refDo+`","environment":"environment:project"}`))
	if err != nil || r.code() != string(abi.CodeAuditUnavailable) {
		w.t.Errorf("a grant: %v %d %s", err, r.status, r.body)
	}
	return subject
}

// ready asks /readyz. When it is red, the audit has to be what is.
func ready(t testing.TB, p *process) int {
	t.Helper()
	r, err := send("GET", p.Ops+"/readyz", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Checks map[string]string `json:"checks"`
	}
	if err := json.Unmarshal(r.body, &body); err != nil {
		t.Fatal(err)
	}
	for name, state := range body.Checks {
		if (state == "ok") != (name != "audit" || r.status == http.StatusOK) {
			t.Errorf("/readyz is %d, and %s is %q", r.status, name, state)
		}
	}
	return r.status
}

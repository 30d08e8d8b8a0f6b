package crashtest

import (
	"encoding/json"
	"net/http"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// acked is what the control plane said it did.
type acked struct {
	grants   map[string]bool // by id; true: the revocation too
	secrets  map[string]bool // by name
	biomes   map[string]bool // by name
	sessions map[string]bool // by token; true: it was closed again
}

func newAcked() acked {
	return acked{grants: map[string]bool{}, secrets: map[string]bool{}, biomes: map[string]bool{}, sessions: map[string]bool{}}
}

// ask makes one change. It is done when the answer says so; the error is that no answer came.
func (w *world) ask(p *process, method, path string, body []byte, v any, header ...string) (done bool, err error) {
	r, err := send(method, p.Admin+path, w.operator, body, header...)
	if err != nil {
		return false, err
	}
	switch {
	case r.code() == string(abi.CodeAuditUnavailable):
		return false, nil
	case r.status/100 != 2:
		w.t.Errorf("%s %s: %d %s", method, path, r.status, r.body)
		return false, nil
	case v != nil:
		if err := json.Unmarshal(r.body, v); err != nil {
			w.t.Errorf("%s %s: %v in %s", method, path, err, r.body)
		}
	}
	return true, nil
}

func (w *world) note(in map[string]bool, name string, v bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in[name] = v
}

// administer makes one turn of changes, each of which is noted once it was acknowledged: a grant,
// a secret, a session, on some turns what takes them back or an upload; and it keeps a head.
func (w *world) administer(p *process, turn int) error {
	id := newID()
	var g struct {
		ID string `json:"id"`
	}
	done, err := w.ask(p, "POST", "/v1/grants", []byte(`{"subject":"user:u`+id+`","capability":"`+refDo+`","environment":"environment:project"}`), &g)
	if done {
		w.note(w.acked.grants, g.ID, false)
	}
	if done && turn%2 == 1 {
		if done, err = w.ask(p, "DELETE", "/v1/grants/"+g.ID, nil, nil); done {
			w.note(w.acked.grants, g.ID, true)
		}
	}
	if err != nil {
		return err
	}
	done, err = w.ask(p, "PUT", "/v1/secrets/s"+id,
		[]byte(`{"value":"a secret of `+id+`","uses":[{"kind":"header","header":"Authorization","endpoint":"origin"}]}`), nil, "If-None-Match", "*")
	if done {
		w.note(w.acked.secrets, "s"+id, true)
	}
	if err != nil {
		return err
	}
	var s struct {
		Token string `json:"token"`
		Of    struct {
			ID string `json:"id"`
		} `json:"of"`
	}
	done, err = w.ask(p, "POST", "/v1/sessions", []byte(`{"subject":"user:u`+id+`","environment":"environment:project"}`), &s)
	if done {
		w.note(w.acked.sessions, s.Token, false)
	}
	if done && turn%3 == 1 {
		if done, err = w.ask(p, "DELETE", "/v1/sessions/"+s.Of.ID, nil, nil); done {
			w.note(w.acked.sessions, s.Token, true)
		}
	}
	if err != nil {
		return err
	}
	if turn%5 == 2 {
		module := wasmtest.Echo(wasmtest.Manifest("b"+id, wasmtest.Provide("b"+id+":it.echo@1", "echo", abi.ReachOwner)))
		if done, err = w.ask(p, "POST", "/v1/biomes", module, nil, "Content-Type", "application/wasm"); done {
			w.note(w.acked.biomes, "b"+id, true)
		}
		if err != nil {
			return err
		}
	}
	head, err := send("GET", p.Admin+"/v1/audit/head", w.operator, nil)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.heads = append(w.heads, head.body)
	w.mu.Unlock()
	return nil
}

// holdAdmin: what was acknowledged is there, and what was acknowledged as taken back is not in force.
func (w *world) holdAdmin(p *process) {
	w.t.Helper()
	grants := map[string]bool{}
	w.each(p, "/v1/grants", func(item json.RawMessage) {
		var g struct {
			ID      string          `json:"id"`
			Revoked json.RawMessage `json:"revoked"`
		}
		if err := json.Unmarshal(item, &g); err != nil {
			w.t.Fatal(err)
		}
		grants[g.ID] = len(g.Revoked) > 0 && string(g.Revoked) != "null" && string(g.Revoked) != "false"
	})
	for id, revoked := range w.acked.grants {
		is, there := grants[id]
		if !there || (revoked && !is) {
			w.t.Errorf("grant %s was acknowledged (revoked: %v); it is there: %v, revoked: %v", id, revoked, there, is)
		}
	}
	for list, names := range map[string]map[string]bool{"/v1/secrets": w.acked.secrets, "/v1/biomes": w.acked.biomes} {
		there := map[string]bool{}
		w.each(p, list, func(item json.RawMessage) {
			var named struct {
				Name string `json:"name"`
			}
			if err := json.Unmarshal(item, &named); err != nil {
				w.t.Fatal(err)
			}
			there[named.Name] = true
		})
		for name := range names {
			if !there[name] {
				w.t.Errorf("%s of %s was acknowledged and is not there", name, list)
			}
		}
	}
	for token, closed := range w.acked.sessions {
		r, err := send("GET", p.Invoke+"/v1/capabilities", token, nil)
		if err != nil {
			w.t.Fatal(err)
		}
		if (r.status == http.StatusOK) == closed {
			w.t.Errorf("a session was acknowledged (closed: %v); its token answers %d %s", closed, r.status, r.body)
		}
	}
}

package servertest_test

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/gateway/store"
	w "github.com/ecotone-dev/ecotone/host/wasm/wasmtest"
)

// disk is a store whose disk can go.
type disk struct {
	store.Store
	gone    atomic.Bool                   // nothing can be read or written
	full    atomic.Bool                   // nothing can be written
	forgets atomic.Bool                   // what is written is written, and it does not say so
	hang    atomic.Pointer[chan struct{}] // nothing is answered before it is closed
	only    atomic.Pointer[string]        // what is gone: the keys that begin with this part, and nothing else
}

var errGone = errors.New("the disk is gone")

// wait is for as long as the disk hangs, and not longer than who asks it waits.
func (d *disk) wait(ctx context.Context) error {
	if hang := d.hang.Load(); hang != nil {
		select {
		case <-*hang:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (d *disk) View(ctx context.Context, fn func(store.Tx) error) error {
	if err := d.wait(ctx); err != nil {
		return err
	}
	if d.gone.Load() {
		return errGone
	}
	return d.Store.View(ctx, func(tx store.Tx) error { return fn(diskTx{tx, d}) })
}

func (d *disk) Update(ctx context.Context, fn func(store.Tx) error) error {
	if err := d.wait(ctx); err != nil {
		return err
	}
	if d.gone.Load() || d.full.Load() {
		return errGone
	}
	err := d.Store.Update(ctx, func(tx store.Tx) error { return fn(diskTx{tx, d}) })
	if d.forgets.Load() {
		return errGone
	}
	return err
}

// diskTx is a transaction of which some keys cannot be read.
type diskTx struct {
	store.Tx
	d *disk
}

func (t diskTx) Get(key []byte) ([]byte, error) {
	if only := t.d.only.Load(); only != nil {
		if bytes.HasPrefix(key, store.Key(*only)) {
			return nil, errGone
		}
	}
	return t.Tx.Get(key)
}

// onDisk starts a gateway on a disk.
func onDisk(t *testing.T, options ...func(*server.Options)) (*servertest.Gateway, *disk) {
	t.Helper()
	d := &disk{}
	g := servertest.Start(t, append(options, func(o *server.Options) {
		o.Store = func(s store.Store) store.Store { d.Store = s; return d }
	})...)
	return g, d
}

// policyReady is what readiness says of policy.
func policyReady(g *servertest.Gateway) (status int, policy string) {
	g.T.Helper()
	var body struct{ Checks map[string]string }
	r := g.Do("GET", g.Ops+"/readyz", "", nil)
	r.JSON(&body)
	return r.Status, body.Checks["policy"]
}

// soon waits until something is so.
func soon(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: it never was so", what)
		}
	}
}

// outages are the ways in which a store can be lost. end is nil for one that lasts.
var outages = []struct {
	name  string
	begin func(g *servertest.Gateway, d *disk, spare string)
	end   func(d *disk)
}{
	{"gone", func(_ *servertest.Gateway, d *disk, _ string) { d.gone.Store(true) }, func(d *disk) { d.gone.Store(false) }},
	{"full", func(g *servertest.Gateway, d *disk, spare string) { // noticed by the first change that cannot be written
		d.full.Store(true)
		g.Control("DELETE", "/v1/grants/"+spare, nil).Refused(abi.CodeNotReady)
	}, func(d *disk) { d.full.Store(false) }},
	{"hanging", func(_ *servertest.Gateway, d *disk, _ string) {
		hang := make(chan struct{})
		d.hang.Store(&hang)
	}, func(d *disk) { close(*d.hang.Swap(nil)) }},
	{"closed", func(g *servertest.Gateway, d *disk, _ string) {
		if err := d.Store.Close(); err != nil {
			g.T.Error(err)
		}
	}, nil},
}

// X38, PF-A20, M58, PF-H7: with the policy store lost, in whatever way, every decision denies with POLICY_STALE: in all nine
// environments, for callers, explained and listed; what runs ends, and so there are no children either; nothing is
// changed. Each refusal has its row, readiness says so, the process lives, and the first good answer of the
// store ends it.
func TestStoreOutage(t *testing.T) {
	t.Parallel()
	for _, outage := range outages {
		t.Run(outage.name, func(t *testing.T) {
			t.Parallel()
			g, d := onDisk(t, servertest.Dev)
			admit(g, "st", script("st", nil,
				action{ref: "st:nothing.do@1", reach: abi.ReachOwner},
				action{ref: "st:key.put@1", reach: abi.ReachOwner, steps: []step{do("kv_put", "k", "1")}},
				action{ref: "st:key.get@1", reach: abi.ReachOwner, steps: []step{do("kv_get", "k")}, register: true},
			), everywhere(), nil)
			admitAll(t, g, scripted(w.Manifest("busy"), scripts{"spin": {{"spin"}}}), "project", nil)
			g.Control("PUT", "/v1/environments/project", map[string]any{"limits": map[string]int64{"fuel": abi.OperatorMax, "wall": 600_000}},
				"If-Match", g.Control("GET", "/v1/environments/project", nil).Want(200).Header.Get("ETag")).Want(200)
			spare := g.Grant("user:bob", "st:nothing.do@1", "project")
			sessions := map[string]*servertest.Session{}
			for _, e := range environment.BuiltIns() {
				sessions[e.Slug] = open(g, e)
			}
			s := sessions["project"]
			if errno(s.Invoke("st:key.put@1", none)) != 0 {
				t.Fatal("the key is not there")
			}
			_, spinning := inFlight(t, g, s, "test:busy.spin@1")

			defer func() { // however the test ends
				if hang := d.hang.Swap(nil); hang != nil {
					close(*hang)
				}
			}()
			outage.begin(g, d, spare)
			soon(t, "policy is stale", func() bool {
				status, policy := policyReady(g)
				return status == 503 && policy == string(abi.CodePolicyStale)
			})
			(<-spinning).Refused(abi.CodePolicyStale)
			g.Do("GET", g.Ops+"/livez", "", nil).Want(200)
			if n := started(g, func() {
				for slug, s := range sessions {
					r := s.Invoke("st:nothing.do@1", none).Refused(abi.CodePolicyStale)
					if row := row(g, r); row.Decision.Verdict != "deny" || row.Decision.Code != abi.CodePolicyStale || row.Decision.Environment != "environment:"+slug {
						t.Errorf("%s: the row says %+v", slug, row.Decision)
					}
					s.Invoke("st:key.put@1", none, "Ecotone-Classification", "secret").Refused(abi.CodePolicyStale)
					s.Invoke("nobody:has.this@1", none).Refused(abi.CodePolicyStale)
					if code := s.Explain("st:nothing.do@1", none).Code(); code != abi.CodePolicyStale {
						t.Errorf("%s: explained with %q", slug, code)
					}
					g.Do("GET", g.Invoke+"/v1/capabilities", s.Token, nil).Refused(abi.CodePolicyStale)
				}
			}); n != 0 {
				t.Errorf("%d guests were started", n)
			}
			if outage.name != "hanging" { // there a change waits for the store, as whatever reads it does
				g.Control("POST", "/v1/grants", map[string]string{"subject": "user:eve", "capability": "st:nothing.do@1", "environment": "environment:project"}).Refused(abi.CodePolicyStale)
				g.Control("POST", "/v1/sessions", map[string]string{"subject": "user:alice", "environment": "environment:project"}).Refused(abi.CodePolicyStale)
				g.Control("DELETE", "/v1/grants/"+spare, nil).Refused(abi.CodePolicyStale)
			}
			if outage.name == "gone" || outage.name == "closed" { // what is listed is what is stored: it cannot be read, not: it is not there
				g.Control("GET", "/v1/sessions/"+s.ID, nil).Refused(abi.CodeNotReady)
				g.Control("GET", "/v1/grants?subject=user:bob", nil).Refused(abi.CodeNotReady)
			}
			if outage.end == nil {
				return
			}
			outage.end(d)
			soon(t, "policy is known again", func() bool { status, _ := policyReady(g); return status == 200 })
			for slug, s := range sessions {
				if r := s.Invoke("st:nothing.do@1", none); r.Status != 200 {
					t.Errorf("%s: afterwards %d %s", slug, r.Status, r.Body)
				}
			}
			if r := s.Invoke("st:key.get@1", none).Want(200); string(r.Body) != "1" {
				t.Errorf("%s", r.Body)
			}
			g.Open("user:eve", "project", nil).Invoke("st:nothing.do@1", none).Refused(abi.CodeMissingGrant)
			g.Open("user:bob", "project", nil).Invoke("st:nothing.do@1", none).Want(200)
		})
	}
}

// PF-A20: a revocation that the store wrote and could not confirm is in force before the caller hears of it, or with
// the first answer of the store; no invocation passes between by what was before.
func TestRevocationInDoubt(t *testing.T) {
	t.Parallel()
	g, d := onDisk(t)
	admit(g, "st", script("st", nil, action{ref: "st:nothing.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	grant := g.Grant("user:bob", "st:nothing.do@1", "project")
	bob, alice := g.Open("user:bob", "project", nil), g.Open("user:alice", "project", nil)
	bob.Invoke("st:nothing.do@1", none).Want(200)
	d.forgets.Store(true)
	g.Control("DELETE", "/v1/grants/"+grant, nil).Refused(abi.CodeNotReady)
	for range 20 {
		if r := bob.Invoke("st:nothing.do@1", none); r.Code() != abi.CodePolicyStale && r.Code() != abi.CodeMissingGrant {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
	}
	d.forgets.Store(false)
	soon(t, "policy is known again", func() bool { status, _ := policyReady(g); return status == 200 })
	bob.Invoke("st:nothing.do@1", none).Refused(abi.CodeMissingGrant)
	alice.Invoke("st:nothing.do@1", none).Want(200)
	var last map[string]any
	for _, r := range g.Rows("&kind=admin&oldest=true") {
		if a := r["admin"].(map[string]any); a["operation"] == "grant.revoked" {
			last = a
		}
	}
	if last["object"] != grant || last["code"] != nil {
		t.Errorf("the last word on the revocation is %v", last)
	}
	g.Stop()
	g = servertest.Start(t, servertest.In(g.Dir))
	bob.G = g
	bob.Invoke("st:nothing.do@1", none).Refused(abi.CodeMissingGrant)
}

// S3, M58: a label that cannot be kept is not released, and its answer neither: of a store that is there
// for policy and not for marks.
func TestMarkThatCannotBeKept(t *testing.T) {
	t.Parallel()
	g, d := onDisk(t)
	admit(g, "st", script("st", nil, action{ref: "st:nothing.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	s := g.Open("user:alice", "project", nil)
	d.full.Store(true)
	s.Invoke("st:nothing.do@1", none, "Ecotone-Classification", "secret").Refused(abi.CodeNotReady)
	s.Invoke("st:nothing.do@1", none).Want(200) // nobody tried to change policy
	d.full.Store(false)
	s.Invoke("st:nothing.do@1", none, "Ecotone-Classification", "secret").Want(200)
}

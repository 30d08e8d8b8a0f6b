package servertest_test

import (
	"bytes"
	"context"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/catalogue"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/server"
	"github.com/ecotone-dev/ecotone/gateway/servertest"
	"github.com/ecotone-dev/ecotone/gateway/store"
	"github.com/ecotone-dev/ecotone/gateway/store/badger"
)

// X13, X15: when the catalogue cannot say a reach, a boundary environment denies, and the
// others let the grant decide and say so in the row. A capability whose reach is not on record
// is one of which the catalogue cannot say it.
func TestCatalogueOutage(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t, servertest.Dev)
	threeReaches(t, g)
	check := func(t *testing.T, g *servertest.Gateway, e environment.Environment) {
		s := open(g, e)
		n := started(g, func() {
			r := s.Invoke("test:owner.do@1", map[string]int{"n": 1})
			if e.Boundary() {
				r.Refused(abi.CodeUnclassified)
				return
			}
			r.Want(200)
			if got := row(g, r).Decision.ReachCheck; got != "deferred" {
				t.Errorf("the row says that the reach check was %s", got)
			}
		})
		if e.Boundary() == (n != 0) {
			t.Errorf("%d guests were started", n)
		}
		if !e.Waives { // the outage grants nothing
			g.Open("user:nobody", e.Slug, nil).Invoke("test:owner.do@1", map[string]int{"n": 1}).Refused(abi.CodeMissingGrant)
		}
	}
	for name, outage := range map[string]func(){
		"stopped": g.Catalogue.Stop,
		"slow":    func() { g.Catalogue.Start(); g.Catalogue.Delay(math.MaxInt64) },
	} {
		outage()
		for _, e := range environment.BuiltIns() {
			t.Run(name+"/"+e.Slug, func(t *testing.T) { check(t, g, e) })
		}
	}
	g.Catalogue.Start()
	if r := open(g, environment.BuiltIns()[0]).Invoke("test:owner.do@1", map[string]int{"n": 1}).Want(200); row(g, r).Decision.ReachCheck != "enforced" {
		t.Error("the outage did not end")
	}
	var b struct{ Digest string }
	g.Control("GET", "/v1/biomes/three", nil).Want(200).JSON(&b)
	g.Stop()
	st, err := badger.Open(g.Dir, true)
	if err != nil {
		t.Fatal(err)
	}
	err = st.Update(t.Context(), func(tx store.Tx) error {
		key := catalogue.Key("default", b.Digest, "test:owner.do@1")
		if _, err := tx.Get(key); err != nil {
			return err
		}
		return tx.Delete(key)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	g = servertest.Start(t, servertest.Dev, servertest.In(g.Dir))
	for _, e := range environment.BuiltIns() {
		t.Run("no record/"+e.Slug, func(t *testing.T) { check(t, g, e) })
	}
}

// S9: a module that is warm where its platform host call works is still held to what an
// environment, or an undeclared reach, admits: the call resolves to a stub that denies and is
// on record.
func TestWarmInstancesStayBounded(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	admit(g, "warm", script("warm", nil,
		action{ref: "warm:platform.do@1", reach: abi.ReachPlatform, steps: []step{do("audit_query", "{}")}},
		action{ref: "warm:owner.do@1", reach: abi.ReachOwner, steps: []step{do("audit_query", "{}")}}, // the module may import it, this capability may not use it
	), everywhere(), nil)
	sessions := map[string]*servertest.Session{}
	for _, slug := range everywhere() {
		sessions[slug] = g.Open("user:alice", slug, nil)
	}
	want := func(slug, ref string, n abi.Errno, code abi.Code) {
		t.Helper()
		r := sessions[slug].Invoke(ref, none)
		if got := errno(r); got != n {
			t.Fatalf("%s in %s: errno %d", ref, slug, got)
		}
		if got, made := row(g, r).lineCode("audit_query"); !made || got != code {
			t.Errorf("%s in %s: the receipt says %q", ref, slug, got)
		}
	}
	for range 20 {
		want("org", "warm:platform.do@1", 0, "")
		want("org", "warm:owner.do@1", abi.EDENIED, abi.CodeReachCeiling)
		want("project", "warm:owner.do@1", abi.EDENIED, abi.CodeReachCeiling)
		want("sandbox", "warm:owner.do@1", abi.EDENIED, abi.CodeReachCeiling)
		sessions["project"].Invoke("warm:platform.do@1", none).Refused(abi.CodeReachCeiling)
		sessions["sandbox"].Invoke("warm:platform.do@1", none).Refused(abi.CodeReachCeiling)
	}
	g.Catalogue.Stop()
	for slug := range sessions {
		e, _ := environment.BuiltIn(abi.MakeEnvironmentRef(slug))
		if e.Boundary() {
			sessions[slug].Invoke("warm:platform.do@1", none).Refused(abi.CodeUnclassified)
			continue
		}
		want(slug, "warm:platform.do@1", abi.EDENIED, abi.CodeReachCeiling)
	}
}

// M58, PF-G5: when the audit log cannot be written, everything is refused, readiness says
// so, liveness does not care, and it ends when the log can be written again.
func TestAuditOutage(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	g := servertest.Start(t, func(o *server.Options) {
		o.DiskFree = func(string) (uint64, error) {
			if full.Load() {
				return 0, nil
			}
			return math.MaxInt64, nil
		}
	})
	admit(g, "audited", script("audited", nil, action{ref: "au:a.do@1", reach: abi.ReachOwner}), []string{"project"}, nil)
	s := g.Open("user:alice", "project", nil)
	s.Invoke("au:a.do@1", none).Want(200)
	ready := func() int { return g.Do("GET", g.Ops+"/readyz", "", nil).Status }
	if ready() != 200 {
		t.Fatal("not ready")
	}
	full.Store(true)
	if n := started(g, func() {
		s.Invoke("au:a.do@1", none).Refused(abi.CodeAuditUnavailable)
		s.Explain("au:a.do@1", none).Refused(abi.CodeAuditUnavailable)
		s.Invoke("nobody:has.this@1", none).Refused(abi.CodeAuditUnavailable)
		g.Control("POST", "/v1/grants", map[string]string{"subject": "user:bob", "capability": "au:a.do@1", "environment": "environment:project"}).Refused(abi.CodeAuditUnavailable)
	}); n != 0 {
		t.Errorf("%d guests were started", n)
	}
	if got := ready(); got != 503 {
		t.Errorf("/readyz answers %d", got)
	}
	g.Do("GET", g.Ops+"/livez", "", nil).Want(200)
	full.Store(false)
	s.Invoke("au:a.do@1", none).Want(200)
	if ready() != 200 {
		t.Error("it does not recover")
	}
	g.Open("user:bob", "project", nil).Invoke("au:a.do@1", none).Refused(abi.CodeMissingGrant) // the refused grant was not made
}

// M58: a part that an invocation needs and that does not answer is a red readiness too.
func TestReadinessNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	var body struct{ Checks map[string]string }
	g.Catalogue.Stop()
	g.Do("GET", g.Ops+"/readyz", "", nil).Want(503).JSON(&body)
	if body.Checks["catalogue"] == "ok" || body.Checks["audit"] != "ok" {
		t.Errorf("%v", body.Checks)
	}
	g.Catalogue.Start()
	g.Do("GET", g.Ops+"/readyz", "", nil).Want(200)
	if err := os.Remove(filepath.Join(g.Dir, "SCHEMA")); err != nil {
		t.Fatal(err)
	}
	g.Do("GET", g.Ops+"/readyz", "", nil).Want(503)
	g.Do("GET", g.Ops+"/livez", "", nil).Want(200)
}

// contents are all files below a directory.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		out[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// M49: a data directory of another schema is refused with a clear word and left as it is, byte by byte.
func TestOtherSchemasAreLeftAlone(t *testing.T) {
	t.Parallel()
	g := servertest.Start(t)
	g.Stop()
	schema := filepath.Join(g.Dir, "SCHEMA")
	for _, other := range []string{`{"schema":1,"dev":false}`, `{"schema":3,"dev":false}`, `{"schema":2,"dev":false,"x":1}`, `{}`, ``, `2`, "absent"} {
		if other == "absent" {
			if err := os.Remove(schema); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(schema, []byte(other), 0o600); err != nil {
			t.Fatal(err)
		}
		before := contents(t, g.Dir)
		s, err := server.Open(context.Background(), server.Options{
			Dir: g.Dir, Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", OpsListen: "127.0.0.1:0", Limits: abi.DefaultLimits(),
		})
		if err == nil {
			s.Close()
			t.Fatalf("%q was opened", other)
		}
		if e := abi.AsError(err); e.Code != abi.CodeSchemaUnsupported || e.Hint == "" {
			t.Errorf("%q: %v", other, err)
		}
		after := contents(t, g.Dir)
		for path, was := range before {
			if now, there := after[path]; !there || !bytes.Equal(was, now) {
				t.Errorf("%q: %s changed", other, filepath.Base(path))
			}
		}
		if len(after) != len(before) {
			t.Errorf("%q: %d files became %d", other, len(before), len(after))
		}
	}
}

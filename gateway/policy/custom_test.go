package policy

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// limitsOf reads the stored limits of a built-in environment.
func (s *server) limitsOf(slug string) (rec limitsRecord, there bool) {
	s.t.Helper()
	must(s.t, s.store.View(s.t.Context(), func(tx store.Tx) error {
		raw, err := tx.Get(keyOf(limitsRecord{Environment: env(slug)}))
		if err != nil {
			return nil
		}
		there = true
		return json.Unmarshal(raw, &rec)
	}))
	return rec, there
}

// PF-I10: the first start stores the limits of the nine as it resolved them. A version with other
// defaults finds those; what an older version never stored is stored once, as it is then.
func TestLimitsAreStored(t *testing.T) {
	s := start(t, false)
	for _, e := range environment.BuiltIns() {
		rec, there := s.limitsOf(e.Slug)
		if !there || rec.Revision != 1 || len(rec.Limits) != len(environment.LimitsByName(e.Limits)) {
			t.Errorf("%s: %v %+v", e.Slug, there, rec)
		}
	}
	// As a version left it whose default was another, and one that stored nothing of another.
	rec, _ := s.limitsOf("project")
	rec.Limits["wall"] = 1234
	forge(t, s.store, func(tx store.Tx) error {
		if err := put(tx, rec); err != nil {
			return err
		}
		return tx.Delete(keyOf(limitsRecord{Environment: env("org")}))
	})
	again := s.again()
	if got := again.Snapshot().EnvironmentIn("", env("project")); got.Limits.Get(abi.LimitWall) != 1234 || got.Revision != 1 {
		t.Errorf("project has %d, revision %d", got.Limits.Get(abi.LimitWall), got.Revision)
	}
	if _, there := again.limitsOf("org"); !there {
		t.Error("what was not stored is not stored now")
	}
	if e := again.audit.last(); e.Name != string(OpLimits) || e.Principal != bootstrapper.Name() {
		t.Errorf("recorded as %+v", e)
	}
	if n := again.Snapshot().Generation; again.again().Snapshot().Generation != n {
		t.Error("a start that had nothing to store changed something")
	}
}

// X53: an organisation has a bounded number of environments of its own; one that is gone makes room, and
// not for its own name.
func TestOwnEnvironmentsAreBounded(t *testing.T) {
	s := start(t, false)
	create := func(slug string) error {
		return second(s.CreateEnvironment(t.Context(), s.op, EnvironmentRequest{Org: DefaultOrg, Slug: slug, Base: env("project")}))
	}
	for i := range environment.MaxCustom {
		must(t, create(fmt.Sprintf("e%d", i)))
	}
	code(t, create("one-more"), abi.CodeQuotaExceeded)
	must(t, s.DeleteEnvironment(t.Context(), s.op, DefaultOrg, "e0", 1))
	code(t, create("e0"), abi.CodeConflict)
	must(t, create("one-more"))
	code(t, create("and-another"), abi.CodeQuotaExceeded)
	list, err := s.again().OwnEnvironments(s.op, DefaultOrg)
	must(t, err)
	if len(list) != environment.MaxCustom {
		t.Errorf("%d", len(list))
	}
}

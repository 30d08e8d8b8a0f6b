package gate

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/grant"
)

// withEnding is a world's snapshot in which the callee is in a state of its lifecycle.
func withEnding(w world, e Ending) *Snapshot {
	s := w.snapshot()
	s.Orgs.At(w.org).Biomes.At("notes").Endings = map[abi.CapabilityRef]Ending{callee: e}
	return s
}

// X61: in every world and for every caller, retiring a capability only ever denies: whoever was allowed is told
// that it is retired and what to use instead, and whoever was not is told what they were told before,
// or that. Who may not know of it learns nothing. Deprecating changes no decision.
func TestRetiringOnlyDenies(t *testing.T) {
	next := abi.CapabilityRef("notes:note.read@2")
	allowed := 0
	property := func(t *rapid.T) {
		w := drawWorld(t)
		f := drawFacts(t, w)
		before := decide(w, f)
		retired, deprecated := Decide(withEnding(w, Ending{grant.Retired, next}), &f), Decide(withEnding(w, Ending{grant.Deprecated, next}), &f)
		if deprecated.Verdict != before.Verdict || deprecated.Code != before.Code || deprecated.Checks != before.Checks {
			t.Fatalf("deprecated: %+v, before: %+v", deprecated, before)
		}
		if f.Capability != callee {
			return
		}
		if retired.Verdict != Deny {
			t.Fatal("a retired capability is not denied")
		}
		switch known := before.Biome != ""; {
		case !known:
			if retired.Code != before.Code || retired.Checks != before.Checks || retired.Ending != (Ending{}) || deprecated.Ending != (Ending{}) {
				t.Fatalf("a stranger is told %+v, and before %+v", retired, before)
			}
		case retired.Ending.ReplacedBy != next || deprecated.Ending.State != grant.Deprecated:
			t.Fatalf("the successor is not named: %+v, %+v", retired.Ending, deprecated.Ending)
		case w.calleeDisabled && retired.Code != abi.CodeBiomeDisabled || !w.calleeDisabled && retired.Code != abi.CodeCapabilityRetired:
			t.Fatalf("the code is %s, before %q", retired.Code, before.Code)
		case before.Verdict == Allow:
			allowed++
		}
	}
	for round := 0; allowed == 0 && round < 100; round++ {
		rapid.Check(t, property)
	}
	if allowed == 0 {
		t.Error("nothing was ever allowed: the property says nothing")
	}
}

// What serves a ref: where uploads are tried the last one that has it, everywhere else the newest that was
// installed and has it; where nothing has it, what would serve the biome otherwise.
func TestServing(t *testing.T) {
	provides := func(digest string, refs ...abi.CapabilityRef) *Admission {
		a := &Admission{Digest: digest, Capabilities: map[abi.CapabilityRef]*abi.Descriptor{}}
		for _, r := range refs {
			a.Capabilities[r] = &abi.Descriptor{Ref: r}
		}
		return a
	}
	const a, b, c, d, nowhere = abi.CapabilityRef("x:a@1"), abi.CapabilityRef("x:b@1"), abi.CapabilityRef("x:c@1"), abi.CapabilityRef("x:d@1"), abi.CapabilityRef("x:e@1")
	of := &Biome{Newest: provides("newest", a, d), Installed: provides("installed", a, b), Older: []*Admission{provides("older", b, c), provides("oldest", c)}}
	fresh := &Biome{Newest: of.Newest}
	for _, env := range environment.BuiltIns() {
		tried := env.Slug == environment.Sandbox || env.Slug == environment.TrustedDev
		want := map[abi.CapabilityRef]string{a: "installed", b: "installed", c: "older", d: "installed", nowhere: "installed"}
		if tried {
			want[a], want[d] = "newest", "newest"
		}
		for r, digest := range want {
			if got := of.serving(r, &env).Digest; got != digest {
				t.Errorf("%s in %s is served by %s, not %s", r, env.Slug, got, digest)
			}
			if got := fresh.serving(r, &env); got != fresh.Newest {
				t.Errorf("with nothing installed %s is served by %s", r, got.Digest)
			}
		}
	}
}

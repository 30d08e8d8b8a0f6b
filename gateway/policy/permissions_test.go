package policy

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
)

// The examples of RFC 8785 that concern what documents here are made of.
func TestCanonical(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:  `{}`,
		`[ ]`: `[]`,
		`{"b":[true,false,null],"a":{"d":"e","c":[]}}`:                         `{"a":{"c":[],"d":"e"},"b":[true,false,null]}`,
		`{"s":"<&>\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"\/\u2028\u007f"}`: "{\"s\":\"<&>\u20ac$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\u2028\u007f\"}",
	} {
		got, err := canonical(json.RawMessage(text))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	if got, err := canonical(map[string]any{"n": 1}); err == nil {
		t.Errorf("a number: %s", got)
	}
}

// lists draws some of a few words, in any order.
func lists[T any](rt *rapid.T, label string, all ...T) []T {
	shuffled := rapid.Permutation(all).Draw(rt, label)
	return shuffled[:rapid.IntRange(0, len(all)).Draw(rt, "how many")]
}

func drawUpload(rt *rapid.T) *uploadState {
	m := &abi.Manifest{Name: "notes"}
	for _, ref := range lists(rt, "provides", abi.CapabilityRef("a:b.c@1"), "a:b.c@2", "a:d.e@1", "b:b.c@1") {
		m.Provides = append(m.Provides, abi.Descriptor{
			Ref: ref, Reach: rapid.SampledFrom([]abi.Reach{abi.ReachOwner, abi.ReachIntegration, abi.ReachPlatform}).Draw(rt, "reach"), RiskTier: abi.RiskLow,
			OutputClassification: rapid.SampledFrom(abi.Classifications()).Draw(rt, "class"), SideEffects: rapid.String().Draw(rt, "effects"),
			RequiresApproval: rapid.Bool().Draw(rt, "approval"),
		})
	}
	m.Requires.Capabilities = lists(rt, "calls", abi.CapabilityRef("c:c.c@1"), "d:d.d@1")
	m.Requires.Endpoints = lists(rt, "endpoints", abi.Need{Name: "one"}, abi.Need{Name: "two"})
	m.Requires.Secrets = lists(rt, "secrets", abi.Need{Name: "one"}, abi.Need{Name: "three"})
	return &uploadState{manifest: m, record: Upload{Functions: lists(rt, "imports", "file_read", "kv_get", "kv_put", "http_fetch", "audit_query", "output")}}
}

// X63: a document does not depend on the order in which a manifest says things; two documents have
// the same digest exactly when they permit the same and say the same of it; and a difference, applied, makes the one out of the other.
func TestPermissionsProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		u, other := drawUpload(rt), drawUpload(rt)
		p, q := u.permissions(), other.permissions()
		sum := func(p Permissions) string {
			d, err := digestOf(p)
			if err != nil {
				rt.Fatal(err)
			}
			return d
		}
		m := *u.manifest
		m.Provides = rapid.Permutation(m.Provides).Draw(rt, "again")
		m.Requires.Endpoints = rapid.Permutation(m.Requires.Endpoints).Draw(rt, "again")
		again := (&uploadState{manifest: &m, record: Upload{Functions: append(slices.Clone(u.record.Functions), u.record.Functions...)}}).permissions()
		if sum(p) != sum(again) {
			rt.Errorf("the order matters: %s", cmp.Diff(p, again))
		}
		d := diff(&p, &q)
		if same := len(d.Added)+len(d.Removed)+len(d.Changed) == 0; same != (sum(p) == sum(q)) {
			rt.Errorf("same %v, digests %s and %s: %s", same, sum(p), sum(q), cmp.Diff(p, q))
		}
		lines, target := p.lines(), q.lines()
		for _, l := range d.Removed {
			delete(lines, l)
		}
		for _, l := range d.Added {
			lines[l] = target[l]
		}
		for _, c := range d.Changed {
			if lines[c.PermissionsLine][c.Field] != c.From {
				rt.Errorf("%+v", c)
			}
			lines[c.PermissionsLine][c.Field] = c.To
		}
		if diff := cmp.Diff(lines, target); diff != "" {
			rt.Error(diff)
		}
		if first := diff(nil, &q); len(first.Added) != len(target) || len(first.Removed)+len(first.Changed) != 0 {
			rt.Errorf("before the first install: %+v", first)
		}
	})
}

// An upload of which it is not known what it imports may everything that its reach lets it.
func TestPermissionsUnknownImports(t *testing.T) {
	m := &abi.Manifest{Name: "old", Provides: []abi.Descriptor{{Ref: "a:b.c@1", Reach: abi.ReachIntegration, RiskTier: abi.RiskLow, OutputClassification: abi.Public}}}
	got := (&uploadState{manifest: m}).permissions().Data
	for service, in := range map[string]bool{"files": true, "keys": true, "network": true, "secrets": true, "children": true, "audit": false} {
		if (len(got[service]) > 0) != in {
			t.Errorf("%s: %q", service, got[service])
		}
	}
	if none := (&uploadState{manifest: m, record: Upload{Functions: []string{}}}).permissions().Data; len(none) != 0 {
		t.Errorf("one that imports nothing: %q", none)
	}
	// Every host function has a service, or none because it only speaks with the caller.
	for _, f := range abi.Functions() {
		if (services[f.Group] == "") != (f.Group == abi.GroupCall) {
			t.Errorf("%s: service %q", f.Name, services[f.Group])
		}
	}
}

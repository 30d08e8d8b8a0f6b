package environment

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
)

// X2, X3, X9, X13, X17: the nine, their ceilings and families, as the API shows them.
func TestBuiltIns(t *testing.T) {
	var got []string
	for _, e := range BuiltIns() {
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var shown map[string]any
		if err := json.Unmarshal(data, &shown); err != nil {
			t.Fatal(err)
		}
		if shown["ref"] != "environment:"+e.Slug || shown["slug"] != e.Slug || shown["isBuiltIn"] != true {
			t.Errorf("%s", data)
		}
		if shown["available"] != (e.Slug != "trusted-dev") { // X7
			t.Errorf("%s is shown as available: %v", e.Slug, shown["available"])
		}
		if _, ok := shown["allowedCapabilities"]; ok { // X55
			t.Errorf("%s has a list of capabilities", e.Slug)
		}
		if limits := shown["limits"].(map[string]any); limits["wall"] != 5000.0 || limits["running"] != nil {
			t.Errorf("limits of %s: %v", e.Slug, limits)
		}
		got = append(got, e.Slug+" "+shown["reachCeiling"].(string)+" "+shown["enforcement"].(string)+" "+shown["maxDataClassification"].(string))
	}
	want := []string{
		"system platform refinement regulated",
		"org platform refinement regulated",
		"project integration refinement regulated",
		"app integration refinement regulated",
		"session integration refinement regulated",
		"sandbox owner boundary regulated",
		"public owner boundary regulated",
		"store-review owner boundary regulated",
		"trusted-dev platform refinement regulated",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestZeroFamilyDenies(t *testing.T) {
	var e Environment
	if !e.Boundary() {
		t.Error("an environment that says nothing defers")
	}
}

// X20, X21: overrides tighten built-in environments, and nothing else.
func TestOverride(t *testing.T) {
	for name, c := range map[string]struct {
		o    Override
		want abi.Code
	}{
		"tighter":  {Override{Environment: "environment:project", MaxData: abi.Internal}, ""},
		"the same": {Override{Environment: "environment:project", MaxData: abi.Regulated}, ""},
		"custom":   {Override{Environment: "environment:mine", MaxData: abi.Public}, abi.CodeUnsupportedRule},
		"nothing":  {Override{Environment: "environment:project"}, abi.CodeInvalidRequest},
		"no ref":   {Override{MaxData: abi.Public}, abi.CodeUnsupportedRule},
	} {
		if err := c.o.Check(); (err == nil) != (c.want == "") || err != nil && err.Code != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, own := range abi.Classifications() {
		e := Environment{MaxData: own}
		if e.Effective(nil) != own {
			t.Errorf("without an override %s is %s", own, e.Effective(nil))
		}
		for _, over := range append(abi.Classifications(), 0) {
			if got := e.Effective(&Override{MaxData: over}); got > own || over.Valid() && got != min(own, over) || !over.Valid() && got != abi.Public {
				t.Errorf("%s under an override of %s is %s", own, over, got)
			}
		}
	}
}

// PF-D1, PF-H10: only limits that an environment resolves, and only values that mean something.
func TestSetLimits(t *testing.T) {
	l := abi.DefaultLimits()
	got, err := SetLimits(l, map[string]int64{"wall": 100, "hostCalls": 7})
	if err != nil || got.Get(abi.LimitWall) != 100 || got.Get(abi.LimitHostCalls) != 7 || l.Get(abi.LimitWall) != 5000 {
		t.Errorf("%v %v", got.Get(abi.LimitWall), err)
	}
	for name, v := range map[string]int64{"wall": 0, "memoryBytes": -1, "hostCalls": 1 << 62, "running": 1, "moduleBytes": 1, "Wall": 1, "nope": 1} {
		if _, err := SetLimits(l, map[string]int64{name: v}); err == nil || err.Pointer != "/limits/"+name {
			t.Errorf("%s=%d: %v", name, v, err)
		}
	}
}

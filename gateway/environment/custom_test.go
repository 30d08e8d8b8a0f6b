package environment

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
)

// drawCustom draws any record at all, also such as no request could make.
func drawCustom(t *rapid.T, base abi.EnvironmentRef) Custom {
	c := Custom{
		Org: "acme", Slug: "own", Base: base, Reach: abi.Reach(rapid.IntRange(0, 3).Draw(t, "reach")),
		MaxData: abi.Classification(rapid.IntRange(0, 5).Draw(t, "max")), Boundary: rapid.Bool().Draw(t, "boundary"), Revision: 1,
	}
	names := []string{"wall", "memory", "input", "no-such-limit"}
	c.Limits = rapid.MapOfN(rapid.SampledFrom(names), rapid.Int64Range(-1, 1<<40), 0, 3).Draw(t, "limits")
	if rapid.Bool().Draw(t, "list") {
		c.Allowed = rapid.SliceOfNDistinct(rapid.SampledFrom([]abi.CapabilityRef{"a:b.c@1", "a:b.d@1"}), 0, 2, rapid.ID[abi.CapabilityRef]).Draw(t, "allowed")
	}
	return c
}

// drawBase draws a built-in environment as an operator may have limited it.
func drawBase(t *rapid.T) Environment {
	b := rapid.SampledFrom(BuiltIns()).Draw(t, "base")
	if rapid.Bool().Draw(t, "limited") {
		b.Limits, _ = SetLimits(b.Limits, map[string]int64{"wall": rapid.Int64Range(1, 10_000).Draw(t, "wall")})
	}
	return b
}

func drawOverride(t *rapid.T, of abi.EnvironmentRef) *Override {
	if rapid.Bool().Draw(t, "no override") {
		return nil
	}
	return &Override{Org: "acme", Environment: of, MaxData: rapid.SampledFrom(abi.Classifications()).Draw(t, "override")}
}

// X56, X22: whatever the record says, and whatever becomes of its base and of the override of it, what
// holds is in no coordinate more than the base under the override.
func TestCustomIsWithinItsBase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := drawBase(t)
		c := drawCustom(t, base.Ref)
		for range 3 { // the base changes after the record was written
			over := drawOverride(t, base.Ref)
			e := c.Resolve(&base, over)
			switch {
			case e.Reach > base.Reach, e.MaxData > base.Effective(over), e.Limits.Tighten(base.Limits) != e.Limits:
				t.Fatalf("more than its base: %+v of %+v", e, base)
			case base.Boundary() && !e.Boundary(), c.Boundary && !e.Boundary():
				t.Fatalf("not a boundary: %+v", e)
			case e.Waives, e.BuiltIn, e.Available && !base.Available, e.Org != "acme", e.Base != base.Ref:
				t.Fatalf("not what it is: %+v", e)
			}
			if named, ok := e.Allows("a:b.c@1"); named != (c.Allowed != nil) || ok && !contains(c.Allowed, "a:b.c@1") {
				t.Fatalf("it names capabilities: %v, and this one: %v", named, ok)
			}
			base.Limits, _ = SetLimits(base.Limits, map[string]int64{"wall": rapid.Int64Range(1, 10_000).Draw(t, "wall")})
		}
	})
}

func contains(refs []abi.CapabilityRef, ref abi.CapabilityRef) bool {
	for _, r := range refs {
		if r == ref {
			return true
		}
	}
	return false
}

// X56: what a request may ask for is what resolving leaves as it is.
func TestWithinIsWhatResolves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := drawBase(t)
		over := drawOverride(t, base.Ref)
		c := drawCustom(t, base.Ref)
		if c.Check() != nil {
			return
		}
		e := c.Resolve(&base, over)
		asked, _ := SetLimits(base.Limits, c.Limits)
		kept := e.Reach == c.Reach && e.MaxData == c.MaxData && e.Limits == asked
		if err := c.Within(&base, over); (err == nil) != kept {
			t.Fatalf("%v, and resolved as asked: %v\n%+v\n%+v", err, kept, c, e)
		}
	})
}

// X54, X55, X56: what no record may say.
func TestCustomCheck(t *testing.T) {
	good := func() Custom {
		return Custom{Org: "acme", Slug: "own", Base: "environment:project", Reach: abi.ReachOwner, MaxData: abi.Secret, Revision: 1}
	}
	c := good()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	many := make([]abi.CapabilityRef, MaxAllowed+1)
	for i := range many {
		many[i] = abi.CapabilityRef(fmt.Sprintf("a:b.c%d@1", i))
	}
	for name, bad := range map[string]struct {
		code   abi.Code
		change func(*Custom)
	}{
		"no slug":         {abi.CodeInvalidRequest, func(c *Custom) { c.Slug = "" }},
		"odd slug":        {abi.CodeInvalidRequest, func(c *Custom) { c.Slug = "Own" }},
		"a built-in":      {abi.CodeBuiltInImmutable, func(c *Custom) { c.Slug = "project" }},
		"no base":         {abi.CodeInvalidRequest, func(c *Custom) { c.Base = "" }},
		"an own base":     {abi.CodeInvalidRequest, func(c *Custom) { c.Base = "environment:other" }},
		"waives":          {abi.CodeUnsupportedRule, func(c *Custom) { c.Base = "environment:trusted-dev" }},
		"no reach":        {abi.CodeInvalidRequest, func(c *Custom) { c.Reach = 0 }},
		"a wider reach":   {abi.CodeCeilingLoosened, func(c *Custom) { c.Reach = abi.ReachPlatform }},
		"no level":        {abi.CodeInvalidRequest, func(c *Custom) { c.MaxData = 0 }},
		"an empty list":   {abi.CodeUnsupportedRule, func(c *Custom) { c.Allowed = []abi.CapabilityRef{} }},
		"a long list":     {abi.CodeUnsupportedRule, func(c *Custom) { c.Allowed = many }},
		"a pattern":       {abi.CodeInvalidRequest, func(c *Custom) { c.Allowed = []abi.CapabilityRef{"kb:*"} }},
		"listed twice":    {abi.CodeInvalidRequest, func(c *Custom) { c.Allowed = []abi.CapabilityRef{"a:b.c@1", "a:b.c@1"} }},
		"no such limit":   {abi.CodeUnknownField, func(c *Custom) { c.Limits = map[string]int64{"speed": 1} }},
		"a limit of none": {abi.CodeInvalidRequest, func(c *Custom) { c.Limits = map[string]int64{"wall": 0} }},
	} {
		c := good()
		bad.change(&c)
		if err := c.Check(); abi.CodeOf(asError(err)) != bad.code {
			t.Errorf("%s: %v, want %s", name, err, bad.code)
		}
	}
}

func asError(e *abi.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// P5: without its configuration an environment has no limits and names no capabilities.
func TestBlank(t *testing.T) {
	base, _ := BuiltIn("environment:project")
	c := Custom{Org: "acme", Slug: "own", Base: base.Ref, Reach: abi.ReachOwner, MaxData: abi.Secret, Allowed: []abi.CapabilityRef{"a:b.c@1"}}
	for _, e := range []Environment{base, c.Resolve(&base, nil)} {
		for blank, shown := range map[bool]Environment{false: e, true: e.Blank()} {
			data, err := json.Marshal(shown)
			if err != nil {
				t.Fatal(err)
			}
			var doc map[string]json.RawMessage
			if err := json.Unmarshal(data, &doc); err != nil {
				t.Fatal(err)
			}
			_, lists := doc["allowedCapabilities"]
			if lists != (!blank && !e.BuiltIn) || (string(doc["limits"]) == "{}") != blank {
				t.Errorf("blank %v: %s", blank, data)
			}
		}
	}
}

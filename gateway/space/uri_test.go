package space

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
)

// X69: from the least to the most specific, by the plurals of a closed set.
func TestParseURI(t *testing.T) {
	for _, s := range []string{
		"ecotone://orgs/default", "ecotone://systems/default", "ecotone://users/ada", "ecotone://users/ada/sessions/talk",
		"ecotone://orgs/default/projects/team/projects/part/apps/crm/sessions/talk", "ecotone://orgs/default/biomes/build",
	} {
		if u, err := ParseURI(s); err != nil || u.String() != s || u.ID() != s[strings.LastIndexByte(s, '/')+1:] {
			t.Errorf("%s: %v %v", s, u, err)
		}
	}
	for _, s := range []string{
		"", "ecotone://", "ecotone:///", "ecotone://orgs", "ecotone://orgs/", "ecotone://orgs/default/", "/orgs/default", "orgs/default",
		"xema://orgs/default", "ECOTONE://orgs/default", "ecotone://org/default", "ecotone://Orgs/default", "ecotone://teams/x", "ecotone://s/x",
		"ecotone://projects/team", "ecotone://projects/team/orgs/default", "ecotone://sessions/talk/orgs/default",
		"ecotone://orgs/default/users/ada", "ecotone://users/ada/projects/team", "ecotone://orgs/default/orgs/other",
		"ecotone://orgs/default/sessions/talk/sessions/more", "ecotone://orgs/Default", "ecotone://orgs/..", "ecotone://orgs/%64efault",
		"ecotone://orgs/default?x=1", "ecotone://orgs/default#x", "ecotone://orgs//default", "ecotone://orgs/default" + strings.Repeat("/projects/p", MaxDepth),
	} {
		if u, err := ParseURI(s); abi.CodeOf(err) != abi.CodeInvalidRequest || u != nil {
			t.Errorf("%q: %v %v", s, u, err)
		}
	}
}

// X69: what is parsed is written the same, and is a chain that spaces may form.
func FuzzParseURI(f *testing.F) {
	for _, s := range []string{"ecotone://orgs/default/projects/team/sessions/talk", "ecotone://users/ada", "ecotone://orgs/a/b", "ecotone://ss/a", "ecotone://orgs/a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := ParseURI(s)
		if err != nil {
			return
		}
		if u.String() != s {
			t.Fatalf("%q is written %q", s, u)
		}
		var around []Space
		for _, seg := range u {
			one := Space{ID: seg.ID, Kind: seg.Kind, Floor: abi.Public, Clearance: abi.Regulated}
			if err := one.Check(around...); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
			around = append(around, one)
		}
		if got := URIOf(around...); !slices.Equal(got, u) {
			t.Fatalf("%v, of its chain %v", u, got)
		}
	})
}

// X22, X23, promise 2: whatever chain of spaces can be made, what holds in each of them is at least as
// tight as what holds around it.
func TestInnerSpacesOnlyTighten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var chain []Space
		kind := rapid.SampledFrom([]Kind{Org, System, User, Project, App, Session, Biome})
		label := rapid.SampledFrom(abi.Classifications())
		for range rapid.IntRange(1, 20).Draw(t, "tries") {
			s := Space{
				ID: "x", Kind: kind.Draw(t, "kind"), Production: rapid.Bool().Draw(t, "production"), Dev: rapid.Bool().Draw(t, "dev"),
				Floor: label.Draw(t, "floor"), Clearance: label.Draw(t, "clearance"),
			}
			if s.Check(chain...) != nil {
				continue
			}
			if len(chain) > 0 {
				outer, inner := Resolve(chain...), Resolve(append(slices.Clone(chain), s)...)
				if inner.Floor < outer.Floor || inner.Clearance > outer.Clearance || inner.Dev && !outer.Dev || outer.Production && !inner.Production ||
					inner.Personal != outer.Personal || inner.Floor != s.Floor || inner.Clearance != s.Clearance {
					t.Fatalf("%+v in %+v", inner, outer)
				}
			}
			chain = append(chain, s)
		}
	})
}

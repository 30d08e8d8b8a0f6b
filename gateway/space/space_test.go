package space

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
)

func named(id string, k Kind, floor, clearance abi.Classification) Space {
	return Space{Org: "acme", ID: id, Kind: k, Floor: floor, Clearance: clearance}
}

// X23: a child may raise the floor and lower the clearance, and nothing else.
func TestChildOnlyTightens(t *testing.T) {
	for _, pf := range abi.Classifications() {
		for _, pc := range abi.Classifications() {
			parent := named("acme", Org, pf, pc)
			if (parent.Check() == nil) != (pf <= pc) {
				t.Errorf("floor %s, clearance %s: %v", pf, pc, parent.Check())
			}
			if pf > pc {
				continue
			}
			for _, cf := range abi.Classifications() {
				for _, cc := range abi.Classifications() {
					err := named("one", Project, cf, cc).Check(parent)
					want := abi.Code("")
					switch {
					case cf < pf || cc > pc:
						want = abi.CodeCeilingLoosened
					case cf > cc:
						want = abi.CodeInvalidRequest
					}
					if (err == nil) != (want == "") || err != nil && err.Code != want {
						t.Errorf("%s to %s inside %s to %s: %v, want %q", cf, cc, pf, pc, err, want)
					}
				}
			}
		}
	}
}

// X69, X70: what lies in what. An organisation's space does not contain a user's.
func TestKindsNest(t *testing.T) {
	for inner, k := range kinds {
		for outer := range kinds {
			err := named("x", inner, abi.Public, abi.Regulated).Check(named("around", outer, abi.Public, abi.Regulated))
			may := false
			for _, w := range k.within {
				may = may || w == outer
			}
			if (err == nil) != may {
				t.Errorf("%s in %s: %v", inner, outer, err)
			}
		}
	}
	if err := named("x", User, abi.Public, abi.Regulated).Check(named("around", Org, abi.Public, abi.Regulated)); err == nil {
		t.Error("a user's space lies in an organisation's")
	}
	var k Kind
	if err := k.UnmarshalText([]byte("team")); err == nil { // X29
		t.Error("a kind outside the set")
	}
}

// What holds is at least as tight as every space on the way.
func TestResolveNeverLoosens(t *testing.T) {
	label := rapid.SampledFrom(append(abi.Classifications(), 0))
	rapid.Check(t, func(t *rapid.T) {
		var chain []Space
		for range rapid.IntRange(0, 5).Draw(t, "depth") {
			s := named("x", Project, label.Draw(t, "floor"), label.Draw(t, "clearance"))
			s.Production, s.Dev = rapid.Bool().Draw(t, "production"), rapid.Bool().Draw(t, "dev")
			chain = append(chain, s)
		}
		e := Resolve(chain...)
		if len(chain) == 0 && (e.Floor != abi.Regulated || e.Clearance != abi.Public || e.Dev) {
			t.Fatalf("no space at all admits %+v", e)
		}
		for _, s := range chain {
			if e.Floor < s.Floor.Source() || e.Clearance > s.Clearance.Sink() || s.Production && !e.Production || !s.Dev && e.Dev {
				t.Fatalf("%+v is looser than %+v", e, s)
			}
		}
	})
}

// X31: the environment of a session that names none.
func TestDefaultEnvironment(t *testing.T) {
	for k, want := range map[Kind]string{
		System: "system", Org: "org", Project: "project", App: "app", Session: "session", Biome: "sandbox", User: "org",
	} {
		if got := k.Environment(); got != abi.MakeEnvironmentRef(want) {
			t.Errorf("%s: %s", k, got)
		}
	}
}

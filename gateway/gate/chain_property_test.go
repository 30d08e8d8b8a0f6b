package gate

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/space"
	"github.com/ecotone-dev/ecotone/gateway/trie"
	"github.com/ecotone-dev/ecotone/host/authority"
)

const chainLength = 4

func chainRef(i int) abi.CapabilityRef { return abi.CapabilityRef(fmt.Sprintf("chain:level.n%d@1", i)) }

func chainBiome(i int) abi.Subject { return abi.Subject(fmt.Sprintf("biome:level%d", i)) }

// drawChain draws a policy in which four biomes may call each other downwards, often enough to say
// something: which grants there are and what they name, when they end and what they oblige to, what is kept, what
// environments and spaces allow, which reaches are declared.
func drawChain(rt *rapid.T) (*Snapshot, []abi.Reach) {
	mostly := func(name string) bool { return rapid.IntRange(0, 14).Draw(rt, name) < 14 } // small numbers are drawn more often
	s := &Snapshot{Generation: 3, Environments: environment.BuiltIns()}
	for i := range s.Environments {
		e := &s.Environments[i]
		e.Available = true
		for _, id := range []abi.Limit{abi.LimitWall, abi.LimitFuel, abi.LimitHostCalls} {
			if err := e.Limits.Set(id.Info().Name, rapid.Int64Range(1000, 2000).Draw(rt, "limit")); err != nil {
				rt.Fatal(err)
			}
		}
	}
	o := &Org{ID: "acme", Generation: 3}
	o.Spaces = trie.From(map[string]space.Effective{"main": {
		Kind: space.Project, Dev: true, Floor: min(drawLabel(rt, "floor"), drawLabel(rt, "floor too")), Clearance: max(drawLabel(rt, "clearance"), drawLabel(rt, "clearance too")),
	}})
	reaches := make([]abi.Reach, chainLength)
	for i := range chainLength {
		reaches[i] = min(abi.Reach(rapid.IntRange(1, 3).Draw(rt, "reach")), reaches[max(i-1, 0)])
		if i == 0 || !mostly("no wider") {
			reaches[i] = abi.Reach(rapid.IntRange(1, 3).Draw(rt, "any reach"))
		}
		kept := Kept{}
		if i+1 < chainLength && mostly("kept") {
			kept.Calls = []abi.CapabilityRef{chainRef(i + 1)}
		}
		b := &Biome{Org: o.ID, Name: chainBiome(i).ID(), Subject: chainBiome(i)}
		b.Installed, b.Newest = versions(fmt.Sprint("digest", i), &abi.Descriptor{Ref: chainRef(i), Export: "run"}, allEnvironments(), kept, kept, false)
		var asked []grant.Obligation
		if rapid.Bool().Draw(rt, "install obliges") {
			asked = drawObligations(rt)
		}
		asks, err := grant.CompileObligations(asked)
		if err != nil {
			rt.Fatal(err)
		}
		b.Installed.Asks = asks
		o.Biomes, o.Routes = o.Biomes.With(nil, b.Name, b), o.Routes.With(nil, chainRef(i), b)
		for _, subject := range []abi.Subject{user, agent, chainBiome(i - 1)} {
			for _, e := range allEnvironments() {
				if !mostly("granted") {
					continue
				}
				g := &grant.Grant{
					ID: fmt.Sprint("g ", subject, i, e), Org: o.ID, Subject: subject, Capability: chainRef(i), Environment: e,
					Globs: rapid.SliceOfNDistinct(rapid.SampledFrom(someGlobs), 1, 3, rapid.ID[string]).Draw(rt, "globs"),
				}
				if rapid.IntRange(0, 5).Draw(rt, "obliged") == 0 {
					g.Obligations = drawObligations(rt)
				}
				if rapid.IntRange(0, 5).Draw(rt, "ends") == 0 {
					at := noon.Add(time.Duration(rapid.IntRange(1, 60).Draw(rt, "minutes")) * time.Minute)
					g.Expires = &at
				}
				if err := g.Compile(); err != nil {
					rt.Fatal(err)
				}
				h := Holder{subject, chainRef(i)}
				o.Grants = o.Grants.With(nil, h, o.Grants.At(h).With(g))
			}
		}
	}
	for _, e := range drawEnvironments(rt, "overridden") {
		c := max(drawLabel(rt, "override"), drawLabel(rt, "override too"))
		o.Overrides = o.Overrides.With(nil, e, &environment.Override{Org: o.ID, Environment: e, MaxData: c})
	}
	s.Orgs = trie.From(map[string]*Org{o.ID: o})
	return s, reaches
}

func drawObligations(rt *rapid.T) []grant.Obligation {
	return rapid.SampledFrom([][]grant.Obligation{
		{{Kind: "max-duration-seconds", Seconds: 1}},
		{{Kind: "restrict-output-classification", Classification: abi.Confidential}},
		{{Kind: "egress-allowlist", Allow: []string{"https://api.example.com/**"}}},
		{{Kind: "egress-allowlist", Allow: []string{"https://*.example.com/**"}, Block: []string{"https://evil.example.com/**"}}, {Kind: "max-duration-seconds", Seconds: 2}},
	}).Draw(rt, "obligations")
}

// S4, X32, promise 2: down a chain of four an authority has at most what the one above it has, in every
// coordinate, whatever policy says: where and for whom, reach, ceiling, clearance, resources, where it may
// send, limits and deadline; it starts no lower than what its parent has seen; and it stands only as long as all above it do.
func TestAChainOnlyNarrows(t *testing.T) {
	names := []string{"a/b", "a/x/y", "b/c", "notes.md", "z", "a/b.md"}
	whole := 0
	defer func() { t.Logf("%d chains were allowed to their end", whole) }()
	rapid.Check(t, func(rt *rapid.T) {
		s, reaches := drawChain(rt)
		now, revoked := noon, false
		f := Facts{
			Now: now, Org: "acme", Session: "s", Space: "main", Workspace: "w", Subject: user, Environment: rapid.SampledFrom(allEnvironments()).Draw(rt, "environment"),
			Clearance: max(drawLabel(rt, "session"), drawLabel(rt, "session too")), Mark: abi.Public, Capability: chainRef(0), Reach: reaches[0], Rate: Within, Schema: Satisfied,
		}
		f.Dev = f.Environment == ref(environment.TrustedDev)
		if rapid.Bool().Draw(rt, "agent") {
			f.Subject, f.User = agent, user
		}
		var above *authority.Authority
		var chain []*authority.Authority
		label := abi.Public
		for i := range chainLength {
			at := f
			if i > 0 {
				label = abi.Join(above.Spec().Start, drawLabel(rt, "read"))
				if label > above.Spec().Ceiling {
					label = above.Spec().Ceiling
				}
				at = f.Child(above, label, chainRef(i), now)
				at.Reach, at.Rate, at.Schema = reaches[i], Within, Satisfied
			}
			d := Decide(s, &at)
			terms := terms(func() *Snapshot { return s })
			terms.Clock = func() time.Time { return now }
			if i == 0 {
				terms.Stands = func() *abi.Error {
					if revoked {
						return abi.Errorf(abi.CodeGrantRevoked, "the root is over")
					}
					return nil
				}
			}
			a := Authorize(s, &at, &d, terms)
			if a == nil {
				return
			}
			if i > 0 {
				p, c := above.Spec(), a.Spec()
				switch {
				case c.Org != p.Org, c.Space != p.Space, c.Session != p.Session, c.Workspace != p.Workspace, c.Subject != p.Subject, c.User != p.User, c.Environment != p.Environment, c.Boundary != p.Boundary:
					rt.Fatalf("another context: %+v under %+v", c, p)
				case c.Reach > p.Reach, c.Ceiling > p.Ceiling, c.Clearance > p.Clearance, c.Deadline.After(p.Deadline), c.Floor != p.Floor:
					rt.Fatalf("%s, %s, %s, %v under %s, %s, %s, %v", c.Reach, c.Ceiling, c.Clearance, c.Deadline, p.Reach, p.Ceiling, p.Clearance, p.Deadline)
				case c.Start < label:
					rt.Fatalf("it starts at %s, and its parent has seen %s", c.Start, label)
				case !slices.Contains(p.Calls, c.Capability):
					rt.Fatalf("%s is not among %v", c.Capability, p.Calls)
				case !slices.Equal(c.Chain, append(slices.Clone(p.Chain), p.Capability)) || c.Parent != p.Invocation:
					rt.Fatalf("the chain is %v under %v, %s", c.Chain, p.Chain, p.Capability)
				}
				for _, info := range abi.LimitTable() {
					l := info.Limit
					if c.Limits.Get(l) > p.Limits.Get(l) {
						rt.Fatalf("limit %s: %d under %d", l.Info().Name, c.Limits.Get(l), p.Limits.Get(l))
					}
				}
				for _, name := range names {
					if c.Resources.Match(name) && !p.Resources.Match(name) {
						rt.Fatalf("it may have %s, and its parent may not", name)
					}
				}
				for _, list := range p.Egress {
					if !slices.Contains(c.Egress, list) {
						rt.Fatal("its parent's list of where to send does not hold it")
					}
				}
			}
			above, chain = a, append(chain, a)
		}
		whole++
		for range 3 {
			now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(rt, "passed")) * time.Minute)
			for i := 1; i < len(chain); i++ {
				if chain[i-1].Current() != nil && chain[i].Current() == nil {
					rt.Fatalf("number %d stands, and the one above it does not", i)
				}
			}
		}
		revoked = true
		for i, a := range chain {
			if a.Current() == nil {
				rt.Fatalf("number %d outlives the root", i)
			}
		}
	})
}

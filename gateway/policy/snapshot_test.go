package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/space"
)

// Promise 2: a restart finds the same policy and decides alike, whatever happened before; so
// nothing is widened by one. Along the way, a refused change changes nothing, and no change
// changes a snapshot that was handed out.
func TestRestartFindsTheSamePolicy(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := start(t, rapid.Bool().Draw(rt, "dev"))
		defer s.store.Close()
		ids := []string{}
		refs := []abi.CapabilityRef{notes, relay, "notes:note.write@1"}
		subjects := []string{"user:ada", "agent:bot", "biome:relay"}
		pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(rt, name) }
		envs := func() []abi.EnvironmentRef {
			return rapid.SliceOfNDistinct(rapid.SampledFrom([]abi.EnvironmentRef{env("project"), env("org"), env("sandbox"), env("own")}), 1, 3, rapid.ID[abi.EnvironmentRef]).Draw(rt, "environments")
		}
		steps := map[string]func() error{
			"upload": func() error {
				name := pick("biome", "notes", "relay")
				provides := rapid.SliceOfNDistinct(rapid.SampledFrom(refs), 1, 2, rapid.ID[abi.CapabilityRef]).Draw(rt, "refs")
				requires := abi.Requires{Capabilities: []abi.CapabilityRef{notes}, Endpoints: []abi.Need{{Name: "api", Why: "w"}}, Secrets: []abi.Need{{Name: "key", Why: "w"}}}
				return second2(s.PutBiome(t.Context(), s.op, BiomeRequest{Org: DefaultOrg, Digest: sum(rapid.IntRange(1, 4).Draw(rt, "digest")), Manifest: manifest(name, provides, requires)}))
			},
			"install": func() error {
				r := InstallRequest{Org: DefaultOrg, Biome: pick("biome", "notes", "relay"), Digest: sum(rapid.IntRange(1, 4).Draw(rt, "digest")), Environments: envs()}
				if rapid.Bool().Draw(rt, "keep") {
					r.Calls, r.Endpoints, r.Secrets = []abi.CapabilityRef{notes}, []string{"api"}, []string{"key"}
				}
				return second(s.Install(t.Context(), s.op, r, Expect(rapid.IntRange(-1, 3).Draw(rt, "expect"))))
			},
			"uninstall": func() error {
				return second(s.Uninstall(t.Context(), s.op, DefaultOrg, pick("biome", "notes", "relay"), pick("of", "", sum(1), sum(2)), Expect(rapid.IntRange(0, 3).Draw(rt, "expect"))))
			},
			"disable": func() error {
				return second(s.SetBiomeDisabled(t.Context(), s.op, DefaultOrg, "notes", rapid.Bool().Draw(rt, "disabled"), Expect(rapid.IntRange(0, 3).Draw(rt, "expect"))))
			},
			"grant": func() error {
				r := GrantRequest{Org: DefaultOrg, Subject: abi.Subject(pick("subject", subjects...)), Capability: rapid.SampledFrom(refs).Draw(rt, "ref"), Environment: envs()[0]}
				if rapid.Bool().Draw(rt, "expires") {
					at := s.now.Add(time.Hour)
					r.Expires = &at
				}
				g, err := s.CreateGrant(t.Context(), s.op, r)
				ids = append(ids, g.ID)
				return err
			},
			"later": func() error {
				s.now = s.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(rt, "minutes")) * time.Minute)
				return nil
			},
			"revoke": func() error {
				return second(s.RevokeGrant(t.Context(), s.op, DefaultOrg, pick("id", append(ids, "none")...)))
			},
			"override": func() error {
				c := rapid.SampledFrom(abi.Classifications()).Draw(rt, "max")
				return second(s.PutOverride(t.Context(), s.op, OverrideRequest{Org: DefaultOrg, Environment: envs()[0], MaxData: c}, Unstated))
			},
			"limits": func() error {
				return second(s.SetEnvironmentLimits(t.Context(), s.op, envs()[0], map[string]int64{"wall": rapid.Int64Range(0, 10).Draw(rt, "wall")}, 1))
			},
			"drop override": func() error {
				return s.RemoveOverride(t.Context(), s.op, DefaultOrg, envs()[0], Expect(rapid.IntRange(-1, 3).Draw(rt, "expect")))
			},
			"own environment": func() error {
				r := EnvironmentRequest{Org: DefaultOrg, Slug: pick("own", "own", "other"), Base: envs()[0], MaxData: rapid.SampledFrom(abi.Classifications()).Draw(rt, "max")}
				if rapid.Bool().Draw(rt, "list") {
					r.Allowed = []abi.CapabilityRef{notes}
				}
				if rapid.Bool().Draw(rt, "new") {
					return second(s.CreateEnvironment(t.Context(), s.op, r))
				}
				r.Base = ""
				return second(s.ReplaceEnvironment(t.Context(), s.op, r, Expect(rapid.IntRange(-1, 3).Draw(rt, "expect"))))
			},
			"drop environment": func() error {
				return s.DeleteEnvironment(t.Context(), s.op, DefaultOrg, pick("own", "own", "other"), Expect(rapid.IntRange(-1, 3).Draw(rt, "expect")))
			},
			"endpoint": func() error {
				return second(s.PutEndpoint(t.Context(), s.op, EndpointRequest{Org: DefaultOrg, Name: "api", Rule: rule("api.example.org")}, Unstated))
			},
			"drop endpoint": func() error { return s.RemoveEndpoint(t.Context(), s.op, DefaultOrg, "api", 1) },
			"secret": func() error {
				return second(s.PutSecret(t.Context(), s.op, SecretRequest{Org: DefaultOrg, Name: "key", Uses: json.RawMessage(`[]`), Seal: sealed("x")}, Unstated))
			},
			"space": func() error {
				return second(s.CreateSpace(t.Context(), s.op, SpaceRequest{Org: DefaultOrg, ID: pick("space", "one", "two"), Kind: space.Project, Parent: pick("in", "default", "one"), Floor: rapid.SampledFrom(abi.Classifications()).Draw(rt, "floor")}))
			},
			"org": func() error { return second(s.CreateOrg(t.Context(), s.op, pick("org", "acme", "default", "Bad"))) },
		}
		maps.Copy(steps, lifecycleSteps(rt, s))
		names := slices.Sorted(maps.Keys(steps))
		var handedOut []*gate.Snapshot
		var were [][]string
		for range rapid.IntRange(5, 40).Draw(rt, "steps") {
			before := s.Snapshot()
			handedOut, were = append(handedOut, before), append(were, shown(t, before))
			name := pick("step", names...)
			if err := steps[name](); err != nil && s.Snapshot() != before {
				rt.Fatalf("%s was refused (%v) and changed something", name, err)
			} else if abi.CodeOf(err) == abi.CodeInternal {
				rt.Fatal(err)
			}
		}
		for i, snap := range handedOut {
			if diff := cmp.Diff(were[i], shown(t, snap)); diff != "" {
				rt.Fatalf("a snapshot was changed by what came after it:\n%s", diff)
			}
		}
		again := s.again()
		if diff := cmp.Diff(shown(t, s.Snapshot()), shown(t, again.Snapshot())); diff != "" {
			rt.Fatalf("after a restart:\n%s", diff)
		}
		for _, subject := range subjects {
			for _, ref := range refs {
				for _, slug := range []string{"project", "org", "sandbox", "store-review", "own"} {
					f := gate.Facts{
						Now: s.now, Org: DefaultOrg, Space: RootSpace, Subject: abi.Subject(subject), User: "user:ada", Environment: env(slug),
						Clearance: abi.Regulated, Mark: abi.Public, Capability: ref, Reach: abi.ReachOwner, Rate: gate.Within, Schema: gate.Satisfied,
					}
					one, other := gate.Decide(s.Snapshot(), &f), gate.Decide(again.Snapshot(), &f)
					if one.Verdict != other.Verdict || one.Code != other.Code || one.Checks != other.Checks || one.Digest != other.Digest || one.Ceiling != other.Ceiling ||
						!slices.Equal(one.Grants(), other.Grants()) {
						rt.Fatalf("%s %s %s: %+v, after a restart %+v", subject, ref, slug, one, other)
					}
				}
			}
		}
	})
}

// shown is a snapshot as text. The generations of shards are left out: a restart knows the last
// one alone.
func shown(t *testing.T, s *gate.Snapshot) []string {
	t.Helper()
	var out []string
	add := func(key, value any) {
		text, err := json.Marshal(value)
		must(t, err)
		out = append(out, fmt.Sprintf("%T %v: %s", value, key, text))
	}
	add("generation", s.Generation)
	add("environments", s.Environments)
	for id, o := range s.Orgs.All() {
		for k, v := range o.Spaces.All() {
			add(id+" "+k, v)
		}
		for k, v := range o.Environments.All() {
			add(id+" "+string(k), *v)
		}
		for k, v := range o.Overrides.All() {
			add(id+" "+string(k), v)
		}
		for k, v := range o.Biomes.All() {
			add(id+" "+k, v)
		}
		for k, v := range o.Routes.All() {
			add(id+" "+string(k), v.Name)
			if o.Biomes.At(v.Name) != v {
				t.Errorf("%s leads to a version of %s that is not shown", k, v.Name)
			}
		}
		for k, v := range o.Grants.All() {
			add(fmt.Sprint(id, " ", k), v)
			if len(v) == 0 {
				t.Errorf("%v holds nothing and is there", k)
			}
		}
	}
	slices.Sort(out)
	return out
}

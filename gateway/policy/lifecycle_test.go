package policy

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/grant"
)

var lifecycleRefs = []abi.CapabilityRef{notes, relay, "notes:note.write@1"}

// lifecycleSteps are changes of what this file is about, by name, for tests that draw some.
func lifecycleSteps(rt *rapid.T, s *server) map[string]func() error {
	ref := func(name string) abi.CapabilityRef { return rapid.SampledFrom(lifecycleRefs).Draw(rt, name) }
	return map[string]func() error{
		"lifecycle": func() error {
			r := LifecycleRequest{Org: DefaultOrg, Capability: ref("ref"), State: rapid.SampledFrom(append(grant.States(), "sideways")).Draw(rt, "state")}
			if rapid.Bool().Draw(rt, "replaced") {
				r.ReplacedBy = ref("by")
			}
			return second(s.SetLifecycle(s.t.Context(), s.op, r, Expect(rapid.IntRange(-1, 3).Draw(rt, "expect"))))
		},
		"alongside": func() error {
			r := InstallRequest{Org: DefaultOrg, Biome: "notes", Digest: sum(rapid.IntRange(1, 4).Draw(rt, "digest")), Environments: []abi.EnvironmentRef{env("project"), env("sandbox")}, Alongside: true}
			if rapid.Bool().Draw(rt, "calls") {
				r.Calls = []abi.CapabilityRef{notes}
			}
			return second(s.Install(s.t.Context(), s.op, r, newest(s)))
		},
		"rollback": func() error { return second(s.Rollback(s.t.Context(), s.op, DefaultOrg, "notes", newest(s))) },
		"archive": func() error {
			if rapid.IntRange(0, 9).Draw(rt, "archive") > 0 { // not so often that nothing is ever installed
				return nil
			}
			return second(s.Archive(s.t.Context(), s.op, DefaultOrg, "notes", Expect(rapid.IntRange(-1, 3).Draw(rt, "expect"))))
		},
	}
}

// newest is the revision of the newest install grant that stands for notes.
func newest(s *server) Expect {
	i, _ := s.InstallOf(s.op, DefaultOrg, "notes", "")
	return Expect(i.Revision)
}

// X61: whatever is uploaded, installed, uninstalled and said, and however often the server starts, a
// capability's state goes forward only; a retired one is denied to everybody; and following
// successors ends.
func TestStatesOnlyGoForward(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := start(t, true)
		defer s.store.Close()
		steps := lifecycleSteps(rt, s)
		steps["upload"] = func() error {
			provides := rapid.SliceOfNDistinct(rapid.SampledFrom(lifecycleRefs), 1, 3, rapid.ID[abi.CapabilityRef]).Draw(rt, "refs")
			return second2(s.PutBiome(t.Context(), s.op, BiomeRequest{Org: DefaultOrg, Digest: sum(rapid.IntRange(1, 3).Draw(rt, "digest")), Manifest: manifest("notes", provides, abi.Requires{})}))
		}
		steps["install"] = func() error {
			return second(s.Install(t.Context(), s.op, InstallRequest{Org: DefaultOrg, Biome: "notes", Digest: sum(rapid.IntRange(1, 3).Draw(rt, "digest")), Environments: []abi.EnvironmentRef{env("project")}}, Expect(rapid.IntRange(-1, 3).Draw(rt, "expect"))))
		}
		steps["uninstall"] = func() error {
			return second(s.Uninstall(t.Context(), s.op, DefaultOrg, "notes", rapid.SampledFrom([]string{"", sum(1), sum(2)}).Draw(rt, "of"), Expect(rapid.IntRange(0, 3).Draw(rt, "expect"))))
		}
		was := map[abi.CapabilityRef]grant.State{}
		for range rapid.IntRange(5, 30).Draw(rt, "steps") {
			_ = steps[rapid.SampledFrom([]string{"upload", "install", "alongside", "rollback", "uninstall", "lifecycle", "lifecycle"}).Draw(rt, "step")]()
			service := s
			if rapid.IntRange(0, 5).Draw(rt, "restart") == 0 {
				service = s.again()
			}
			all, err := service.Capabilities(s.op, DefaultOrg)
			must(t, err)
			by := map[abi.CapabilityRef]Capability{}
			for _, c := range all {
				by[c.Capability] = c
				if was[c.Capability].After(c.State) {
					rt.Fatalf("%s was %s and is %s", c.Capability, was[c.Capability], c.State)
				}
				was[c.Capability] = c.State
				for _, slug := range []string{"project", "sandbox", "trusted-dev"} {
					f := gate.Facts{
						Now: s.now, Org: DefaultOrg, Space: RootSpace, Subject: "user:ada", Environment: env(slug), Dev: true,
						Clearance: abi.Regulated, Mark: abi.Public, Capability: c.Capability, Reach: abi.ReachOwner, Rate: gate.Within, Schema: gate.Satisfied,
					}
					if d := gate.Decide(service.Snapshot(), &f); c.State == grant.Retired && d.Verdict != gate.Deny {
						rt.Fatalf("%s is retired and allowed in %s", c.Capability, slug)
					}
				}
			}
			for ref := range by {
				var seen []abi.CapabilityRef
				for ref != "" {
					if slices.Contains(seen, ref) {
						rt.Fatalf("the successors lead from %s back to it: %q", ref, seen)
					}
					seen, ref = append(seen, ref), by[ref].ReplacedBy
				}
			}
		}
	})
}

// Whatever is installed beside what, rolled back and taken away: a capability is served by the newest install
// grant that stands and provides it, or where uploads are tried by the upload; of each digest one
// install grant stands at most; and the biome holds the grants that were made for it which some
// standing install grant keeps, no other and each once.
func TestInstallsBesideEachOther(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := start(t, false)
		defer s.store.Close()
		requires := abi.Requires{Capabilities: []abi.CapabilityRef{notes}}
		for n := range 4 {
			provides := rapid.SliceOfNDistinct(rapid.SampledFrom(lifecycleRefs), 1, 3, rapid.ID[abi.CapabilityRef]).Draw(rt, "refs")
			must(t, second2(s.PutBiome(t.Context(), s.op, BiomeRequest{Org: DefaultOrg, Digest: sum(n + 1), Manifest: manifest("notes", provides, requires)})))
		}
		steps := lifecycleSteps(rt, s)
		steps["install"] = func() error {
			return second(s.Install(t.Context(), s.op, InstallRequest{Org: DefaultOrg, Biome: "notes", Digest: sum(rapid.IntRange(1, 4).Draw(rt, "digest")), Environments: []abi.EnvironmentRef{env("project")}}, newest(s)))
		}
		steps["uninstall"] = func() error {
			digest := rapid.SampledFrom([]string{"", sum(1), sum(2), sum(3)}).Draw(rt, "of")
			i, _ := s.InstallOf(s.op, DefaultOrg, "notes", digest)
			return second(s.Uninstall(t.Context(), s.op, DefaultOrg, "notes", digest, Expect(i.Revision)))
		}
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			_ = steps[rapid.SampledFrom([]string{"install", "alongside", "alongside", "rollback", "uninstall"}).Draw(rt, "step")]()
			o := s.state.orgs[DefaultOrg]
			b := o.biomes["notes"]
			standing := o.installed(b)
			digests := map[string]bool{}
			kept := map[abi.EnvironmentRef]bool{}
			for n, i := range standing {
				if digests[i.Digest] || n > 0 && i.Revision >= standing[n-1].Revision {
					rt.Fatalf("there stand %+v", standing)
				}
				digests[i.Digest] = true
				for _, e := range i.Environments {
					kept[e] = kept[e] || slices.Contains(i.Calls, notes)
				}
			}
			for _, slug := range []string{"project", "sandbox", "app"} {
				if has := len(o.shard.Held("biome:notes", notes)) > 0 && o.shard.Held("biome:notes", notes).In(env(slug)) != nil; has != kept[env(slug)] {
					rt.Fatalf("in %s the biome holds a grant: %v; kept: %v", slug, has, kept[env(slug)])
				}
				for _, ref := range lifecycleRefs {
					want := ""
					for _, i := range slices.Backward(standing) {
						if b.uploads[i.Digest].capabilities[ref] != nil {
							want = i.ID + i.Digest
						}
					}
					if newest := b.uploads[b.record.Digest]; slug == "sandbox" && newest.capabilities[ref] != nil {
						want = b.record.Digest
						for _, i := range standing {
							if i.Digest == want {
								want = i.ID + want
							}
						}
					}
					if want == "" {
						continue // whatever does not provide it
					}
					if _, a := s.Snapshot().Route(DefaultOrg, ref, env(slug)); a.Install+a.Digest != want {
						rt.Fatalf("%s in %s is served by %s, not %s", ref, slug, a.Install+a.Digest, want)
					}
				}
			}
		}
	})
}

// Records that could not have been written are refused when they are loaded.
func TestDamagedLifecycle(t *testing.T) {
	for _, l := range []grant.Lifecycle{
		{Capability: notes, State: grant.Published}, {Capability: notes, State: ""}, {Capability: notes, State: grant.Retired, ReplacedBy: notes},
	} {
		l.Org = DefaultOrg
		s := start(t, false)
		if err := s.state.apply(l); err == nil {
			t.Errorf("%+v applies", l)
		}
		s.store.Close()
	}
	for i, a := range grant.States() {
		for j, b := range grant.States() {
			if a.After(b) != (i > j) || a.After("other") != true || grant.State("other").After(a) {
				t.Errorf("%s after %s", a, b)
			}
		}
	}
}

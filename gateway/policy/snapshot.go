package policy

import (
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/space"
)

// snapshot makes the snapshot of the state. Shards of the previous one whose generation is
// unchanged are shared.
func (st *state) snapshot(previous *gate.Snapshot) *gate.Snapshot {
	s := &gate.Snapshot{
		Generation:   st.generation,
		Environments: slices.Clone(st.environments),
		Limits:       st.limitsAt,
		Orgs:         make(map[string]*gate.Org, len(st.orgs)),
	}
	for id, o := range st.orgs {
		if previous != nil {
			if old := previous.Orgs[id]; old != nil && old.Generation == o.generation {
				s.Orgs[id] = old
				continue
			}
		}
		s.Orgs[id] = o.shard()
	}
	return s
}

func (o *orgState) shard() *gate.Org {
	g := &gate.Org{
		ID: o.record.ID, Generation: o.generation,
		Spaces:    make(map[string]space.Effective, len(o.spaces)),
		Overrides: make(map[abi.EnvironmentRef]*environment.Override, len(o.overrides)),
		Biomes:    make(map[string]*gate.Biome, len(o.biomes)),
		Routes:    map[abi.CapabilityRef]*gate.Biome{},
		Grants:    make(map[gate.GrantKey]*grant.Grant, len(o.grants)),
		Known:     map[gate.KnownKey]struct{}{},
	}
	for id := range o.spaces {
		g.Spaces[id] = space.Resolve(o.chain(id)...)
	}
	for ref, v := range o.overrides {
		g.Overrides[ref] = &v
	}
	for id, v := range o.grants {
		if _, revoked := o.revoked[id]; revoked {
			continue
		}
		key := gate.GrantKey{Subject: v.Subject, Capability: v.Capability, Environment: v.Environment}
		if old := g.Grants[key]; old == nil || old.ID < v.ID { // an expired one may have been followed by another
			g.Grants[key] = &v
		}
		g.Known[gate.KnownKey{Subject: v.Subject, Capability: v.Capability}] = struct{}{}
	}
	for name, b := range o.biomes {
		gb := o.biome(b)
		g.Biomes[name] = gb
		for _, a := range []*gate.Admission{gb.Newest, gb.Installed} {
			if a == nil {
				continue
			}
			for ref := range a.Capabilities {
				g.Routes[ref] = gb
			}
		}
	}
	return g
}

// fresh is where an upload may be tried before anyone admitted it anywhere.
var fresh = []abi.EnvironmentRef{abi.MakeEnvironmentRef(environment.Sandbox), abi.MakeEnvironmentRef(environment.TrustedDev)}

func (o *orgState) biome(b *biomeState) *gate.Biome {
	gb := &gate.Biome{Org: o.record.ID, Name: b.record.Name, Subject: biomeSubject(b.record.Name), Disabled: b.record.Disabled}
	if i := o.installed(b); i != nil {
		gb.Installed = o.admission(b.uploads[i.Digest])
		gb.Installed.Install = i.ID
		gb.Installed.Environments = i.Environments
		gb.Installed.Kept = o.kept(i.Calls, i.Endpoints, i.Secrets)
		if i.Digest == b.record.Digest {
			gb.Installed.Environments = slices.Concat(i.Environments, fresh)
			gb.Newest = gb.Installed
			return gb
		}
	}
	gb.Newest = o.admission(b.uploads[b.record.Digest])
	gb.Newest.Environments = fresh
	return gb
}

func (o *orgState) admission(u *uploadState) *gate.Admission {
	a := &gate.Admission{Digest: u.record.Digest, Capabilities: u.capabilities}
	a.Declared = o.kept(u.manifest.Requires.Capabilities, names(u.manifest.Requires.Endpoints), names(u.manifest.Requires.Secrets))
	return a
}

// kept resolves names: what was removed since is left out.
func (o *orgState) kept(calls []abi.CapabilityRef, endpoints, secrets []string) gate.Kept {
	k := gate.Kept{Calls: slices.Clone(calls)}
	for _, n := range endpoints {
		if e := o.endpoints[n]; e != nil && e.compiled != nil {
			k.Endpoints = append(k.Endpoints, e.compiled)
		}
	}
	for _, n := range secrets {
		if s, ok := o.secrets[n]; ok && !s.Removed {
			k.Secrets = append(k.Secrets, n)
		}
	}
	return k
}

func names(needs []abi.Need) []string {
	out := make([]string, len(needs))
	for i, n := range needs {
		out[i] = n.Name
	}
	return out
}

func biomeSubject(name string) abi.Subject { return abi.Subject(string(abi.SubjectBiome) + ":" + name) }

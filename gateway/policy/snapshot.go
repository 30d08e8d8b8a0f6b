package policy

import (
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/space"
	"github.com/ecotone-dev/ecotone/gateway/trie"
)

// snapshot makes the snapshot of the state. What no record since the last one concerns is
// shared with it.
func (st *state) snapshot() *gate.Snapshot {
	for id := range st.changed {
		o := st.orgs[id]
		o.shard.Generation = st.generation
		o.derive(st.batch, st.environments)
		shard := o.shard
		st.shards = st.shards.With(st.batch, id, &shard)
	}
	clear(st.changed)
	st.batch = new(trie.Batch) // what was handed out never changes
	return &gate.Snapshot{Generation: st.generation, Environments: st.environments, Limits: st.limitsAt, Orgs: st.shards}
}

// derive computes what is stale. builtIn is what an organisation's own environments derive from.
func (o *orgState) derive(b *trie.Batch, builtIn []environment.Environment) {
	if o.staleOwn {
		o.shard.Environments, o.staleOwn = o.ownEnvironments(builtIn), false
	}
	for id := range o.staleSpaces {
		o.shard.Spaces = o.shard.Spaces.With(b, id, space.Resolve(o.chain(id)...))
	}
	for name := range o.staleBiomes {
		o.show(b, name)
	}
	clear(o.staleSpaces)
	clear(o.staleBiomes)
}

// ownEnvironments resolves the organisation's own environments: always against the built-in ones as
// they are now.
func (o *orgState) ownEnvironments(builtIn []environment.Environment) trie.Map[abi.EnvironmentRef, *environment.Environment] {
	all := map[abi.EnvironmentRef]*environment.Environment{}
	for _, c := range o.own {
		i := slices.IndexFunc(builtIn, func(e environment.Environment) bool { return e.Ref == c.Base })
		if c.Removed || i < 0 {
			continue
		}
		e := c.Resolve(&builtIn[i], o.shard.Overrides.At(c.Base))
		all[e.Ref] = &e
	}
	return trie.From(all)
}

// show puts one biome into the shard, and takes away the routes that it has no more.
func (o *orgState) show(batch *trie.Batch, name string) {
	if old := o.shard.Biomes.At(name); old != nil {
		for ref := range old.Provided() {
			o.shard.Routes = o.shard.Routes.Without(batch, ref)
		}
	}
	b := o.biomes[name]
	if b == nil || b.uploads[b.record.Digest] == nil {
		return
	}
	shown := o.biome(b)
	o.shard.Biomes = o.shard.Biomes.With(batch, name, shown)
	for ref := range shown.Provided() {
		o.shard.Routes = o.shard.Routes.With(batch, ref, shown)
	}
}

// fresh is where an upload may be tried before anyone admitted it anywhere.
var fresh = []abi.EnvironmentRef{abi.MakeEnvironmentRef(environment.Sandbox), abi.MakeEnvironmentRef(environment.TrustedDev)}

func (o *orgState) biome(b *biomeState) *gate.Biome {
	gb := &gate.Biome{Org: o.record.ID, Name: b.record.Name, Subject: biomeSubject(b.record.Name), Disabled: b.record.Disabled, Endings: o.endings(b)}
	for n, i := range o.installed(b) {
		a := o.admission(b.uploads[i.Digest])
		a.Install, a.Environments, a.Kept = i.ID, i.Environments, o.kept(i.Calls, i.Endpoints, i.Secrets)
		a.Asks, _ = grant.CompileObligations(i.Obligations) // checked when it was applied
		a.Config = i.Config
		if i.Digest == b.record.Digest {
			a.Environments = slices.Concat(i.Environments, fresh)
			gb.Newest = a
		}
		if n == 0 {
			gb.Installed = a
		} else {
			gb.Older = append(gb.Older, a)
		}
	}
	if gb.Newest == nil {
		gb.Newest = o.admission(b.uploads[b.record.Digest])
		gb.Newest.Environments = fresh
	}
	return gb
}

// endings are the capabilities of a biome, over all its versions, that are deprecated or retired.
func (o *orgState) endings(b *biomeState) map[abi.CapabilityRef]gate.Ending {
	var out map[abi.CapabilityRef]gate.Ending
	if len(o.states.said) == 0 {
		return out
	}
	for _, u := range b.uploads {
		for ref := range u.capabilities {
			if l, ok := o.states.said[ref]; ok {
				if out == nil {
					out = map[abi.CapabilityRef]gate.Ending{}
				}
				out[ref] = gate.Ending{State: l.State, ReplacedBy: l.ReplacedBy}
			}
		}
	}
	return out
}

func (o *orgState) admission(u *uploadState) *gate.Admission {
	a := &gate.Admission{Digest: u.record.Digest, Face: u.manifest.ABI, Capabilities: u.capabilities}
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

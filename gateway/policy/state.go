package policy

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/approval"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/space"
	"github.com/ecotone-dev/ecotone/gateway/trie"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// state is all records in memory, save sessions, which live beside it. Service.mu guards it.
type state struct {
	generation   uint64                          // number of the last change
	environments []environment.Environment       // replaced, never changed in place: snapshots share it
	limitsAt     uint64                          // generation of the last change of limits
	limited      map[abi.EnvironmentRef]struct{} // environments whose limits are stored
	orgs         map[string]*orgState
	sessions     *sessions
	words        words

	shards  trie.Map[string, *gate.Org] // of the last snapshot
	batch   *trie.Batch                 // of the records since
	changed map[string]struct{}         // organisations whose shard they concern
}

type orgState struct {
	record Org
	rates  Rates

	uploads int64 // versions of all its biomes

	// What the gate sees. Grants and overrides are put into it as they come; what is computed
	// from several records (spaces, environments, biomes) is named as stale and computed for the snapshot.
	shard       gate.Org
	staleSpaces map[string]struct{}
	staleBiomes map[string]struct{}
	staleOwn    bool // the environments of its own

	spaces        map[string]space.Space
	overrides     map[abi.EnvironmentRef]environment.Override // removed ones included, for their revisions
	own           map[string]environment.Custom               // environments by slug, removed ones included: a slug is used once
	endpoints     map[string]*endpointState
	secrets       map[string]grant.Secret
	biomes        map[string]*biomeState
	providers     map[abi.CapabilityRef]string // biome name, over all uploads: a ref is never taken over
	grants        map[string]*grant.Grant      // not revoked
	environments  map[string]grant.EnvironmentGrant
	approveGrants map[string]grant.ApproveGrant
	approvals     approvals
	installs      map[string]grant.Install
	states        states
	revoked       map[string]grant.Revocation
	principals    map[string]session.Principal
	dead          map[string]struct{} // ids of revoked tokens
}

type endpointState struct {
	record   grant.Endpoint
	compiled *egress.Endpoint // the same pointer as long as the rule is the same
}

type biomeState struct {
	record  Biome
	uploads map[string]*uploadState
	// installs are the ids of all its install grants, revoked or not, in order of revisions.
	installs []string
}

type uploadState struct {
	record       Upload
	manifest     *abi.Manifest
	capabilities map[abi.CapabilityRef]*abi.Descriptor
}

func newState(dev bool, live *sessions) *state {
	st := &state{
		environments: environment.BuiltIns(), limited: map[abi.EnvironmentRef]struct{}{}, orgs: map[string]*orgState{}, sessions: live, words: words{},
		batch: new(trie.Batch), changed: map[string]struct{}{},
	}
	for i := range st.environments {
		if st.environments[i].Waives {
			st.environments[i].Available = dev
		}
	}
	return st
}

// apply takes one record into the state. An error means that the record does not fit what is
// there, which only a damaged store can bring about.
func (st *state) apply(rec any) error {
	switch r := rec.(type) {
	case Org:
		st.orgs[r.ID] = newOrg(r)
		return st.shard(r.ID, func(*orgState) error { return nil })
	case Rates:
		return st.shard(r.Org, func(o *orgState) error { return o.applyRates(r) })
	case limitsRecord:
		return st.applyLimits(r)
	case space.Space:
		return st.shard(r.Org, func(o *orgState) error { o.applySpace(r); return nil })
	case environment.Override:
		return st.shard(r.Org, func(o *orgState) error { return o.applyOverride(st.batch, r) })
	case environment.Custom:
		return st.shard(r.Org, func(o *orgState) error { return o.applyCustom(r) })
	case grant.Endpoint:
		return st.shard(r.Org, func(o *orgState) error { return o.applyEndpoint(r) })
	case grant.Secret:
		return st.shard(r.Org, func(o *orgState) error { o.applySecret(r); return nil })
	case Upload:
		return st.shard(r.Org, func(o *orgState) error { return o.applyUpload(r) })
	case Biome:
		return st.shard(r.Org, func(o *orgState) error { return o.applyBiome(r) })
	case grant.Grant:
		return st.shard(r.Org, func(o *orgState) error { return o.applyGrant(st.batch, st.words.grant(r)) })
	case grant.EnvironmentGrant:
		return st.within(r.Org, func(o *orgState) error { o.environments[r.ID] = r; return nil })
	case grant.Lifecycle:
		return st.shard(r.Org, func(o *orgState) error { return o.applyLifecycle(r) })
	case grant.ApproveGrant:
		return st.within(r.Org, func(o *orgState) error { o.approveGrants[r.ID] = r; return nil })
	case approval.Request, approval.Decision, approval.Withdrawal, approval.Use, approval.Result:
		return st.applyApproval(r)
	case grant.Install:
		return st.shard(r.Org, func(o *orgState) error { return o.applyInstall(r) })
	case grant.Revocation:
		return st.shard(r.Org, func(o *orgState) error {
			o.applyRevocation(st.batch, r)
			st.sessions.revoked(r.Org, r.Grant)
			return nil
		})
	case session.Principal:
		return st.within(r.Org, func(o *orgState) error { o.principals[r.ID] = r; return nil })
	case session.Token:
		return st.within(r.Org, func(o *orgState) error {
			if _, dead := o.dead[r.ID]; !dead {
				st.sessions.addToken(r)
			}
			return nil
		})
	case tokenRevocation:
		return st.within(r.Org, func(o *orgState) error {
			o.dead[r.Token] = struct{}{}
			st.sessions.dropToken(r.Token)
			return nil
		})
	case session.Session:
		return st.within(r.Org, func(o *orgState) error { return st.applySession(o, r) })
	}
	return fmt.Errorf("no such kind of record: %T", rec)
}

// applySession takes in a session, unless an environment grant that opened it was revoked.
func (st *state) applySession(o *orgState, r session.Session) error {
	for _, id := range r.Grants {
		if _, there := o.environments[id]; !there {
			return fmt.Errorf("the environment grant it was opened by is not there")
		}
		if _, revoked := o.revoked[id]; revoked {
			return nil
		}
	}
	st.sessions.apply(r)
	return nil
}

func newOrg(r Org) *orgState {
	return &orgState{
		record: r, shard: gate.Org{ID: r.ID}, staleSpaces: map[string]struct{}{}, staleBiomes: map[string]struct{}{},
		spaces: map[string]space.Space{}, overrides: map[abi.EnvironmentRef]environment.Override{}, own: map[string]environment.Custom{},
		endpoints: map[string]*endpointState{}, secrets: map[string]grant.Secret{}, biomes: map[string]*biomeState{},
		providers: map[abi.CapabilityRef]string{}, grants: map[string]*grant.Grant{}, environments: map[string]grant.EnvironmentGrant{},
		approveGrants: map[string]grant.ApproveGrant{}, approvals: approvals{},
		installs: map[string]grant.Install{}, states: newStates(), revoked: map[string]grant.Revocation{}, principals: map[string]session.Principal{},
		dead: map[string]struct{}{},
	}
}

func (st *state) within(org string, fn func(*orgState) error) error {
	o := st.orgs[org]
	if o == nil {
		return fmt.Errorf("it belongs to an organisation that is not there")
	}
	return fn(o)
}

// shard is [state.within] for what the gate sees something of.
func (st *state) shard(org string, fn func(*orgState) error) error {
	st.changed[org] = struct{}{}
	return st.within(org, fn)
}

func (st *state) applyLimits(r limitsRecord) error {
	i := slices.IndexFunc(st.environments, func(e environment.Environment) bool { return e.Ref == r.Environment })
	if i < 0 {
		return fmt.Errorf("there is no such environment")
	}
	l, err := environment.SetLimits(abi.DefaultLimits(), r.Limits)
	if err != nil {
		return err
	}
	st.environments = slices.Clone(st.environments)
	st.environments[i].Limits, st.environments[i].Revision = l, r.Revision
	st.limited[r.Environment] = struct{}{}
	for id, o := range st.orgs { // what derives from it
		if len(o.own) > 0 {
			o.staleOwn, st.changed[id] = true, struct{}{}
		}
	}
	return nil
}

// applySpace makes one space stale, or all of them when it was there before: those in it are
// computed from it.
func (o *orgState) applySpace(r space.Space) {
	if _, there := o.spaces[r.ID]; there {
		for id := range o.spaces {
			o.staleSpaces[id] = struct{}{}
		}
	}
	o.spaces[r.ID] = r
	o.staleSpaces[r.ID] = struct{}{}
}

func (o *orgState) applyOverride(b *trie.Batch, r environment.Override) error {
	o.overrides[r.Environment] = r
	o.staleOwn = true // what derives from the environment
	if r.Removed {
		o.shard.Overrides = o.shard.Overrides.Without(b, r.Environment)
	} else {
		o.shard.Overrides = o.shard.Overrides.With(b, r.Environment, &r)
	}
	return asError(r.Check())
}

func (o *orgState) applyCustom(r environment.Custom) error {
	o.own[r.Slug], o.staleOwn = r, true
	return asError(r.Check())
}

// applyGrant adds a grant to what its holder holds. One that was revoked ends what had expired
// before it, as it did when it was made, and nothing else.
func (o *orgState) applyGrant(b *trie.Batch, g *grant.Grant) error {
	if err := g.Compile(); err != nil {
		return err
	}
	h := gate.Holder{Subject: g.Subject, Capability: g.Capability}
	held := o.shard.Grants.At(h).With(g)
	if _, revoked := o.revoked[g.ID]; revoked {
		held = held.Without(g.ID)
	} else {
		o.grants[g.ID] = g
	}
	o.hold(b, h, held)
	return nil
}

func (o *orgState) hold(b *trie.Batch, h gate.Holder, held gate.Held) {
	if len(held) == 0 {
		o.shard.Grants = o.shard.Grants.Without(b, h)
		return
	}
	o.shard.Grants = o.shard.Grants.With(b, h, held)
}

// applyRevocation ends a grant, an environment grant or an install grant.
func (o *orgState) applyRevocation(b *trie.Batch, r grant.Revocation) {
	o.revoked[r.Grant] = r
	if g := o.grants[r.Grant]; g != nil {
		delete(o.grants, r.Grant)
		h := gate.Holder{Subject: g.Subject, Capability: g.Capability}
		o.hold(b, h, o.shard.Grants.At(h).Without(g.ID))
	}
	if i, ok := o.installs[r.Grant]; ok {
		o.staleBiomes[i.Biome] = struct{}{}
	}
}

// applySecret makes the biomes stale that ask for the secret.
func (o *orgState) applySecret(r grant.Secret) {
	o.secrets[r.Name] = r
	o.staleWhere(func(q *abi.Requires) bool { return needs(q.Secrets, r.Name) })
}

// staleWhere makes the biomes stale of which some version requires something: what an install
// grant keeps is part of that.
func (o *orgState) staleWhere(requires func(*abi.Requires) bool) {
	for name, b := range o.biomes {
		for _, u := range b.uploads {
			if requires(&u.manifest.Requires) {
				o.staleBiomes[name] = struct{}{}
				break
			}
		}
	}
}

func needs(list []abi.Need, name string) bool {
	return slices.ContainsFunc(list, func(n abi.Need) bool { return n.Name == name })
}

func (o *orgState) applyEndpoint(r grant.Endpoint) error {
	e := &endpointState{record: r}
	if !r.Removed {
		compiled, err := egress.Compile(r.Name, r.Rule, r.Clearance, r.Label, r.Loopback)
		if err != nil {
			return err
		}
		e.compiled = compiled
	}
	o.endpoints[r.Name] = e
	o.staleWhere(func(q *abi.Requires) bool { return needs(q.Endpoints, r.Name) })
	return nil
}

func (o *orgState) applyUpload(r Upload) error {
	m, problems := abi.DecodeManifest(r.Manifest)
	if len(problems) > 0 {
		return problems
	}
	b := o.biomes[r.Biome]
	if b == nil {
		b = &biomeState{uploads: map[string]*uploadState{}}
		o.biomes[r.Biome] = b
	}
	u := &uploadState{record: r, manifest: m, capabilities: map[abi.CapabilityRef]*abi.Descriptor{}}
	for i := range m.Provides {
		u.capabilities[m.Provides[i].Ref] = &m.Provides[i]
		o.providers[m.Provides[i].Ref] = r.Biome
	}
	if b.uploads[r.Digest] == nil {
		o.uploads++
	}
	b.uploads[r.Digest] = u
	o.staleBiomes[r.Biome] = struct{}{}
	return nil
}

func (o *orgState) applyBiome(r Biome) error {
	b := o.biomes[r.Name]
	if b == nil || b.uploads[r.Digest] == nil {
		return fmt.Errorf("its newest upload is not there")
	}
	b.record = r
	o.staleBiomes[r.Name] = struct{}{}
	return nil
}

func (o *orgState) applyInstall(r grant.Install) error {
	b := o.biomes[r.Biome]
	if b == nil || b.uploads[r.Digest] == nil {
		return fmt.Errorf("the upload it is bound to is not there")
	}
	if _, err := grant.CompileObligations(r.Obligations); err != nil {
		return err
	}
	o.installs[r.ID] = r
	for ref := range b.uploads[r.Digest].capabilities {
		o.states.published[ref] = struct{}{}
	}
	o.staleBiomes[r.Biome] = struct{}{}
	at, _ := slices.BinarySearchFunc(b.installs, r.Revision, func(id string, rev uint64) int { return cmp.Compare(o.installs[id].Revision, rev) })
	b.installs = slices.Insert(b.installs, at, r.ID)
	return nil
}

// installed are the install grants that stand for a biome, the newest first.
func (o *orgState) installed(b *biomeState) []grant.Install {
	var out []grant.Install
	for _, id := range slices.Backward(b.installs) {
		if _, revoked := o.revoked[id]; !revoked {
			out = append(out, o.installs[id])
		}
	}
	return out
}

// chain is a space and those around it, outermost first; nil when there is no such space.
func (o *orgState) chain(id string) []space.Space {
	var chain []space.Space
	for id != "" && len(chain) <= space.MaxDepth {
		s, ok := o.spaces[id]
		if !ok {
			return nil
		}
		chain = append([]space.Space{s}, chain...)
		id = s.Parent
	}
	return chain
}

// asError keeps a nil *abi.Error a nil error.
func asError(e *abi.Error) error {
	if e == nil {
		return nil
	}
	return e
}

package policy

import (
	"fmt"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/space"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// state is all records in memory, save sessions, which live beside it. Service.mu guards it.
type state struct {
	generation   uint64 // number of the last change
	environments []environment.Environment
	limitsAt     uint64 // generation of the last change of limits
	orgs         map[string]*orgState
	sessions     *sessions
}

type orgState struct {
	record       Org
	generation   uint64
	spaces       map[string]space.Space
	overrides    map[abi.EnvironmentRef]environment.Override
	endpoints    map[string]*endpointState
	secrets      map[string]grant.Secret
	biomes       map[string]*biomeState
	providers    map[abi.CapabilityRef]string // biome name, over all uploads: a ref is never taken over
	grants       map[string]grant.Grant
	environments map[string]grant.EnvironmentGrant
	installs     map[string]grant.Install
	revoked      map[string]grant.Revocation
	principals   map[string]session.Principal
	tokens       map[string]session.Token
	dead         map[string]tokenRevocation
}

type endpointState struct {
	record   grant.Endpoint
	compiled *egress.Endpoint // the same pointer as long as the rule is the same
}

type biomeState struct {
	record  Biome
	uploads map[string]*uploadState
	install string // id of the last install grant, revoked or not; "" when there was none
}

type uploadState struct {
	record       Upload
	manifest     *abi.Manifest
	capabilities map[abi.CapabilityRef]*abi.Descriptor
}

func newState(dev bool, live *sessions) *state {
	st := &state{environments: environment.BuiltIns(), orgs: map[string]*orgState{}, sessions: live}
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
		return nil
	case limitsRecord:
		return st.applyLimits(r)
	case space.Space:
		return st.within(r.Org, func(o *orgState) error { o.spaces[r.ID] = r; return nil })
	case environment.Override:
		return st.within(r.Org, func(o *orgState) error { o.overrides[r.Environment] = r; return asError(r.Check()) })
	case grant.Endpoint:
		return st.within(r.Org, func(o *orgState) error { return o.applyEndpoint(r) })
	case grant.Secret:
		return st.within(r.Org, func(o *orgState) error { o.secrets[r.Name] = r; return nil })
	case Upload:
		return st.within(r.Org, func(o *orgState) error { return o.applyUpload(r) })
	case Biome:
		return st.within(r.Org, func(o *orgState) error { return o.applyBiome(r) })
	case grant.Grant:
		return st.within(r.Org, func(o *orgState) error { o.grants[r.ID] = r; return nil })
	case grant.EnvironmentGrant:
		return st.within(r.Org, func(o *orgState) error { o.environments[r.ID] = r; return nil })
	case grant.Install:
		return st.within(r.Org, func(o *orgState) error { return o.applyInstall(r) })
	case grant.Revocation:
		return st.within(r.Org, func(o *orgState) error { o.revoked[r.Grant] = r; return nil })
	case session.Principal:
		return st.within(r.Org, func(o *orgState) error { o.principals[r.ID] = r; return nil })
	case session.Token:
		return st.within(r.Org, func(o *orgState) error { o.tokens[r.ID] = r; st.sessions.addToken(r); return nil })
	case tokenRevocation:
		return st.within(r.Org, func(o *orgState) error { o.dead[r.Token] = r; st.sessions.dropToken(r.Token); return nil })
	case session.Session:
		return st.within(r.Org, func(*orgState) error { st.sessions.apply(r); return nil })
	}
	return fmt.Errorf("no such kind of record: %T", rec)
}

func newOrg(r Org) *orgState {
	return &orgState{
		record: r, spaces: map[string]space.Space{}, overrides: map[abi.EnvironmentRef]environment.Override{},
		endpoints: map[string]*endpointState{}, secrets: map[string]grant.Secret{}, biomes: map[string]*biomeState{},
		providers: map[abi.CapabilityRef]string{}, grants: map[string]grant.Grant{}, environments: map[string]grant.EnvironmentGrant{},
		installs: map[string]grant.Install{}, revoked: map[string]grant.Revocation{}, principals: map[string]session.Principal{},
		tokens: map[string]session.Token{}, dead: map[string]tokenRevocation{},
	}
}

func (st *state) within(org string, fn func(*orgState) error) error {
	o := st.orgs[org]
	if o == nil {
		return fmt.Errorf("it belongs to an organisation that is not there")
	}
	return fn(o)
}

func (st *state) applyLimits(r limitsRecord) error {
	for i := range st.environments {
		e := &st.environments[i]
		if e.Ref != r.Environment {
			continue
		}
		l, err := environment.SetLimits(abi.DefaultLimits(), r.Limits)
		if err != nil {
			return err
		}
		e.Limits, e.Revision = l, r.Revision
		return nil
	}
	return fmt.Errorf("there is no such environment")
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
	b.uploads[r.Digest] = u
	return nil
}

func (o *orgState) applyBiome(r Biome) error {
	b := o.biomes[r.Name]
	if b == nil || b.uploads[r.Digest] == nil {
		return fmt.Errorf("its newest upload is not there")
	}
	b.record = r
	return nil
}

func (o *orgState) applyInstall(r grant.Install) error {
	b := o.biomes[r.Biome]
	if b == nil || b.uploads[r.Digest] == nil {
		return fmt.Errorf("the upload it is bound to is not there")
	}
	o.installs[r.ID] = r
	if last, ok := o.installs[b.install]; !ok || r.Revision > last.Revision {
		b.install = r.ID
	}
	return nil
}

// installed is the install grant that stands for a biome, or nil.
func (o *orgState) installed(b *biomeState) *grant.Install {
	i, ok := o.installs[b.install]
	if _, revoked := o.revoked[b.install]; !ok || revoked {
		return nil
	}
	return &i
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

package gate

import (
	"fmt"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/space"
	"github.com/ecotone-dev/ecotone/gateway/trie"
	"github.com/ecotone-dev/ecotone/host/authority"
)

// world is a small organisation in plain data. The zero world admits nothing; full admits
// everything. Tests take things away, or draw them.
type world struct {
	org string

	calleeDisabled  bool
	calleeInstalled []abi.EnvironmentRef
	calleeNewer     bool // a newer upload without an install grant is there
	calleeApproval  bool

	callerInstalled []abi.EnvironmentRef
	callerCalls     bool // kept by the install grant
	callerDeclares  bool // asked for by the manifest
	callerDigest    string

	grants map[grantKey][]string // → globs
	expiry map[grantKey]time.Time

	overrides map[abi.EnvironmentRef]abi.Classification
	floor     abi.Classification
	clearance abi.Classification
	dev       bool // server and space
	prod      bool

	generation uint64
}

// grantKey is what a world grants.
type grantKey struct {
	Subject     abi.Subject
	Capability  abi.CapabilityRef
	Environment abi.EnvironmentRef
}

const (
	callee = abi.CapabilityRef("notes:note.read@1")
	caller = abi.CapabilityRef("relay:call.make@1")
	user   = abi.Subject("user:ada")
	agent  = abi.Subject("agent:bot")
	relay  = abi.Subject("biome:relay")
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func ref(slug string) abi.EnvironmentRef { return abi.MakeEnvironmentRef(slug) }

func allEnvironments() []abi.EnvironmentRef {
	var out []abi.EnvironmentRef
	for _, e := range environment.BuiltIns() {
		out = append(out, e.Ref)
	}
	return out
}

// full is a world in which everything is admitted and granted to everyone everywhere.
func full() world {
	w := world{
		org: "acme", calleeInstalled: allEnvironments(), callerInstalled: allEnvironments(), callerCalls: true, callerDeclares: true,
		callerDigest: "d-relay", grants: map[grantKey][]string{}, expiry: map[grantKey]time.Time{},
		overrides: map[abi.EnvironmentRef]abi.Classification{}, floor: abi.Public, clearance: abi.Regulated, dev: true, generation: 7,
	}
	for _, env := range allEnvironments() {
		for _, s := range []abi.Subject{user, agent, relay} {
			for _, c := range []abi.CapabilityRef{callee, caller} {
				w.grants[grantKey{s, c, env}] = []string{grant.Everything}
			}
		}
	}
	return w
}

// snapshot builds the world's policy.
func (w world) snapshot() *Snapshot {
	s := &Snapshot{Generation: w.generation, Environments: environment.BuiltIns()}
	for i := range s.Environments {
		s.Environments[i].Available = s.Environments[i].Available || w.dev
	}
	o := &Org{ID: w.org, Generation: w.generation}
	s.Orgs = trie.From(map[string]*Org{w.org: o})
	o.Spaces = trie.From(map[string]space.Effective{"main": {Kind: space.Project, Production: w.prod, Dev: w.dev, Floor: w.floor, Clearance: w.clearance}})
	for env, c := range w.overrides {
		o.Overrides = o.Overrides.With(nil, env, &environment.Override{Org: w.org, Environment: env, MaxData: c})
	}
	for k, globs := range w.grants {
		g := &grant.Grant{ID: fmt.Sprintf("g-%s-%s-%s", k.Subject, k.Capability, k.Environment), Org: w.org, Subject: k.Subject, Capability: k.Capability, Environment: k.Environment, Globs: globs}
		if t, ok := w.expiry[k]; ok {
			g.Expires = &t
		}
		if err := g.Compile(); err != nil {
			panic(err)
		}
		h := Holder{k.Subject, k.Capability}
		o.Grants = o.Grants.With(nil, h, o.Grants.At(h).With(g))
	}
	notes := &Biome{Org: w.org, Name: "notes", Subject: "biome:notes", Disabled: w.calleeDisabled}
	desc := &abi.Descriptor{Ref: callee, Export: "read", RequiresApproval: w.calleeApproval}
	notes.Installed, notes.Newest = versions("d-notes", desc, w.calleeInstalled, Kept{}, Kept{}, w.calleeNewer)
	declared := Kept{}
	if w.callerDeclares {
		declared.Calls = []abi.CapabilityRef{callee}
	}
	kept := Kept{}
	if w.callerCalls {
		kept.Calls = []abi.CapabilityRef{callee}
	}
	rel := &Biome{Org: w.org, Name: "relay", Subject: relay}
	rel.Installed, rel.Newest = versions(w.callerDigest, &abi.Descriptor{Ref: caller, Export: "make"}, w.callerInstalled, kept, declared, false)
	for c, b := range map[abi.CapabilityRef]*Biome{callee: notes, caller: rel} {
		o.Biomes, o.Routes = o.Biomes.With(nil, b.Name, b), o.Routes.With(nil, c, b)
	}
	return s
}

// versions builds what a biome was admitted to, the way policy does.
func versions(digest string, d *abi.Descriptor, envs []abi.EnvironmentRef, kept, declared Kept, newer bool) (installed, newest *Admission) {
	fresh := []abi.EnvironmentRef{ref(environment.Sandbox), ref(environment.TrustedDev)}
	caps := map[abi.CapabilityRef]*abi.Descriptor{d.Ref: d}
	if len(envs) > 0 {
		installed = &Admission{Install: "i-" + digest, Digest: digest, Environments: envs, Capabilities: caps, Kept: kept, Declared: declared}
		if !newer {
			installed.Environments = append(append([]abi.EnvironmentRef{}, envs...), fresh...)
			return installed, installed
		}
	}
	return installed, &Admission{Digest: digest + "-new", Environments: fresh, Capabilities: caps, Declared: declared}
}

// facts are those of a user's session in an environment, with a judged input.
func (w world) facts(env abi.EnvironmentRef, c abi.CapabilityRef, reach abi.Reach) Facts {
	return Facts{
		Now: noon, Org: w.org, Session: "s", Space: "main", Subject: user, Environment: env, Dev: env == ref(environment.TrustedDev),
		Clearance: abi.Regulated, Mark: abi.Public, Capability: c, Reach: reach, Rate: Within, Schema: Satisfied,
	}
}

func decide(w world, f Facts) Decision { return Decide(w.snapshot(), &f) }

// terms are those of an invocation that nothing but policy ends.
func terms(latest func() *Snapshot) Terms {
	return Terms{
		Invocation: "inv", Latest: latest, Stands: func() *abi.Error { return nil }, Clock: func() time.Time { return noon },
	}
}

// invoke decides and authorises a direct invocation.
func invoke(t testing.TB, w world, f Facts) *authority.Authority {
	t.Helper()
	s := w.snapshot()
	d := Decide(s, &f)
	if d.Verdict != Allow {
		t.Fatalf("refused: %+v", d.Explain())
	}
	a := Authorize(s, &f, &d, terms(func() *Snapshot { return s }))
	if a == nil {
		t.Fatal("allowed and no authority")
	}
	return a
}

// child gives the facts of an invocation of callee by caller in the user's session.
func (w world) child(t testing.TB, env abi.EnvironmentRef, callerReach, calleeReach abi.Reach, label abi.Classification) Facts {
	t.Helper()
	p := w.facts(env, caller, callerReach)
	c := p.Child(invoke(t, w, p), label, callee, noon)
	c.Reach, c.Rate, c.Schema = calleeReach, Within, Satisfied
	return c
}

package gate

import (
	"iter"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/environment"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/space"
	"github.com/ecotone-dev/ecotone/gateway/trie"
	"github.com/ecotone-dev/ecotone/host/egress"
)

// SystemOrg is the organisation whose capabilities every organisation can be granted.
const SystemOrg = "system"

// Snapshot is all policy at one moment. It and all it points to are immutable: a change makes
// a new snapshot that shares what did not change, so that its price does not grow with how much
// there is.
type Snapshot struct {
	Generation   uint64                    // number of the last change
	Environments []environment.Environment // the built-in ones
	Limits       uint64                    // generation of the last change to the environments
	Orgs         trie.Map[string, *Org]
	// Stale says that there may be newer policy which is not known: then nothing is allowed (PF-A20).
	Stale bool
}

// Org is one organisation's policy.
type Org struct {
	ID           string
	Generation   uint64 // number of the last change to this organisation
	Rates        Rates
	Environments trie.Map[abi.EnvironmentRef, *environment.Environment] // its own, resolved
	Spaces       trie.Map[string, space.Effective]
	Overrides    trie.Map[abi.EnvironmentRef, *environment.Override]
	Biomes       trie.Map[string, *Biome]
	Routes       trie.Map[abi.CapabilityRef, *Biome] // who provides a ref; unique with the system organisation
	Grants       trie.Map[Holder, Held]              // not revoked; a holder that is there holds something
}

// Biome is what an organisation admitted of one biome.
type Biome struct {
	Org      string
	Name     string
	Subject  abi.Subject // biome:<name>, which its grants are made to
	Disabled bool
	// Endings are its capabilities that are deprecated or retired; nil when none is.
	Endings map[abi.CapabilityRef]Ending
	// Installed is what the newest install grant admits, or nil.
	Installed *Admission
	// Older is what install grants admit that stand beside it, the newest first.
	Older []*Admission
	// Newest is the last upload: callable in sandbox and trusted-dev. Never nil. It is the same
	// as Installed, or as one of Older, when the install grant is bound to its digest.
	Newest *Admission
}

// Ending says that a capability is deprecated or retired, and what to invoke instead ("": nothing).
type Ending struct {
	State      grant.State
	ReplacedBy abi.CapabilityRef
}

// Admission is one version of a biome with what it was admitted to.
type Admission struct {
	Install      string // id of the install grant, "" for an upload that has none
	Digest       string
	Face         abi.Face
	Environments []abi.EnvironmentRef
	Capabilities map[abi.CapabilityRef]*abi.Descriptor
	Kept         Kept              // by the install grant: what counts
	Declared     Kept              // by the manifest: what counts where install and grants are waived
	Asks         grant.Obligations // of every invocation that the install grant admits
	Config       grant.Config      // what the install grant tells the biome
}

// Kept is what a biome may call and use.
type Kept struct {
	Calls     []abi.CapabilityRef
	Endpoints []*egress.Endpoint
	Secrets   []string
}

func (k *Kept) equal(o *Kept) bool {
	return slices.Equal(k.Calls, o.Calls) && slices.Equal(k.Endpoints, o.Endpoints) && slices.Equal(k.Secrets, o.Secrets)
}

// EnvironmentIn returns an environment as an organisation has it: a built-in one or one of its own.
// One of another organisation's own is nil, as one that is nobody's (X53).
func (s *Snapshot) EnvironmentIn(org string, ref abi.EnvironmentRef) *environment.Environment {
	for i := range s.Environments {
		if s.Environments[i].Ref == ref {
			return &s.Environments[i]
		}
	}
	if o := s.Orgs.At(org); o != nil {
		return o.Environments.At(ref)
	}
	return nil
}

// Concerning is the number of the last change that can matter to an organisation's
// invocations. It rises with every such change.
func (s *Snapshot) Concerning(org string) uint64 {
	g := s.Limits
	if o := s.Orgs.At(org); o != nil {
		g = max(g, o.Generation)
	}
	if o := s.Orgs.At(SystemOrg); o != nil {
		g = max(g, o.Generation)
	}
	return g
}

// Provided are the capabilities of a biome's versions, the newest upload's first; some are listed twice.
func (b *Biome) Provided() iter.Seq2[abi.CapabilityRef, *abi.Descriptor] {
	return func(yield func(abi.CapabilityRef, *abi.Descriptor) bool) {
		for _, a := range append([]*Admission{b.Newest, b.Installed}, b.Older...) {
			if a == nil {
				continue
			}
			for ref, d := range a.Capabilities {
				if !yield(ref, d) {
					return
				}
			}
		}
	}
}

// Route finds who provides a ref for an organisation's invocations, and which version serves
// an environment. It tells nothing about who may: see [Decide]. Both results are nil when
// nobody does.
func (s *Snapshot) Route(org string, ref abi.CapabilityRef, env abi.EnvironmentRef) (*Biome, *Admission) {
	b := s.provider(org, ref)
	if b == nil {
		return nil, nil
	}
	return b, b.serving(ref, s.EnvironmentIn(org, env))
}

func (s *Snapshot) provider(org string, ref abi.CapabilityRef) *Biome {
	if o := s.Orgs.At(org); o != nil {
		if b := o.Routes.At(ref); b != nil {
			return b
		}
	}
	if o := s.Orgs.At(SystemOrg); o != nil {
		return o.Routes.At(ref)
	}
	return nil
}

// serving is the version that an environment runs for a capability: the last upload where uploads are
// tried, the newest one that was installed and provides the capability everywhere else, environments that
// derive from those included. So two majors live side by side in two versions, and one that the last
// upload left out is still tried as it was installed. Where nothing is installed it is the upload, which
// admits nothing but sandbox and trusted-dev.
func (b *Biome) serving(ref abi.CapabilityRef, env *environment.Environment) *Admission {
	tried := env != nil && (env.Waives || env.Slug == environment.Sandbox)
	if b.Installed == nil || tried && b.Newest.provides(ref) {
		return b.Newest
	}
	if !b.Installed.provides(ref) {
		for _, a := range b.Older {
			if a.provides(ref) {
				return a
			}
		}
	}
	return b.Installed
}

func (a *Admission) provides(ref abi.CapabilityRef) bool { return a.Capabilities[ref] != nil }

func (a *Admission) admits(owner string, env *environment.Environment) bool {
	if env.Org == "" || env.Org == owner {
		return slices.Contains(a.Environments, env.Ref)
	}
	return a.Install != "" && slices.Contains(a.Environments, env.Base)
}

// kept is what the version may call and use in an environment.
func (a *Admission) kept(env *environment.Environment) *Kept {
	if env.Waives {
		return &a.Declared
	}
	return &a.Kept
}

package policy

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// Permissions is what one version of a biome could do at most, for whoever decides whether to
// install it: made from its manifest and from what its module imports (X63). The digest of the
// version is not in it, so that two versions that may do the same have the same document. What it
// says of itself (side effects, risk) is its author's word.
type Permissions struct {
	Biome     string                             `json:"biome"`
	Domains   map[string][]PermissionsCapability `json:"domains"` // what it provides, by domain
	Data      map[string][]string                `json:"data"`    // host functions it imports, by service; a service that is absent is out of its reach
	Calls     []abi.CapabilityRef                `json:"calls"`
	Endpoints []string                           `json:"endpoints"`
	Secrets   []string                           `json:"secrets"`
}

// PermissionsCapability is one capability of a permission document.
type PermissionsCapability struct {
	Ref                  abi.CapabilityRef  `json:"ref"`
	Reach                abi.Reach          `json:"reach"`
	RiskTier             abi.RiskTier       `json:"riskTier"`
	RequiresApproval     bool               `json:"requiresApproval"`
	SideEffects          string             `json:"sideEffects"`
	OutputClassification abi.Classification `json:"outputClassification"`
}

// PermissionsReport is the permission document of one version with its digest, and how it differs
// from that of the version that is installed.
type PermissionsReport struct {
	Biome       string      `json:"biome"`
	Digest      string      `json:"digest"`      // of the version
	Permissions string      `json:"permissions"` // hex SHA-256 of the document's canonical form (RFC 8785)
	Document    Permissions `json:"document"`
	// Config are the names of what the install grant that stands tells the biome; an install without
	// them tells it nothing of the kind.
	Config []string        `json:"config,omitempty"`
	Diff   PermissionsDiff `json:"diff"`
}

// PermissionsDiff is what changes with a version. Before the first install everything is added.
type PermissionsDiff struct {
	Digest      string              `json:"digest,omitempty"`      // of the version that is installed
	Permissions string              `json:"permissions,omitempty"` // of its document
	Added       []PermissionsLine   `json:"added"`
	Removed     []PermissionsLine   `json:"removed"`
	Changed     []PermissionsChange `json:"changed"`
}

// PermissionsLine is one thing that a document permits: a capability, a call, an endpoint, a
// secret, or a host function, whose kind is the service.
type PermissionsLine struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// PermissionsChange is one member of a capability that two documents have differently.
type PermissionsChange struct {
	PermissionsLine
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
}

// services names what host functions get at, as permission documents do. Functions that only
// speak with the caller are not there.
var services = map[abi.Group]string{
	abi.GroupFiles: "files", abi.GroupKV: "keys", abi.GroupHTTP: "network", abi.GroupSecret: "secrets",
	abi.GroupInvoke: "children", abi.GroupAudit: "audit",
}

// permissions makes the document of an upload.
func (u *uploadState) permissions() Permissions {
	m := u.manifest
	p := Permissions{
		Biome: m.Name, Domains: map[string][]PermissionsCapability{}, Data: map[string][]string{},
		Calls: ordered(m.Requires.Capabilities), Endpoints: ordered(names(m.Requires.Endpoints)), Secrets: ordered(names(m.Requires.Secrets)),
	}
	for i := range m.Provides {
		d := &m.Provides[i]
		p.Domains[d.Ref.Domain()] = append(p.Domains[d.Ref.Domain()], PermissionsCapability{
			d.Ref, d.Reach, d.RiskTier, d.RequiresApproval, d.SideEffects, d.OutputClassification,
		})
	}
	for _, of := range p.Domains {
		slices.SortFunc(of, func(a, b PermissionsCapability) int { return cmp.Compare(a.Ref, b.Ref) })
	}
	for _, name := range u.functions() {
		if f, known := abi.FunctionByName(name); known && services[f.Group] != "" {
			p.Data[services[f.Group]] = append(p.Data[services[f.Group]], name)
		}
	}
	for service, of := range p.Data {
		p.Data[service] = slices.Compact(ordered(of))
	}
	return p
}

func ordered[T cmp.Ordered](in []T) []T {
	out := list(in)
	slices.Sort(out)
	return out
}

// functions are the host functions an upload imports. Of one that was recorded without them, all
// that its declared reach lets it import.
func (u *uploadState) functions() []string {
	if u.record.Functions != nil {
		return u.record.Functions
	}
	var most abi.Reach
	for _, d := range u.manifest.Provides {
		most = max(most, d.Reach)
	}
	var out []string
	for _, f := range abi.Functions() {
		if f.Reach.Within(most) {
			out = append(out, f.Name)
		}
	}
	return out
}

// lines is a document taken apart: everything it permits, with what is said of it.
func (p *Permissions) lines() map[PermissionsLine]map[string]string {
	out := map[PermissionsLine]map[string]string{}
	for _, of := range p.Domains {
		for _, c := range of {
			out[PermissionsLine{"capability", string(c.Ref)}] = map[string]string{
				"reach": c.Reach.String(), "riskTier": string(c.RiskTier), "requiresApproval": strconv.FormatBool(c.RequiresApproval),
				"sideEffects": c.SideEffects, "outputClassification": c.OutputClassification.String(),
			}
		}
	}
	for service, of := range p.Data {
		for _, name := range of {
			out[PermissionsLine{service, name}] = nil
		}
	}
	for _, ref := range p.Calls {
		out[PermissionsLine{"call", string(ref)}] = nil
	}
	for _, name := range p.Endpoints {
		out[PermissionsLine{"endpoint", name}] = nil
	}
	for _, name := range p.Secrets {
		out[PermissionsLine{"secret", name}] = nil
	}
	return out
}

// diff compares two documents; a nil one permits nothing.
func diff(from, to *Permissions) PermissionsDiff {
	d := PermissionsDiff{Added: []PermissionsLine{}, Removed: []PermissionsLine{}, Changed: []PermissionsChange{}}
	var was, is map[PermissionsLine]map[string]string
	if from != nil {
		was = from.lines()
	}
	if to != nil {
		is = to.lines()
	}
	byName := func(a, b PermissionsLine) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	}
	for _, l := range slices.SortedFunc(maps.Keys(is), byName) {
		before, there := was[l]
		if !there {
			d.Added = append(d.Added, l)
			continue
		}
		for _, field := range slices.Sorted(maps.Keys(is[l])) {
			if a, b := before[field], is[l][field]; a != b {
				d.Changed = append(d.Changed, PermissionsChange{l, field, a, b})
			}
		}
	}
	for _, l := range slices.SortedFunc(maps.Keys(was), byName) {
		if _, there := is[l]; !there {
			d.Removed = append(d.Removed, l)
		}
	}
	return d
}

// Permissions shows the permission document of one version of a biome, by default the newest, and
// how it differs from the version that is installed; of several, from the one that was installed last.
func (s *Service) Permissions(p session.Principal, org, biome, digest string) (out PermissionsReport, err error) {
	err = s.read(p, OpRead, org, func(_ *state, o *orgState) error {
		b := o.biomes[biome]
		if b == nil {
			return notThere("biome", biome)
		}
		out, err = o.permissions(b, cmp.Or(digest, b.record.Digest))
		return err
	})
	return out, err
}

func (o *orgState) permissions(b *biomeState, digest string) (out PermissionsReport, err error) {
	u := b.uploads[digest]
	if u == nil {
		return out, notThere("upload with the digest", digest)
	}
	out = PermissionsReport{Biome: b.record.Name, Digest: digest, Document: u.permissions()}
	if out.Permissions, err = digestOf(out.Document); err != nil {
		return out, err
	}
	standing := o.installed(b)
	if len(standing) == 0 {
		out.Diff = diff(nil, &out.Document)
		return out, nil
	}
	out.Config = standing[0].Config.Names()
	was := b.uploads[standing[0].Digest].permissions()
	out.Diff = diff(&was, &out.Document)
	out.Diff.Digest = standing[0].Digest
	out.Diff.Permissions, err = digestOf(was)
	return out, err
}

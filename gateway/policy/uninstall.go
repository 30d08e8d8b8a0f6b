package policy

import (
	"context"
	"slices"

	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// ending is what revokes those install grants of a biome that end, and of the grants that install
// grants of it made all that none of those left standing keeps.
func (s *Service) ending(o *orgState, b *biomeState, p session.Principal, ends func(*grant.Install) bool) []any {
	var out []any
	var left []grant.Install
	for _, i := range o.installed(b) {
		if ends(&i) {
			out = append(out, s.revocation(p, i.Org, i.ID))
		} else {
			left = append(left, i)
		}
	}
	if len(out) == 0 {
		return nil
	}
	for _, id := range b.installs {
		for _, made := range o.installs[id].Grants {
			g := o.grants[made]
			if g == nil || slices.ContainsFunc(left, func(i grant.Install) bool {
				return slices.Contains(i.Calls, g.Capability) && slices.Contains(i.Environments, g.Environment)
			}) {
				continue
			}
			out = append(out, s.revocation(p, g.Org, g.ID))
		}
	}
	return out
}

// Uninstall revokes the install grants of a biome, or the one of a digest, and the grants that were
// made for them alone. A biome without one falls back to what an upload may: sandbox and trusted-dev.
// The answer is the revocation of the newest of them, whose revision goes into e.
func (s *Service) Uninstall(ctx context.Context, p session.Principal, org, biome, digest string, e Expect) (grant.Revocation, error) {
	var out grant.Revocation
	err := s.apply(ctx, intent{by: p, op: OpUninstall, org: org, target: biome}, func(st *state) (*change, error) {
		o, b, err := st.biome(org, biome)
		if err != nil {
			return nil, err
		}
		i, err := o.installedAs(b, digest)
		if err != nil {
			return nil, err
		}
		if err := e.check(i.Revision); err != nil {
			return nil, err
		}
		records := s.ending(o, b, p, func(i *grant.Install) bool { return digest == "" || i.Digest == digest })
		out = records[0].(grant.Revocation)
		return &change{records: records, org: org, target: i.ID}, nil
	})
	return out, err
}

// installedAs is the install grant that stands for a digest of a biome, or for "" the newest.
func (o *orgState) installedAs(b *biomeState, digest string) (grant.Install, error) {
	for _, i := range o.installed(b) {
		if digest == "" || i.Digest == digest {
			return i, nil
		}
	}
	return grant.Install{}, notThere("install grant of the biome", b.record.Name)
}

// InstallOf returns the install grant that stands for a digest of a biome, or for "" the newest.
func (s *Service) InstallOf(p session.Principal, org, biome, digest string) (out grant.Install, err error) {
	err = s.read(p, OpRead, org, func(_ *state, o *orgState) error {
		b := o.biomes[biome]
		if b == nil {
			return notThere("install grant of the biome", biome)
		}
		out, err = o.installedAs(b, digest)
		return err
	})
	return out, err
}

// Installs lists the install grants that stand, by biome, the newest first.
func (s *Service) Installs(p session.Principal, org string) (out []grant.Install, err error) {
	err = s.read(p, OpRead, org, func(_ *state, o *orgState) error {
		for _, b := range sorted(o.biomes) {
			out = append(out, o.installed(b)...)
		}
		return nil
	})
	return out, err
}

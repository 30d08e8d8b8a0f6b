package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/grant"
	"github.com/ecotone-dev/ecotone/gateway/trie"
)

const nameChain = "decision of the fourth in a chain of four"

// decisionsAmongGrants measures the gate alone: a decision that looks for one of many grants, another one
// each time; and one about a child whose rights are met with those of three invocations above it.
func decisionsAmongGrants(ctx context.Context, b *bench) error {
	p, err := allowed("00")
	if err != nil {
		return err
	}
	var list []*timed
	for _, n := range pick(b, []int{1, 1_000}, []int{1, 1_000, 1_000_000}) {
		snapshot, facts := among(p.Snapshot, &p.Facts, n)
		i := 0
		list = append(list, &timed{name: fmt.Sprintf("decision among %d grants", n), run: loop(func() error {
			i++
			if d := gate.Decide(snapshot, &facts[i%len(facts)]); d.Verdict != gate.Allow {
				return fmt.Errorf("among %d grants: %s", n, d.Code)
			}
			return nil
		})})
	}
	snapshot, fourth, err := chainOfFour(p.Snapshot, &p.Facts)
	if err != nil {
		return err
	}
	list = append(list, &timed{name: nameChain, run: loop(func() error {
		if d := gate.Decide(snapshot, fourth); d.Verdict != gate.Allow {
			return fmt.Errorf("in a chain: %s", d.Code)
		}
		return nil
	})})
	if err := alternate(ctx, pick(b, 6, 7), pick(b, 8*time.Millisecond, 100*time.Millisecond), list...); err != nil {
		return err
	}
	for _, t := range list {
		b.Add(t.row(groupGrowth).Against("1 grant", "times", t.ratios(list[0])))
	}
	return nil
}

// among is the policy of a snapshot with n holders of the same grant, and facts of a thousand
// of them.
func among(s *gate.Snapshot, f *gate.Facts, n int) (*gate.Snapshot, []gate.Facts) {
	org := *s.Orgs.At(f.Org)
	held := org.Held(f.Subject, f.Capability)[0]
	batch := new(trie.Batch)
	facts := make([]gate.Facts, 0, 1000)
	for i := range n {
		g := *held
		g.ID, g.Subject = fmt.Sprint("grant", i), growthSubject(i)
		h := gate.Holder{Subject: g.Subject, Capability: g.Capability}
		org.Grants = org.Grants.With(batch, h, gate.Held{&g})
		if len(facts) < cap(facts) && i%max(1, n/cap(facts)) == 0 {
			one := *f
			one.Subject = g.Subject
			facts = append(facts, one)
		}
	}
	out := *s
	out.Orgs = s.Orgs.With(nil, f.Org, &org)
	return &out, facts
}

// chainOfFour is the policy of a snapshot in which the biome may call itself, and the facts of an
// invocation that is made for another, for another, for a caller's.
func chainOfFour(s *gate.Snapshot, f *gate.Facts) (*gate.Snapshot, *gate.Facts, error) {
	org := *s.Orgs.At(f.Org)
	biome := *org.Routes.At(f.Capability)
	admission := *biome.Installed
	refs := []abi.CapabilityRef{f.Capability}
	for i := range 3 {
		refs = append(refs, abi.CapabilityRef(fmt.Sprintf("bench:level.n%d@1", i)))
	}
	admission.Capabilities, admission.Kept.Calls = map[abi.CapabilityRef]*abi.Descriptor{}, refs[1:]
	for _, ref := range refs {
		d := *biome.Installed.Capabilities[f.Capability]
		d.Ref = ref
		admission.Capabilities[ref] = &d
	}
	biome.Installed, biome.Newest = &admission, &admission
	for _, ref := range refs {
		org.Routes = org.Routes.With(nil, ref, &biome)
		for _, subject := range []abi.Subject{f.Subject, biome.Subject} {
			org.Grants = org.Grants.With(nil, gate.Holder{Subject: subject, Capability: ref}, gate.Held{{
				ID: string(subject) + " " + string(ref), Org: f.Org, Subject: subject, Capability: ref, Environment: f.Environment, Globs: []string{grant.Everything},
			}})
		}
	}
	out := *s
	out.Orgs = s.Orgs.With(nil, f.Org, &org)
	at := *f
	for _, ref := range slices.Clone(refs[1:]) {
		d := gate.Decide(&out, &at)
		above := at
		a := gate.Authorize(&out, &above, &d, gate.Terms{
			Invocation: "01J0000000000000000000TEST", Latest: func() *gate.Snapshot { return &out },
			Stands: func() *abi.Error { return nil }, Clock: func() time.Time { return f.Now },
		})
		if a == nil {
			return nil, nil, errors.Join(errors.New("the chain is refused"), d.Err())
		}
		at = above.Child(a, d.Start, ref, f.Now)
		at.Reach, at.Rate, at.Schema = f.Reach, gate.Within, gate.Satisfied
	}
	return &out, &at, nil
}

package main

import (
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/gate"
)

// What is measured is a decision about a chain: three invocations above it, whose rights it needs, and it
// allocates nothing.
func TestChainOfFour(t *testing.T) {
	p, err := allowed("00")
	if err != nil {
		t.Fatal(err)
	}
	snapshot, fourth, err := chainOfFour(p.Snapshot, &p.Facts)
	if err != nil {
		t.Fatal(err)
	}
	if d := gate.Decide(snapshot, fourth); d.Verdict != gate.Allow || d.Checks[gate.CheckCallerGrant].State != gate.Passed {
		t.Fatalf("%+v", d.Explain())
	}
	if n := len(fourth.Parent.Authority.Spec().Chain); n != 2 {
		t.Errorf("%d invocations above its parent", n)
	}
	if n := testing.AllocsPerRun(100, func() { gate.Decide(snapshot, fourth) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	org := *snapshot.Orgs.At(fourth.Org)
	org.Grants = org.Grants.Without(nil, gate.Holder{Subject: "biome:bench", Capability: fourth.Capability})
	less := *snapshot
	less.Orgs = snapshot.Orgs.With(nil, org.ID, &org)
	if d := gate.Decide(&less, fourth); d.Code != abi.CodeMissingGrant {
		t.Errorf("without the biome's grant: %q", d.Code)
	}
}

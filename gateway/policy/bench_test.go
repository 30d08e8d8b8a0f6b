package policy

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/store/badger"
)

// unrecorded takes every event and keeps none.
type unrecorded struct{}

func (unrecorded) Admin(context.Context, Event) error { return nil }

// populated is a service with one biome of fifty capabilities and n grants, on disk.
func populated(b *testing.B, n int) *server {
	b.Helper()
	st, err := badger.Open(b.TempDir(), false)
	must(b, err)
	b.Cleanup(func() { st.Close() })
	s := startOn(b, st, false, 0)
	s.Service.audit = unrecorded{}
	var refs []abi.CapabilityRef
	for i := range 50 {
		refs = append(refs, abi.CapabilityRef(fmt.Sprintf("notes:note.read%d@1", i)))
	}
	s.upload(DefaultOrg, "notes", 1, refs...)
	for made := 0; made < n; {
		var rs []GrantRequest
		for ; made < n && len(rs) < MaxTogether; made++ {
			rs = append(rs, GrantRequest{Org: DefaultOrg, Subject: abi.Subject(fmt.Sprintf("user:u%d", made/len(refs))), Capability: refs[made%len(refs)], Environment: env("project")})
		}
		_, err := s.CreateGrants(b.Context(), s.op, DefaultOrg, rs)
		must(b, err)
	}
	return s
}

var sizes = []int{1_000, 100_000, 1_000_000}

// A restart reads every record once.
func BenchmarkOpen(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := populated(b, n)
			b.ResetTimer()
			for range b.N {
				again, err := Open(b.Context(), s.store, Options{Auditor: unrecorded{}})
				must(b, err)
				if again.Snapshot().Orgs.At(DefaultOrg).Grants.Len() != n {
					b.Fatal("not all there")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/grant")
		})
	}
}

// What a grant takes in memory, and a write and a decision among many.
func BenchmarkAmongGrants(b *testing.B) {
	for _, n := range sizes {
		s := populated(b, n)
		b.Run(fmt.Sprintf("memory/%d", n), func(b *testing.B) {
			for range b.N {
				without := inUse()
				again, err := Open(b.Context(), s.store, Options{Auditor: unrecorded{}})
				must(b, err)
				b.ReportMetric(float64(inUse()-without)/float64(n), "B/grant")
				runtime.KeepAlive(again)
			}
		})
		made := 0
		b.Run(fmt.Sprintf("write/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				s.grant(abi.Subject(fmt.Sprintf("user:w%d", made)), "notes:note.read0@1", "project")
				made++
			}
		})
		b.Run(fmt.Sprintf("decision/%d", n), func(b *testing.B) {
			snap := s.Snapshot()
			facts := make([]gate.Facts, 1024)
			for i := range facts {
				k := i * 7919 % n
				facts[i] = gate.Facts{
					Now: noon, Org: DefaultOrg, Space: RootSpace, Subject: abi.Subject(fmt.Sprintf("user:u%d", k/50)), Environment: env("project"),
					Clearance: abi.Regulated, Mark: abi.Public, Capability: abi.CapabilityRef(fmt.Sprintf("notes:note.read%d@1", k%50)), Reach: abi.ReachOwner, Rate: gate.Within, Schema: gate.Satisfied,
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if d := gate.Decide(snap, &facts[i%len(facts)]); d.Checks[gate.CheckGrant].State != gate.Passed {
					b.Fatal("no grant")
				}
			}
		})
	}
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

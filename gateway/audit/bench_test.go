package audit

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ecotone-dev/ecotone/abi"
)

// pair is what the pipeline appends of one allowed invocation, with bodies as they really are.
func pair() (Decided, Ended) {
	d := Decided{
		Envelope: Envelope{
			Subject: SubjectRef{"user", "ada"}, CallerKind: "user", Origin: "http", Space: "main", Environment: "environment:project",
			Capability: "notes:note.get@1", Session: "01JZX5M3V8Q0A9C7T2R4W6Y8ZA", Workspace: "01JZX5M3V8Q0A9C7T2R4W6Y8ZB",
			InputDigest: "hmac-sha256:6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d", InputBytes: 33,
		},
		Verdict: VerdictAllow, Biome: "notes", Digest: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d", Generation: 12345,
		Grants: []string{"01JZX5M3V8Q0A9C7T2R4W6Y8ZC"}, ReachCheck: "enforced", Reach: abi.ReachOwner,
		Declared: abi.Internal, Label: abi.Internal, Ceiling: abi.Regulated, Clearance: abi.Confidential,
	}
	for _, name := range []string{
		"lifecycle", "install", "environment", "grant", "reach", "classification", "allow-list", "rate", "schema", "approval",
	} {
		d.Checks = append(d.Checks, Check{Name: name, Verdict: "pass"})
	}
	e := Ended{
		Outcome: OutcomeCompleted, Released: true, Label: abi.Internal, OutputBytes: 40, DurationMS: 1, Fuel: 123456, PeakMemory: 1 << 20, HostCalls: 3,
		Lines: []Line{
			{Line: 1, Function: "input", BytesOut: 33, Label: abi.Internal},
			{Line: 2, Function: "kv_get", Target: "first", BytesOut: 40, Label: abi.Internal},
			{Line: 3, Function: "output", BytesIn: 40, Label: abi.Internal},
		},
	}
	return d, e
}

// BenchmarkPair is what the audit costs an invocation: decided without waiting, ended with, by many at
// once. CPU time is that of the whole process, user and system.
func BenchmarkPair(b *testing.B) {
	for _, mode := range []Durability{DurabilityProcess, DurabilityPower} {
		for _, appenders := range []int{1, 32} {
			b.Run(fmt.Sprintf("%s/appenders=%d", mode, appenders), func(b *testing.B) {
				l := mustOpen(b, Options{Dir: b.TempDir(), Durability: mode})
				d, e := pair()
				input := []byte(`{"id":"first","text":"hello you"}`)
				var left atomic.Int64
				left.Store(int64(b.N))
				b.ReportAllocs()
				b.ResetTimer()
				before := cpu(b)
				var wg sync.WaitGroup
				for range appenders {
					wg.Go(func() {
						d, e := d, e
						for left.Add(-1) >= 0 {
							id := NewID()
							var err error
							if d.InputDigest, err = l.Digest("acme", input); err == nil {
								err = l.AppendAsync(ctx, Event{Org: "acme", ID: id, Body: &d})
							}
							if err == nil {
								_, err = l.Append(ctx, Event{Org: "acme", ID: id, Body: &e})
							}
							if err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

func cpu(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/benchmarks/peer"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/schema"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

const groupGuarantees = "What each guarantee costs"

// flat is a guest memory for host calls without a guest.
type flat []byte

func (m flat) Read(off, n uint32) ([]byte, bool) {
	if uint64(off)+uint64(n) > uint64(len(m)) {
		return nil, false
	}
	return m[off : off+n], true
}

func (m flat) Write(off uint32, b []byte) bool {
	if uint64(off)+uint64(len(b)) > uint64(len(m)) {
		return false
	}
	copy(m[off:], b)
	return true
}

func measureGuarantees(ctx context.Context, b *bench) error {
	if err := decisionsAndChecks(ctx, b); err != nil {
		return err
	}
	return auditAppends(ctx, b)
}

// calls is how many host calls are made of one invocation, below its budget.
const calls = 5000

func decisionsAndChecks(ctx context.Context, b *bench) error {
	descriptor := &abi.Descriptor{Ref: "bench:input.echo@1", Export: "run", Reach: abi.ReachOwner, OutputClassification: abi.Public}
	p := peer.NewPolicy("00", descriptor)
	decide := func() { gate.Decide(p.Snapshot, &p.Facts) }

	a := p.Authority()
	if a == nil {
		return fmt.Errorf("the gate refuses the benchmark's own policy")
	}
	clock, ok := abi.FunctionByName("time_now")
	if !ok {
		return fmt.Errorf("there is no host function time_now")
	}
	mem := make(flat, 4096)
	var inv *boundary.Invocation
	made := 0
	hostCall := func() error {
		if made%calls == 0 {
			inv = boundary.New(boundary.Spec{Authority: a, Input: []byte(`{}`)})
			inv.Enter(boundary.PhaseInitialize)
			inv.Enter(boundary.PhaseRun)
		}
		made++
		if boundary.Call(ctx, inv, clock, mem, nil) < 0 {
			return fmt.Errorf("the host call is refused: %v", inv.Over())
		}
		return nil
	}
	s, err := schema.Compile([]byte(`{"type":"object","properties":{"path":{"type":"string","maxLength":512},"offset":{"type":"integer","minimum":0},"tags":{"type":"array","items":{"type":"string"}}},"required":["path"]}`))
	if err != nil {
		return err
	}
	document := []byte(`{"path":"notes/today.md","offset":128,"tags":["a","b","c"]}`)
	rows := []struct {
		timed
		allocations bool // has the target 0
	}{
		{timed{name: "decision (12 checks, one snapshot)", run: loop(func() error { decide(); return nil })}, true},
		{timed{name: "authority made of a decision", run: loop(func() error { _ = p.Authority(); return nil })}, false},
		{timed{name: "host call: count, authority, reach, budget, receipt", run: loop(hostCall)}, true},
		{timed{name: "state of an invocation", run: loop(func() error { boundary.New(boundary.Spec{Authority: a}); return nil })}, false},
		{timed{name: "input schema, 60 bytes, three members", run: loop(func() error { return s.Validate(document) })}, false},
	}
	list := make([]*timed, len(rows))
	for i := range rows {
		list[i] = &rows[i].timed
	}
	if err := alternate(ctx, pick(b, 5, 15), pick(b, 10*time.Millisecond, 100*time.Millisecond), list...); err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		b.Add(report.Row{Group: groupGuarantees, Name: r.name, Value: r.median(), Unit: "ns"})
		made = 1 // no new invocation while allocations are counted
		n := testing.AllocsPerRun(1000, func() { _ = r.run(1) })
		row := report.Row{Group: groupGuarantees, Name: r.name + ": allocations", Value: n, Unit: "allocations"}
		if r.allocations {
			row.Reference, row.Ratio, row.Reads, row.Target = "none", n, "against", &report.Target{Better: report.AtMost, Bound: 0}
		}
		b.Add(row)
	}
	return nil
}

func auditAppends(ctx context.Context, b *bench) error {
	log, err := audit.Open(audit.Options{Dir: filepath.Join(b.dir, "audit")})
	if err != nil {
		return err
	}
	defer log.Close()
	body := audit.Decided{
		Envelope: audit.Envelope{
			Subject: audit.SubjectRef{Kind: "user", ID: "ada"}, CallerKind: "user", Space: "main", Environment: "environment:project",
			Capability: "bench:input.echo@1", Session: "s1", InputDigest: "hmac-sha256:00", InputBytes: 33,
		},
		Verdict: audit.VerdictDeny, Code: abi.CodeMissingGrant, Biome: "bench", Digest: "ab", Generation: 7, ReachCheck: "enforced",
		Reach: abi.ReachOwner, Declared: abi.Internal, Label: abi.Internal, Ceiling: abi.Secret, Clearance: abi.Confidential,
		Checks: []audit.Check{{Name: "grant", Verdict: "fail", Code: abi.CodeMissingGrant}},
	}
	var list []*timed
	for _, writers := range []int{1, 8, 64} {
		list = append(list, &timed{name: fmt.Sprintf("audit: durable append, %d writers: an event", writers), run: func(n int) error {
			var left atomic.Int64
			left.Store(int64(n))
			errs := make([]error, writers)
			var wg sync.WaitGroup
			for i := range writers {
				wg.Go(func() {
					for left.Add(-1) >= 0 && errs[i] == nil {
						_, errs[i] = log.Append(ctx, audit.Event{Org: "acme", ID: audit.NewID(), Body: body})
					}
				})
			}
			wg.Wait()
			for _, err := range errs {
				if err != nil {
					return err
				}
			}
			return nil
		}})
	}
	if err := alternate(ctx, pick(b, 3, 9), pick(b, 100*time.Millisecond, time.Second), list...); err != nil {
		return err
	}
	for i, t := range list {
		row := report.Row{Group: groupGuarantees, Name: t.name, Value: t.median(), Unit: "ns"}
		if i > 0 {
			row.Reference, row.Ratio, row.Reads = "one writer", t.over(list[0]), "times"
		} else {
			row.Note = "Written and synchronised before Append returns; concurrent writers share the synchronisation."
		}
		b.Add(row)
	}
	return nil
}

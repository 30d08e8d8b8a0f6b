package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/benchmarks/report"
	"github.com/ecotone-dev/ecotone/gateway/audit"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/schema"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

const (
	groupParts   = "The parts, one by one"
	nameDecision = "decision (every check, one snapshot)"
	nameHostCall = "host call: count, authority, reach, budget, receipt"
	allocations  = ": allocations"
)

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

func measureParts(ctx context.Context, b *bench) error {
	if err := decisionsAndChecks(ctx, b); err != nil {
		return err
	}
	return auditAppends(ctx, b)
}

// calls is how many host calls are made of one invocation, below its budget.
const calls = 5000

func decisionsAndChecks(ctx context.Context, b *bench) error {
	p, err := allowed("00")
	if err != nil {
		return err
	}
	decide := func() { gate.Decide(p.Snapshot, &p.Facts) }
	a := p.Authority()
	clock, ok := abi.FunctionByName("time_now")
	if !ok {
		return fmt.Errorf("there is no host function time_now")
	}
	var mem boundary.Memory = make(flat, 4096) // as the engine hands it over: made once, not for each call
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
		judged bool // its allocations have the target 0
	}{
		{timed{name: nameDecision, run: loop(func() error { decide(); return nil })}, true},
		{timed{name: "authority made of a decision", run: loop(func() error { _ = p.Authority(); return nil })}, false},
		{timed{name: nameHostCall, run: loop(hostCall)}, true},
		{timed{name: "state of an invocation", run: loop(func() error { boundary.New(boundary.Spec{Authority: a}); return nil })}, false},
		{timed{name: "input schema, 60 bytes, three members", run: loop(func() error { return s.Validate(document) })}, false},
	}
	list := make([]*timed, len(rows))
	for i := range rows {
		list[i] = &rows[i].timed
	}
	if err := alternate(ctx, pick(b, 6, 15), pick(b, 8*time.Millisecond, 100*time.Millisecond), list...); err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		b.Add(r.row(groupParts))
		made = 1 // no new invocation while allocations are counted
		n := testing.AllocsPerRun(1000, func() { _ = r.run(1) })
		row := report.Counted(groupParts, r.name+allocations, "allocations", n)
		if r.judged {
			row.Reference, row.Ratio, row.Reads = "none", n, "against"
			row = row.Aim(atMost(0))
		}
		b.Add(row)
	}
	return nil
}

// auditAppends measures durable appends in each of the audit's modes, with their writers.
func auditAppends(ctx context.Context, b *bench) error {
	var list []*timed
	first := map[*timed]*timed{} // the row of one writer in the same mode
	for _, m := range modes {
		log, err := openLog(filepath.Join(b.dir, "audit-"+m.name), m)
		if err != nil {
			return err
		}
		defer log.Close()
		var one *timed
		for _, writers := range []int{1, 8, 64} {
			t := &timed{name: fmt.Sprintf("%s: append, %d writers: an event", m, writers), run: appends(ctx, log, writers)}
			if one == nil {
				one = t
			} else {
				first[t] = one
			}
			list = append(list, t)
		}
	}
	if err := alternate(ctx, pick(b, 4, 9), pick(b, 60*time.Millisecond, 500*time.Millisecond), list...); err != nil {
		return err
	}
	for _, t := range list {
		row := t.row(groupParts)
		if one := first[t]; one != nil {
			row = row.Against("one writer", "times", t.ratios(one))
		} else {
			row = row.Noting("As durable as the mode says before Append returns; concurrent writers share a group.")
		}
		b.Add(row)
	}
	return nil
}

// appends makes n appends by several writers at once.
func appends(ctx context.Context, log *audit.Log, writers int) func(n int) error {
	body := &audit.Decided{ // by reference, as the product appends it
		Envelope: audit.Envelope{
			Subject: audit.SubjectRef{Kind: "user", ID: "ada"}, CallerKind: "user", Space: "main", Environment: "environment:project",
			Capability: echoRef, Session: "s1", InputDigest: "hmac-sha256:00", InputBytes: 33,
		},
		Verdict: audit.VerdictDeny, Code: abi.CodeMissingGrant, Biome: "bench", Digest: "ab", Generation: 7, ReachCheck: "enforced",
		Reach: abi.ReachOwner, Declared: abi.Internal, Label: abi.Internal, Ceiling: abi.Secret, Clearance: abi.Confidential,
		Checks: []audit.Check{{Name: "grant", Verdict: "fail", Code: abi.CodeMissingGrant}},
	}
	return func(n int) error {
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
		return errors.Join(errs...)
	}
}

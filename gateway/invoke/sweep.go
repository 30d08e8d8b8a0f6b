package invoke

import (
	"context"
	"sync"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/approval"
	"github.com/ecotone-dev/ecotone/gateway/audit"
)

// sweepEvery is how often requests are looked at that nobody acts on: those that expire, and those that were
// approved when there was no place to run.
const sweepEvery = 15 * time.Second

// Settle ends what a process that died left of requests: rows that say somebody would be asked when nobody
// was, and runs that began. It is called before anything is served, and runs nothing.
func (p *Pipeline) Settle(ctx context.Context) error {
	unsettled := p.o.Policy.Unsettled()
	asked := map[string]bool{}
	for i := range unsettled {
		asked[unsettled[i].Request.ID] = true
	}
	for _, row := range p.o.Audit.Waiting() {
		if asked[row.ID] {
			continue
		}
		s, err := p.o.Policy.Standing(ctx, row.Org, row.ID)
		switch {
		case err == nil && s.Use != nil: // the log broke under it
			err = p.abandoned(ctx, &s)
		case err == nil || abi.CodeOf(err) == abi.CodeNotFound:
			_, err = p.o.Audit.Append(ctx, audit.Event{Org: row.Org, ID: row.ID, Body: audit.Resolved{Resolution: audit.ResolvedRefused, Code: abi.CodeNotReady}})
		}
		if err != nil {
			return err
		}
	}
	for i := range unsettled {
		if s := &unsettled[i]; s.State(p.o.Policy.Now()) != approval.Approved {
			if err := p.follow(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// Sweep does what follows from every request, whatever its state. What cannot be done now is done later.
func (p *Pipeline) Sweep(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	unsettled := p.o.Policy.Unsettled()
	for i := range unsettled {
		if err := p.follow(ctx, &unsettled[i]); err != nil {
			p.o.Log.Info("a request for an approval is left for later, or void", "approval", unsettled[i].Request.ID, "error", err)
		}
	}
	if err := p.o.Policy.PurgeApprovals(ctx); err != nil {
		p.o.Log.Error("what expired approvals kept was not removed", "error", err)
	}
}

// Watch sweeps now and then, until the function that it returns is called.
func (p *Pipeline) Watch() (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		every := time.NewTicker(sweepEvery)
		defer every.Stop()
		for {
			p.Sweep(ctx)
			select {
			case <-every.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() error {
		cancel()
		wg.Wait()
		return nil
	}
}

package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/ecotone-dev/ecotone/gateway/policy"
)

// collectEvery is how often expired records are looked for. The first look is at the start.
const collectEvery = time.Hour

// collect removes what expired long ago, now and then, until the function it returns is called. What
// fails is tried again the next time.
func collect(p *policy.Service, log *slog.Logger) func() error {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		every := time.NewTicker(collectEvery)
		defer every.Stop()
		for {
			if err := p.Collect(ctx); err != nil && ctx.Err() == nil {
				log.Warn("records that expired are still kept", "error", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
		}
	}()
	return func() error { stop(); <-done; return nil }
}

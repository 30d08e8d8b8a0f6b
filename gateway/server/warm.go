package server

import (
	"context"
	"log/slog"

	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/host"
)

// maxWarm bounds the images that are loaded ahead of their first invocation.
const maxWarm = 32

// warmer loads compiled biomes when policy changes, so that the first invocation does not wait
// for it. It is a convenience: what it misses is loaded on demand.
type warmer struct {
	host   *host.Host
	policy *policy.Service
	log    *slog.Logger
	kick   chan struct{}
	stop   context.CancelFunc
	done   chan struct{}
}

func newWarmer(h *host.Host, p *policy.Service, log *slog.Logger) *warmer {
	ctx, cancel := context.WithCancel(context.Background())
	w := &warmer{host: h, policy: p, log: log, kick: make(chan struct{}, 1), stop: cancel, done: make(chan struct{})}
	w.kick <- struct{}{}
	go w.run(ctx)
	p.OnChange(func(*gate.Snapshot) { w.changed() })
	return w
}

// changed never blocks: it is called while policy holds its lock.
func (w *warmer) changed() {
	select {
	case w.kick <- struct{}{}:
	default: // the look that is due will see this change too
	}
}

func (w *warmer) run(ctx context.Context) {
	defer close(w.done)
	warmed := map[[2]string]bool{} // what was loaded once; the host may have dropped it since
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.kick:
			for id, org := range w.policy.Snapshot().Orgs.All() {
				for _, b := range org.Biomes.All() {
					for _, a := range []*gate.Admission{b.Newest, b.Installed} {
						if a == nil || b.Disabled || warmed[[2]string{id, a.Digest}] || len(warmed) >= maxWarm {
							continue
						}
						warmed[[2]string{id, a.Digest}] = true
						if err := w.host.Warm(ctx, id, a.Digest); err != nil && ctx.Err() == nil {
							w.log.Warn("a biome is not loaded yet", "org", id, "biome", b.Name, "error", err)
						}
					}
				}
			}
		}
	}
}

func (w *warmer) close() error { w.stop(); <-w.done; return nil }

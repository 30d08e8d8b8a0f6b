package server

import (
	"context"
	"log/slog"

	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/policy"
	"github.com/ecotone-dev/ecotone/host"
)

// warmer loads compiled biomes when policy changes, so that the first invocation does not wait
// for it, as many as the memory budget has room for. It is a convenience: what it misses is loaded
// on demand.
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
	looked := map[string]uint64{}  // organisations, in the generation in which nothing of them was left
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.kick:
			for id, org := range w.policy.Snapshot().Orgs.All() {
				if g, ok := looked[id]; ok && g == org.Generation {
					continue
				}
				if !w.warm(ctx, id, org, warmed) {
					break
				}
				looked[id] = org.Generation
			}
		}
	}
}

// warm loads what an organisation may invoke, and reports whether there was room for all of it.
func (w *warmer) warm(ctx context.Context, id string, org *gate.Org, warmed map[[2]string]bool) bool {
	for _, b := range org.Biomes.All() {
		for _, a := range append([]*gate.Admission{b.Newest, b.Installed}, b.Older...) {
			if a == nil || b.Disabled || warmed[[2]string{id, a.Digest}] {
				continue
			}
			if ctx.Err() != nil || !w.host.Room() {
				return false
			}
			warmed[[2]string{id, a.Digest}] = true
			if err := w.host.Warm(ctx, id, a.Digest); err != nil && ctx.Err() == nil {
				w.log.Warn("a biome is not loaded yet", "org", id, "biome", b.Name, "error", err)
			}
		}
	}
	return true
}

func (w *warmer) close() error { w.stop(); <-w.done; return nil }

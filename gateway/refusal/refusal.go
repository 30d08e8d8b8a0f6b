// Package refusal records requests that are refused before there is a session: no credential,
// a foreign Host, a body that is not JSON (PF-G1).
//
// It promises that every such request is counted in the audit, and that those who hold no
// credential cannot fill the disk or the committer with rows: past a rate, refusals are
// folded into one row that says how many it stands for.
package refusal

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit"
)

// Rows per second and burst that are recorded one by one: of those who show no credential, and as
// many again of those who do, whose rows nobody without one can crowd out.
const (
	perSecond = 50
	burst     = 500
)

// flushEvery bounds how long a folded refusal waits for its row.
const flushEvery = 10 * time.Second

// Recorder is safe for concurrent use. Close it before the log.
type Recorder struct {
	log       *audit.Log
	logger    *slog.Logger
	anonymous *rate.Limiter
	known     *rate.Limiter

	mu     sync.Mutex
	folded map[folding]int

	stop chan struct{}
	done chan struct{}
}

// maxFolded bounds the distinct kinds of refusal that are counted apart.
const maxFolded = 256

// New starts a recorder over log.
func New(log *audit.Log, logger *slog.Logger) *Recorder {
	r := &Recorder{
		log: log, logger: logger,
		anonymous: rate.NewLimiter(perSecond, burst), known: rate.NewLimiter(perSecond, burst),
		folded: map[folding]int{}, stop: make(chan struct{}), done: make(chan struct{}),
	}
	go r.run()
	return r
}

// Record records one refusal of an organisation ("" when nobody is known) and returns its audit id, or "" when it was folded or the log
// cannot be written: the request is refused all the same.
func (r *Recorder) Record(ctx context.Context, org string, ev audit.Refused) string {
	limiter := r.known
	if org == "" {
		limiter = r.anonymous
	}
	if !limiter.Allow() {
		r.fold(org, ev)
		return ""
	}
	pos, err := r.log.Append(context.WithoutCancel(ctx), audit.Event{Org: org, Body: ev})
	if err != nil {
		r.logger.Error("a refusal could not be recorded", "code", ev.Code, "error", err)
		return ""
	}
	return pos.ID
}

// folding is what refusals are counted by: whose they are, and everything of them that comes
// from a closed set.
type folding struct {
	org, listener, route string
	code                 abi.Code
}

func (r *Recorder) fold(org string, ev audit.Refused) {
	key := folding{org: org, listener: ev.Listener, route: ev.Route, code: ev.Code}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.folded[key]; !known && len(r.folded) >= maxFolded {
		key = folding{listener: ev.Listener, code: ev.Code}
	}
	r.folded[key]++
}

func (r *Recorder) run() {
	defer close(r.done)
	t := time.NewTicker(flushEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			r.flush()
		case <-r.stop:
			r.flush()
			return
		}
	}
}

func (r *Recorder) flush() {
	r.mu.Lock()
	folded := r.folded
	r.folded = map[folding]int{}
	r.mu.Unlock()
	for key, n := range folded {
		ev := audit.Refused{
			Code: key.code, Listener: key.listener, Route: key.route,
			Detail: fmt.Sprintf("%d refusals past the rate at which each has a row", n),
		}
		if _, err := r.log.Append(context.Background(), audit.Event{Org: key.org, Body: ev}); err != nil {
			r.logger.Error("folded refusals could not be recorded", "code", ev.Code, "count", n, "error", err)
		}
	}
}

// Close records what is folded and stops.
func (r *Recorder) Close() { close(r.stop); <-r.done }

package invoke

import (
	"context"
	"sync"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/rate"
	"github.com/ecotone-dev/ecotone/gateway/session"
)

// buckets are what invocations count against while a limiter looks at it: it keeps nothing of that.
var buckets = sync.Pool{New: func() any { return new([gate.MaxBuckets]rate.Ask) }}

// count asks the limiter for the attempt, takes what it counts for, and keeps the answer in its
// facts. An attempt that only asks takes nothing.
func (c *attempt) count(ctx context.Context) {
	room := buckets.Get().(*[gate.MaxBuckets]rate.Ask)
	defer buckets.Put(room)
	asks := gate.Buckets(room[:0], c.snapshot, c.facts, &c.decision)
	visit := c.p.o.Limiter.Take
	if c.asks {
		visit = c.p.o.Limiter.Peek
	}
	wait, err := visit(ctx, asks)
	switch {
	case err != nil:
		c.facts.Rate = gate.Uncountable
		c.p.o.Log.Error("the rate limiter does not answer", "invocation", c.id, "error", err)
	case wait > 0:
		c.facts.Rate, c.wait = gate.Exceeded, wait
	default:
		c.facts.Rate = gate.Within
	}
}

// countQuestion takes one explanation from the session's own allowance, which is as large as a
// subject's: asking what would happen is work too, and uses up nothing of what may happen.
func (p *Pipeline) countQuestion(ctx context.Context, snap *gate.Snapshot, s *session.Session) *abi.Error {
	var limit rate.Limit
	if o := snap.Orgs.At(s.Org); o != nil {
		limit = o.Rates.Subject
	}
	wait, err := p.o.Limiter.Take(ctx, []rate.Ask{{Key: rate.Key{Kind: rate.Explain, Org: s.Org, ID: s.ID}, Limit: limit}})
	switch {
	case err != nil:
		return abi.Errorf(abi.CodeRateUnavailable, "the rate limiter cannot answer").WithCause(err)
	case wait > 0:
		return abi.Errorf(abi.CodeRateExceeded, "this session has asked as often as it may for now").After(seconds(wait))
	}
	return nil
}

// seconds is a wait in whole seconds, rounded up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

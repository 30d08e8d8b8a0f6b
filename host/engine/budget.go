package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

// tenant is an organisation and what it takes of the budget.
type tenant struct {
	bytes   atomic.Int64
	held    int64    // of them, by Hold; guarded by Pooled.mu
	shelves []*shelf // guarded by Pooled.mu
}

// tenantOf finds or makes a tenant. p.mu is held.
func (p *Pooled) tenantOf(org string) *tenant {
	t := p.tenants[org]
	if t == nil {
		t = new(tenant)
		p.tenants[org] = t
	}
	return t
}

// forget drops a tenant that has nothing any more. p.mu is held.
func (p *Pooled) forget(org string, t *tenant) {
	if len(t.shelves) == 0 && t.held == 0 && p.tenants[org] == t {
		delete(p.tenants, org)
	}
}

// Hold charges n bytes to the pool's budget, of something else that is kept loaded for an
// organisation, or gives -n of them back. Instances that are idle make room for it.
func (p *Pooled) Hold(org string, n int64) {
	p.mu.Lock()
	t := p.tenantOf(org)
	t.held += n
	p.charge(t, n)
	p.forget(org, t)
	p.mu.Unlock()
	if p.bytes.Load() > p.o.Bytes {
		p.reclaim(nil)
	}
}

// recharge brings what the budget has for an instance up to date.
func (p *Pooled) recharge(k *kept) {
	cost := k.shelf.image.keeping.Overhead + int64(k.region.Private()) + k.handles.bytes()
	p.charge(k.shelf.tenant, cost-k.cost)
	k.cost = cost
}

func (p *Pooled) charge(t *tenant, n int64) {
	if n != 0 {
		t.bytes.Add(n)
		p.bytes.Add(n)
	}
}

// drop closes a shelf and what is on it. What is lent from it is closed when it comes back.
func (p *Pooled) drop(s *shelf) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropLocked(s)
}

func (p *Pooled) dropLocked(s *shelf) {
	s.mu.Lock()
	if s.shut {
		s.mu.Unlock()
		return
	}
	s.shut = true
	s.image.removeShelf(s)
	for _, k := range s.empty() {
		p.discard(k)
	}
	p.unfreeze(s, s.frozen.Swap(nil))
	s.mu.Unlock()
	t := s.tenant
	t.shelves = slices.DeleteFunc(t.shelves, func(other *shelf) bool { return other == s })
	p.forget(s.key.org, t)
}

// fits reports whether the pool is within its budget, for something that is about to be put on a shelf.
// It is asked before an instance is put back, which costs something, and after, when what the
// instance takes is known.
func (p *Pooled) fits(s *shelf) bool { return p.bytes.Load() <= p.o.Bytes || p.reclaim(s) }

// reclaim closes what is idle until the pool is well within its budget, and reports whether it
// is within. It leaves the shelf alone that something is about to be put on.
func (p *Pooled) reclaim(busy *shelf) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for goal := p.o.Bytes - p.o.Bytes/8; p.bytes.Load() > goal; {
		tenants := slices.SortedFunc(maps.Values(p.tenants), func(a, b *tenant) int {
			return cmp.Compare(b.bytes.Load(), a.bytes.Load())
		})
		if !slices.ContainsFunc(tenants, func(t *tenant) bool { return p.reclaimInstance(t) || p.reclaimImage(t, busy) }) {
			break
		}
	}
	return p.bytes.Load() <= p.o.Bytes
}

// reclaimInstance closes a tenant's least recently used idle instance.
func (p *Pooled) reclaimInstance(t *tenant) bool {
	var from *shelf
	var oldest time.Time
	for _, s := range t.shelves {
		if at, ok := s.oldest(); ok && (from == nil || at.Before(oldest)) {
			from, oldest = s, at
		}
	}
	if from == nil {
		return false
	}
	for _, k := range from.takeUntil(oldest, 1) {
		p.discard(k)
	}
	return true
}

// reclaimImage drops one of a tenant's images, rather one that was not used of late.
func (p *Pooled) reclaimImage(t *tenant, busy *shelf) bool {
	var victim *shelf
	for _, s := range t.shelves {
		if s != busy && s.frozen.Load() != nil && (victim == nil || !s.used.Load()) {
			victim = s
		}
	}
	if victim == nil {
		return false
	}
	p.dropLocked(victim)
	return true
}

// tidyRounds is in how many parts of the idle time what is idle is looked for, and so how exactly that
// time is kept: what nobody uses is gone two of them after it at the latest.
const tidyRounds = 8

// tidy closes what was idle for long: instances, and shelves with the images they are put back to.
func (p *Pooled) tidy(ctx context.Context) {
	defer close(p.done)
	round := time.NewTicker(max(p.o.Idle/tidyRounds, time.Millisecond))
	defer round.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-round.C:
			p.tidyOnce(now)
		}
	}
}

func (p *Pooled) tidyOnce(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := now.Add(-p.o.Idle)
	for _, t := range p.tenants {
		for _, s := range slices.Clone(t.shelves) {
			for _, k := range s.takeUntil(until, -1) {
				p.discard(k)
			}
			switch {
			case s.used.Swap(false):
				s.last = now
			case s.idle() == 0 && !s.last.After(until):
				p.dropLocked(s)
			}
		}
	}
}

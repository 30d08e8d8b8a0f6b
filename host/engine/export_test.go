package engine

import (
	"time"

	"github.com/tetratelabs/wazero/api"
)

// Tamper lets a test spoil every idle instance behind the pool's back.
func (p *Pooled) Tamper(how func(api.Module, []api.MutableGlobal)) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.tenants {
		for _, s := range t.shelves {
			s.restoring.Wait()
			var all []*kept
			for k := s.pop(); k != nil; k = s.pop() {
				all = append(all, k)
			}
			for _, k := range all {
				how(k.module, k.globals)
				s.push(k)
				n++
			}
		}
	}
	return n
}

// Tidy looks for what is idle, as if it were now.
func (p *Pooled) Tidy(now time.Time) { p.tidyOnce(now) }

// OrgBytes is what an organisation takes of the budget.
func (p *Pooled) OrgBytes(org string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.tenants[org]; t != nil {
		return t.bytes.Load()
	}
	return 0
}

// Shrink waits for what is being put back and leaves at most n idle instances on each shelf: how
// many there are otherwise is the scheduler's doing.
func (p *Pooled) Shrink(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.tenants {
		for _, s := range t.shelves {
			s.restoring.Wait()
			for s.idle() > n {
				p.discard(s.pop())
			}
		}
	}
}

// Stacks is how much stack the handles of idle instances have.
func (p *Pooled) Stacks() (n int64) {
	p.Tamper(func(api.Module, []api.MutableGlobal) {})
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.tenants {
		for _, s := range t.shelves {
			for i := range s.stacks {
				for _, k := range s.stacks[i].idle {
					n += k.handles.bytes()
				}
			}
		}
	}
	return n
}

// MaxStack is what a kept handle may have.
const MaxStack = maxStack

// RestoreFuel is what an organisation pays for an instance of which so much was written.
func RestoreFuel(written uint64) int64 { return restoreFuel(written) }

// MostLent is how often the idle instance that served most was lent.
func (p *Pooled) MostLent() (most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.tenants {
		for _, s := range t.shelves {
			for i := range s.stacks {
				for _, k := range s.stacks[i].idle {
					most = max(most, k.lent)
				}
			}
		}
	}
	return most
}

package engine

import (
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// An instance with no more private bytes than atOnce is put back where it is given up. It is with
// margin what a small call of a Go guest writes, 20 pages. Waking a goroutine for it took 25 µs more
// processor time for each call, and the next call waited for it.
const atOnce = 128 << 10

// release takes an instance from the goroutine that ran it. It is put back, or closed.
func (p *Pooled) release(k *kept) {
	s := k.shelf
	if !p.fits(s) || !p.reusable(k) {
		p.discard(k)
		return
	}
	if k.region.Private() > atOnce {
		if !s.pushUsed(k) {
			p.discard(k)
		}
		return
	}
	if !p.restore(k) || !p.fits(s) || !s.push(k) {
		p.discard(k)
	}
}

func (p *Pooled) reusable(k *kept) bool {
	return k.intact && k.of != nil && k.of == k.shelf.frozen.Load() && k.lent < p.o.Retire &&
		k.region.Size() == k.of.memory.Size() && !k.module.IsClosed()
}

// restore puts an instance back that the caller owns, and reports whether that was done.
func (p *Pooled) restore(k *kept) bool {
	if err := k.restore(); err != nil {
		p.o.Log.Error("an instance could not be put back and was closed", "code", abi.CodeInternal, "digest", k.shelf.key.digest, "cause", err)
		return false
	}
	p.recharge(k)
	k.since = time.Now()
	return true
}

// discard closes an instance that the caller owns.
func (p *Pooled) discard(k *kept) {
	p.count.discarded.Add(1)
	p.charge(k.shelf.tenant, -k.cost)
	k.cost = 0
	if err := k.close(); err != nil {
		p.o.Log.Error("an instance was not freed", "code", abi.CodeInternal, "cause", err)
	}
}

// What the host does to have an instance ready, in fuel: about a tenth of a nanosecond each. It is
// the organisation's share that pays, not the invocation: what an invocation costs does not depend
// on what a pool has (S10).
const (
	fuelRestore = 10_000  // the look at the page table
	fuelPage    = 2_500   // of 4 KiB, copied back
	fuelMake    = 300_000 // of a new instance
	fuelMakeKiB = 40_000  // of what it takes beside its memory
)

func restoreFuel(written uint64) int64 { return fuelRestore + int64(written+4095)/4096*fuelPage }

func makeFuel(overhead int64) int64 { return fuelMake + overhead>>10*fuelMakeKiB }

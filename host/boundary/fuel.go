package boundary

import (
	"context"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/share"
)

// Gauge is where a guest keeps the fuel it was handed and has not used: a signed number, since it
// takes first and looks then. A mutable global of the engine's satisfies it as it is.
type Gauge interface {
	Get() uint64
	Set(uint64)
}

// slice is the most fuel a guest is handed at a time, and so what it may compute before it is
// noticed that its invocation has ended, or that others wait for its processor: tens to a few hundred
// microseconds of work, against less than one for handing it out. What an invocation costs does
// not depend on it.
const slice = share.Slice

// tied is how many slices a guest is held to one thread for. What is saved by that when its memory is put
// back is nothing against the work of more.
const tied = 8

// Meter says where the guest that is about to be called keeps its fuel, of which it has none yet.
// Unmeter follows when the call has returned.
func (inv *Invocation) Meter(g Gauge) {
	g.Set(0)
	inv.gauge, inv.slices = g, 0
}

// Unmeter takes back what the guest has not used, forgets the gauge and leaves the processor to
// others.
func (inv *Invocation) Unmeter() {
	inv.settle()
	inv.gauge, inv.tie = nil, nil
	inv.account()
	inv.turn.Leave()
}

// Refuel is what a metered guest calls when it has used more than it was handed, and so before it
// does anything. It hands out the next slice once it is the guest's turn, unless the invocation is
// over, out of time, out of fuel or without authority. The caller must look at [Invocation.Over]
// before it goes back into the guest.
func (inv *Invocation) Refuel(ctx context.Context) {
	if inv.over != nil {
		return
	}
	if inv.gauge == nil {
		inv.finish(abi.Errorf(abi.CodeInternal, "a guest asked for fuel outside a run"))
		return
	}
	if err := inv.stands(ctx); err != nil {
		inv.finish(err)
		return
	}
	if !inv.settle() {
		inv.finish(inv.noFuel())
		return
	}
	if inv.slices++; inv.slices > tied {
		inv.loosen()
	}
	if inv.account(); !inv.step(ctx) {
		return
	}
	n := min(inv.slice, inv.room())
	inv.take(n)
	inv.gauge.Set(uint64(n))
}

// Overflow is what a metered guest calls when its call frames are over their limit.
func (inv *Invocation) Overflow() {
	inv.finish(abi.Errorf(abi.CodeStackLimit, "the guest's call frames are over %d bytes", inv.limits.Get(abi.LimitStackBytes)))
}

// Refund gives back all the invocation has taken, here and from those above: what an initialiser
// costs whose work is kept for others is not the first one's to pay. It belongs before PhaseRun.
func (inv *Invocation) Refund() {
	if inv.phase == PhaseInitialize {
		inv.settle()
		inv.account()                        // its organisation burnt it all the same
		inv.take(inv.worked - inv.used.fuel) // what was before it is not its work
		inv.counted = inv.worked
	}
}

// room is how much can be taken of the invocation's fuel and of that of all above it.
func (inv *Invocation) room() int64 {
	n := int64(abi.OperatorMax)
	for up := inv; up != nil; up = up.parent {
		n = min(n, up.limits.Get(abi.LimitFuel)-up.used.fuel-up.below.fuel)
	}
	return max(n, 0)
}

// take takes n, which there is room for, or gives -n back.
func (inv *Invocation) take(n int64) {
	inv.used.fuel += n
	inv.charge(fuelTaken, n)
}

// settle takes back what the guest has not used, or takes what it owes. It reports false when there
// is not so much to take: then all there is was taken.
func (inv *Invocation) settle() bool {
	if inv.gauge == nil {
		return true
	}
	left := int64(inv.gauge.Get())
	inv.gauge.Set(0)
	if left >= 0 {
		inv.take(-left)
		return true
	}
	n := min(-left, inv.room())
	inv.take(n)
	return n == -left
}

// pay takes n for work of the host, before it is done. Where the budget itself does not have it,
// what the guest was handed and has not used counts. Without it the invocation is over.
func (inv *Invocation) pay(n int64) *abi.Error {
	if inv.gauge != nil && (int64(inv.gauge.Get()) < 0 || n > inv.room()) && !inv.settle() || n > inv.room() {
		inv.take(inv.room())
		inv.finish(inv.noFuel())
		return inv.over
	}
	inv.take(n)
	return nil
}

func (inv *Invocation) noFuel() *abi.Error {
	if most := inv.limits.Get(abi.LimitFuel); inv.used.fuel+inv.below.fuel >= most {
		return abi.Errorf(abi.CodeFuelExhausted, "the invocation used up its fuel, %d", most)
	}
	return abi.Errorf(abi.CodeFuelExhausted, "the invocations above this one have no fuel left for it")
}

// kibs is how many KiB n bytes begin.
func kibs(n int64) int64 { return (n + 1<<10 - 1) >> 10 }

// payBytes takes the price of what went in or came out since it was last called: out is what lies
// in the result register and is not on the line yet.
func (c *call) payBytes(out int64) *abi.Error {
	n := kibs(c.line.In + c.line.Out + out)
	more := n - c.kibs
	if c.kibs = n; more <= 0 {
		return nil
	}
	return c.inv.pay(more * int64(c.fn.Price.PerKiB))
}

package boundary

import (
	"context"

	"github.com/ecotone-dev/ecotone/abi"
)

// A guest computes only while its turn has a token ([share.Turn]). It takes one with its first fuel,
// is asked at every slice to hand it on, and has none while a host function waits for something
// else than a processor: a disk, an origin, a child, a clock. A child's turn is its parent's.

// stands says why the invocation must not go on, for reasons that are outside it, or nil.
func (inv *Invocation) stands(ctx context.Context) *abi.Error {
	if err := Ended(ctx); err != nil {
		return err
	}
	if inv.trial { // which has no authority to lose
		return nil
	}
	return inv.authority.Current()
}

// account tells the organisation's share what was burnt since it was last told.
func (inv *Invocation) account() {
	inv.turn.Spend(inv.used.fuel - inv.counted)
	inv.counted = inv.used.fuel
}

// step waits for a processor, if need be, and reports whether the guest may use it. What stood
// before the wait is asked again after it.
func (inv *Invocation) step(ctx context.Context) bool {
	if inv.turn.Pass(ctx) {
		if err := inv.stands(ctx); err != nil {
			inv.finish(err)
			return false
		}
	}
	return true
}

// rejoin takes a processor again, after [share.Turn.Leave], for a guest that may go on.
func (inv *Invocation) rejoin(ctx context.Context) {
	if inv.over == nil {
		inv.step(ctx)
	}
}

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

// Tie is what holds a guest's goroutine to its thread for as long as it computes: see
// [memory.Region.Enter]. A guest that waits, or that computes for long, is not worth a thread.
type Tie interface{ Loosen() }

// Tied says what holds the guest that is about to be called.
func (inv *Invocation) Tied(t Tie) { inv.tie = t }

// loosen lets the guest's goroutine go on any thread from here on.
func (inv *Invocation) loosen() {
	if inv.tie != nil {
		inv.tie.Loosen()
		inv.tie = nil
	}
}

// leave gives up the processor for something else that is waited for.
func (inv *Invocation) leave() {
	inv.served = true
	inv.loosen()
	inv.turn.Leave()
}

// step waits for a processor, if need be, and reports whether the guest may use it. What stood
// before the wait is asked again after it.
func (inv *Invocation) step(ctx context.Context) bool {
	if inv.turn.Claim() {
		inv.loosen()
		inv.turn.Await(ctx)
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

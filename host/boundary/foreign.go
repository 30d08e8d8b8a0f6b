package boundary

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
)

// A foreign interface is one that guests were written for which know nothing of Ecotone. It has no
// door of its own: what touches anything outside the invocation goes through [Call], with a [Memory] of
// the interface's, so that count, price, authority, reach, globs, labels, intent and receipt are those
// of every guest. What is left to the interface is per invocation, and goes with it: see
// [Invocation.SetFace].

// ForeignRow is what the boundary is to know of one function of a foreign interface.
type ForeignRow struct {
	Name  string
	Price abi.Price // Base is taken before Do; the KiB are for Do to take, with [Invocation.Pay]
	// Constant: it answers every guest of every invocation the same and leaves nothing behind. Who
	// has asked only these while it initialised may be frozen as it is (S13).
	Constant bool
	// Do answers in args[0] when the function has a result.
	Do func(ctx context.Context, inv *Invocation, mem Memory, args []uint64)
}

// Foreign makes one call of a foreign interface's function and reports whether the guest may go on. Without
// it the function was not done, or not to its end.
func Foreign(ctx context.Context, inv *Invocation, row *ForeignRow, mem Memory, args []uint64) bool {
	if err := inv.ended(ctx, inv.clock()); err != nil {
		inv.finish(err)
	}
	if inv.phase != PhaseInitialize && inv.phase != PhaseRun {
		inv.finish(abi.Errorf(abi.CodeInternal, "a call of %s outside a run", row.Name))
	}
	if inv.over != nil {
		return false
	}
	if inv.phase == PhaseInitialize && !row.Constant && !slices.Contains(inv.asked, row.Name) {
		inv.asked = append(inv.asked, row.Name)
	}
	if inv.pay(int64(row.Price.Base)) != nil {
		return false
	}
	inv.protect(row.Name, func() { row.Do(ctx, inv, mem, args) })
	return inv.over == nil
}

// FaceState is what a foreign interface keeps of one invocation.
type FaceState interface {
	// End is called once, on the guest's goroutine, when the capability has returned, was unwound or
	// trapped, while host calls are still made: what was put off is done now. failure is how it ended; the
	// answer is how it ended after all.
	End(ctx context.Context, inv *Invocation, failure *abi.Error) *abi.Error
}

// Face is what was set with [Invocation.SetFace]; nil: nothing yet.
func (inv *Invocation) Face() FaceState { return inv.face }

// SetFace gives the invocation what a foreign interface keeps of it.
func (inv *Invocation) SetFace(s FaceState) { inv.face = s }

// EndFace has the foreign interface end what it put off. Without one failure is the answer.
func (inv *Invocation) EndFace(ctx context.Context, failure *abi.Error) (after *abi.Error) {
	s := inv.face
	if s == nil || inv.phase != PhaseRun {
		return failure
	}
	inv.face = nil
	if fault := inv.protect("end", func() { after = s.End(ctx, inv, failure) }); fault != nil {
		return fault
	}
	return after
}

// Fail makes the invocation over, for a reason that the interface has no other way to say; the first
// one counts.
func (inv *Invocation) Fail(why *abi.Error) { inv.finish(why) }

// Pay takes fuel for work of the host, before it is done; false says that the invocation is over.
func (inv *Invocation) Pay(n int64) bool { return inv.pay(n) == nil }

// PayBytes is Pay for n bytes at a price for each KiB that they begin.
func (inv *Invocation) PayBytes(n int64, perKiB uint64) bool {
	return inv.pay(kibs(n)*int64(perKiB)) == nil
}

// Running reports whether a capability runs, and no initialiser.
func (inv *Invocation) Running() bool { return inv.phase == PhaseRun }

// Input is the invocation's input, not to be changed. An initialiser has none.
func (inv *Invocation) Input() []byte {
	if inv.phase != PhaseRun {
		return nil
	}
	return inv.input
}

// Result is what the last call left in the result register, not to be changed.
func (inv *Invocation) Result() (body []byte, meta json.RawMessage) {
	return inv.result.Body, inv.result.Meta
}

// Refused is why the last call was refused, in the words that the guest's caller may hear; nil when it
// was not.
func (inv *Invocation) Refused() *abi.Error { return inv.refused }

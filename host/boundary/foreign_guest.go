package boundary

import (
	"context"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// What is the guest's own: nothing here reaches outside the invocation.

// Input is the invocation's input, decoded. It must not be changed. An initialiser has none.
func (v *Visit) Input() []byte {
	if v.Initializing() {
		return nil
	}
	return v.inv.input
}

// AddOutput adds to the invocation's output. What is over the limit leaves none, and is how the
// invocation ends: false.
func (v *Visit) AddOutput(b []byte) bool {
	inv := v.inv
	if inv.tooLarge || int64(len(inv.output))+int64(len(b)) > inv.limits.Get(abi.LimitOutputBytes) {
		dropOutput(inv)
		return false
	}
	inv.output = append(inv.output, b...)
	return true
}

// SetOutput replaces the invocation's output by a copy of b, as `output` does.
func (v *Visit) SetOutput(b []byte) bool {
	v.inv.output, v.inv.tooLarge = nil, false
	if !v.AddOutput(b) {
		return false
	}
	if v.inv.output == nil {
		v.inv.output = []byte{}
	}
	return true
}

// SetError is what `error` does: the invocation failed, in the capability's own words.
func (v *Visit) SetError(code, message string) {
	text, _ := plain([]byte(message), maxErrorText)
	v.inv.guest = &GuestError{Code: code, Message: text}
}

// ClearError takes [Visit.SetError] back.
func (v *Visit) ClearError() { v.inv.guest = nil }

// Log adds one record; stream is where the guest wrote it, if that is not the log.
func (v *Visit) Log(level LogLevel, stream string, text []byte) {
	if stream != "" {
		v.inv.logs.addStream(v.at.Sub(v.inv.start), stream, text)
		return
	}
	v.inv.logs.add(v.at.Sub(v.inv.start), level, "", text)
}

// Now is the guest's clock, coarse and never going back.
func (v *Visit) Now() time.Time { return v.inv.nowAt(v.at) }

// Later is Now at a moment after the call began.
func (v *Visit) Later() time.Time { return v.inv.now() }

// Tick is the resolution of every clock of the guest.
func (v *Visit) Tick() time.Duration { return v.inv.tick() }

// Random fills n bytes of the guest's memory from the invocation's budget. A runtime that is refused
// its seed cannot go on, so that a budget that is used up ends the invocation.
func (v *Visit) Random(ptr, n uint32) *abi.Error {
	err := v.inv.spend(randomBytes, int64(n), abi.LimitRandomBytes)
	if err == nil && !v.Pay(int64(n)) {
		return v.inv.over
	}
	if err == nil {
		if failed := v.inv.fill(v.mem, ptr, n); failed != nil {
			err = abi.AsError(failed)
		}
	}
	if err != nil {
		v.inv.finish(err)
	}
	return err
}

// Sleep waits for d or for the end of ctx, whichever comes first, and leaves the processor to others
// meanwhile (PF-D6).
func (v *Visit) Sleep(ctx context.Context, d time.Duration) {
	inv := v.inv
	inv.leave()
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if err := Ended(ctx); err != nil {
		inv.finish(err)
	}
	inv.rejoin(ctx)
}

// Exit ends the process that a guest believes it is. For a native guest, 0 after an answer (`output`
// or `error`) is the same as returning 0; for a foreign one 0 always is. Every other exit is
// GUEST_EXIT. An instance can be put back after it as after a return.
func (v *Visit) Exit(ctx context.Context, code uint32) {
	inv := v.inv
	answered := inv.output != nil || inv.guest != nil || inv.authority.Spec().Face.Foreign()
	left := inv.phase == PhaseRun && code == 0 && answered
	if left {
		if err := inv.conclude(ctx); err != nil {
			inv.finish(err)
			return
		}
	}
	if inv.over != nil {
		return
	}
	inv.left, inv.exited = left, true
	inv.finish(abi.Errorf(abi.CodeGuestExit, "the guest ended its process with code %d", code))
}

// Exited reports whether the invocation is over because the guest ended its process, and for no other
// reason.
func (inv *Invocation) Exited() bool { return inv.exited }

package boundary

import (
	"context"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// Outcome is how an invocation ended.
type Outcome struct {
	// Output is the guest's JSON value byte for byte (H14); nil unless Err is nil.
	Output []byte
	// Err is what the caller may be told. When the final label is above the session's
	// clearance it is CLASSIFICATION_FLOW, whatever happened (S6).
	Err *abi.Error
	// Cause is what happened, for the audit: Err itself unless that was withheld.
	Cause *abi.Error
	// Guest is set when the capability called `error` and the caller is cleared for it.
	Guest   *GuestError
	Label   abi.Classification
	Receipt Receipt
}

// GuestError is a capability's own code and message, bounded and without control bytes.
type GuestError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Conclude ends the invocation. failure is what the engine saw: nil when the capability
// returned 0, GUEST_ERROR when it returned anything else. peakMemory is in bytes.
//
// The authority is asked once more, because what is computed under an authority that is gone
// is not released (S18), and all that leaves is held to the session's clearance.
func (inv *Invocation) Conclude(ctx context.Context, failure *abi.Error, peakMemory int64) Outcome {
	inv.Enter(PhaseEnded)
	now := inv.clock()
	o := Outcome{Label: inv.label, Receipt: inv.receipt(peakMemory, now)}
	o.Cause = inv.verdict(ctx, failure, now)
	if refusal := inv.Emit(inv.authority.Spec().Clearance); refusal != nil {
		if o.Cause == nil {
			o.Cause = refusal
		}
		o.Err = abi.Errorf(abi.CodeClassificationFlow, "the answer is classified above what this session may receive")
		return o
	}
	o.Err = o.Cause
	switch {
	case o.Err == nil:
		o.Output = inv.output
	case o.Err.Code == abi.CodeGuestError:
		o.Guest = inv.guest
	}
	return o
}

// verdict finds why the invocation failed, the strongest reason first, or nil.
func (inv *Invocation) verdict(ctx context.Context, failure *abi.Error, now time.Time) *abi.Error {
	if inv.over != nil && !inv.left {
		return inv.over
	}
	if err := inv.ended(ctx, now); err != nil {
		return err
	}
	if err := inv.authority.Current(); err != nil {
		return err
	}
	if inv.left {
		failure = nil
	}
	if inv.guest != nil && (failure == nil || failure.Code == abi.CodeGuestError) {
		return abi.Errorf(abi.CodeGuestError, "%s", inv.guest.Message)
	}
	if failure != nil {
		return failure
	}
	return inv.checkOutput()
}

// checkOutput holds the output to exactly one JSON value (H14).
func (inv *Invocation) checkOutput() *abi.Error {
	switch {
	case inv.tooLarge:
		return abi.Errorf(abi.CodeOutputLimit, "the output is larger than %d bytes", inv.limits.Get(abi.LimitOutputBytes))
	}
	if err := inv.encode(); err != nil {
		return err
	}
	switch {
	case inv.output == nil:
		return abi.Errorf(abi.CodeOutputMissing, "the capability ended without an output")
	}
	if err := abi.CheckJSON(inv.output, abi.StrictMaxDepth); err != nil {
		return abi.Errorf(abi.CodeOutputInvalid, "the output is not exactly one JSON value: %w", err)
	}
	return nil
}

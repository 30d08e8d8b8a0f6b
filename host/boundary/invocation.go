package boundary

import (
	"context"
	"io"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
)

// Spec is what an invocation is made from.
type Spec struct {
	Authority *authority.Authority
	Input     []byte // read only from here on, and never kept past the invocation
	Services  Services
	Now       func() time.Time // nil: time.Now
	Random    io.Reader        // nil: crypto/rand
}

// Phase says what a guest may do now. The zero value lets it do nothing.
type Phase uint8

const (
	PhaseWaiting    Phase = iota // before the guest, and never again
	PhaseInitialize              // _initialize runs: WASI answers, no host function does
	PhaseRun                     // the capability runs
	PhaseEnded                   // the outcome is made; nothing changes any more
)

// Invocation is the state of one running invocation. It belongs to the goroutine that runs
// the guest: nothing in it is safe for concurrent use, and cancelling is done through the
// context, never through it (S1).
type Invocation struct {
	spec  Spec
	phase Phase
	label abi.Classification
	over  *abi.Error
}

// New makes the state of one invocation. It starts at the authority's start label.
func New(spec Spec) *Invocation {
	return &Invocation{spec: spec}
}

// Authority returns what the invocation may do.
func (inv *Invocation) Authority() *authority.Authority { return inv.spec.Authority }

// Enter moves the invocation to a later phase. Going back panics: it would be a fault of the
// host, and must not be survivable.
func (inv *Invocation) Enter(p Phase) { inv.phase = p }

// Over says why the guest must not run on, or nil. Once set it stays.
func (inv *Invocation) Over() *abi.Error { return inv.over }

// Outcome is how an invocation ended.
type Outcome struct {
	// Output is the guest's JSON value byte for byte (H14), nil unless Err is nil.
	Output []byte
	// Err is what the caller may be told. When the label is above the session's clearance it
	// is CLASSIFICATION_FLOW whatever happened (S6).
	Err *abi.Error
	// Cause is what happened, for the audit: Err unless that was withheld.
	Cause *abi.Error
	// Guest is set when the capability called error and the caller is cleared for it.
	Guest   *GuestError
	Label   abi.Classification
	Receipt Receipt
}

// GuestError is a capability's own code and message, bounded and without control bytes.
type GuestError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Conclude ends the invocation: failure is what the engine saw, nil when the capability
// returned 0. It checks the output (exactly one JSON value, bounded depth, valid UTF-8, not
// re-encoded), asks the authority once more (S18) and holds everything that leaves to the
// session's clearance. peakMemory is in bytes.
func (inv *Invocation) Conclude(ctx context.Context, failure *abi.Error, peakMemory int64) Outcome {
	return Outcome{Err: failure, Cause: failure}
}

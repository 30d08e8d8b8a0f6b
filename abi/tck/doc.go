// Package tck checks a host for conformance with the ABI.
//
// A case is a script of host calls and what each of them must give: data, with an id. The kit's
// guest, one small module whose source is beside it, makes the calls of the script it is given as
// input and reports the results; so any module that understands the same scripts can take its
// place, and each language binding has one that does. A host joins by implementing [Host]; then
//
//	for _, c := range tck.Cases() {
//		t.Run(c.ID, func(t *testing.T) { if err := tck.Check(ctx, host, c); err != nil { t.Error(err) } })
//	}
//
// Every function of [abi.Functions] and every number of [abi.Errnos] has a case; a test fails when
// one has none. The examples in the ABI's reference are cases too, so they are true of every host
// that passes.
//
// The package knows no host, no engine and no gateway. It imports the standard library and package
// abi, no more.
package tck

import (
	"context"

	"github.com/ecotone-dev/ecotone/abi"
)

// The guest's capabilities. Both take a script. [Call] has reach platform, so that every host
// function is open to it; [Child] is what it invokes, with reach owner.
const (
	Call  abi.CapabilityRef = "tck:call.run@1"
	Child abi.CapabilityRef = "tck:call.child@1"
)

// What the guest requires, by the names its manifest gives them.
const (
	Endpoint     = "origin"  // lets the guest send GET and POST to every path of the kit's [Origin]
	Secret       = "signing" // may be used by secret_hmac, with [SecretPrefix]; any value
	SecretPrefix = "conformance.v1:"
	SecretValue  = "the secret of the conformance kit"
)

// Host is a host under test. It admits the guest with everything its manifest asks for, and uses
// the ABI's default limits.
type Host interface {
	// Open opens a session for one case. Its workspace is empty; of the guest's keys there may be
	// those of other cases, which use other names. A capability invoked in it may use everything the
	// guest's manifest declares.
	Open(ctx context.Context) (Session, error)
	// Origin is what the guest's endpoint leads to; its URL is set.
	Origin() *Origin
}

// Session is where the runs of a case happen, one after another.
type Session interface {
	// Invoke invokes [Call]. When ctx ends before the invocation does, the host is to cancel the
	// invocation, and answers once it is over. An error is the host's failure to find out what
	// happened, never what happened.
	Invoke(ctx context.Context, input []byte) (*Outcome, error)
	// Disturb changes the world around the session until it is closed.
	Disturb(ctx context.Context, d Disturbance) error
	Close(ctx context.Context) error
}

// Outcome is how an invocation ended.
type Outcome struct {
	Output   []byte   // nil when it failed
	Code     abi.Code // "" when it succeeded
	Failure  Failure  // the capability's own, when Code is [abi.CodeGuestError]
	Receipt  []Line
	LogBytes int64 // of the messages the log took, as it keeps them
}

// Failure is what a capability says of its own failure.
type Failure struct{ Code, Message string }

// Line is a host call as the receipt tells it. A receipt has a line for every call of a function whose
// row says what its line names, and for every call that was refused, in order.
type Line struct {
	Function string
	Errno    abi.Errno // 0 when it was done
}

// Disturbance is something that happens to a session from outside.
type Disturbance string

// The disturbances.
const (
	FileRemoved   Disturbance = "the file a is removed from the workspace, not by a guest"
	WorkspaceGone Disturbance = "the workspace's folder is removed, not by a guest"
	LedgerSilent  Disturbance = "the ledger of what was read does not answer"
	KeysFail      Disturbance = "the store of the keys fails"
)

// Disturbances are all of them.
func Disturbances() []Disturbance {
	return []Disturbance{FileRemoved, WorkspaceGone, LedgerSilent, KeysFail}
}

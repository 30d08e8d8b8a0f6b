// Package span is what may be told of an invocation outside the audit: shapes, and no values. It promises that
// no field of it ever holds an argument, a body, a path, a key, a size, a label or a secret (PF-F7).
package span

import (
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// Invocation is one invocation that has ended.
type Invocation struct {
	ID          string // ULID
	Parent      string // ULID of the invocation that made it; "" of a caller's
	Root        string // ULID of the outermost one above it; ID when there is none
	Trace       string // 32 hex digits of the caller's traceparent; "": it sent none
	Span        string // 16 hex digits of it; "" likewise, and of a child
	Face        string
	Capability  string // "": nothing of that name is installed
	Environment string
	Code        abi.Code // the caller was told; "": done
	Took        time.Duration
	Calls       []Call
}

// Call is one host call that is on the receipt.
type Call struct {
	Function string
	Refused  bool
	Start    time.Duration // since the invocation's begin
	Took     time.Duration
}

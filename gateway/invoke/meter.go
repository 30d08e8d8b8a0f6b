package invoke

import (
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// Meter counts what happens. It is asked by every invocation, and neither blocks nor allocates.
type Meter interface {
	// Answered is told the code a caller was given, "" for an output, and how long it waited.
	Answered(code abi.Code, took time.Duration)
	// Ran is told what a guest did, a child's each for itself. It keeps nothing of it. told says that who asked for
	// it was told what came of it: what is above them is counted, and not looked at (S6).
	Ran(r *boundary.Receipt, told bool)
}

// unmetered is the meter of a pipeline that was given none.
type unmetered struct{}

func (unmetered) Answered(abi.Code, time.Duration) {}
func (unmetered) Ran(*boundary.Receipt, bool)      {}

// code is what the caller is told, "" for an output.
func (a *Answer) code() abi.Code {
	switch {
	case a.Problem != nil:
		return a.Problem.Code
	case a.Location != "":
		return abi.CodeApprovalRequired
	}
	return ""
}

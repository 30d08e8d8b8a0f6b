package invoke

import (
	"context"
	"log/slog"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
)

// A panic below an invocation is its outcome: its row gets an end, and the label of it is the most
// that the invocation could have read.
func TestPanicIsAnOutcome(t *testing.T) {
	p := &Pipeline{o: Options{
		Log:       slog.New(slog.DiscardHandler),
		Workspace: func(context.Context, string, abi.Classification) error { panic("a fault") },
	}}
	a := authority.New(authority.Spec{Workspace: "w", Start: abi.Public, Ceiling: abi.Secret}, func() *abi.Error { return nil })
	o := (&attempt{p: p, id: "I"}).outcome(t.Context(), a)
	if abi.CodeOf(o.Err) != abi.CodeInternal || o.Err != o.Cause || o.Label != abi.Secret || o.Output != nil {
		t.Errorf("outcome = %+v", o)
	}
}

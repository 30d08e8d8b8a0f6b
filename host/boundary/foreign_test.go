package boundary_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// A call of a foreign interface is paid, is not made for an invocation that is over, ends with the host
// function's panic, and counts as no host call.
func TestForeign(t *testing.T) {
	r := newRig(t)
	did := 0
	row := &boundary.ForeignRow{Name: "foreign", Price: abi.Price{Base: 70}, Do: func(_ context.Context, _ *boundary.Invocation, _ boundary.Memory, args []uint64) {
		did++
		args[0] = 7
	}}
	args := []uint64{1}
	if !boundary.Foreign(context.Background(), r.inv, row, r.mem, args) || did != 1 || args[0] != 7 {
		t.Fatalf("done %d times, answer %v", did, args)
	}
	late, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	if boundary.Foreign(late, r.inv, row, r.mem, args) || did != 1 {
		t.Error("past the deadline it is done all the same")
	}
	if boundary.Foreign(context.Background(), r.inv, row, r.mem, args) || did != 1 {
		t.Error("of an invocation that is over it is done all the same")
	}
	if o := r.conclude(); o.Err.Code != abi.CodeDeadline || o.Receipt.Fuel != 70 || o.Receipt.HostCalls != 0 {
		t.Errorf("%v, %d fuel, %d host calls", o.Err, o.Receipt.Fuel, o.Receipt.HostCalls)
	}

	r = newRig(t)
	row.Do = func(context.Context, *boundary.Invocation, boundary.Memory, []uint64) { panic("a fault") }
	if boundary.Foreign(context.Background(), r.inv, row, r.mem, args) || r.inv.Over().Code != abi.CodeInternal {
		t.Errorf("after a fault of the host: %v", r.inv.Over())
	}
}

// S13: what an initialiser asked of a foreign interface is known, unless it is the same for everybody.
func TestForeignWhileInitialising(t *testing.T) {
	limits := abi.DefaultLimits()
	inv := boundary.NewTrial(&limits)
	inv.Enter(boundary.PhaseInitialize)
	for _, constant := range []bool{true, false, false} {
		name := map[bool]string{true: "same", false: "other"}[constant]
		row := &boundary.ForeignRow{Name: name, Constant: constant, Do: func(_ context.Context, inv *boundary.Invocation, _ boundary.Memory, _ []uint64) {
			if inv.Running() || inv.Input() != nil {
				t.Error("an initialiser has an input")
			}
		}}
		if !boundary.Foreign(context.Background(), inv, row, nil, nil) {
			t.Error(inv.Over())
		}
	}
	if !slices.Equal(inv.Asked(), []string{"other"}) {
		t.Errorf("it asked %v", inv.Asked())
	}
}

type ending func(context.Context, *boundary.Invocation, *abi.Error) *abi.Error

func (e ending) End(ctx context.Context, inv *boundary.Invocation, failure *abi.Error) *abi.Error {
	return e(ctx, inv, failure)
}

// What was put off is done once, while host calls are still made, and may fail the run.
func TestForeignEnd(t *testing.T) {
	r := newRig(t)
	failed := abi.Errorf(abi.CodeGuestTrap, "a trap")
	if got := r.inv.EndFace(context.Background(), failed); got != failed {
		t.Errorf("without a foreign interface: %v", got)
	}
	ended := 0
	r.inv.SetFace(ending(func(_ context.Context, _ *boundary.Invocation, failure *abi.Error) *abi.Error {
		ended++
		r.ok(r.call("output", `1`))
		return failure
	}))
	for range 2 {
		if got := r.inv.EndFace(context.Background(), failed); got != failed {
			t.Errorf("it ends with %v", got)
		}
	}
	if ended != 1 || r.inv.Face() != nil {
		t.Errorf("ended %d times", ended)
	}
	r.inv.SetFace(ending(func(context.Context, *boundary.Invocation, *abi.Error) *abi.Error { panic("a fault") }))
	if got := r.inv.EndFace(context.Background(), nil); got == nil || got.Code != abi.CodeInternal {
		t.Errorf("after a fault of the host: %v", got)
	}
}

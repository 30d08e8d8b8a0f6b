package boundary_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// X22: whatever is observed, in whatever order, the label only rises, is the join of what was
// let through, and never passes the ceiling; what is emitted is at or below its sink.
func TestLabelOnlyRises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		label := rapid.Custom(func(t *rapid.T) abi.Classification {
			return abi.Classification(rapid.IntRange(0, 6).Draw(t, "label")) // invalid ones too
		})
		spec := permissive()
		spec.Start, spec.Ceiling = abi.Public, label.Draw(t, "ceiling")
		inv := boundary.New(boundary.Spec{Authority: authority.New(spec, func() *abi.Error { return nil })})
		want := abi.Public
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			l := label.Draw(t, "object")
			if rapid.Bool().Draw(t, "read") {
				err := inv.Observe(l)
				if (err == nil) != (l.Source() <= spec.Ceiling.Sink()) {
					t.Fatalf("observing %s under %s: %v", l, spec.Ceiling, err)
				}
				if err == nil {
					want = max(want, l.Source())
				}
			} else if err := inv.Emit(l); (err == nil) != (want <= l.Sink()) {
				t.Fatalf("emitting %s into %s: %v", want, l, err)
			}
			if inv.Label() != want {
				t.Fatalf("label %s, want %s", inv.Label(), want)
			}
		}
	})
}

func TestInvocationStartsAtItsAuthoritysLabel(t *testing.T) {
	for _, start := range append(abi.Classifications(), 0) {
		spec := permissive()
		spec.Start = start
		inv := boundary.New(boundary.Spec{Authority: authority.New(spec, func() *abi.Error { return nil })})
		if inv.Label() != start.Source() {
			t.Errorf("started at %s: %s", start, inv.Label())
		}
	}
}

// S5: to the guest an object above the ceiling is absent; the receipt says why.
func TestAboveTheCeilingLooksAbsent(t *testing.T) {
	read := func(label abi.Classification) (int64, boundary.Outcome) {
		r := newRig(t, func(s *authority.Spec) { s.Ceiling = abi.Internal })
		r.out.during = func(_ context.Context, s boundary.Scope, _ ...[]byte) {
			if label == 0 || s.Flow.Observe(label) != nil {
				r.out.err = abi.Errorf(abi.CodeKeyNotFound, "there is no such key")
			}
		}
		got := r.call("kv_get", "k")
		return got, r.conclude()
	}
	absent, absentOutcome := read(0)
	above, aboveOutcome := read(abi.Secret)
	if absent != above || absent != -int64(abi.ENOENT) {
		t.Errorf("absent answers %d, above the ceiling %d", absent, above)
	}
	if c := absentOutcome.Receipt.Lines[0].Code; c != abi.CodeKeyNotFound {
		t.Errorf("absent is recorded as %s", c)
	}
	line := aboveOutcome.Receipt.Lines[0]
	if line.Code != abi.CodeClassificationCeiling || line.Withheld != 1 {
		t.Errorf("recorded as %+v", line)
	}
	if aboveOutcome.Label != abi.Public {
		t.Errorf("a refused read raised the label to %s", aboveOutcome.Label)
	}
}

// S6: of an invocation whose label is above the session's clearance a caller learns one
// constant thing, however it ended; the audit keeps what happened.
func TestWithheldOutcomesAreAlike(t *testing.T) {
	endings := map[string]struct {
		end   func(r *rig) *abi.Error
		cause abi.Code
	}{
		"output":  {func(r *rig) *abi.Error { r.ok(r.call("output", `{"secret":1}`)); return nil }, abi.CodeClassificationFlow},
		"error":   {func(r *rig) *abi.Error { r.ok(r.call("error", "SECRET", "text")); return nil }, abi.CodeGuestError},
		"nothing": {func(*rig) *abi.Error { return nil }, abi.CodeOutputMissing},
		"invalid": {func(r *rig) *abi.Error { r.ok(r.call("output", `nope`)); return nil }, abi.CodeOutputInvalid},
		"trap": {func(*rig) *abi.Error {
			return abi.Errorf(abi.CodeGuestTrap, "the guest trapped: unreachable")
		}, abi.CodeGuestTrap},
		"status": {func(*rig) *abi.Error {
			return abi.Errorf(abi.CodeGuestError, "the capability returned 7")
		}, abi.CodeGuestError},
	}
	type visible struct {
		Output        []byte
		Code          abi.Code
		Message, Hint string
		Guest         *boundary.GuestError
	}
	var first *visible
	for name, e := range endings {
		r := newRig(t, func(s *authority.Spec) { s.Clearance = abi.Internal })
		if err := r.inv.Observe(abi.Secret); err != nil {
			t.Fatal(err)
		}
		o := r.inv.Conclude(context.Background(), e.end(r), 0)
		if o.Cause == nil || o.Cause.Code != e.cause {
			t.Errorf("%s: the audit gets %v", name, o.Cause)
		}
		v := visible{o.Output, o.Err.Code, o.Err.Message, o.Err.Hint, o.Guest}
		if first == nil {
			first = &v
		}
		if diff := cmp.Diff(*first, v); diff != "" {
			t.Errorf("%s differs:\n%s", name, diff)
		}
	}
	if first.Code != abi.CodeClassificationFlow {
		t.Errorf("the caller is told %s", first.Code)
	}
}

// The output is a sink like any other: at the clearance it passes.
func TestOutputAtTheClearance(t *testing.T) {
	r := newRig(t, func(s *authority.Spec) { s.Clearance = abi.Secret })
	r.out.during = func(_ context.Context, s boundary.Scope, _ ...[]byte) {
		if err := s.Flow.Observe(abi.Secret); err != nil {
			t.Error(err)
		}
	}
	r.ok(r.call("kv_get", "k"))
	r.ok(r.call("output", `1`))
	o := r.conclude()
	if o.Err != nil || string(o.Output) != "1" || o.Label != abi.Secret || o.Receipt.Label != abi.Secret {
		t.Errorf("%+v", o)
	}
	if l := o.Receipt.Lines[0]; l.Label != abi.Secret {
		t.Errorf("line at %s", l.Label)
	}
}

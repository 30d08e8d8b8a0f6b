package boundary_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// forEach runs a subtest for every row of the table.
func forEach(t *testing.T, f func(t *testing.T, fn *abi.Function)) {
	for i := range abi.Functions() {
		fn := &abi.Functions()[i]
		t.Run(fn.Name, func(t *testing.T) { f(t, fn) })
	}
}

func TestEveryFunctionIsReached(t *testing.T) {
	forEach(t, func(t *testing.T, fn *abi.Function) {
		r := newRig(t)
		r.out.answer = boundary.Result{Body: []byte("answer")}
		r.ok(r.call(fn.Name, argumentsFor(fn)...))
		if acted := fn.Group != abi.GroupCall; acted != strings.Contains(strings.Join(r.out.events, "\n"), "act ") {
			t.Errorf("events: %v", r.out.events)
		}
	})
}

// S9, H1, H3: a function above the invocation's reach is refused when called, though it was
// linked, and nothing acts.
func TestReachIsHeldOnEveryCall(t *testing.T) {
	forEach(t, func(t *testing.T, fn *abi.Function) {
		for _, reach := range append(abi.Reaches(), 0) {
			r := newRig(t, func(s *authority.Spec) { s.Reach = reach })
			got := r.call(fn.Name, argumentsFor(fn)...)
			if fn.Reach.Within(reach) {
				r.ok(got)
				continue
			}
			r.want(got, abi.EDENIED)
			if len(r.out.events) > 0 {
				t.Errorf("under %s: %v", reach, r.out.events)
			}
			line := r.conclude().Receipt.Lines[0]
			if line.Code != abi.CodeReachCeiling || line.Function != fn.Name {
				t.Errorf("under %s: receipt %+v", reach, line)
			}
		}
	})
}

// S9: a stub denies and records without a look at its arguments, and the guest goes on.
func TestDeny(t *testing.T) {
	r := newRig(t, func(s *authority.Spec) { s.Reach = abi.ReachOwner; s.Workspace = "" })
	for _, c := range []struct {
		name string
		code abi.Code
	}{{"http_fetch", abi.CodeReachCeiling}, {"file_read", abi.CodeResourceNotInGlob}} {
		r.want(boundary.Deny(context.Background(), r.inv, function(t, c.name)), abi.EDENIED)
	}
	r.ok(r.call("output", `1`))
	o := r.conclude()
	if o.Err != nil || len(o.Receipt.Lines) != 2 {
		t.Fatalf("%v, %d lines", o.Err, len(o.Receipt.Lines))
	}
	if got := []abi.Code{o.Receipt.Lines[0].Code, o.Receipt.Lines[1].Code}; !slices.Equal(got, []abi.Code{abi.CodeReachCeiling, abi.CodeResourceNotInGlob}) {
		t.Errorf("codes %v", got)
	}
}

// S7: what a service was given does not change when the guest's memory does, during the call
// or after it.
func TestArgumentsAreCopiedOnce(t *testing.T) {
	forEach(t, func(t *testing.T, fn *abi.Function) {
		r := newRig(t)
		var kept, copies [][]byte
		r.out.during = func(_ context.Context, _ boundary.Scope, arguments ...[]byte) {
			for _, a := range arguments {
				kept, copies = append(kept, a), append(copies, bytes.Clone(a))
			}
			for i := range r.mem {
				r.mem[i] = 0xAA
			}
			for i := range kept {
				if !bytes.Equal(kept[i], copies[i]) {
					t.Errorf("argument %d changed under the service: %q", i, kept[i])
				}
			}
		}
		r.ok(r.call(fn.Name, argumentsFor(fn)...))
		before := slices.Clone(r.out.events)
		clear(r.mem)
		for i := range kept {
			if !bytes.Equal(kept[i], copies[i]) {
				t.Errorf("argument %d changed after the call: %q", i, kept[i])
			}
		}
		// Strings that services kept are in the events.
		if !slices.Equal(before, r.out.events) {
			t.Errorf("%v became %v", before, r.out.events)
		}
		for _, e := range r.out.events {
			if strings.Contains(e, "\xAA") {
				t.Errorf("read again: %q", e)
			}
		}
	})
}

// S7: output is the guest's no more once the call has returned.
func TestOutputIsCopied(t *testing.T) {
	r := newRig(t)
	r.ok(r.call("output", `{"a":1}`))
	clear(r.mem)
	if o := r.conclude(); string(o.Output) != `{"a":1}` {
		t.Errorf("output %q, %v", o.Output, o.Err)
	}
}

// Hostile pointers are an errno, never a trap, and nothing acts; an empty argument at the end
// of memory and one of its last byte are legal.
func TestPointers(t *testing.T) {
	const size = 1 << 16
	bad := [][2]uint64{{0, 0xffff_ffff}, {size, 1}, {size - 1, 2}, {0xffff_ffff, 0xffff_ffff}, {0xffff_ffff, 0}, {size + 1, 0}}
	good := [][2]uint64{{size, 0}, {size - 1, 1}}
	forEach(t, func(t *testing.T, fn *abi.Function) {
		for i := range fn.Params {
			if n := fn.Params[i].Name; !isPointer(n) && n != "ptr" {
				continue
			}
			try := func(pair [2]uint64) (*rig, int64) {
				r := newRig(t)
				raw := rawArguments(r, fn)
				length := i + 1
				if fn.Params[i].Name == "ptr" && len(fn.Params) == 3 {
					length = i + 2 // ptr, off, len
				}
				raw[i], raw[length] = pair[0], pair[1]
				return r, boundary.Call(context.Background(), r.inv, fn, r.mem, raw)
			}
			for _, pair := range bad {
				r, got := try(pair)
				r.want(got, abi.EFAULT)
				if len(r.out.events) > 0 {
					t.Errorf("%v: %v", pair, r.out.events)
				}
				if code := r.conclude().Receipt.Lines[0].Code; code != abi.CodePointer {
					t.Errorf("%v: receipt says %s", pair, code)
				}
			}
			for _, pair := range good {
				if _, got := try(pair); got == -int64(abi.EFAULT) {
					t.Errorf("%v: EFAULT", pair)
				}
			}
		}
	})
}

func rawArguments(r *rig, fn *abi.Function) []uint64 {
	var raw []uint64
	for _, a := range argumentsFor(fn) {
		switch a := a.(type) {
		case string:
			ptr, n := r.mem.put(uint32(len(raw)*256), a)
			raw = append(raw, ptr, n)
		case int:
			raw = append(raw, uint64(a))
		}
	}
	return raw
}

// Every copied argument has a bound, and one byte more is refused before it is copied.
func TestArgumentBounds(t *testing.T) {
	bounds := map[string][]abi.Errno{
		"output": {abi.ETOOBIG}, "error": {abi.EINVAL, abi.ETOOBIG},
		"kv_get": {abi.EINVAL}, "kv_put": {abi.EINVAL, abi.ETOOBIG}, "kv_delete": {abi.EINVAL}, "kv_list": {abi.EINVAL, abi.EINVAL},
		"file_stat": {abi.EINVAL}, "file_read": {abi.EINVAL}, "file_list": {abi.EINVAL, abi.EINVAL},
		"file_create": {abi.EINVAL, abi.ETOOBIG}, "file_write": {abi.EINVAL, abi.ETOOBIG}, "file_replace": {abi.EINVAL, abi.EVERSION, abi.ETOOBIG},
		"file_edit": {abi.EINVAL, abi.ETOOBIG, abi.ETOOBIG}, "file_copy": {abi.EINVAL, abi.EINVAL}, "file_move": {abi.EINVAL, abi.EINVAL},
		"file_remove": {abi.EINVAL}, "file_mkdir": {abi.EINVAL}, "file_grep": {abi.EINVAL, abi.EINVAL}, "file_glob": {abi.EINVAL},
		"capability_invoke": {abi.EINVAL, abi.ETOOBIG}, "http_fetch": {abi.ETOOBIG, abi.ETOOBIG},
		"secret_hmac": {abi.ESECRET, abi.ETOOBIG}, "audit_query": {abi.EINVAL},
	}
	forEach(t, func(t *testing.T, fn *abi.Function) {
		pair := 0
		for i := range fn.Params {
			if !isPointer(fn.Params[i].Name) || fn.Name == "log" {
				continue
			}
			r := newRig(t)
			raw := rawArguments(r, fn)
			r.mem = make(ram, 8<<20)
			copy(r.mem, rigMemory(fn))
			raw[i], raw[i+1] = 4096, 6<<20
			got := boundary.Call(context.Background(), r.inv, fn, r.mem, raw)
			r.want(got, bounds[fn.Name][pair])
			if len(r.out.events) > 0 {
				t.Errorf("%s: %v", fn.Params[i].Name, r.out.events)
			}
			pair++
		}
	})
}

func rigMemory(fn *abi.Function) []byte {
	r := &rig{mem: make(ram, 4096)}
	rawArguments(r, fn)
	return r.mem
}

// S8: intent, then the announcement of each external effect, then the effect, then its end.
func TestIntentBeforeEffect(t *testing.T) {
	forEach(t, func(t *testing.T, fn *abi.Function) {
		r := newRig(t)
		r.ok(r.call(fn.Name, argumentsFor(fn)...))
		r.ok(r.call(fn.Name, argumentsFor(fn)...))
		var want []string
		for call := 1; call <= 2; call++ {
			if fn.Effect.NeedsIntent() && call == 1 {
				want = append(want, "started")
			}
			if fn.Effect == abi.EffectExternal {
				want = append(want, fmt.Sprintf("announce %d %s", call, fn.Name), "act", fmt.Sprintf("closed %d ", call))
			} else if fn.Group != abi.GroupCall {
				want = append(want, "act")
			}
		}
		if len(want) != len(r.out.events) {
			t.Fatalf("events %v, want %v", r.out.events, want)
		}
		for i := range want {
			if !strings.HasPrefix(r.out.events[i], want[i]) {
				t.Errorf("event %d is %q, want %q", i, r.out.events[i], want[i])
			}
		}
		if o := r.conclude(); o.Receipt.Intent != fn.Effect.NeedsIntent() {
			t.Errorf("intent: %t", o.Receipt.Intent)
		}
	})
}

// S8: what cannot be recorded does not happen.
func TestNothingActsUnrecorded(t *testing.T) {
	forEach(t, func(t *testing.T, fn *abi.Function) {
		if !fn.Effect.NeedsIntent() {
			return
		}
		r := newRig(t)
		r.out.journal = errors.New("disk full")
		r.want(r.call(fn.Name, argumentsFor(fn)...), abi.EUNAVAIL)
		if got := r.out.events; !slices.Equal(got, []string{"started"}) {
			t.Errorf("events %v", got)
		}
	})
}

// S8: an effect whose end cannot be written is the invocation's last.
func TestUnclosedEffectEndsTheInvocation(t *testing.T) {
	r := newRig(t)
	r.out.during = func(context.Context, boundary.Scope, ...[]byte) { r.out.journal = errors.New("disk full") }
	r.ok(r.call("secret_hmac", "token", "m"))
	if over := r.inv.Over(); over == nil || over.Code != abi.CodeAuditUnavailable {
		t.Errorf("over: %v", over)
	}
}

func TestAnnouncedTargets(t *testing.T) {
	r := newRig(t)
	r.call("http_fetch", `{"method":"GET","url":"https://me:pw@api.example/a%0Ab?token=SENTINEL#f"}`, "") // PF-F6
	r.call("capability_invoke", "probe:other.run@1", "{}")
	r.call("secret_hmac", "token", "SENTINEL")
	want := []string{
		"started",
		"announce 1 http_fetch https://api.example/a%0Ab", "act fetch", "closed 1 ",
		"announce 2 capability_invoke probe:other.run@1", "act child", "closed 2 ",
		"announce 3 secret_hmac token", "act hmac", "closed 3 ",
	}
	if diff := cmp.Diff(want, r.out.events); diff != "" {
		t.Error(diff)
	}
	for _, l := range r.conclude().Receipt.Lines {
		if strings.Contains(l.Target, "SENTINEL") || strings.Contains(l.Target, "pw") {
			t.Errorf("the receipt names %q", l.Target)
		}
	}
}

// S18: an authority that is gone stops the next host call, ends the invocation, and releases
// nothing that was computed before.
func TestRevocationBitesAtTheNextCall(t *testing.T) {
	r := newRig(t)
	r.ok(r.call("output", `1`))
	r.revoked = abi.Errorf(abi.CodeGrantRevoked, "withdrawn")
	r.want(r.call("kv_get", "k"), abi.ECANCELED)
	if over := r.inv.Over(); over == nil || over.Code != abi.CodeGrantRevoked {
		t.Fatalf("over: %v", over)
	}
	if o := r.conclude(); o.Output != nil || o.Err.Code != abi.CodeGrantRevoked {
		t.Errorf("%q, %v", o.Output, o.Err)
	}
	if len(r.out.events) > 0 {
		t.Errorf("events %v", r.out.events)
	}
}

// S18: and it is asked once more when everything is done.
func TestRevocationAfterTheLastCall(t *testing.T) {
	r := newRig(t)
	r.ok(r.call("output", `1`))
	r.revoked = abi.Errorf(abi.CodeGrantRevoked, "withdrawn")
	if o := r.conclude(); o.Output != nil || o.Err.Code != abi.CodeGrantRevoked {
		t.Errorf("%q, %v", o.Output, o.Err)
	}
}

func TestContextEndsTheInvocation(t *testing.T) {
	for _, c := range []struct {
		name  string
		ctx   func() context.Context
		code  abi.Code
		errno abi.Errno
	}{
		{"cancelled", func() context.Context {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return ctx
		}, abi.CodeCanceled, abi.ECANCELED},
		{"deadline", func() context.Context {
			ctx, cancel := context.WithTimeout(context.Background(), -1)
			cancel()
			return ctx
		}, abi.CodeDeadline, abi.ETIMEOUT},
		{"cause", func() context.Context {
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(abi.Errorf(abi.CodeGrantRevoked, "withdrawn"))
			return ctx
		}, abi.CodeGrantRevoked, abi.ECANCELED},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.want(r.callIn(c.ctx(), "kv_put", "k", "v"), c.errno)
			if len(r.out.events) > 0 {
				t.Errorf("events %v", r.out.events)
			}
			if o := r.conclude(); o.Err.Code != c.code {
				t.Errorf("outcome %v", o.Err)
			}
		})
	}
}

// PF-D12: a service that gives up because the invocation is over says so in the invocation's words.
func TestServiceThatIsCancelled(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(context.Background())
	r.out.during = func(context.Context, boundary.Scope, ...[]byte) { cancel() }
	r.out.err = context.Canceled
	r.want(r.callIn(ctx, "http_fetch", `{"method":"GET","url":"https://api.example/"}`, ""), abi.ECANCELED)
	if !r.out.saw("closed 1 CANCELED") {
		t.Errorf("events %v", r.out.events)
	}
	if over := r.inv.Over(); over == nil || over.Code != abi.CodeCanceled {
		t.Errorf("over: %v", over)
	}
}

// PF-H13: past the budget calls are refused; `output` still works for a while, so that the
// guest can give a partial answer; then the invocation ends.
func TestHostCallLimit(t *testing.T) {
	const most = 10
	r := newRig(t, func(s *authority.Spec) { s.Limits[abi.LimitHostCalls] = most })
	for range most {
		r.ok(r.call("kv_get", "k"))
	}
	r.want(r.call("kv_get", "k"), abi.EQUOTA)
	r.ok(r.call("output", `"partial"`))
	if r.inv.Over() != nil {
		t.Fatal("over within the grace")
	}
	calls := 0
	for r.inv.Over() == nil && calls < 1000 {
		r.want(r.call("kv_get", "k"), abi.EQUOTA)
		calls++
	}
	if r.inv.Over() == nil || r.inv.Over().Code != abi.CodeHostCallLimit {
		t.Fatalf("after %d more calls: %v", calls, r.inv.Over())
	}
	r.want(r.call("output", `1`), abi.EQUOTA)
	if n := len(r.out.events); n != most {
		t.Errorf("%d calls acted", n)
	}
}

// A panic in a service is an errno, the end of the invocation, and an effect that is closed.
func TestPanicInAService(t *testing.T) {
	r := newRig(t)
	r.out.during = func(context.Context, boundary.Scope, ...[]byte) { panic("/secret/path in a panic") }
	r.want(r.call("capability_invoke", "probe:other.run@1", "{}"), abi.EINTERNAL)
	if !r.out.saw("closed 1 INTERNAL") {
		t.Errorf("events %v", r.out.events)
	}
	o := r.conclude()
	if o.Err.Code != abi.CodeInternal || strings.Contains(o.Err.Message+o.Err.Hint, "secret") {
		t.Errorf("outcome %v", o.Err)
	}
}

// S15: an origin that sends a secret back ends the invocation, and nothing of it is released.
func TestEchoedSecretEndsTheInvocation(t *testing.T) {
	r := newRig(t)
	r.ok(r.call("output", `1`))
	r.out.err = abi.Errorf(abi.CodeSecretEchoed, "the origin sent the secret back")
	r.want(r.call("http_fetch", `{"method":"GET","url":"https://api.example/"}`, ""), abi.ESECRET)
	if r.inv.Over() == nil {
		t.Error("the guest would go on")
	}
	if o := r.conclude(); o.Output != nil || o.Err.Code != abi.CodeSecretEchoed {
		t.Errorf("%q, %v", o.Output, o.Err)
	}
}

func TestAbsentServicesAreUnavailable(t *testing.T) {
	forEach(t, func(t *testing.T, fn *abi.Function) {
		if fn.Group == abi.GroupCall {
			return
		}
		spec := permissive()
		r := newRig(t)
		r.inv = boundary.New(boundary.Spec{Authority: authority.New(spec, func() *abi.Error { return nil }), Services: boundary.Services{Journal: r.out}})
		r.inv.Enter(boundary.PhaseRun)
		r.want(r.call(fn.Name, argumentsFor(fn)...), abi.EUNAVAIL)
	})
}

// A service's Go error is nobody's business but the log's (M60).
func TestUnknownErrorsAreInternal(t *testing.T) {
	r := newRig(t)
	r.out.err = errors.New("open /var/lib/x: permission denied")
	r.want(r.call("kv_get", "k"), abi.EINTERNAL)
	if l := r.conclude().Receipt.Lines[0]; l.Code != abi.CodeInternal || l.Target != "k" {
		t.Errorf("receipt %+v", l)
	}
}

// An initialiser has no invocation: no host function answers it.
func TestInitialiserReachesNothing(t *testing.T) {
	forEach(t, func(t *testing.T, fn *abi.Function) {
		out := &outside{}
		inv := boundary.New(boundary.Spec{Authority: authority.New(permissive(), func() *abi.Error { return nil }), Services: out.services()})
		inv.Enter(boundary.PhaseInitialize)
		r := &rig{t: t, inv: inv, mem: make(ram, 1<<16), out: out}
		if got := r.call(fn.Name, argumentsFor(fn)...); got >= 0 {
			t.Errorf("answered %d", got)
		}
		if over := inv.Over(); over == nil || over.Code != abi.CodeInitializeFailed || len(out.events) > 0 {
			t.Errorf("%v, %v", over, out.events)
		}
	})
}

// The zero authority allows nothing at all.
func TestTrialMayDoNothing(t *testing.T) {
	limits := abi.DefaultLimits()
	forEach(t, func(t *testing.T, fn *abi.Function) {
		inv := boundary.NewTrial(&limits)
		inv.Enter(boundary.PhaseRun)
		r := &rig{t: t, inv: inv, mem: make(ram, 1<<16), out: &outside{}}
		if got := r.call(fn.Name, argumentsFor(fn)...); got >= 0 {
			t.Errorf("answered %d", got)
		}
	})
}

func TestPhasesGoForward(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an ended invocation ran again")
		}
	}()
	r := newRig(t)
	r.conclude()
	r.inv.Enter(boundary.PhaseRun)
}

func FuzzCall(f *testing.F) {
	f.Add("kv_put", uint64(0), uint64(10), uint64(5), uint64(1<<40), uint64(3), uint64(9), []byte("probe:other.run@1"))
	f.Add("file_edit", uint64(0), uint64(2), uint64(0xffffffff), uint64(1), uint64(3), uint64(9), []byte("x"))
	f.Fuzz(func(t *testing.T, name string, a, b, c, d, e, g uint64, memory []byte) {
		fn, ok := abi.FunctionByName(name)
		if !ok {
			fn = &abi.Functions()[int(a%uint64(len(abi.Functions())))]
		}
		r := newRig(t)
		r.mem = memory
		raw := []uint64{a, b, c, d, e, g, a, b}[:len(fn.Params)]
		boundary.Call(context.Background(), r.inv, fn, r.mem, raw)
		if over := r.inv.Over(); over != nil && over.Code == abi.CodeInternal {
			t.Fatal(over)
		}
	})
}

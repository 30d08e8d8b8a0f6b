package boundary

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// callGrace is how many calls past LimitHostCalls are answered with EQUOTA before the
// invocation ends. In the grace `output` and `error` still work, so that a guest can give
// the partial answer it has.
const callGrace = 64

// call is one host call on its way through the steps. An invocation has one, which its calls use
// one after another: whoever acts for a call keeps what it was copied, and never the call.
type call struct {
	inv     *Invocation
	fn      *abi.Function
	handler *handler
	mem     Memory
	data    [maxArguments]argument // the (pointer, length) arguments, copied
	given   int                    // how many of them there are so far
	words   [maxArguments]uint64   // the other arguments
	request FetchRequest
	line    Line
	at      time.Time // when it began, if that was asked; see when
	before  int64     // objects withheld before this call
	kibs    int64     // of what went in and came out that are paid
}

// Call makes one host call. args are the raw WebAssembly parameters in the order of
// fn.Params. It returns what the guest sees: ≥ 0 a length or value, < 0 a negated errno.
// The caller must look at [Invocation.Over] before it goes back into the guest.
func Call(ctx context.Context, inv *Invocation, fn *abi.Function, mem Memory, args []uint64) int64 {
	c := begin(inv, fn)
	c.mem = mem
	var result Result
	var refusal *abi.Error
	if fault := inv.protect(fn.Name, func() { result, refusal = c.steps(ctx, args) }); fault != nil {
		refusal = fault
	}
	if c.handler.fills {
		inv.result = result
	}
	return c.end(result, refusal)
}

// Deny is what a function outside the link set resolves to: it records the refusal and
// answers EDENIED without a look at the arguments (S9). The guest may go on (PF-H13).
func Deny(ctx context.Context, inv *Invocation, fn *abi.Function) int64 {
	c := begin(inv, fn)
	refusal := c.admit(ctx)
	switch {
	case refusal != nil:
	case !inv.authority.Reaches(fn.Reach):
		refusal = c.aboveReach()
	default:
		refusal = abi.Errorf(abi.CodeResourceNotInGlob, "this session has no %s", fn.Group)
	}
	return c.end(Result{}, refusal)
}

func begin(inv *Invocation, fn *abi.Function) *call {
	inv.used.calls++
	c := &inv.call
	*c = call{inv: inv, fn: fn, handler: handlerOf(fn), before: inv.withheld}
	c.line = Line{Call: inv.used.calls, Function: fn.Name}
	if fn.Group != abi.GroupCall || inv.used.calls%looks == 1 || !inv.wall {
		c.when()
	}
	return c
}

// looks is how many calls that touch nothing outside the invocation there are for one look at the
// clock. They are as fast as a look is, each slice of the guest's fuel has a look of its own, and so
// has everything that can take long.
const looks = 16

// when is when the call began, or a moment after.
func (c *call) when() time.Time {
	if c.at.IsZero() {
		c.at = c.inv.clock()
	}
	return c.at
}

// steps is the order of the package comment.
func (c *call) steps(ctx context.Context, args []uint64) (Result, *abi.Error) {
	if err := c.admit(ctx); err != nil {
		return Result{}, err
	}
	if err := c.copyArguments(args); err != nil {
		return Result{}, err
	}
	if err := c.payBytes(0); err != nil {
		return Result{}, err
	}
	if !c.inv.authority.Reaches(c.fn.Reach) {
		return Result{}, c.aboveReach()
	}
	if err := c.check(); err != nil {
		return Result{}, err
	}
	if c.fn.Group != abi.GroupCall { // nothing else is done in memory alone
		c.inv.leave()
		defer c.inv.rejoin(ctx)
	}
	if err := c.announce(ctx); err != nil {
		return Result{}, err
	}
	result, err := c.act(ctx)
	c.close(ctx, &result, err)
	if unpaid := c.payBytes(int64(len(result.Body))); unpaid != nil && err == nil {
		err = unpaid
	}
	return result, err
}

// admit refuses calls of an invocation that is over, out of calls, out of time or without
// authority, and calls from an initialiser.
func (c *call) admit(ctx context.Context) *abi.Error {
	inv := c.inv
	if inv.over != nil {
		return inv.over
	}
	switch inv.phase {
	case PhaseRun:
	case PhaseInitialize:
		inv.finish(abi.Errorf(abi.CodeInitializeFailed, "the initialiser called %s, which needs an invocation", c.fn.Name))
		return inv.over
	default:
		inv.finish(abi.Errorf(abi.CodeInternal, "a host call outside a run"))
		return inv.over
	}
	if err := inv.authority.Current(); err != nil {
		inv.finish(err)
		return err
	}
	if err := inv.ended(ctx, c.at); err != nil {
		inv.finish(err)
		return err
	}
	if err := inv.pay(int64(c.fn.Price.Base)); err != nil {
		return err
	}
	return c.withinCalls()
}

// withinCalls holds the invocation to its number of host calls, and to what those above it have
// left. Calls in the grace are not theirs: a child cannot take away their last words.
func (c *call) withinCalls() *abi.Error {
	inv, most := c.inv, c.inv.limits.Get(abi.LimitHostCalls)
	used := inv.used.calls + inv.below.calls
	grace := used <= most+callGrace
	switch {
	case used > most && !grace:
		inv.finish(exhausted(most))
		return inv.over
	case used > most && !c.handler.answers:
		return exhausted(most)
	case used > most:
		return nil
	}
	if inv.parent == nil {
		return nil
	}
	if err := inv.parent.affords(hostCalls, 1, abi.LimitHostCalls); err != nil {
		if c.handler.answers {
			return nil
		}
		return err
	}
	inv.charge(hostCalls, 1)
	return nil
}

func exhausted(most int64) *abi.Error {
	return abi.Errorf(abi.CodeHostCallLimit, "the invocation used up its %d host calls", most)
}

func (c *call) aboveReach() *abi.Error {
	return abi.Errorf(abi.CodeReachCeiling, "%s has reach %s, this invocation is held to %s", c.fn.Name, c.fn.Reach, c.inv.authority.Spec().Reach)
}

// check looks at the arguments and the budgets. It does nothing that anyone could observe.
func (c *call) check() *abi.Error {
	if c.handler.check == nil {
		return nil
	}
	return c.handler.check(c)
}

// announce makes the intent durable before the first effect of the invocation, and each
// external effect before it acts (S8). When that cannot be written nothing acts.
func (c *call) announce(ctx context.Context) *abi.Error {
	inv := c.inv
	if !c.fn.Effect.NeedsIntent() {
		return nil
	}
	j := inv.services.Journal
	if j == nil {
		return abi.Errorf(abi.CodeAuditUnavailable, "nothing records effects, so none may happen")
	}
	if !inv.intent {
		if err := j.Started(ctx, inv.authority); err != nil {
			return unrecorded(err)
		}
		inv.intent = true
	}
	if c.fn.Effect == abi.EffectExternal {
		if err := j.Announce(ctx, inv.authority, int(c.line.Call), c.fn.Name, c.line.Target); err != nil {
			return unrecorded(err)
		}
	}
	return nil
}

func unrecorded(err error) *abi.Error {
	return abi.Errorf(abi.CodeAuditUnavailable, "the effect could not be recorded before it happens: %w", err)
}

// act calls the handler. A panic of the host ends the invocation, and so does an origin that
// sends a secret back: the guest shall not try again (S15).
func (c *call) act(ctx context.Context) (result Result, refusal *abi.Error) {
	var err error
	if fault := c.inv.protect(c.fn.Name, func() { result, err = c.handler.act(ctx, c) }); fault != nil {
		return Result{}, fault
	}
	if err == nil {
		return result, nil
	}
	var known *abi.Error
	if over := Ended(ctx); over != nil && !errors.As(err, &known) {
		return Result{Target: result.Target}, over.WithCause(err)
	}
	refusal = abi.AsError(err)
	if refusal.Code == abi.CodeSecretEchoed {
		c.inv.finish(refusal)
	}
	return Result{Target: result.Target}, refusal
}

// close closes what was announced and notices that time ran out meanwhile. When the closing
// cannot be written the invocation is over. What touches nothing outside the invocation takes no
// time to speak of: that it ran out is noticed by the next call, or slice of fuel, or at the end.
func (c *call) close(ctx context.Context, result *Result, refusal *abi.Error) {
	if result.Target != "" {
		c.line.Target = plainTarget(result.Target)
	}
	if c.fn.Effect == abi.EffectExternal {
		// A cancelled invocation must still say how its effect ended.
		err := c.inv.services.Journal.Closed(context.WithoutCancel(ctx), c.inv.authority, int(c.line.Call), codeOf(result, refusal))
		if err != nil {
			c.inv.finish(unrecorded(err))
		}
	}
	if c.fn.Group == abi.GroupCall {
		return
	}
	if over := Ended(ctx); over != nil {
		c.inv.finish(over)
	}
}

// end writes the receipt line and gives the guest its answer.
func (c *call) end(result Result, refusal *abi.Error) int64 {
	inv := c.inv
	inv.refused = refusal
	c.line.Code = codeOf(&result, refusal)
	c.line.Withheld = inv.withheld - c.before
	if c.line.Withheld > 0 && refusal != nil && refusal.Code.Errno() == abi.ENOENT {
		// The guest is told what it would be told of an absent object; the receipt says why (S5).
		c.line.Code = abi.CodeClassificationCeiling
	}
	c.line.Out += int64(len(result.Body))
	c.line.Label = inv.label
	c.list()
	if refusal != nil && refusal.Code == abi.CodeInternal {
		inv.log.Error("a host call failed", "invocation", inv.authority.Spec().Invocation, "function", c.fn.Name, "cause", refusal.Cause)
	}

	switch {
	case refusal != nil:
		return -int64(refusal.Code.Errno())
	case result.Code != "":
		return -int64(c.handler.failure(result.Code))
	case result.HasValue:
		return result.Value
	}
	return int64(len(result.Body))
}

// Refused is why the last host call was refused, in words that the guest's caller may hear; nil when it
// was not. It is for who cannot give the guest an errno.
func (inv *Invocation) Refused() *abi.Error { return inv.refused }

func codeOf(r *Result, refusal *abi.Error) abi.Code {
	if refusal != nil {
		return refusal.Code
	}
	return r.Code
}

// protect runs f. A panic becomes CodeInternal and ends the invocation: a host in an unknown
// state does not go on answering a guest.
func (inv *Invocation) protect(function string, f func()) (fault *abi.Error) {
	defer func() {
		if p := recover(); p != nil {
			fault = abi.Errorf(abi.CodeInternal, "a host function failed: %w", fmt.Errorf("%s: panic: %v\n%s", function, p, debug.Stack()))
			inv.finish(fault)
		}
	}()
	f()
	return nil
}

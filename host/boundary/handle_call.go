package boundary

import (
	"context"
	"encoding/json"
	"io"
	"regexp"

	"github.com/ecotone-dev/ecotone/abi"
)

// Functions of the invocation itself. None of them reaches outside it.

func input(_ context.Context, c *call) (Result, error) {
	return Result{Body: c.inv.input}, nil
}

func resultRead(_ context.Context, c *call) (Result, error) { return c.window(c.inv.result.Body) }

// nothingToSay is the meta of a result that has none. It is copied from, and never written to.
var nothingToSay = json.RawMessage("{}")

func resultMeta(_ context.Context, c *call) (Result, error) {
	meta := c.inv.result.Meta
	if meta == nil {
		meta = nothingToSay
	}
	return c.window(meta)
}

func output(_ context.Context, c *call) (Result, error) {
	c.inv.output, c.inv.tooLarge = c.bytes(0), false
	return value(0), nil
}

// dropOutput keeps an earlier output from standing in for one that was too large.
func dropOutput(inv *Invocation) { inv.output, inv.tooLarge = nil, true }

var errorCode = regexp.MustCompile(`^[A-Z0-9_]+$`)

func errorForm(c *call) *abi.Error {
	if !errorCode.Match(c.bytes(0)) {
		return abi.Errorf(abi.CodeArgumentInvalid, "a capability's own code is 1 to %d bytes of A-Z, 0-9 and _", maxErrorCode)
	}
	return nil
}

func guestError(_ context.Context, c *call) (Result, error) {
	message, _ := plain(c.bytes(1), maxErrorText)
	c.inv.guest = &GuestError{Code: c.text(0), Message: message}
	return value(0), nil
}

func logLevel(c *call) *abi.Error {
	if c.word(0) > uint32(LogError) {
		return abi.Errorf(abi.CodeArgumentInvalid, "a log level is 0 to %d", LogError)
	}
	return nil
}

func log(_ context.Context, c *call) (Result, error) {
	c.inv.logs.add(c.when().Sub(c.inv.start), LogLevel(c.word(0)), "", c.bytes(0))
	return value(0), nil
}

func timeNow(_ context.Context, c *call) (Result, error) {
	return value(c.inv.nowAt(c.when()).UnixNano()), nil
}

// randomBudget settles the pointer first: a call that cannot succeed costs nothing.
func randomBudget(c *call) *abi.Error {
	ptr, n := c.word(0), c.word(1)
	if _, ok := c.mem.Read(ptr, n); !ok {
		return abi.Errorf(abi.CodePointer, "%d bytes at %d lie outside the guest's memory", n, ptr)
	}
	return c.inv.spend(randomBytes, int64(n), abi.LimitRandomBytes)
}

func random(_ context.Context, c *call) (Result, error) {
	ptr, n := c.word(0), c.word(1)
	if err := c.inv.fill(c.mem, ptr, n); err != nil {
		return Result{}, err
	}
	c.line.Out += int64(n)
	return value(int64(n)), nil
}

// fill writes n random bytes to ptr, in pieces. The budget is settled by the caller.
func (inv *Invocation) fill(mem Memory, ptr, n uint32) error {
	if inv.piece == nil {
		inv.piece = new([512]byte)
	}
	for n > 0 {
		part := inv.piece[:min(n, uint32(len(inv.piece)))]
		if _, err := io.ReadFull(inv.random, part); err != nil {
			return abi.Errorf(abi.CodeInternal, "no random bytes: %w", err)
		}
		if !mem.Write(ptr, part) {
			return abi.Errorf(abi.CodePointer, "%d bytes at %d lie outside the guest's memory", len(part), ptr)
		}
		ptr, n = ptr+uint32(len(part)), n-uint32(len(part))
	}
	return nil
}

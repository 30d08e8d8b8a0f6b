package engine

import (
	"context"
	"errors"
	"strings"

	"github.com/tetratelabs/wazero/sys"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// failure says in the catalogue's words why a guest's call ended with err, the host's own
// reasons before the guest's.
func failure(ctx context.Context, inv *boundary.Invocation, err error) *abi.Error {
	if over := inv.Over(); over != nil {
		return over
	}
	if ended := boundary.Ended(ctx); ended != nil {
		return ended
	}
	var exit *sys.ExitError
	if errors.As(err, &exit) {
		return abi.Errorf(abi.CodeCanceled, "the invocation was cancelled: %w", err)
	}
	kind, ok := trapKind(err)
	switch {
	case !ok:
		return abi.Errorf(abi.CodeInternal, "the engine failed: %w", traced(err))
	case kind == stackOverflow:
		return abi.Errorf(abi.CodeStackLimit, "the guest's call stack reached its limit: %w", traced(err))
	}
	return abi.Errorf(abi.CodeGuestTrap, "the guest trapped: %s: %w", kind, traced(err))
}

const stackOverflow = "stack overflow"

// trapKinds are the engine's words for the traps of WebAssembly. Only these go outward: the
// rest of a trap's text is the guest's.
var trapKinds = map[string]bool{
	stackOverflow:                   true,
	"unreachable":                   true,
	"out of bounds memory access":   true,
	"invalid table access":          true,
	"indirect call type mismatch":   true,
	"integer overflow":              true,
	"integer divide by zero":        true,
	"invalid conversion to integer": true,
	"null reference":                true,
	"uncaught exception":            true,
	"unaligned atomic":              true,
	"expected shared memory":        true,
	"too many waiters":              true,
	"out of bounds data segment":    true,
}

// trapKind finds the trap in an error of the engine, whose types are internal to it.
func trapKind(err error) (string, bool) {
	first, _, _ := strings.Cut(err.Error(), "\n")
	kind := strings.TrimPrefix(first, "wasm error: ")
	return kind, trapKinds[kind]
}

// maxTrace bounds the private text of a trap. It holds names the module chose.
const maxTrace = 4 << 10

func traced(err error) error {
	text := err.Error()
	return errors.New(strings.ToValidUTF8(text[:min(len(text), maxTrace)], "\uFFFD"))
}

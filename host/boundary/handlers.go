package boundary

import (
	"context"

	"github.com/ecotone-dev/ecotone/abi"
)

// handler is what a row of the host-function table does, and how much of each argument it
// takes. What it may do is the row's business, and the order of things is Call's.
type handler struct {
	data []bound // of the copied arguments, in order
	// check looks at the arguments and takes from budgets. It names the target, on the line,
	// as the journal will announce it.
	check func(*call) *abi.Error
	act   func(context.Context, *call) (Result, error)
	// fills: the call owns the result register; refused, it leaves it empty.
	fills bool
	// tooBig is what an argument over its bound leaves behind.
	tooBig func(*Invocation)
	// answers: the call ends an invocation's work, and so still works in the grace.
	answers bool
	// failed is the errno of a Result with a Code, when it is not the code's own.
	failed abi.Errno

	index int    // of the row, in the table
	pairs []bool // see pairsOf
}

func (h *handler) failure(code abi.Code) abi.Errno {
	if h.failed != 0 {
		return h.failed
	}
	return code.Errno()
}

// Bounds of arguments that have no row in the table of limits.
const (
	maxPath      = 4 << 10
	maxGlob      = 1 << 10
	maxPattern   = 256
	maxVersion   = 128
	maxName      = 64
	maxRequest   = 64 << 10
	maxQuery     = 4 << 10
	maxErrorCode = 64
	maxErrorText = 4 << 10
)

var (
	aPath    = upTo(abi.CodePathInvalid, maxPath).asText()
	aGlob    = upTo(abi.CodePatternInvalid, maxGlob).asText()
	aKey     = upToLimit(abi.CodeKeyInvalid, abi.LimitKeyBytes).asText()
	aValue   = upToLimit(abi.CodeValueTooLarge, abi.LimitValueBytes)
	aContent = upToLimit(abi.CodeFileTooLarge, abi.LimitFileBytes)
	aMessage = bound{bytes: func(inv *Invocation) int64 { return inv.logs.copied() }}
)

// handlers has exactly one entry for each row of [abi.Functions]; a test holds it to that.
var handlers = map[string]*handler{
	"input":       {act: input, fills: true},
	"result_read": {act: resultRead},
	"result_meta": {act: resultMeta},
	"output":      {data: []bound{upToLimit(abi.CodeOutputLimit, abi.LimitOutputBytes).asKept()}, act: output, tooBig: dropOutput, answers: true},
	"error":       {data: []bound{upTo(abi.CodeArgumentInvalid, maxErrorCode), upTo(abi.CodeOutputLimit, maxErrorText)}, check: errorForm, act: guestError, answers: true},
	"log":         {data: []bound{aMessage}, check: logLevel, act: log},
	"time_now":    {act: timeNow},
	"random":      {check: randomBudget, act: random},

	"kv_get":    {data: []bound{aKey}, check: target, act: kvGet, fills: true},
	"kv_put":    {data: []bound{aKey, aValue}, check: target, act: kvPut, fills: true},
	"kv_delete": {data: []bound{aKey}, check: target, act: kvDelete, fills: true},
	"kv_list":   {data: []bound{aKey, aKey}, check: target, act: kvList, fills: true},

	"file_stat":    {data: []bound{aPath}, check: target, act: fileStat, fills: true},
	"file_read":    {data: []bound{aPath}, check: fileReadForm, act: fileRead, fills: true},
	"file_list":    {data: []bound{aPath, aPath}, check: target, act: fileList, fills: true},
	"file_create":  {data: []bound{aPath, aContent}, check: target, act: fileCreate, fills: true},
	"file_write":   {data: []bound{aPath, aContent}, check: target, act: fileWrite, fills: true},
	"file_replace": {data: []bound{aPath, upTo(abi.CodeVersionMismatch, maxVersion).asText(), aContent}, check: target, act: fileReplace, fills: true},
	"file_edit":    {data: []bound{aPath, aContent, aContent}, check: fileEditForm, act: fileEdit, fills: true},
	"file_copy":    {data: []bound{aPath, aPath}, check: targetPair, act: fileCopy, fills: true},
	"file_move":    {data: []bound{aPath, aPath}, check: targetPair, act: fileMove, fills: true},
	"file_remove":  {data: []bound{aPath}, check: target, act: fileRemove, fills: true},
	"file_mkdir":   {data: []bound{aPath}, check: target, act: fileMkdir, fills: true},
	"file_grep":    {data: []bound{upTo(abi.CodePatternInvalid, maxPattern).asText(), aGlob}, check: target, act: fileGrep, fills: true},
	"file_glob":    {data: []bound{aGlob}, check: target, act: fileGlob, fills: true},

	"capability_invoke": {
		data:  []bound{upTo(abi.CodeArgumentInvalid, abi.MaxRefBytes).asText(), upToLimit(abi.CodeInputLimit, abi.LimitInputBytes)},
		check: childAllowed, act: invokeChild, fills: true, failed: abi.ECHILD,
	},
	"http_fetch": {
		data:  []bound{upTo(abi.CodeRequestTooLarge, maxRequest), upToLimit(abi.CodeRequestTooLarge, abi.LimitHTTPBytes)},
		check: fetchAllowed, act: fetch, fills: true,
	},
	"secret_hmac": {
		data:  []bound{upTo(abi.CodeSecretDenied, maxName).asText(), upToLimit(abi.CodeRequestTooLarge, abi.LimitHTTPBytes)},
		check: secretAllowed, act: secretHMAC, fills: true,
	},
	"audit_query": {data: []bound{upTo(abi.CodeInvalidRequest, maxQuery)}, check: target, act: auditQuery, fills: true},
}

// rows finds the handler of a row without a look at its name.
var rows = func() map[*abi.Function]*handler {
	m := make(map[*abi.Function]*handler)
	for i := range abi.Functions() {
		fn := &abi.Functions()[i]
		if h := handlers[fn.Name]; h != nil {
			h.index, h.pairs = i, pairsOf(fn.Params)
			m[fn] = h
		}
	}
	return m
}()

func handlerOf(fn *abi.Function) *handler {
	if h := rows[fn]; h != nil {
		return h
	}
	return handlers[fn.Name] // a copy of a row
}

// target names the first argument as the call's target until the service says it better.
func target(c *call) *abi.Error {
	c.line.Target = plainTarget(c.text(0))
	return nil
}

func targetPair(c *call) *abi.Error {
	c.line.Target = plainTarget(c.text(0) + " → " + c.text(1))
	return nil
}

// unavailable is what functions of an absent service answer.
func unavailable(c *call) (Result, error) {
	return Result{}, abi.Errorf(abi.CodeNotReady, "this host has nothing behind %s", c.fn.Name)
}

package extism

import (
	"context"

	"github.com/ecotone-dev/ecotone/host/extism/kernel"
)

// handlers has exactly one entry for each row of [abi.ExtismFunctions]; a test holds it to that.
var handlers = map[string]handler{
	"alloc":          one(func(c *call, n uint64) uint64 { return c.memory.Alloc(n) }),
	"free":           one(func(c *call, at uint64) uint64 { c.memory.Free(at); return 0 }),
	"length":         one(func(c *call, at uint64) uint64 { return c.memory.Length(at) }),
	"length_unsafe":  one(func(c *call, at uint64) uint64 { return c.memory.Length(at) }),
	"load_u8":        one(func(c *call, at uint64) uint64 { return uint64(c.memory.Load8(at)) }),
	"load_u64":       one(load64),
	"store_u8":       store8,
	"store_u64":      store64,
	"input_offset":   none(func(c *call) uint64 { return c.memory.Input().Offset }),
	"input_length":   none(func(c *call) uint64 { return c.memory.Input().Length }),
	"input_load_u8":  one(inputLoad8),
	"input_load_u64": one(inputLoad64),
	"input_set":      extent(func(c *call, e kernel.Extent) { c.memory.SetInput(e) }),
	"output_set":     extent(func(c *call, e kernel.Extent) { c.memory.SetOutput(e) }),
	"output_offset":  none(func(c *call) uint64 { return c.memory.Output().Offset }),
	"output_length":  none(func(c *call) uint64 { return c.memory.Output().Length }),
	"error_set":      one(errorSet),
	"error_get":      none(func(c *call) uint64 { return c.memory.Error() }),
	"reset":          none(reset),
	"memory_bytes":   none(func(c *call) uint64 { return c.memory.Room() }),

	"config_get":       one(configGet),
	"var_get":          varGet,
	"var_set":          varSet,
	"http_request":     httpRequest,
	"http_status_code": none(func(c *call) uint64 { return uint64(uint32(c.status)) }),
	"http_headers":     none(func(c *call) uint64 { return c.block(c.headers) }),
	"log_trace":        logAt(0),
	"log_debug":        logAt(0),
	"log_info":         logAt(1),
	"log_warn":         logAt(2),
	"log_error":        logAt(3),
	"get_log_level":    none(func(*call) uint64 { return 0 }),
}

func none(f func(*call) uint64) handler {
	return func(_ context.Context, c *call) uint64 { return f(c) }
}

func one(f func(*call, uint64) uint64) handler {
	return func(_ context.Context, c *call) uint64 { return f(c, c.Arg64(0)) }
}

func extent(f func(*call, kernel.Extent)) handler {
	return func(_ context.Context, c *call) uint64 {
		f(c, kernel.Extent{Offset: c.Arg64(0), Length: c.Arg64(1)})
		return 0
	}
}

func load64(c *call, at uint64) uint64 {
	v, ok := c.memory.Load64(at)
	if !ok {
		return c.trap("reads", at)
	}
	return v
}

func store8(_ context.Context, c *call) uint64 {
	c.memory.Store8(c.Arg64(0), byte(c.Arg64(1)))
	return 0
}

func store64(_ context.Context, c *call) uint64 {
	if !c.memory.Store64(c.Arg64(0), c.Arg64(1)) {
		return c.trap("writes", c.Arg64(0))
	}
	return 0
}

func inputLoad8(c *call, at uint64) uint64 {
	in := c.memory.Input()
	if at >= in.Length {
		return 0
	}
	return uint64(c.memory.Load8(in.Offset + at))
}

// inputLoad64 reads over the input's end, as the SDK does, within the memory.
func inputLoad64(c *call, off uint64) uint64 {
	at := c.memory.Input().Offset + off
	if at < off {
		return c.trap("reads", off)
	}
	return load64(c, at)
}

// errorSet takes the message now: a capability that fails is not asked again.
func errorSet(c *call, at uint64) uint64 {
	c.memory.SetError(at)
	if message := c.memory.Block(c.memory.Error()); len(message) > 0 {
		c.SetError(errorCode, string(message[:min(len(message), maxError)]))
	} else {
		c.ClearError()
	}
	return 0
}

// maxError is more of a message than is kept.
const maxError = 64 << 10

// reset pays for what it clears.
func reset(c *call) uint64 {
	if c.Pay(c.memory.Touched()) {
		c.memory.Reset()
		c.ClearError()
	}
	return 0
}

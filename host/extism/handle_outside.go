package extism

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// What reaches further than the plug-in's memory: every bit of it is a host call.

var (
	kvGet     = hostFunction("kv_get")
	kvPut     = hostFunction("kv_put")
	kvDelete  = hostFunction("kv_delete")
	httpFetch = hostFunction("http_fetch")
	hostLog   = hostFunction("log")
)

func hostFunction(name string) *abi.Function {
	fn, ok := abi.FunctionByName(name)
	if !ok {
		panic("extism: no host function " + name)
	}
	return fn
}

// refused ends the plug-in with the code of a host call that was not done.
func (c *call) refused() uint64 {
	why := c.Refused()
	if why == nil {
		why = abi.Errorf(abi.CodeInternal, "a host call failed without a reason")
	}
	c.Fail(why)
	return 0
}

func configGet(c *call, name uint64) uint64 {
	if c.Initializing() { // an image is not of one install grant
		c.Fail(abi.Errorf(abi.CodeInitializeFailed, "the initialiser called config_get, which needs an invocation"))
		return 0
	}
	return c.block([]byte(c.Spec().Config[string(c.memory.Block(name))]))
}

// varPrefix begins the keys of variables.
const varPrefix = "extism/var/"

// variable takes the name of a variable: its block is given back.
func (c *call) variable(at uint64) boundary.Argument {
	key := append([]byte(varPrefix), c.memory.Block(at)...)
	c.memory.Free(at)
	return boundary.Bytes(key)
}

func varGet(ctx context.Context, c *call) uint64 {
	switch got := c.Call(ctx, kvGet, c.variable(c.Arg64(0))); {
	case got >= 0:
		body, _ := c.Result()
		return c.block(body)
	case got == -int64(abi.ENOENT):
		return 0
	}
	return c.refused()
}

func varSet(ctx context.Context, c *call) uint64 {
	key, at := c.variable(c.Arg64(0)), c.Arg64(1)
	if at == 0 {
		if got := c.Call(ctx, kvDelete, key); got < 0 && got != -int64(abi.ENOENT) {
			return c.refused()
		}
		return 0
	}
	got := c.Call(ctx, kvPut, key, boundary.Bytes(c.memory.Block(at)))
	if c.memory.Free(at); got < 0 {
		return c.refused()
	}
	return 0
}

// request is the document of http_request. A member that is null is one that is not there: that is what
// the development kits write.
type request struct {
	URL     json.RawMessage `json:"url"`
	Method  json.RawMessage `json:"method"`
	Headers json.RawMessage `json:"headers"`
}

// decode reads the document strictly: what is unknown or there twice is refused.
func (r *request) decode(document []byte) (out boundary.FetchRequest, err error) {
	if err := abi.DecodeStrict(document, r); err != nil {
		return out, err
	}
	for _, m := range []struct {
		raw  json.RawMessage
		into any
	}{{r.URL, &out.URL}, {r.Method, &out.Method}, {r.Headers, &out.Headers}} {
		if len(m.raw) == 0 || string(m.raw) == "null" {
			continue
		}
		if err := abi.DecodeStrict(m.raw, m.into); err != nil {
			return out, err
		}
	}
	if out.Method = strings.ToUpper(out.Method); out.Method == "" {
		out.Method = "GET"
	}
	return out, nil
}

// response is what http_fetch says of one.
type response struct {
	Status  int32           `json:"status"`
	Headers json.RawMessage `json:"headers"`
}

func httpRequest(ctx context.Context, c *call) uint64 {
	at, bodyAt := c.Arg64(0), c.Arg64(1)
	c.status, c.headers = 0, nil
	var r request
	wanted, err := r.decode(c.memory.Block(at))
	c.memory.Free(at)
	if err != nil {
		c.Fail(abi.AsError(err))
		return 0
	}
	document, err := json.Marshal(wanted)
	if err != nil {
		c.Fail(abi.Errorf(abi.CodeInternal, "a request does not encode: %w", err))
		return 0
	}
	got := c.Call(ctx, httpFetch, boundary.Bytes(document), boundary.Bytes(c.memory.Block(bodyAt)))
	if c.memory.Free(bodyAt); got < 0 {
		return c.refused()
	}
	body, meta := c.Result()
	var of response
	if err := json.Unmarshal(meta, &of); err != nil {
		c.Fail(abi.Errorf(abi.CodeInternal, "a response does not decode: %w", err))
		return 0
	}
	c.status, c.headers = of.Status, of.Headers
	return c.block(body)
}

// logAt logs at a level. That a record is refused changes nothing for the plug-in.
func logAt(level uint64) handler {
	return func(ctx context.Context, c *call) uint64 {
		at := c.Arg64(0)
		c.Call(ctx, hostLog, boundary.Word(level), boundary.Bytes(c.memory.Block(at)))
		c.memory.Free(at)
		return 0
	}
}

package extism

import (
	"context"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/extism/kernel"
)

// errorCode is the code of an error that a plug-in set: it has none of its own.
const errorCode = "PLUGIN_ERROR"

// Doors are the functions of the interface, in the order of [abi.ExtismFunctions].
// They must not be changed.
func Doors() []boundary.Door { return doors }

var doors = func() []boundary.Door {
	out := make([]boundary.Door, 0, len(abi.ExtismFunctions()))
	for i := range abi.ExtismFunctions() {
		fn := &abi.ExtismFunctions()[i]
		out = append(out, boundary.Door{
			Name: fn.Name, Slot: boundary.SlotPlugin, Signature: fn.Signature(), Price: fn.Price, Constant: constant[fn.Name], Open: open(handlers[fn.Name]),
		})
	}
	return out
}()

// constant are the functions that answer every plug-in of every invocation the same and leave nothing
// behind.
var constant = map[string]bool{"get_log_level": true}

// handler does what a function does and returns its result, 0 for none.
type handler func(context.Context, *call) uint64

// call is one call on its way.
type call struct {
	*plugin
	*boundary.Visit
}

// plugin is what there is of a plug-in beside its instance.
type plugin struct {
	memory  *kernel.Memory
	loaded  bool   // the input is in the memory
	status  int32  // of the last response
	headers []byte // of the last response, JSON; nil: none
}

func open(do handler) func(context.Context, *boundary.Visit) uint64 {
	return func(ctx context.Context, v *boundary.Visit) (result uint64) {
		p, _ := v.Kept().(*plugin)
		if p == nil {
			p = &plugin{memory: kernel.New(v.Limit(abi.LimitMemoryBytes))}
			v.Keep(p)
		}
		c := call{p, v}
		if c.load() {
			result = do(ctx, &c)
		}
		c.settle()
		return result
	}
}

// load puts the input into the memory, where the SDK puts it: before anything else of a capability.
func (c *call) load() bool {
	if c.loaded || c.Initializing() {
		return true
	}
	c.loaded = true
	at, ok := c.put(c.Input())
	c.memory.SetInput(kernel.Extent{Offset: at, Length: uint64(len(c.Input()))})
	return ok
}

// lookBytes is what it costs to look at one block for a free one, in bytes that are copied.
const lookBytes = 512

// settle pays for the work on the memory that the call's own price does not cover.
func (c *call) settle() {
	if walked, grown := c.memory.Work(); walked+grown > 0 {
		c.Pay(int64(walked)*lookBytes + int64(grown))
	}
}

// put makes a block that holds b, paid; false says that the invocation is over.
func (c *call) put(b []byte) (uint64, bool) {
	if !c.Pay(int64(len(b))) {
		return 0, false
	}
	at, ok := c.memory.Put(b)
	if !ok {
		c.Fail(abi.Errorf(abi.CodeMemoryLimit, "%d bytes more are over what a plug-in may share with its host, %d", len(b), c.Limit(abi.LimitMemoryBytes)))
	}
	return at, ok
}

// block is a block that holds b, or 0 for nothing.
func (c *call) block(b []byte) uint64 {
	at, _ := c.put(b)
	return at
}

// trap ends the plug-in where its SDK ends it.
func (c *call) trap(what string, at uint64) uint64 {
	c.Fail(abi.Errorf(abi.CodeGuestTrap, "the plug-in %s at %d, outside of the memory it shares with the host", what, at))
	return 0
}

// End implements [boundary.Keeper]: the output is what lies where the plug-in said, now that it is done.
func (p *plugin) End(_ context.Context, v *boundary.Visit) *abi.Error {
	if at := p.memory.Output(); at.Length > 0 {
		b, _ := p.memory.Bytes(at.Offset, at.Length)
		v.SetOutput(b)
	}
	return nil
}

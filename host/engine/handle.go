package engine

import (
	"reflect"

	"github.com/tetratelabs/wazero/api"
)

// handle is the engine's way into one export of one instance. Making one costs a stack for the
// guest, so an instance that is kept keeps its handles too. The engine doubles a handle's stack
// when a guest goes deeper and never gives any of it back: a handle whose stack grew past maxStack
// goes with the call that made it grow (S11). Nothing of a stack can be read by a later call: the
// engine's code writes a slot before it reads it, as WebAssembly's rules for locals and operands
// demand.
type handle struct {
	export string
	f      api.Function
	stack  reflect.Value // the engine's slice; not valid when it cannot be seen
}

const (
	maxStack   = 128 << 10 // bytes; a new one has 10 KiB, a Go guest with encoding/json needs some 40
	maxHandles = 4         // of an instance
)

// handles are the kept handles of an instance. They belong to who has the instance.
type handles struct{ list []handle }

// of finds or makes the handle of an export.
func (h *handles) of(module api.Module, export string) *handle {
	for i := range h.list {
		if h.list[i].export == export {
			return &h.list[i]
		}
	}
	if len(h.list) >= maxHandles {
		h.list = h.list[:0]
	}
	f := module.ExportedFunction(export)
	h.list = append(h.list, handle{export, f, stackOf(f)})
	return &h.list[len(h.list)-1]
}

// trim forgets the handles that nobody should keep. It is due after every call.
func (h *handles) trim() {
	for i := len(h.list) - 1; i >= 0; i-- {
		if s := h.list[i].stack; !s.IsValid() || s.Len() > maxStack {
			last := len(h.list) - 1
			h.list[i], h.list[last] = h.list[last], handle{}
			h.list = h.list[:last]
		}
	}
}

// bytes is how much stack the handles have.
func (h *handles) bytes() (n int64) {
	for i := range h.list {
		n += int64(h.list[i].stack.Len())
	}
	return n
}

// stackOf finds the slice in which a function of the engine keeps its stack. The engine has no
// method that tells its length; where it is not what this version of it has, there is no value,
// and the handle is not kept.
func stackOf(f api.Function) reflect.Value {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	s := v.Elem().FieldByName("stack")
	if !s.IsValid() || s.Kind() != reflect.Slice || s.Type().Elem().Kind() != reflect.Uint8 {
		return reflect.Value{}
	}
	return s
}

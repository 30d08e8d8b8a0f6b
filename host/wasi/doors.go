package wasi

import (
	"context"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// handler makes one call and answers its WASI errno.
type handler func(context.Context, *boundary.Visit) int32

// Native returns the doors of a native biome.
func Native() []boundary.Door { return doors(abi.NativeWASI(), bareHandlers, bareConstant, false) }

// Bare returns all of preview 1 with nothing behind it: no files, an empty input, and a log for output.
func Bare() []boundary.Door { return doors(abi.WASIFunctions(), bareHandlers, bareConstant, true) }

// Full returns the doors of a program that was written for WASI.
func Full() []boundary.Door { return doors(abi.WASIFunctions(), fullHandlers, fullConstant, true) }

// doors makes a door of each row. A row without a handler answers its errno, or BADF. With pointers set,
// what any pointer of a call points to must be the guest's before anything is done.
func doors(rows []abi.WASIFunction, handlers map[string]handler, constant map[string]bool, pointers bool) []boundary.Door {
	out := make([]boundary.Door, len(rows))
	for i := range rows {
		row := &rows[i]
		handle := handlers[row.Name]
		if row.Refused != 0 || handle == nil {
			handle = answer(row.Refused)
		}
		if pointers && len(row.Pointers) > 0 {
			handle = checked(row, handle)
		}
		out[i] = boundary.Door{
			Name: row.Name, Signature: row.Signature(), Price: row.Price, Constant: constant[row.Name] || row.Refused != 0, Closed: uint64(abi.WASINosys),
			Open: func(ctx context.Context, v *boundary.Visit) uint64 { return uint64(uint32(handle(ctx, v))) },
		}
	}
	return out
}

// answer answers an errno whatever is asked.
func answer(errno int32) handler {
	if errno == 0 {
		errno = abi.WASIBadf
	}
	return func(context.Context, *boundary.Visit) int32 { return errno }
}

// checked answers FAULT where a pointer does not point into the guest's memory.
func checked(row *abi.WASIFunction, handle handler) handler {
	return func(ctx context.Context, v *boundary.Visit) int32 {
		for _, p := range row.Pointers {
			n := uint64(p.Size)
			if p.Count >= 0 {
				n *= uint64(v.Arg(p.Count))
			}
			if n > 1<<32-1 || !v.Fits(v.Arg(p.At), uint32(n)) {
				return abi.WASIFault
			}
		}
		return handle(ctx, v)
	}
}

// wrote is the errno of a write to the guest's memory.
func wrote(ok bool) int32 {
	if !ok {
		return abi.WASIFault
	}
	return abi.WASISuccess
}

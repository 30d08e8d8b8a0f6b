package wasi

import (
	"context"
	"encoding/binary"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// arguments are what the guest's process was started with. An initialiser is no process.
func arguments(v *boundary.Visit) []string {
	if v.Initializing() {
		return nil
	}
	return append([]string{v.Spec().Biome}, v.Spec().Arguments...)
}

func argsSizesGet(_ context.Context, v *boundary.Visit) int32 {
	args := arguments(v)
	size := 0
	for _, a := range args {
		size += len(a) + 1
	}
	return wrote(v.Put32(v.Arg(0), uint32(len(args))) && v.Put32(v.Arg(1), uint32(size)))
}

func argsGet(_ context.Context, v *boundary.Visit) int32 {
	var pointers, text []byte
	for _, a := range arguments(v) {
		pointers = binary.LittleEndian.AppendUint32(pointers, v.Arg(1)+uint32(len(text)))
		text = append(append(text, a...), 0)
	}
	return wrote(v.Put(v.Arg(0), pointers) && v.Put(v.Arg(1), text))
}

// fdRead reads from the input or a file. An initialiser has no input, and is told so by an empty one.
func fdRead(ctx context.Context, v *boundary.Visit) int32 {
	if v.Initializing() {
		return readNothing(ctx, v)
	}
	t := tableOf(v)
	d, errno := t.of(v.Arg(0))
	switch {
	case errno != abi.WASISuccess:
		return errno
	case d.stream == "stdin":
		input := v.Input()
		if t.beside {
			input = nil
		}
		n, errno := into(v, v.Arg(1), v.Arg(2), v.Arg(3), func(most uint32) ([]byte, int32) {
			rest := input[min(t.read, int64(len(input))):]
			return rest[:min(int64(most), int64(len(rest)))], abi.WASISuccess
		})
		t.read += n
		return errno
	case d.stream != "":
		return abi.WASIBadf
	case d.file == nil:
		return abi.WASIIsdir
	}
	n, errno := into(v, v.Arg(1), v.Arg(2), v.Arg(3), func(most uint32) ([]byte, int32) {
		return t.readFile(ctx, v, d, d.at, most)
	})
	d.at += n
	return errno
}

// placeIn is the place in an open file that fd_pread and fd_pwrite name.
func placeIn(v *boundary.Visit, d *descriptor) (int64, int32) {
	offset := v.Arg64(3)
	switch {
	case d.stream != "":
		return 0, abi.WASISpipe
	case d.file == nil:
		return 0, abi.WASIIsdir
	case offset > 1<<63-1:
		return 0, abi.WASIInval
	}
	return int64(offset), abi.WASISuccess
}

func fdPread(ctx context.Context, v *boundary.Visit, t *table, d *descriptor) int32 {
	offset, errno := placeIn(v, d)
	if errno != abi.WASISuccess {
		return errno
	}
	_, errno = into(v, v.Arg(1), v.Arg(2), v.Arg(4), func(most uint32) ([]byte, int32) {
		return t.readFile(ctx, v, d, offset, most)
	})
	return errno
}

// into reads into the vectors of a call and says how much that was, here and to the guest.
func into(v *boundary.Visit, ptr, count, out uint32, from func(most uint32) ([]byte, int32)) (int64, int32) {
	list, errno := vectorsOf(v, ptr, count)
	if errno != abi.WASISuccess {
		return 0, errno
	}
	most, errno := list.room(v)
	if errno != abi.WASISuccess {
		return 0, errno
	}
	if !v.Fits(out, 4) {
		return 0, abi.WASIFault
	}
	data, errno := from(most)
	if errno != abi.WASISuccess {
		return 0, errno
	}
	if !v.Pay(int64(len(data))) {
		return 0, abi.WASINotcapable
	}
	if errno := list.scatter(v, data); errno != abi.WASISuccess {
		return 0, errno
	}
	return int64(len(data)), wrote(v.Put32(out, uint32(len(data))))
}

// fdWrite writes to the output, the log or a file. What an initialiser prints goes to the log.
func fdWrite(ctx context.Context, v *boundary.Visit) int32 {
	if v.Initializing() {
		return writeLog(ctx, v)
	}
	t := tableOf(v)
	d, errno := t.of(v.Arg(0))
	switch {
	case errno != abi.WASISuccess:
		return errno
	case d.stream == "stderr", d.stream == "stdout" && t.beside:
		return logged(v, d.stream)
	case d.stream == "stdout":
		_, errno := from(v, v.Arg(1), v.Arg(2), v.Arg(3), func(data []byte) int32 {
			if !v.AddOutput(data) {
				return abi.WASIFbig
			}
			return abi.WASISuccess
		})
		return errno
	case d.stream != "":
		return abi.WASIBadf
	case d.file == nil:
		return abi.WASIIsdir
	}
	if d.flags&flagAppend != 0 {
		d.at = d.file.size
	}
	n, errno := from(v, v.Arg(1), v.Arg(2), v.Arg(3), func(data []byte) int32 { return t.writeFile(ctx, v, d, d.at, data) })
	d.at += n
	return errno
}

func fdPwrite(ctx context.Context, v *boundary.Visit, t *table, d *descriptor) int32 {
	offset, errno := placeIn(v, d)
	if errno != abi.WASISuccess {
		return errno
	}
	_, errno = from(v, v.Arg(1), v.Arg(2), v.Arg(4), func(data []byte) int32 { return t.writeFile(ctx, v, d, offset, data) })
	return errno
}

// from writes what the vectors of a call point to, and says how much that was, here and to the guest.
func from(v *boundary.Visit, ptr, count, out uint32, to func([]byte) int32) (int64, int32) {
	list, errno := vectorsOf(v, ptr, count)
	if errno != abi.WASISuccess {
		return 0, errno
	}
	data, errno := list.gather(v)
	if errno != abi.WASISuccess {
		return 0, errno
	}
	if !v.Fits(out, 4) {
		return 0, abi.WASIFault
	}
	if !v.Pay(int64(len(data))) {
		return 0, abi.WASINotcapable
	}
	if errno := to(data); errno != abi.WASISuccess {
		return 0, errno
	}
	return int64(len(data)), wrote(v.Put32(out, uint32(len(data))))
}

// ready says how much of a descriptor can be read or written at once.
func (t *table) ready(v *boundary.Visit) func(uint32, bool) (uint64, int32) {
	return func(fd uint32, write bool) (uint64, int32) {
		d, errno := t.of(fd)
		switch {
		case errno != abi.WASISuccess:
			return 0, errno
		case write:
			return maxMoved, abi.WASISuccess
		case d.stream == "stdin":
			return uint64(max(int64(len(v.Input()))-t.read, 0)), abi.WASISuccess
		case d.file != nil:
			return uint64(max(d.file.size-d.at, 0)), abi.WASISuccess
		}
		return 0, abi.WASISuccess
	}
}

package wasi

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// Kinds of what a descriptor is, as preview 1 numbers them. Streams are of unknown kind: a terminal they
// are not.
const (
	kindUnknown   = 0
	kindDevice    = 2
	kindDirectory = 3
	kindFile      = 4
)

// Rights, as far as they mean anything here.
const (
	rightRead    = 1 << 1
	rightSeek    = 1 << 2
	rightFlags   = 1 << 3
	rightTell    = 1 << 5
	rightWrite   = 1 << 6
	rightReaddir = 1 << 14
	rightStat    = 1 << 21
	rightPoll    = 1 << 27
	rightsAll    = 1<<29 - 1
)

// Flags of a descriptor.
const (
	flagAppend = 1 << 0
	flagDsync  = 1 << 1
	flagRsync  = 1 << 3
	flagSync   = 1 << 4
	flagsAll   = 1<<5 - 1
)

// Bounds of the table.
const (
	maxOpen   = 256
	workspace = 3   // the descriptor of the workspace
	preopen   = "/" // and its name
)

// table is the descriptors of one invocation.
type table struct {
	beside bool // another interface has the input and the output: the standard streams are an empty one, and the log
	open   map[uint32]*descriptor
	files  map[string]*file // that are open, by path
	held   int64            // bytes of their content, and of listings
	read   int64            // of the input
}

// descriptor is one thing that is open. Two of them may be of one file.
type descriptor struct {
	stream     string // stdin, stdout or stderr; "" for what is in the workspace
	path       string // of a directory
	file       *file  // nil: a directory
	at         int64  // where a file is read and written next
	flags      uint16
	rights     uint64
	inheriting uint64
	list       []dirent // of a directory, from its first entry on
}

// tableOf finds the invocation's table, or makes it. What an initialiser does with it is its alone.
func tableOf(v *boundary.Visit) *table {
	if t, ok := v.Kept().(*table); ok {
		return t
	}
	t := &table{beside: v.Spec().Face != abi.FaceWASI, files: map[string]*file{}, open: map[uint32]*descriptor{
		0: {stream: "stdin", rights: rightRead | rightFlags | rightStat | rightPoll},
		1: {stream: "stdout", rights: rightWrite | rightFlags | rightStat | rightPoll},
		2: {stream: "stderr", rights: rightWrite | rightFlags | rightStat | rightPoll},
	}}
	if v.Spec().Workspace != "" {
		t.open[workspace] = &descriptor{path: ".", rights: rightsAll, inheriting: rightsAll}
	}
	v.Keep(t)
	return t
}

// End implements [boundary.Keeper]: what was written is written.
func (t *table) End(ctx context.Context, v *boundary.Visit) *abi.Error {
	for _, p := range slices.Sorted(maps.Keys(t.files)) {
		if errno := t.flush(ctx, v, t.files[p]); errno != abi.WASISuccess {
			return v.Refused()
		}
	}
	return nil
}

// of finds a descriptor.
func (t *table) of(fd uint32) (*descriptor, int32) {
	d := t.open[fd]
	if d == nil {
		return nil, abi.WASIBadf
	}
	return d, abi.WASISuccess
}

// add opens a descriptor under the lowest number that is free.
func (t *table) add(d *descriptor) (uint32, int32) {
	if len(t.open) >= maxOpen {
		return 0, abi.WASIMfile
	}
	fd := uint32(0)
	for t.open[fd] != nil {
		fd++
	}
	t.open[fd] = d
	return fd, abi.WASISuccess
}

// close closes a descriptor, whatever its answer is.
func (t *table) close(ctx context.Context, v *boundary.Visit, fd uint32) int32 {
	d, errno := t.of(fd)
	if errno != abi.WASISuccess {
		return errno
	}
	delete(t.open, fd)
	t.held -= heldBy(d.list)
	if d.file == nil {
		return abi.WASISuccess
	}
	return t.release(ctx, v, d.file)
}

// full adapts a method of the table to a door.
func full(f func(context.Context, *boundary.Visit, *table) int32) handler {
	return func(ctx context.Context, v *boundary.Visit) int32 { return f(ctx, v, tableOf(v)) }
}

// owned is full for calls whose first argument is a descriptor.
func owned(f func(context.Context, *boundary.Visit, *table, *descriptor) int32) handler {
	return full(func(ctx context.Context, v *boundary.Visit, t *table) int32 {
		d, errno := t.of(v.Arg(0))
		if errno != abi.WASISuccess {
			return errno
		}
		return f(ctx, v, t, d)
	})
}

// fdstat describes a descriptor.
type fdstat struct {
	kind               byte
	flags              uint16
	rights, inheriting uint64
}

func (s fdstat) bytes() []byte {
	b := make([]byte, 24)
	b[0] = s.kind
	binary.LittleEndian.PutUint16(b[2:], s.flags)
	binary.LittleEndian.PutUint64(b[8:], s.rights)
	binary.LittleEndian.PutUint64(b[16:], s.inheriting)
	return b
}

func (d *descriptor) kind() byte {
	switch {
	case d.stream != "":
		return kindUnknown
	case d.file != nil:
		return kindFile
	}
	return kindDirectory
}

func fdstatGet(_ context.Context, v *boundary.Visit, _ *table, d *descriptor) int32 {
	return wrote(v.Put(v.Arg(1), fdstat{d.kind(), d.flags, d.rights, d.inheriting}.bytes()))
}

func fdstatSetFlags(_ context.Context, v *boundary.Visit, _ *table, d *descriptor) int32 {
	if v.Arg(1) > flagsAll {
		return abi.WASIInval
	}
	d.flags = uint16(v.Arg(1))
	return abi.WASISuccess
}

func fdstatSetRights(_ context.Context, v *boundary.Visit, _ *table, d *descriptor) int32 {
	base, inheriting := v.Arg64(1), v.Arg64(2)
	if base&^d.rights != 0 || inheriting&^d.inheriting != 0 {
		return abi.WASINotcapable
	}
	d.rights, d.inheriting = base, inheriting
	return abi.WASISuccess
}

func prestatGet(_ context.Context, v *boundary.Visit, t *table) int32 {
	if v.Arg(0) != workspace || !t.preopened() {
		return abi.WASIBadf
	}
	b := make([]byte, 8) // the first byte says that it is a directory
	binary.LittleEndian.PutUint32(b[4:], uint32(len(preopen)))
	return wrote(v.Put(v.Arg(1), b))
}

func prestatDirName(_ context.Context, v *boundary.Visit, t *table) int32 {
	switch {
	case v.Arg(0) != workspace || !t.preopened():
		return abi.WASIBadf
	case v.Arg(2) < uint32(len(preopen)):
		return abi.WASINametoolong
	}
	return wrote(v.Put(v.Arg(1), []byte(preopen)))
}

// preopened reports whether the workspace's descriptor is still the workspace.
func (t *table) preopened() bool {
	d := t.open[workspace]
	return d != nil && d.stream == "" && d.file == nil && d.path == "."
}

func fdClose(ctx context.Context, v *boundary.Visit, t *table) int32 {
	return t.close(ctx, v, v.Arg(0))
}

// fdRenumber moves a descriptor over another.
func fdRenumber(ctx context.Context, v *boundary.Visit, t *table) int32 {
	from, to := v.Arg(0), v.Arg(1)
	d, errno := t.of(from)
	if errno != abi.WASISuccess {
		return errno
	}
	if _, errno := t.of(to); errno != abi.WASISuccess || from == to {
		return errno
	}
	errno = t.close(ctx, v, to)
	delete(t.open, from)
	t.open[to] = d
	return errno
}

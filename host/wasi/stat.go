package wasi

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// filestat is what is told of a file. Its inode is made of its path, so that two names are two files;
// it has no times.
func filestat(kind byte, path string, size int64) []byte {
	b := make([]byte, 64)
	if path != "" {
		binary.LittleEndian.PutUint64(b[8:], inode(path))
	}
	b[16] = kind
	binary.LittleEndian.PutUint64(b[24:], 1) // links
	binary.LittleEndian.PutUint64(b[32:], uint64(size))
	return b
}

func inode(path string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(path))
	return h.Sum64() | 1 // 0 is no inode
}

func fdFilestatGet(_ context.Context, v *boundary.Visit, _ *table, d *descriptor) int32 {
	path, size := d.path, int64(0)
	if d.file != nil {
		path, size = d.file.path, d.file.size
	}
	return wrote(v.Put(v.Arg(1), filestat(d.kind(), path, size)))
}

func pathFilestatGet(ctx context.Context, v *boundary.Visit, t *table, dir *descriptor) int32 {
	p, errno := placeOf(v, dir, v.Arg(2), v.Arg(3))
	if errno != abi.WASISuccess {
		return errno
	}
	d, errno := stat(ctx, v, p.path)
	switch {
	case errno != abi.WASISuccess:
		return errno
	case d.Kind == "directory":
		return wrote(v.Put(v.Arg(4), filestat(kindDirectory, p.path, 0)))
	case p.dir:
		return abi.WASINotdir
	}
	if f := t.files[p.path]; f != nil && f.dirty {
		d.Size = f.size // as this program has written it
	}
	return wrote(v.Put(v.Arg(4), filestat(kindFile, p.path, d.Size)))
}

// Bits of the flags that say which times to set: either of a pair.
const timesAll = 1<<4 - 1

func badTimes(flags uint32) bool { return flags > timesAll || flags&3 == 3 || flags&12 == 12 }

func fdFilestatSetTimes(_ context.Context, v *boundary.Visit, _ *table, d *descriptor) int32 {
	switch {
	case badTimes(v.Arg(3)):
		return abi.WASIInval
	case d.stream != "":
		return abi.WASIBadf
	}
	return abi.WASISuccess
}

func pathFilestatSetTimes(ctx context.Context, v *boundary.Visit, _ *table, dir *descriptor) int32 {
	if badTimes(v.Arg(6)) {
		return abi.WASIInval
	}
	p, errno := placeOf(v, dir, v.Arg(2), v.Arg(3))
	if errno != abi.WASISuccess {
		return errno
	}
	_, errno = stat(ctx, v, p.path)
	return errno
}

// writable finds the file of a descriptor that may be written.
func (d *descriptor) writable() (*file, int32) {
	switch {
	case d.file == nil:
		return nil, abi.WASIBadf
	case d.rights&rightWrite == 0:
		return nil, abi.WASIBadf
	}
	return d.file, abi.WASISuccess
}

func fdFilestatSetSize(ctx context.Context, v *boundary.Visit, t *table, d *descriptor) int32 {
	f, errno := d.writable()
	switch {
	case errno != abi.WASISuccess:
		return errno
	case v.Arg64(1) > 1<<63-1:
		return abi.WASIInval
	case int64(v.Arg64(1)) == f.size:
		return abi.WASISuccess
	}
	return t.resize(ctx, v, f, int64(v.Arg64(1)))
}

func fdAllocate(ctx context.Context, v *boundary.Visit, t *table, d *descriptor) int32 {
	offset, n := v.Arg64(1), v.Arg64(2)
	f, errno := d.writable()
	switch {
	case errno != abi.WASISuccess:
		return errno
	case n == 0 || offset > 1<<62 || n > 1<<62:
		return abi.WASIInval
	case int64(offset+n) <= f.size:
		return abi.WASISuccess
	}
	return t.resize(ctx, v, f, int64(offset+n))
}

func fdAdvise(_ context.Context, v *boundary.Visit, _ *table, d *descriptor) int32 {
	switch {
	case d.stream != "":
		return abi.WASISpipe
	case d.file == nil:
		return abi.WASIBadf
	case v.Arg(3) > 5 || v.Arg64(1) > 1<<63-1 || v.Arg64(2) > 1<<63-1:
		return abi.WASIInval
	}
	return abi.WASISuccess
}

func fdSync(ctx context.Context, v *boundary.Visit, t *table, d *descriptor) int32 {
	if d.file == nil {
		return abi.WASISuccess
	}
	return t.flush(ctx, v, d.file)
}

func fdSeek(_ context.Context, v *boundary.Visit, _ *table, d *descriptor) int32 {
	offset, from := int64(v.Arg64(1)), int64(0)
	switch {
	case d.stream != "":
		return abi.WASISpipe
	case d.file == nil:
		return abi.WASIBadf
	}
	switch v.Arg(2) {
	case 0:
	case 1:
		from = d.at
	case 2:
		from = d.file.size
	default:
		return abi.WASIInval
	}
	if offset < 0 && from+offset < 0 || offset > 0 && from > 1<<63-1-offset {
		return abi.WASIInval
	}
	if !v.Put64(v.Arg(3), uint64(from+offset)) {
		return abi.WASIFault
	}
	d.at = from + offset
	return abi.WASISuccess
}

func fdTell(_ context.Context, v *boundary.Visit, _ *table, d *descriptor) int32 {
	switch {
	case d.stream != "":
		return abi.WASISpipe
	case d.file == nil:
		return abi.WASIBadf
	}
	return wrote(v.Put64(v.Arg(1), uint64(d.at)))
}

// dirent is one name in a directory.
type dirent struct {
	name  string
	inode uint64
	kind  byte
}

// direntSize is what an entry takes before its name, and listedSize what it takes of the host besides.
const (
	direntSize = 24
	listedSize = 40
)

func heldBy(list []dirent) (n int64) {
	for _, e := range list {
		n += listedSize + int64(len(e.name))
	}
	return n
}

// fdReaddir tells the names in a directory from a cookie on, which is how many were told. The list is
// made when it is told from its beginning, and stays as it is until then.
func fdReaddir(ctx context.Context, v *boundary.Visit, t *table, d *descriptor) int32 {
	if d.stream != "" || d.file != nil {
		return abi.WASIBadf
	}
	room, cookie := v.Arg(2), v.Arg64(3)
	if cookie == 0 || d.list == nil {
		if errno := t.list(ctx, v, d); errno != abi.WASISuccess {
			return errno
		}
	}
	if cookie > uint64(len(d.list)) {
		return abi.WASIInval
	}
	most := int(room) // what is told is no more than is listed
	out := make([]byte, 0, min(most, 4096))
	for i := int(cookie); i < len(d.list) && len(out) < most; i++ {
		e := &d.list[i]
		head := make([]byte, direntSize)
		binary.LittleEndian.PutUint64(head, uint64(i+1))
		binary.LittleEndian.PutUint64(head[8:], e.inode)
		binary.LittleEndian.PutUint32(head[16:], uint32(len(e.name)))
		head[20] = e.kind
		out = append(append(out, head...), e.name...)
	}
	out = out[:min(len(out), most)]
	if !v.Pay(int64(len(out))) {
		return abi.WASINotcapable
	}
	return wrote(v.Put(v.Arg(1), out) && v.Put32(v.Arg(4), uint32(len(out))))
}

// list asks for all names of a directory.
func (t *table) list(ctx context.Context, v *boundary.Visit, d *descriptor) int32 {
	t.held -= heldBy(d.list)
	d.list = nil
	all := []dirent{{".", inode(d.path), kindDirectory}, {"..", inode(place{path: d.path}.parent()), kindDirectory}}
	var held int64
	for after, more := "", true; more; {
		if errno := errnoOf(v.Call(ctx, fileList, boundary.Text(d.path), boundary.Text(after), boundary.Word(0))); errno != abi.WASISuccess {
			t.held -= held
			return errno
		}
		body, meta := v.Result()
		var page []struct{ Name, Kind string }
		var said struct{ More bool }
		if json.Unmarshal(body, &page) != nil || json.Unmarshal(meta, &said) != nil {
			t.held -= held
			return abi.WASIIo
		}
		for _, e := range page {
			kind := byte(kindFile)
			if e.Kind == "directory" {
				kind = kindDirectory
			}
			all = append(all, dirent{e.Name, inode(place{path: d.path}.below(e.Name)), kind})
			after = e.Name
		}
		more = said.More && len(page) > 0
		if errno := t.hold(v, heldBy(all)-held); errno != abi.WASISuccess {
			t.held -= held
			return errno
		}
		held = heldBy(all)
	}
	d.list = all
	return abi.WASISuccess
}

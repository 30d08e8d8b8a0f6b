package wasi

import (
	"context"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// maxPath is more than any path that the workspace has.
const maxPath = 4 << 10

// place is where a path of a call leads: below a directory that is open, by names alone. There are no
// links to follow.
type place struct {
	path string // as host functions take it
	dir  bool   // it ends with a slash, and so means a directory
}

// parent is the directory that has the place's name.
func (p place) parent() string { return path.Dir(p.path) }

// below is a name in the place.
func (p place) below(name string) string { return path.Join(p.path, name) }

// placeOf resolves the path at ptr below a directory. A path that leaves the directory is refused,
// wherever it leads (PF-C1).
func placeOf(v *boundary.Visit, d *descriptor, ptr, n uint32) (place, int32) {
	switch {
	case d.stream != "" || d.file != nil:
		return place{}, abi.WASINotdir
	case n > maxPath:
		return place{}, abi.WASINametoolong
	case n == 0:
		return place{}, abi.WASINoent
	}
	raw, ok := v.Copy(ptr, n)
	if !ok {
		return place{}, abi.WASIFault
	}
	s := string(raw)
	switch {
	case !utf8.ValidString(s):
		return place{}, abi.WASIIlseq
	case strings.ContainsRune(s, 0):
		return place{}, abi.WASIInval
	case s[0] == '/':
		return place{}, abi.WASINotcapable
	}
	depth := 0
	for name := range strings.SplitSeq(s, "/") {
		switch name {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return place{}, abi.WASINotcapable
			}
		default:
			depth++
		}
	}
	last := path.Base(strings.TrimRight(s, "/"))
	return place{path.Join(d.path, s), strings.HasSuffix(s, "/") || last == "." || last == ".."}, abi.WASISuccess
}

// Flags of path_open.
const (
	openCreate    = 1 << 0
	openDirectory = 1 << 1
	openExclusive = 1 << 2
	openTruncate  = 1 << 3
	openAll       = 1<<4 - 1
)

// pathOpen opens what is there, or makes a file. What it then writes over is the version it found.
func pathOpen(ctx context.Context, v *boundary.Visit, t *table, dir *descriptor) int32 {
	oflags, rights, inheriting, flags := v.Arg(4), v.Arg64(5), v.Arg64(6), v.Arg(7)
	p, errno := placeOf(v, dir, v.Arg(2), v.Arg(3))
	switch {
	case errno != abi.WASISuccess:
		return errno
	case oflags > openAll || flags > flagsAll:
		return abi.WASIInval
	case len(t.open) >= maxOpen:
		return abi.WASIMfile
	}
	writes := rights&rightWrite != 0 || oflags&openTruncate != 0
	found, errno := stat(ctx, v, p.path)
	made := false
	if errno == abi.WASINoent && oflags&openCreate != 0 {
		if oflags&openDirectory != 0 || p.dir {
			return abi.WASIInval
		}
		if found, errno = create(ctx, v, p); errno == abi.WASISuccess {
			made = true
		}
	}
	switch {
	case errno != abi.WASISuccess:
		return errno
	case !made && oflags&openCreate != 0 && oflags&openExclusive != 0:
		return abi.WASIExist
	case found.Kind == "directory" && (oflags&openTruncate != 0 || writes && oflags&openDirectory == 0 && oflags&openCreate != 0):
		return abi.WASIIsdir
	case found.Kind != "directory" && (oflags&openDirectory != 0 || p.dir):
		return abi.WASINotdir
	}
	d := &descriptor{flags: uint16(flags), rights: rights & dir.inheriting, inheriting: inheriting & dir.inheriting}
	if found.Kind == "directory" {
		d.path = p.path
		d.rights &^= rightRead | rightWrite | rightSeek | rightTell
	} else {
		d.file = t.acquire(p.path, found)
		d.rights &^= rightReaddir
		if oflags&openTruncate != 0 && d.file.size > 0 {
			if errno := t.resize(ctx, v, d.file, 0); errno != abi.WASISuccess {
				t.release(ctx, v, d.file)
				return errno
			}
		}
	}
	fd, errno := t.add(d)
	if errno != abi.WASISuccess {
		return errno
	}
	return wrote(v.Put32(v.Arg(8), fd))
}

// create makes an empty file in a directory that is there. Of many makers one succeeds (M5).
func create(ctx context.Context, v *boundary.Visit, p place) (document, int32) {
	if errno := within(ctx, v, p); errno != abi.WASISuccess {
		return document{}, errno
	}
	if errno := errnoOf(v.Call(ctx, fileCreate, boundary.Text(p.path), boundary.Bytes(nil))); errno != abi.WASISuccess {
		return document{}, errno
	}
	d, errno := said(v)
	d.Kind = "file"
	return d, errno
}

// within asks whether the directory that is to have a name is there: host functions would make it.
func within(ctx context.Context, v *boundary.Visit, p place) int32 {
	if p.parent() == "." {
		return abi.WASISuccess
	}
	d, errno := stat(ctx, v, p.parent())
	if errno == abi.WASISuccess && d.Kind != "directory" {
		return abi.WASINotdir
	}
	return errno
}

func pathCreateDirectory(ctx context.Context, v *boundary.Visit, _ *table, dir *descriptor) int32 {
	p, errno := placeOf(v, dir, v.Arg(1), v.Arg(2))
	if errno != abi.WASISuccess {
		return errno
	}
	if errno := within(ctx, v, p); errno != abi.WASISuccess {
		return errno
	}
	return errnoOf(v.Call(ctx, fileMkdir, boundary.Text(p.path)))
}

func pathRemoveDirectory(ctx context.Context, v *boundary.Visit, _ *table, dir *descriptor) int32 {
	p, errno := placeOf(v, dir, v.Arg(1), v.Arg(2))
	if errno != abi.WASISuccess {
		return errno
	}
	if p.path == "." {
		return abi.WASIInval
	}
	switch d, errno := stat(ctx, v, p.path); {
	case errno != abi.WASISuccess:
		return errno
	case d.Kind != "directory":
		return abi.WASINotdir
	}
	return errnoOf(v.Call(ctx, fileRemove, boundary.Text(p.path)))
}

func pathUnlinkFile(ctx context.Context, v *boundary.Visit, t *table, dir *descriptor) int32 {
	p, errno := placeOf(v, dir, v.Arg(1), v.Arg(2))
	if errno != abi.WASISuccess {
		return errno
	}
	switch d, errno := stat(ctx, v, p.path); {
	case errno != abi.WASISuccess:
		return errno
	case d.Kind == "directory":
		return abi.WASIIsdir
	case p.dir:
		return abi.WASINotdir
	}
	f := t.files[p.path]
	if f != nil { // who has it open goes on reading it
		if errno := t.load(ctx, v, f, f.size); errno != abi.WASISuccess {
			return errno
		}
	}
	if errno := errnoOf(v.Call(ctx, fileRemove, boundary.Text(p.path))); errno != abi.WASISuccess {
		return errno
	}
	t.abandon(f)
	return abi.WASISuccess
}

// abandon makes an open file one that has no name any more.
func (t *table) abandon(f *file) {
	if f != nil {
		f.gone = true
		delete(t.files, f.path)
	}
}

// pathReadlink tells who asks that what is there is not a link.
func pathReadlink(ctx context.Context, v *boundary.Visit, _ *table, dir *descriptor) int32 {
	p, errno := placeOf(v, dir, v.Arg(1), v.Arg(2))
	if errno != abi.WASISuccess {
		return errno
	}
	if _, errno := stat(ctx, v, p.path); errno != abi.WASISuccess {
		return errno
	}
	return abi.WASIInval
}

// pathRename gives a file another name. A file in the way is replaced in one step, and then the old
// name goes.
func pathRename(ctx context.Context, v *boundary.Visit, t *table, dir *descriptor) int32 {
	from, errno := placeOf(v, dir, v.Arg(1), v.Arg(2))
	if errno != abi.WASISuccess {
		return errno
	}
	other, errno := t.of(v.Arg(3))
	if errno != abi.WASISuccess {
		return errno
	}
	to, errno := placeOf(v, other, v.Arg(4), v.Arg(5))
	if errno != abi.WASISuccess {
		return errno
	}
	is, errno := stat(ctx, v, from.path)
	switch {
	case errno != abi.WASISuccess:
		return errno
	case from.path == to.path:
		return abi.WASISuccess
	case is.Kind == "directory":
		return abi.WASINotsup
	case from.dir || to.dir:
		return abi.WASINotdir
	}
	there, errno := stat(ctx, v, to.path)
	switch {
	case errno == abi.WASINoent:
		return t.move(ctx, v, from, to)
	case errno != abi.WASISuccess:
		return errno
	case there.Kind == "directory":
		return abi.WASIIsdir
	}
	return t.replace(ctx, v, from, to, is, there)
}

// move gives a file a name that is free.
func (t *table) move(ctx context.Context, v *boundary.Visit, from, to place) int32 {
	if errno := within(ctx, v, to); errno != abi.WASISuccess {
		return errno
	}
	f := t.files[from.path]
	if f != nil {
		if errno := t.flush(ctx, v, f); errno != abi.WASISuccess {
			return errno
		}
	}
	if errno := errnoOf(v.Call(ctx, fileMove, boundary.Text(from.path), boundary.Text(to.path))); errno != abi.WASISuccess {
		return errno
	}
	d, errno := said(v)
	t.rename(f, to.path, d.Version)
	return errno
}

// rename follows a file that is open.
func (t *table) rename(f *file, path, version string) {
	if f == nil {
		return
	}
	delete(t.files, f.path)
	f.path, f.version = path, version
	t.files[path] = f
}

// replace writes the content of one file over another, in one step, and removes the first.
func (t *table) replace(ctx context.Context, v *boundary.Visit, from, to place, is, there document) int32 {
	f, over := t.acquire(from.path, is), t.files[to.path]
	defer func() { // what is removed or moved was written already, so that this writes nothing
		f.refs--
		if f.refs == 0 {
			t.forget(f)
			if t.files[f.path] == f {
				delete(t.files, f.path)
			}
		}
	}()
	if errno := t.load(ctx, v, f, f.size); errno != abi.WASISuccess {
		return errno
	}
	if over != nil {
		if errno := t.load(ctx, v, over, over.size); errno != abi.WASISuccess {
			return errno
		}
	}
	errno := errnoOf(v.Call(ctx, fileReplace, boundary.Text(to.path), boundary.Text(there.Version), boundary.Bytes(f.data)))
	if errno != abi.WASISuccess {
		return errno
	}
	d, errno := said(v)
	if errno != abi.WASISuccess {
		return errno
	}
	if errno := errnoOf(v.Call(ctx, fileRemove, boundary.Text(from.path))); errno != abi.WASISuccess {
		return errno
	}
	t.abandon(over)
	f.dirty = false
	t.rename(f, to.path, d.Version)
	return abi.WASISuccess
}

package wasi

import (
	"context"
	"encoding/json"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// Host functions that files are made of.
var (
	fileStat    = function("file_stat")
	fileRead    = function("file_read")
	fileList    = function("file_list")
	fileCreate  = function("file_create")
	fileReplace = function("file_replace")
	fileMove    = function("file_move")
	fileRemove  = function("file_remove")
	fileMkdir   = function("file_mkdir")
)

func function(name string) *abi.Function {
	fn, ok := abi.FunctionByName(name)
	if !ok {
		panic("wasi: no host function " + name)
	}
	return fn
}

// file is one regular file that is open, however often. data is the beginning of its content, all of it
// once it was written to.
type file struct {
	path    string
	version string // that is on the disk; what is written replaces it and no other
	size    int64
	data    []byte
	dirty   bool // data is not on the disk
	gone    bool // removed while it was open: nobody will see what is written
	refs    int
}

// chunk is how much of a file is read by one host call, at most.
const chunk = 256 << 10

// document is what host calls say of a file.
type document struct {
	Kind    string `json:"kind"`
	Size    int64  `json:"size"`
	Version string `json:"version"`
}

// stat asks what a path leads to.
func stat(ctx context.Context, v *boundary.Visit, path string) (d document, errno int32) {
	if errno = errnoOf(v.Call(ctx, fileStat, boundary.Text(path))); errno != abi.WASISuccess {
		return d, errno
	}
	body, _ := v.Result()
	if json.Unmarshal(body, &d) != nil {
		return d, abi.WASIIo
	}
	return d, abi.WASISuccess
}

// said is what the last host call said beside its body.
func said(v *boundary.Visit) (d document, errno int32) {
	_, meta := v.Result()
	if json.Unmarshal(meta, &d) != nil {
		return d, abi.WASIIo
	}
	return d, abi.WASISuccess
}

// acquire finds or makes the open file of a path that was just looked at.
func (t *table) acquire(path string, d document) *file {
	f := t.files[path]
	if f == nil {
		f = &file{path: path, version: d.Version, size: d.Size}
		t.files[path] = f
	} else if !f.dirty && f.version != d.Version { // somebody else wrote it since
		t.forget(f)
		f.version, f.size = d.Version, d.Size
	}
	f.refs++
	return f
}

// release gives up one descriptor's part in a file. The last one writes it.
func (t *table) release(ctx context.Context, v *boundary.Visit, f *file) int32 {
	f.refs--
	if f.refs > 0 {
		return abi.WASISuccess
	}
	errno := t.flush(ctx, v, f)
	t.forget(f)
	if t.files[f.path] == f {
		delete(t.files, f.path)
	}
	return errno
}

func (t *table) forget(f *file) {
	t.held -= int64(len(f.data))
	f.data, f.dirty = nil, false
}

// hold makes room for n bytes more of content. All of it together may take as much as the guest itself.
func (t *table) hold(v *boundary.Visit, n int64) int32 {
	if n > v.Limit(abi.LimitMemoryBytes)-t.held {
		return abi.WASINomem
	}
	t.held += n
	return abi.WASISuccess
}

// flush writes what was written. What could not be is lost, and the guest was told.
func (t *table) flush(ctx context.Context, v *boundary.Visit, f *file) int32 {
	if !f.dirty || f.gone {
		return abi.WASISuccess
	}
	f.dirty = false
	errno := errnoOf(v.Call(ctx, fileReplace, boundary.Text(f.path), boundary.Text(f.version), boundary.Bytes(f.data)))
	if errno == abi.WASINoent {
		return abi.WASIStale // it was there
	}
	if errno != abi.WASISuccess {
		return errno
	}
	d, errno := said(v)
	f.version = d.Version
	return errno
}

// load reads a file up to a place in it, or all of it if that is less.
func (t *table) load(ctx context.Context, v *boundary.Visit, f *file, to int64) int32 {
	to = min(to, f.size)
	for int64(len(f.data)) < to {
		if f.gone {
			return abi.WASIIo
		}
		have := int64(len(f.data))
		n := min(f.size-have, chunk)
		if errno := t.hold(v, n); errno != abi.WASISuccess {
			return errno
		}
		errno := errnoOf(v.Call(ctx, fileRead, boundary.Text(f.path), boundary.Word(uint64(have)), boundary.Word(uint64(n))))
		body, _ := v.Result()
		d := document{Version: f.version}
		if errno == abi.WASISuccess {
			d, errno = said(v)
		}
		if errno == abi.WASISuccess && (d.Version != f.version || int64(len(body)) != n) {
			errno = abi.WASIStale
		}
		if errno != abi.WASISuccess {
			t.held -= n
			return errno
		}
		f.data = append(f.data, body...)
	}
	return abi.WASISuccess
}

// resize makes a file's content n bytes, all of which are here then.
func (t *table) resize(ctx context.Context, v *boundary.Visit, f *file, n int64) int32 {
	if n > v.Limit(abi.LimitFileBytes) {
		return abi.WASIFbig
	}
	if errno := t.load(ctx, v, f, n); errno != abi.WASISuccess {
		return errno
	}
	have := int64(len(f.data))
	if n > have {
		if errno := t.hold(v, n-have); errno != abi.WASISuccess {
			return errno
		}
		f.data = append(f.data, make([]byte, n-have)...)
	} else {
		t.held -= have - n
		f.data = f.data[:n:n]
	}
	f.size, f.dirty = n, true
	return abi.WASISuccess
}

// readFile is at most n bytes of a file from a place on.
func (t *table) readFile(ctx context.Context, v *boundary.Visit, d *descriptor, at int64, n uint32) ([]byte, int32) {
	if d.rights&rightRead == 0 {
		return nil, abi.WASIBadf
	}
	f := d.file
	if at >= f.size {
		return nil, abi.WASISuccess
	}
	if errno := t.load(ctx, v, f, at+int64(n)); errno != abi.WASISuccess {
		return nil, errno
	}
	return f.data[at:min(at+int64(n), f.size)], abi.WASISuccess
}

// writeFile puts data at a place of a file.
func (t *table) writeFile(ctx context.Context, v *boundary.Visit, d *descriptor, at int64, data []byte) int32 {
	switch {
	case d.rights&rightWrite == 0:
		return abi.WASIBadf
	case len(data) == 0:
		return abi.WASISuccess
	case at > v.Limit(abi.LimitFileBytes):
		return abi.WASIFbig
	}
	f := d.file
	if errno := t.resize(ctx, v, f, max(f.size, at+int64(len(data)))); errno != abi.WASISuccess {
		return errno
	}
	copy(f.data[at:], data)
	if d.flags&(flagSync|flagDsync) != 0 {
		return t.flush(ctx, v, f)
	}
	return abi.WASISuccess
}

package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

func kindOf(directory bool) string {
	if directory {
		return "directory"
	}
	return "file"
}

// Stat answers {kind, size, version, classification}. A directory has no size and no version.
func (s *Service) Stat(ctx context.Context, sc boundary.Scope, name string) (boundary.Result, error) {
	p, err := Clean(name)
	if err != nil {
		return boundary.Result{}, err
	}
	res := boundary.Result{Target: p}
	c, leave, err := s.enter(ctx, sc, reads)
	if err != nil {
		return res, err
	}
	defer leave()
	if err := c.names(p); err != nil {
		return res, err
	}
	sp, err := c.existing(p)
	if err != nil && (sp == nil || sp.is != directory || abi.CodeOf(err) != abi.CodeNotRegular) {
		return res, err
	}
	res.Body = meta(struct {
		Kind           string             `json:"kind"`
		Size           int64              `json:"size"`
		Version        string             `json:"version,omitempty"`
		Classification abi.Classification `json:"classification"`
	}{kindOf(sp.rec.Directory), sp.rec.Size, sp.rec.Version, sp.rec.Label})
	return res, nil
}

// Read answers at most n bytes from off; n above 256 KiB is 256 KiB. It notes the version
// in the session's ledger. A read that finds nothing makes the ledger forget the path.
func (s *Service) Read(ctx context.Context, sc boundary.Scope, name string, off int64, n int) (boundary.Result, error) {
	p, err := Clean(name)
	if err != nil {
		return boundary.Result{}, err
	}
	res := boundary.Result{Target: p}
	if off < 0 || n < 0 {
		return res, abi.Errorf(abi.CodeArgumentInvalid, "offset and length are not negative")
	}
	c, leave, err := s.enter(ctx, sc, reads)
	if err != nil {
		return res, err
	}
	defer leave()
	if err := c.names(p); err != nil {
		return res, err
	}
	sp, data, err := c.read(p, off, min(n, MaxReadBytes))
	if err != nil {
		if abi.CodeOf(err) == abi.CodeFileNotFound {
			s.ledger.Forget(c.reader(), p)
		}
		return res, err
	}
	if !s.ledger.Record(c.reader(), p, sp.rec.Version) {
		return res, errLedger()
	}
	res.Body = data
	res.Meta = meta(struct {
		Size           int64              `json:"size"`
		Version        string             `json:"version"`
		Classification abi.Classification `json:"classification"`
		EOF            bool               `json:"eof"`
	}{sp.rec.Size, sp.rec.Version, sp.rec.Label, off+int64(len(data)) >= sp.rec.Size})
	return res, nil
}

// readAttempts bounds how often a file that changes while it is read is read again.
const readAttempts = 4

// read reads a part of a file, or all of it when n is negative. What it returns is content
// of the version and under the label that its record has.
func (c *call) read(p string, off int64, n int) (*spot, []byte, error) {
	for range readAttempts {
		sp, err := c.existing(p)
		if err != nil {
			return nil, nil, err
		}
		f, err := openFile(sp.dir, sp.name, sp.info)
		switch {
		case errors.Is(err, errSwapped), isAbsent(err):
			continue
		case errors.Is(err, fs.ErrPermission):
			return nil, nil, errNotRegular()
		case err != nil:
			return nil, nil, diskError(err)
		}
		data, same, err := readFrom(f, &sp.rec.State, off, n)
		f.Close()
		if err != nil {
			return nil, nil, diskError(err)
		}
		if same {
			return sp, data, nil
		}
		if c.ctx.Err() != nil {
			return nil, nil, contextError(c.ctx)
		}
	}
	return nil, nil, diskError(errSwapped)
}

// readFrom reads from an open file and reports whether it was in the state is before and
// after.
func readFrom(f *os.File, is *State, off int64, n int) (data []byte, same bool, err error) {
	want := max(is.Size-off, 0)
	if n >= 0 {
		want = min(want, int64(n))
	}
	data = make([]byte, want)
	got, err := f.ReadAt(data, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	now, _, _ := stateOf(info)
	return data, int64(got) == want && is.describes(&now, false), nil
}

// List answers [{name, kind, size}] of a directory in the order of names, from after on.
// What the grant does not name and has nothing below it that it names is left out, and so
// is what is hidden or foreign.
func (s *Service) List(ctx context.Context, sc boundary.Scope, name, after string, limit int) (boundary.Result, error) {
	p, err := Clean(name)
	if err != nil {
		return boundary.Result{}, err
	}
	res := boundary.Result{Target: p}
	c, leave, err := s.enter(ctx, sc, reads)
	if err != nil {
		return res, err
	}
	defer leave()
	if !c.grant.Above(globName(p)) {
		if err := c.names(p); err != nil {
			return res, err
		}
	}
	sp, err := c.existing(p)
	switch {
	case err == nil:
		return res, abi.Errorf(abi.CodeNotRegular, "the path leads to a file, and only directories are listed")
	case sp == nil || sp.is != directory || abi.CodeOf(err) != abi.CodeNotRegular:
		return res, err
	}
	dir, err := c.open(sp)
	if err != nil {
		return res, err
	}
	items := newPage(limit)
	_, err = c.each(dir, p, after, func(e entry) (bool, error) {
		if !c.grant.Match(e.path) && !(e.rec.Directory && c.grant.Above(e.path)) {
			return true, nil
		}
		if items.full() || !c.observe(e.rec.Label) {
			return !items.more, nil
		}
		return items.add(struct {
			Name string `json:"name"`
			Kind string `json:"kind"`
			Size int64  `json:"size"`
		}{e.name, kindOf(e.rec.Directory), e.rec.Size}), nil
	})
	if err != nil {
		return res, err
	}
	return items.result(p), nil
}

// entry is one name of a directory that the invocation may know of.
type entry struct {
	dir  *os.Root
	name string
	path string
	info fs.FileInfo
	rec  *Record
}

// each calls fn for what is visible in a directory, in the order of names after one. It
// ends when fn answers false, and says whether it came to the end.
func (c *call) each(dir *os.Root, at, after string, fn func(entry) (bool, error)) (bool, error) {
	names, err := readNames(dir)
	if err != nil {
		return false, diskError(err)
	}
	slices.Sort(names)
	for _, name := range names {
		if c.ctx.Err() != nil {
			return false, contextError(c.ctx)
		}
		p := path.Join(at, name)
		if name <= after || !nameable(p, name) {
			continue
		}
		info, err := dir.Lstat(name)
		if isAbsent(err) || (err == nil && c.w.foreign(info)) {
			continue
		} else if err != nil {
			return false, diskError(err)
		}
		rec := c.w.settle(p, info)
		if !c.visible(rec.Label) {
			continue
		}
		more, err := fn(entry{dir, name, p, info, rec})
		if err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// pair runs a call that takes a file from one path to another. The target names both.
func (s *Service) pair(ctx context.Context, sc boundary.Scope, from, to string, fn func(c *call, src, dst *spot, res *boundary.Result) error) (boundary.Result, error) {
	src, err := Clean(from)
	if err != nil {
		return boundary.Result{}, err
	}
	dst, err := Clean(to)
	if err != nil {
		return boundary.Result{}, err
	}
	res := boundary.Result{Target: src + " -> " + dst} // no path has a >
	c, leave, err := s.enter(ctx, sc, writes)
	if err != nil {
		return res, err
	}
	defer leave()
	if err := c.names(src); err != nil {
		return res, err
	}
	if err := c.names(dst); err != nil {
		return res, err
	}
	a, err := c.existing(src)
	if err != nil {
		return res, err
	}
	b, err := c.find(dst)
	if err != nil {
		return res, err
	}
	if err := c.vacant(b); err != nil {
		return res, err
	}
	err = fn(c, a, b, &res)
	return res, err
}

// Copy copies a regular file to a path where nothing is (M13). The copy has the invocation's
// label, which the source has raised. The ledger is not asked and notes nothing.
func (s *Service) Copy(ctx context.Context, sc boundary.Scope, from, to string) (boundary.Result, error) {
	return s.pair(ctx, sc, from, to, func(c *call, src, dst *spot, res *boundary.Result) error {
		if limit := c.spec.Limits.Get(abi.LimitFileBytes); src.rec.Size > limit {
			return errTooLarge(limit)
		}
		_, data, err := c.read(src.path, 0, -1)
		if err != nil {
			return err
		}
		if err := c.vacant(dst); err != nil { // the source may have changed its label
			return err
		}
		rec, err := c.put(dst, data)
		if err != nil {
			return err
		}
		res.Meta = meta(rec.written())
		return nil
	})
}

// Move gives a regular file another path where nothing is (M14). It keeps its label and gets
// a new version; the ledger forgets the old path.
func (s *Service) Move(ctx context.Context, sc boundary.Scope, from, to string) (boundary.Result, error) {
	return s.pair(ctx, sc, from, to, func(c *call, src, dst *spot, res *boundary.Result) error {
		if err := c.emit(src.label); err != nil {
			return err
		}
		rec, err := c.move(src, dst)
		if err != nil {
			return err
		}
		c.svc.ledger.Forget(c.reader(), src.path)
		res.Meta = meta(rec.written())
		return nil
	})
}

func (c *call) move(src, dst *spot) (_ *Record, err error) {
	if limit := c.spec.Limits.Get(abi.LimitWorkspaceEntries); len(dst.missing) > 0 {
		c.w.mu.Lock()
		entries := int64(len(c.w.index) - 1 + len(dst.missing))
		c.w.mu.Unlock()
		if entries > limit {
			return nil, errFull("entries", limit)
		}
	}
	if err := c.alive(); err != nil {
		return nil, err
	}
	undo, err := c.makeParents(dst)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			undo()
		}
	}()
	next := src.rec.State
	next.Version, next.Changed = newVersion(), 0
	pending := &Record{Label: src.rec.Label, Next: &next, From: src.path}
	if err := c.w.intend(c.ctx, Change{dst.path, pending}); err != nil {
		return nil, err
	}
	defer func() {
		c.w.refresh(src.dir, src.path, src.name)
		c.w.refresh(dst.dir, dst.path, dst.name)
	}()
	// The file has both names for a moment. Linking fails where a name is taken, which
	// renaming does not; after a crash finishMoves takes the old name away.
	if err := c.w.root.Link(src.path, dst.path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, errExists()
		}
		if !c.still(src) || !c.still(dst) {
			err = errSwapped
		}
		return nil, diskError(err)
	}
	// The paths were walked again for that, so look whether they led where we had been.
	info, err := dst.dir.Lstat(dst.name)
	if err != nil || !os.SameFile(info, src.info) {
		return nil, diskError(errSwapped)
	}
	if err := syncDir(dst.dir); err != nil {
		return nil, diskError(err)
	}
	if err := src.dir.Remove(src.name); err != nil {
		return nil, diskError(err)
	}
	if err := syncDir(src.dir); err != nil {
		return nil, diskError(err)
	}
	return &Record{Label: pending.Label, State: next}, nil
}

// still reports whether the path of a spot's directory leads there, from the root.
func (c *call) still(sp *spot) bool {
	is, err1 := c.w.root.Lstat(sp.at)
	was, err2 := sp.dir.Stat(".")
	return err1 == nil && err2 == nil && os.SameFile(is, was)
}

// Mkdir makes a directory that must not be there, and the directories above it, each with the
// invocation's label.
func (s *Service) Mkdir(ctx context.Context, sc boundary.Scope, name string) (boundary.Result, error) {
	return s.change(ctx, sc, name, 0, func(c *call, p string, _ *boundary.Result) error {
		sp, err := c.find(p)
		if err != nil {
			return err
		}
		if err := c.vacant(sp); err != nil {
			return err
		}
		if err := c.room(sp, 0); err != nil {
			return err
		}
		if err := c.alive(); err != nil {
			return err
		}
		sp.missing = append(slices.Clone(sp.missing), sp.name)
		_, err = c.makeParents(sp)
		return err
	})
}

// Remove removes a file or an empty directory, never more, and needs no read (M12).
func (s *Service) Remove(ctx context.Context, sc boundary.Scope, name string) (boundary.Result, error) {
	return s.change(ctx, sc, name, 0, func(c *call, p string, res *boundary.Result) error {
		sp, err := c.find(p)
		if err != nil {
			return err
		}
		switch {
		case sp.is == absent, sp.is == hidden:
			return errAbsent()
		case sp.is == foreign, p == RootPath:
			return errNotRegular()
		case sp.is == directory && !c.observe(sp.rec.Label): // whether it is empty is what it holds
			return errAbsent()
		}
		// A name belongs to its directory: that it was there raises no further than that.
		if err := c.emit(sp.label); err != nil {
			return err
		}
		if err := c.alive(); err != nil {
			return err
		}
		err = sp.dir.Remove(sp.name)
		c.w.refresh(sp.dir, p, sp.name)
		switch {
		case notEmpty(err):
			return abi.Errorf(abi.CodeDirectoryNotEmpty, "the directory is not empty").WithHint("remove what is in it first")
		case isAbsent(err):
			return errAbsent()
		case err != nil:
			return diskError(err)
		}
		if err := syncDir(sp.dir); err != nil {
			return diskError(err)
		}
		c.svc.ledger.Forget(c.reader(), p)
		return nil
	})
}

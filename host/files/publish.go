package files

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/ecotone-dev/ecotone/abi"
)

// put gives the name of a spot new content: of a file that is there, or of a new file with
// the invocation's label and the directories above it. Flow and version are settled.
func (c *call) put(sp *spot, data []byte) (_ *Record, err error) {
	if err := c.room(sp, int64(len(data))); err != nil {
		return nil, err
	}
	if err := c.alive(); err != nil {
		return nil, err
	}
	undo, err := c.makeParents(sp)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			undo()
		}
	}()
	temp, next, err := writeTemp(sp.dir, data)
	if temp != "" {
		defer sp.dir.Remove(temp) // gone already when it became the file
	}
	if err != nil {
		return nil, diskError(err)
	}
	pending := &Record{Label: c.s.Flow.Label().Source(), Next: next}
	if sp.rec != nil {
		pending.Label, pending.State = sp.rec.Label, sp.rec.State
	}
	if err := c.w.intend(c.ctx, Change{sp.path, pending}); err != nil {
		return nil, err
	}
	defer c.w.refresh(sp.dir, sp.path, sp.name)
	if sp.rec != nil {
		err = c.swap(sp, temp)
	} else {
		err = give(sp.dir, temp, sp.name)
	}
	if err != nil {
		return nil, err
	}
	if err := syncDir(sp.dir); err != nil {
		return nil, diskError(err)
	}
	return &Record{Label: pending.Label, State: *next}, nil
}

// room asks whether content of a size fits at a spot, with the directories it needs.
func (c *call) room(sp *spot, size int64) error {
	c.w.mu.Lock()
	bytes, entries := c.w.bytes, int64(len(c.w.index)-1) // the root is no entry
	c.w.mu.Unlock()
	if sp.rec != nil {
		bytes -= sp.rec.Size
	} else {
		entries += int64(len(sp.missing)) + 1
	}
	if limit := c.spec.Limits.Get(abi.LimitWorkspaceEntries); sp.rec == nil && entries > limit {
		return errFull("entries", limit)
	}
	if limit := c.spec.Limits.Get(abi.LimitWorkspaceBytes); bytes+size > limit && (sp.rec == nil || size > sp.rec.Size) {
		return errFull("bytes", limit)
	}
	return nil
}

// makeParents makes the missing directories of a spot, each with the invocation's label,
// and moves the spot to the last. undo removes them again.
func (c *call) makeParents(sp *spot) (undo func(), err error) {
	undo = func() {}
	if len(sp.missing) == 0 {
		return undo, nil
	}
	label := c.s.Flow.Label().Source()
	var about []Change
	at := sp.at
	for _, name := range sp.missing {
		at = path.Join(at, name)
		about = append(about, Change{at, &Record{Directory: true, Label: label, Next: &State{}}})
	}
	if err := c.w.intend(c.ctx, about...); err != nil {
		return undo, err
	}
	for i, name := range sp.missing {
		dir, p, before := sp.dir, about[i].Path, undo
		sub, err := makeDir(dir, name)
		c.w.refresh(dir, p, name)
		if err != nil {
			for _, rest := range about[i+1:] {
				c.w.set(rest.Path, nil)
			}
			undo()
			return nil, err
		}
		undo = func() {
			dir.Remove(name) // not if somebody put something into it
			c.w.refresh(dir, p, name)
			before()
		}
		c.roots = append(c.roots, sub)
		sp.dir, sp.at, sp.label = sub, p, label
	}
	sp.missing = nil
	return undo, nil
}

// makeDir makes a directory durable and opens it.
func makeDir(dir *os.Root, name string) (*os.Root, error) {
	if err := dir.Mkdir(name, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, errExists()
		}
		return nil, diskError(err)
	}
	if err := syncDir(dir); err != nil {
		return nil, diskError(err)
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, diskError(err)
	}
	sub, err := enter(dir, name, info)
	if err != nil {
		return nil, diskError(err)
	}
	return sub, nil
}

// writeTemp writes content to a file without a name guests could use, flushes it, and
// returns its name and the state it will have once it takes its name.
func writeTemp(dir *os.Root, data []byte) (name string, next *State, err error) {
	name = tempPrefix + newVersion()
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", nil, err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	var info fs.FileInfo
	if err == nil {
		info, err = f.Stat()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return name, nil, err
	}
	st, _, _ := stateOf(info)
	st.Version = newVersion()
	st.Changed = 0 // taking a name changes it
	return name, &st, nil
}

// give gives a file its name, unless the name is taken, and takes the other from it. The
// file system decides, so that one of many makers wins and none overwrites (M5).
func give(dir *os.Root, temp, name string) error {
	if err := dir.Link(temp, name); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return errExists()
		}
		return diskError(err)
	}
	if err := dir.Remove(temp); err != nil {
		return diskError(err)
	}
	return nil
}

// swap puts a new file in the place of one that is still what was looked at.
func (c *call) swap(sp *spot, temp string) error {
	info, err := sp.dir.Lstat(sp.name)
	if err != nil || c.w.foreign(info) {
		return errVersion()
	}
	if now, _, _ := stateOf(info); info.IsDir() || !sp.rec.State.describes(&now, false) {
		return errVersion()
	}
	if err := sp.dir.Rename(temp, sp.name); err != nil {
		return diskError(err)
	}
	return nil
}

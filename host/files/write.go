package files

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
)

// written is what a call that wrote a file says.
type written struct {
	Version        string             `json:"version"`
	Size           int64              `json:"size"`
	Classification abi.Classification `json:"classification"`
	Count          *int               `json:"count,omitempty"`
}

func (r *Record) written() written {
	return written{Version: r.Version, Size: r.Size, Classification: r.Label}
}

// change runs a call that writes at one path.
func (s *Service) change(ctx context.Context, sc boundary.Scope, name string, size int, fn func(c *call, p string, res *boundary.Result) error) (boundary.Result, error) {
	p, err := Clean(name)
	if err != nil {
		return boundary.Result{}, err
	}
	res := boundary.Result{Target: p}
	c, leave, err := s.enter(ctx, sc, writes)
	if err != nil {
		return res, err
	}
	defer leave()
	if err := c.names(p); err != nil {
		return res, err
	}
	if limit := c.spec.Limits.Get(abi.LimitFileBytes); int64(size) > limit {
		return res, errTooLarge(limit)
	}
	err = fn(c, p, &res)
	return res, err
}

// Create makes a file that must not be there, and the directories above it (M5).
func (s *Service) Create(ctx context.Context, sc boundary.Scope, name string, data []byte) (boundary.Result, error) {
	return s.change(ctx, sc, name, len(data), func(c *call, p string, res *boundary.Result) error {
		sp, err := c.find(p)
		if err != nil {
			return err
		}
		return c.wrote(res)(c.create(sp, data))
	})
}

// create makes a file at a spot.
func (c *call) create(sp *spot, data []byte) (*Record, error) {
	if err := c.vacant(sp); err != nil {
		return nil, err
	}
	return c.put(sp, data)
}

// wrote notes what a call wrote in its result.
func (c *call) wrote(res *boundary.Result) func(*Record, error) error {
	return func(rec *Record, err error) error {
		if err != nil {
			return err
		}
		// A version that cannot be noted makes another read necessary; the file is written (M8).
		c.svc.ledger.Record(c.reader(), res.Target, rec.Version)
		res.Meta = meta(rec.written())
		return nil
	}
}

// vacant asks whether something may be made at a spot.
func (c *call) vacant(sp *spot) error {
	switch sp.is {
	case absent:
		return c.emit(sp.label)
	case foreign:
		if path.Join(sp.at, sp.name) != sp.path {
			return errNotRegular() // a part of the path, not its end
		}
	}
	return errExists()
}

// Write makes the file, or replaces the version the session read or wrote last (M3, M4).
func (s *Service) Write(ctx context.Context, sc boundary.Scope, name string, data []byte) (boundary.Result, error) {
	return s.change(ctx, sc, name, len(data), func(c *call, p string, res *boundary.Result) error {
		sp, err := c.find(p)
		if err != nil {
			return err
		}
		version, outcome := c.svc.ledger.Lookup(c.reader(), p)
		switch {
		case outcome != Known && outcome != NeverRead:
			return errLedger()
		case sp.is == absent && outcome == Known:
			return errDeleted()
		case sp.is == absent:
			return c.wrote(res)(c.create(sp, data))
		case sp.is == hidden:
			return errReadRequired()
		case sp.is != file:
			return errNotRegular()
		case outcome == NeverRead:
			return errReadRequired()
		}
		return c.wrote(res)(c.replace(sp, version, data))
	})
}

// Replace replaces exactly the named version; no version means any (M4).
func (s *Service) Replace(ctx context.Context, sc boundary.Scope, name, version string, data []byte) (boundary.Result, error) {
	return s.change(ctx, sc, name, len(data), func(c *call, p string, res *boundary.Result) error {
		sp, err := c.existing(p)
		if err != nil {
			return err
		}
		return c.wrote(res)(c.replace(sp, version, data))
	})
}

// replace gives the file at a spot new content, if it is the version.
func (c *call) replace(sp *spot, version string, data []byte) (*Record, error) {
	// The answer tells of the file, so it is observed first; after that the invocation's
	// label is at or below the file's exactly when it was before.
	if !c.observe(sp.rec.Label) {
		return nil, errAbsent()
	}
	if err := c.emit(sp.rec.Label); err != nil {
		return nil, err
	}
	if version == "" || version != sp.rec.Version {
		return nil, errVersion()
	}
	return c.put(sp, data)
}

// Edit replaces old by new in the version the session read or wrote last: its only
// occurrence, or with all every one (M6, M7). The result's value is how many were replaced.
func (s *Service) Edit(ctx context.Context, sc boundary.Scope, name string, old, new []byte, all bool) (boundary.Result, error) {
	return s.change(ctx, sc, name, 0, func(c *call, p string, res *boundary.Result) error {
		switch {
		case len(old) == 0:
			return abi.Errorf(abi.CodeEditEmpty, "the text to replace is empty")
		case bytes.Equal(old, new):
			return abi.Errorf(abi.CodeEditIdentical, "the old and the new text are the same")
		}
		sp, data, err := c.lastSeen(p)
		if err != nil {
			return err
		}
		count := occurrences(data, old)
		switch {
		case count == 0:
			res.Code = abi.CodeEditNoMatch
		case count > 1 && !all:
			res.Code = abi.CodeEditAmbiguous
		}
		if res.Code != "" {
			res.Meta = meta(struct {
				Count int `json:"count"`
			}{count})
			return nil
		}
		if all {
			count = bytes.Count(data, old)
		}
		limit := c.spec.Limits.Get(abi.LimitFileBytes)
		if size := int64(len(data)) + int64(count)*int64(len(new)-len(old)); size > limit {
			return errTooLarge(limit)
		}
		rec, err := c.replace(sp, sp.rec.Version, bytes.ReplaceAll(data, old, new))
		if err := c.wrote(res)(rec, err); err != nil {
			return err
		}
		w := rec.written()
		w.Count = &count
		res.Meta = meta(w)
		res.Value, res.HasValue = int64(count), true
		return nil
	})
}

// lastSeen reads the file at p, which must be the version the session read or wrote last
// and one the invocation may write.
func (c *call) lastSeen(p string) (*spot, []byte, error) {
	version, outcome := c.svc.ledger.Lookup(c.reader(), p)
	if outcome != Known && outcome != NeverRead {
		return nil, nil, errLedger()
	}
	sp, err := c.existing(p)
	switch {
	case abi.CodeOf(err) == abi.CodeFileNotFound && outcome == Known:
		return nil, nil, errDeleted()
	case err != nil:
		return nil, nil, err
	}
	if err := c.emit(sp.rec.Label); err != nil {
		return nil, nil, err
	}
	if outcome == NeverRead {
		return nil, nil, errReadRequired()
	}
	if limit := c.spec.Limits.Get(abi.LimitFileBytes); sp.rec.Size > limit {
		return nil, nil, errTooLarge(limit)
	}
	sp, data, err := c.read(p, 0, -1)
	if err == nil && sp.rec.Version != version {
		err = errVersion()
	}
	return sp, data, err
}

// occurrences counts old in data. Two that overlap are two: which of them is meant would
// be a guess.
func occurrences(data, old []byte) int {
	i := bytes.Index(data, old)
	if i < 0 {
		return 0
	}
	n := bytes.Count(data, old)
	if n == 1 && bytes.Contains(data[i+1:], old) {
		return 2
	}
	return n
}

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

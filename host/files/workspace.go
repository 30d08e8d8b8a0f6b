package files

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/ecotone-dev/ecotone/abi"
)

// everyone is the weight of a writer in a gate: all readers there can be.
const everyone = math.MaxInt32

// tempPrefix begins the names of files that have no name of their own yet.
const tempPrefix = reserved + "-"

// workspace is one open directory and the records of what is in it.
type workspace struct {
	id      string
	labels  Labels
	root    *os.Root
	device  uint64
	imports abi.Classification

	// gate admits readers together and a writer alone, and waits no longer than a context.
	gate *semaphore.Weighted

	mu    sync.Mutex         // a leaf
	index map[string]*Record // records are replaced, never changed
	dirty map[string]bool    // paths whose record differs from the one in labels
	bytes int64              // sum of the sizes in index
}

// openWorkspace reads the records, finishes what a crash left unfinished and compares the
// records with what is there.
func openWorkspace(ctx context.Context, base *os.Root, labels Labels, id string) (*workspace, error) {
	info, err := base.Lstat(id)
	if err != nil || !info.IsDir() {
		return nil, noWorkspace(err)
	}
	root, err := base.OpenRoot(id)
	if err != nil {
		return nil, noWorkspace(err)
	}
	w := &workspace{
		id: id, labels: labels, root: root, gate: semaphore.NewWeighted(everyone),
		index: map[string]*Record{}, dirty: map[string]bool{},
	}
	if err := w.open(ctx, info); err != nil {
		root.Close()
		return nil, err
	}
	return w, nil
}

func (w *workspace) open(ctx context.Context, seen fs.FileInfo) error {
	info, err := w.root.Stat(".")
	if err != nil || !os.SameFile(info, seen) {
		return noWorkspace(err)
	}
	_, _, w.device = stateOf(info)
	err = w.labels.Load(ctx, w.id, func(path string, r Record) error {
		if c, err := Clean(path); err != nil || c != path {
			return errors.New("files: a record of a path that is not canonical")
		}
		w.index[path] = &r
		w.bytes += r.Size
		return nil
	})
	if err != nil {
		return abi.Errorf(abi.CodeNotReady, "the records of the workspace cannot be read: %w", err)
	}
	root := w.index[RootPath]
	if root == nil {
		return noWorkspace(nil)
	}
	w.imports = root.Import.Source()
	w.finishMoves()
	found := map[string]bool{RootPath: true}
	if err := w.scan(w.root, RootPath, 0, found); err != nil {
		return diskError(err)
	}
	for p := range w.index {
		if !found[p] {
			w.set(p, nil)
		}
	}
	return nil
}

// finishMoves takes away the old name of a file that got its new one before a crash: until
// then it has two, and is refused under both.
func (w *workspace) finishMoves() {
	for to, rec := range w.index {
		if rec.From == "" || rec.Next == nil {
			continue
		}
		src, err1 := w.root.Lstat(rec.From)
		dst, err2 := w.root.Lstat(to)
		if err1 == nil && err2 == nil && dst.Mode().IsRegular() && os.SameFile(src, dst) {
			w.root.Remove(rec.From) // if not, both names stay refused
		}
	}
}

// scan removes temporary files, settles every record below dir and notes the paths it found.
func (w *workspace) scan(dir *os.Root, at string, depth int, found map[string]bool) error {
	names, err := readNames(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, tempPrefix) {
			if info, err := dir.Lstat(name); err == nil && info.Mode().IsRegular() {
				dir.Remove(name)
			}
		}
	}
	for _, name := range names {
		p := path.Join(at, name)
		if !nameable(p, name) {
			continue
		}
		info, err := dir.Lstat(name)
		if isAbsent(err) {
			continue
		} else if err != nil {
			return err
		}
		if w.foreign(info) {
			continue
		}
		w.settle(p, info)
		found[p] = true
		if !info.IsDir() || depth+1 >= MaxDepth {
			continue
		}
		sub, err := enter(dir, name, info)
		if errors.Is(err, errSwapped) || errors.Is(err, fs.ErrPermission) {
			continue
		} else if err != nil {
			return err
		}
		err = w.scan(sub, p, depth+1, found)
		sub.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// foreign reports whether guests may have nothing to do with a file: whatever is neither a
// directory nor a regular file with one name, on the workspace's own device.
func (w *workspace) foreign(info fs.FileInfo) bool {
	_, names, device := stateOf(info)
	switch {
	case device != w.device:
		return true
	case info.IsDir():
		return false
	}
	return !info.Mode().IsRegular() || names != 1
}

// record returns the record of a path, or nil.
func (w *workspace) record(path string) *Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.index[path]
}

// set replaces a record; nil removes it, and for a directory what is below it.
func (w *workspace) set(path string, rec *Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setLocked(path, rec)
}

// mu is held.
func (w *workspace) setLocked(path string, rec *Record) {
	old := w.index[path]
	if old != nil {
		w.bytes -= old.Size
	}
	w.dirty[path] = true
	if rec != nil {
		w.bytes += rec.Size
		w.index[path] = rec
		return
	}
	delete(w.index, path)
	if old == nil || !old.Directory {
		return
	}
	for p := range w.index {
		if strings.HasPrefix(p, path+"/") {
			w.bytes -= w.index[p].Size
			delete(w.index, p)
			w.dirty[p] = true
		}
	}
}

// settle compares the record of a path with what is there and returns the record that
// holds from now on: the one that was, the one a change of ours was leading to, or a fresh
// one with the import label. info is not foreign.
func (w *workspace) settle(path string, info fs.FileInfo) *Record {
	now, _, _ := stateOf(info)
	dir := info.IsDir()
	if dir {
		now = State{Inode: now.Inode} // the rest changes with every name in it
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	rec := w.index[path]
	if rec != nil && rec.Directory == dir {
		is := &rec.State
		if !is.describes(&now, dir) || (is.Version == "" && !dir) {
			is = rec.Next
		}
		if is != nil && is.describes(&now, dir) {
			if is == &rec.State && is.Changed == now.Changed && is.Inode == now.Inode && rec.Next == nil {
				return rec
			}
			now.Version = is.Version
			final := &Record{Directory: dir, Label: rec.Label, Import: rec.Import, State: now}
			w.setLocked(path, final)
			return final
		}
	}
	final := &Record{Directory: dir, Label: w.imports, State: now}
	if rec != nil {
		final.Label = abi.Join(rec.Label, w.imports)
	}
	if !dir {
		final.Version = newVersion()
	}
	w.setLocked(path, final)
	return final
}

// refresh makes the record of a name what is there, and returns it; nil is absent or foreign.
func (w *workspace) refresh(dir *os.Root, path, name string) *Record {
	info, err := dir.Lstat(name)
	if err != nil || w.foreign(info) {
		if w.record(path) != nil {
			w.set(path, nil)
		}
		return nil
	}
	return w.settle(path, info)
}

// intend makes records of what is about to happen durable, with everything that was not
// written before. The gate is held alone. Afterwards the caller refreshes every path.
func (w *workspace) intend(ctx context.Context, about ...Change) error {
	changes := append([]Change(nil), about...)
	w.mu.Lock()
	for p := range w.dirty {
		if !slices.ContainsFunc(about, func(c Change) bool { return c.Path == p }) {
			changes = append(changes, Change{p, w.index[p]})
		}
	}
	w.mu.Unlock()
	if err := w.labels.Apply(ctx, w.id, changes); err != nil {
		return applyError(ctx, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.dirty)
	for _, c := range about {
		w.setLocked(c.Path, c.Record)
	}
	return nil
}

// close writes the records that are not written yet and ends the use of the directory.
func (w *workspace) close() error {
	var err error
	if len(w.dirty) > 0 {
		err = w.intend(context.Background())
	}
	return errors.Join(err, w.root.Close())
}

// newVersion has 130 random bits.
func newVersion() string { return rand.Text() }

package audit

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/ecotone-dev/ecotone/gateway/audit/disk"
)

// file is what the log needs of an open file. Tests put failing ones in.
type file interface {
	io.Writer
	io.WriterAt
	Sync() error // the data, and the size
	Truncate(size int64) error
	io.Closer
}

type opener func(path string, flag int) (file, error)

func openFile(path string, flag int) (file, error) {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

type osFile struct{ *os.File }

func (f osFile) Sync() error { return disk.Sync(f.File) }

// writer appends to the last pair of files.
type writer struct {
	dir     string
	open    opener
	base    uint64
	size    int64 // of the entries file
	entries file
	heads   file
}

// create makes a new, empty pair and its names durable. The entries file comes first: heads
// without entries are never a crash.
func (w *writer) create(base uint64) error {
	flag := os.O_WRONLY | os.O_CREATE | os.O_EXCL | os.O_APPEND
	entries, err := w.open(filepath.Join(w.dir, fileName(base, entriesExt)), flag)
	if err != nil {
		return err
	}
	if _, err := entries.Write(filePrologue(base)); err != nil {
		return errors.Join(err, entries.Close())
	}
	if err := entries.Sync(); err != nil {
		return errors.Join(err, entries.Close())
	}
	heads, err := w.open(filepath.Join(w.dir, fileName(base, headsExt)), flag)
	if err != nil {
		return errors.Join(err, entries.Close())
	}
	if err := errors.Join(heads.Sync(), syncDir(w.dir)); err != nil {
		return errors.Join(err, entries.Close(), heads.Close())
	}
	old := *w
	w.base, w.size, w.entries, w.heads = base, int64(fileHeader), entries, heads
	return old.close()
}

// resume opens the last pair as a scan left it, without what a crash tore.
func (w *writer) resume(s *scan) error {
	entries, heads := filepath.Join(w.dir, fileName(s.base, entriesExt)), filepath.Join(w.dir, fileName(s.base, headsExt))
	if s.partial {
		if err := os.Remove(heads); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.Remove(entries); err != nil {
			return err
		}
		return w.create(s.base)
	}
	if err := w.settle(entries, s); err != nil {
		return err
	}
	var err error
	if w.heads, err = w.open(heads, os.O_WRONLY|os.O_CREATE|os.O_APPEND); err != nil {
		return err
	}
	if w.entries, err = w.open(entries, os.O_WRONLY|os.O_APPEND); err != nil {
		return err
	}
	w.base, w.size = s.base, s.entriesKeep
	if err := w.heads.Truncate(s.headsKeep); err != nil {
		return err
	}
	return errors.Join(w.heads.Sync(), syncDir(w.dir))
}

// settle cuts the torn end of the entries and makes what no head covers durable. Its bytes are
// written once more, as they are: a kernel that failed to synchronise them for the process before
// may take them for clean, and would answer the next synchronisation without writing any.
func (w *writer) settle(path string, s *scan) (err error) {
	f, err := w.open(path, os.O_WRONLY)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Truncate(s.entriesKeep); err != nil {
		return err
	}
	if n := s.entriesKeep - s.coveredEnd; n > 0 {
		tail := make([]byte, n)
		r, err := os.Open(path)
		if err != nil {
			return err
		}
		_, err = r.ReadAt(tail, s.coveredEnd)
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
		if _, err := f.WriteAt(tail, s.coveredEnd); err != nil {
			return err
		}
	}
	return f.Sync()
}

// append writes frames behind the last entry.
func (w *writer) append(frames []byte, sync bool) error {
	if _, err := w.entries.Write(frames); err != nil {
		return err
	}
	w.size += int64(len(frames))
	if sync {
		return w.entries.Sync()
	}
	return nil
}

// head appends a head and makes it durable. Its entries have to be.
func (w *writer) head(note []byte) error {
	if _, err := w.heads.Write(note); err != nil {
		return err
	}
	return w.heads.Sync()
}

func (w *writer) close() error {
	var errs []error
	for _, f := range []file{w.entries, w.heads} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

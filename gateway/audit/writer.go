package audit

import (
	"errors"
	"os"
	"path/filepath"
)

// file is what the log needs of an open file. Tests put failing ones in.
type file interface {
	Write([]byte) (int, error)
	Sync() error
	Close() error
}

type opener func(path string, flag int) (file, error)

func openFile(path string, flag int) (file, error) { return os.OpenFile(path, flag, 0o600) }

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

// resume opens the last pair as a scan left it, without what follows the last head.
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
	var err error
	if w.heads, err = w.open(heads, os.O_WRONLY|os.O_CREATE|os.O_APPEND); err != nil {
		return err
	}
	if w.entries, err = w.open(entries, os.O_WRONLY|os.O_APPEND); err != nil {
		return err
	}
	w.base, w.size = s.base, s.entriesKeep
	if s.tail > 0 {
		if err := errors.Join(os.Truncate(heads, s.headsKeep), os.Truncate(entries, s.entriesKeep)); err != nil {
			return err
		}
	}
	return errors.Join(w.entries.Sync(), w.heads.Sync(), syncDir(w.dir))
}

// group writes frames, then the head that covers them; each is on disk before the next.
func (w *writer) group(frames []byte, head []byte) error {
	if len(frames) > 0 {
		if _, err := w.entries.Write(frames); err != nil {
			return err
		}
		if err := w.entries.Sync(); err != nil {
			return err
		}
		w.size += int64(len(frames))
	}
	if _, err := w.heads.Write(head); err != nil {
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

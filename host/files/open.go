package files

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"
)

// errSwapped says that a name was given to something else between a look and an open.
var errSwapped = errors.New("files: the name changed hands")

// enter opens a directory that was looked at, and nothing else: a link that took its name
// leads elsewhere and is noticed.
func enter(dir *os.Root, name string, seen fs.FileInfo) (*os.Root, error) {
	sub, err := dir.OpenRoot(name)
	if err != nil {
		return nil, whyNot(dir, name, seen, err)
	}
	info, err := sub.Stat(".")
	if err == nil && !os.SameFile(info, seen) {
		err = errSwapped
	}
	if err != nil {
		sub.Close()
		return nil, err
	}
	return sub, nil
}

// openFile opens a regular file that was looked at, and nothing else, for reading.
func openFile(dir *os.Root, name string, seen fs.FileInfo) (*os.File, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, whyNot(dir, name, seen, err)
	}
	info, err := f.Stat()
	if err == nil && (!os.SameFile(info, seen) || !info.Mode().IsRegular()) { // inodes are used again
		err = errSwapped
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// whyNot tells a name that changed hands, whatever the open said of it, from a failure. The
// name may have its old meaning again by now; then the error itself has to say it.
func whyNot(dir *os.Root, name string, seen fs.FileInfo, err error) error {
	if info, e := dir.Lstat(name); e != nil || !os.SameFile(info, seen) || metLink(err) {
		return errSwapped
	}
	return err
}

func readNames(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// nameable reports whether a name found in a directory can be part of a path of a guest.
func nameable(path, name string) bool {
	return len(path) <= MaxPathBytes && utf8.ValidString(name) && !strings.ContainsFunc(name, forbidden) && badName(name) == ""
}

// syncDir makes the names in a directory durable.
func syncDir(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

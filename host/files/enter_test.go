package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// M15: what is opened is what was looked at, whatever took its name in between.
func TestOpenWhatWasLookedAt(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs links")
	}
	dir := t.TempDir()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(os.MkdirAll(filepath.Join(dir, "d"), 0o700))
	ok(os.MkdirAll(filepath.Join(dir, "other"), 0o700))
	ok(os.WriteFile(filepath.Join(dir, "f"), nil, 0o600))
	ok(os.WriteFile(filepath.Join(dir, "g"), nil, 0o600))
	root, err := os.OpenRoot(dir)
	ok(err)
	defer root.Close()
	look := func(name string) fs.FileInfo {
		info, err := root.Lstat(name)
		ok(err)
		return info
	}
	d, f := look("d"), look("f")
	sub, err := enter(root, "d", d)
	ok(err)
	sub.Close()
	file, err := openFile(root, "f", f)
	ok(err)
	file.Close()

	at := filepath.Join(dir, "d")
	for name, swap := range map[string]func() error{
		"nothing":        func() error { return nil },
		"another dir":    func() error { return os.Rename(filepath.Join(dir, "other"), at) },
		"a link inside":  func() error { return os.Symlink(".", at) },
		"a link outside": func() error { return os.Symlink("/", at) },
		"a file":         func() error { return os.WriteFile(at, nil, 0o600) },
	} {
		ok(os.RemoveAll(at))
		ok(swap())
		if _, err := enter(root, "d", d); !errors.Is(err, errSwapped) {
			t.Errorf("%s: %v", name, err)
		}
	}
	at = filepath.Join(dir, "f")
	for name, swap := range map[string]func() error{
		"nothing":       func() error { return nil },
		"another file":  func() error { return os.Rename(filepath.Join(dir, "g"), at) },
		"a link inside": func() error { return os.Symlink(".", at) },
		"a device":      func() error { return os.Symlink("/dev/zero", at) },
	} {
		ok(os.RemoveAll(at))
		ok(swap())
		if _, err := openFile(root, "f", f); !errors.Is(err, errSwapped) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

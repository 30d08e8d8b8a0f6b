package files

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// M15: a pipe that takes a file's name does not hold whoever opens it.
func TestAPipeHoldsNobody(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "f")
	if err := os.WriteFile(at, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	seen, err := root.Lstat("f")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(at), syscall.Mkfifo(at, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := openFile(root, "f", seen); !errors.Is(err, errSwapped) {
		t.Error(err)
	}
	info, err := root.Lstat("f")
	if err != nil {
		t.Fatal(err)
	}
	_, _, device := stateOf(info)
	if w := (&workspace{device: device}); !w.foreign(info) || w.foreign(seen) {
		t.Error("a pipe is not foreign, or a file is")
	}
}

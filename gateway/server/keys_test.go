package server

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A first token is its owner's alone, whatever was at its place before.
func TestWriteTokenMakesItsOwnFile(t *testing.T) {
	dir := t.TempDir()
	elsewhere, path := filepath.Join(dir, "elsewhere"), filepath.Join(dir, "operator.token")
	for _, prepare := range []func() error{
		func() error { return nil },
		func() error { return os.Chmod(path, 0o666) },
		func() error {
			return errors.Join(os.WriteFile(elsewhere, []byte("theirs"), 0o666), os.Remove(path), os.Symlink(elsewhere, path))
		},
	} {
		if err := prepare(); err != nil {
			t.Fatal(err)
		}
		if err := writeToken(path, "eco_p_x"); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	}
	if raw, err := os.ReadFile(elsewhere); err != nil || string(raw) != "theirs" {
		t.Errorf("the link was followed: %q, %v", raw, err)
	}
}

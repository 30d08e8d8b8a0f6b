package disk_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/ecotone-dev/ecotone/gateway/audit/disk"
)

func TestFree(t *testing.T) {
	n, err := disk.Free(t.TempDir())
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("this platform does not say")
	}
	if err != nil || n == 0 {
		t.Fatalf("Free = %d, %v", n, err)
	}
	if _, err := disk.Free(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Fatal("a directory that is not there has free bytes")
	}
}

func TestLock(t *testing.T) {
	if _, err := disk.Free(t.TempDir()); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("this platform does not lock")
	}
	path := filepath.Join(t.TempDir(), "LOCK")
	first, err := disk.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := disk.Lock(path); !errors.Is(err, disk.ErrLocked) {
		t.Fatalf("second lock: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := disk.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

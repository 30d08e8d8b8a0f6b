//go:build linux

package main

import (
	"runtime"
	"syscall"
	"testing"
)

// What is mapped beside the heap counts once it is resident, and what the heap holds does not.
func TestBeside(t *testing.T) {
	const much = 64 << 20
	touch := func(b []byte) {
		for i := 0; i < len(b); i += 4 << 10 {
			b[i] = 1
		}
	}
	before := self().Beside
	heap := make([]byte, much)
	touch(heap)
	if more := int64(self().Beside - before); more > much/4 {
		t.Errorf("%d bytes of the heap: %d beside it", much, more)
	}
	runtime.KeepAlive(heap)
	before = self().Beside
	mapped, err := syscall.Mmap(-1, 0, much, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(mapped)
	if more := int64(self().Beside - before); more > much/4 {
		t.Errorf("nothing of the mapping is resident: %d", more)
	}
	touch(mapped)
	if more := int64(self().Beside - before); more < much*3/4 || more > much*5/4 {
		t.Errorf("a mapping of %d: %d", much, more)
	}
	all := mappings()
	for n, m := range all {
		if m.from >= m.to || n > 0 && m.from < all[n-1].to {
			t.Fatalf("mapping %d: %+v after %+v", n, m, all[n-1])
		}
	}
}

//go:build linux

package compile

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// children are the compile children of this process by their number.
func children(t *testing.T) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		dir := filepath.Dir(name)
		args, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !bytes.HasPrefix(args, []byte(childName+"\x00")) {
			continue
		}
		stat, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		var parent int
		if _, after, ok := bytes.Cut(stat, []byte(") ")); !ok {
			continue
		} else if _, err := fmt.Sscanf(string(after), "%c %d", new(byte), &parent); err != nil || parent != os.Getpid() {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// stopping stops every child that appears, until the end, and then tells how many there were.
func stopping(t *testing.T) (end func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	seen := map[int]bool{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for _, pid := range children(t) {
				if syscall.Kill(pid, syscall.SIGSTOP) == nil {
					seen[pid] = true
				}
			}
			time.Sleep(time.Millisecond)
		}
	}()
	return func() int {
		cancel()
		<-done
		return len(seen)
	}
}

// PF-D9: a child that gets no processor time is ended by the wall clock all the same, is tried once
// more, and then the caller is told to come back: it is not the module that is refused.
func TestStarvedChild(t *testing.T) {
	c, store, _ := start(t, limit(t, "compileCpu", 600_000))
	module := moduleOf(bombIfElse(43_000)) // which no child is done with before it is stopped
	digest := store.add(module)
	usual := c.bounds
	c.bounds.wall = 6 * time.Second // of which a stopped child uses none

	end := stopping(t)
	began := time.Now()
	_, err := c.Compile(t.Context(), digest, module)
	if n := end(); n != 2 {
		t.Errorf("%d children were stopped, want 2", n)
	}
	wantCode(t, err, abi.CodeImageNotReady)
	if took := time.Since(began); took < 2*c.bounds.wall {
		t.Errorf("it took %v, less than two children's wall time", took)
	}
	if left := children(t); len(left) > 0 {
		t.Errorf("children are left: %v", left)
	}
	c.bounds = usual
	mustCompile(t, c, answering(7))
}

// A rebuild whose child was starved is tried again at the next load, without the pause that follows
// one that failed for the module's sake.
func TestStarvedRebuild(t *testing.T) {
	c, store, _ := start(t)
	digest := store.add(answering(8))
	c.finish(&job{digest: digest, rebuild: true, cancel: func() {}, ctx: t.Context(), done: make(chan struct{}), starved: maxStarved},
		func() (*Artifact, error) { return nil, starved(time.Second, 0) })
	c.mu.Lock()
	_, paused := c.paused[digest]
	c.mu.Unlock()
	if paused {
		t.Error("it waits a minute")
	}
	_, err := c.Load(t.Context(), digest)
	wantCode(t, err, abi.CodeImageNotReady)
	if a := eventually(t, c, digest); a == nil {
		t.Error("it was not made again")
	}
}

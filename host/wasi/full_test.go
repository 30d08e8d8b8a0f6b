package wasi_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/authority"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/files"
)

// records keeps the labels of workspaces in memory.
type records map[string]map[string]files.Record

func (r records) Load(_ context.Context, ws string, fn func(string, files.Record) error) error {
	for p, rec := range r[ws] {
		if err := fn(p, rec); err != nil {
			return err
		}
	}
	return nil
}

func (r records) Apply(_ context.Context, ws string, changes []files.Change) error {
	if r[ws] == nil {
		r[ws] = map[string]files.Record{}
	}
	for _, c := range changes {
		if c.Record == nil {
			delete(r[ws], c.Path)
		} else {
			r[ws][c.Path] = *c.Record
		}
	}
	return nil
}

type journal struct{}

func (journal) Started(context.Context, *authority.Authority) error { return nil }
func (journal) Announce(context.Context, *authority.Authority, int, string, string) error {
	return nil
}
func (journal) Closed(context.Context, *authority.Authority, int, abi.Code) error { return nil }

const ws = "w1"

// bench is a workspace on the disk.
type bench struct {
	dir      string
	services boundary.Services
}

func newBench(t testing.TB) *bench {
	t.Helper()
	dir := t.TempDir()
	svc, err := files.New(dir, records{}, files.WithImportLabel(abi.Public))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := svc.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := svc.Ensure(context.Background(), ws, abi.Public); err != nil {
		t.Fatal(err)
	}
	return &bench{dir, boundary.Services{Files: svc, Journal: journal{}}}
}

func (b *bench) content(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, "workspaces", ws, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "(none)"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// program is an invocation of a WASI program with the workspace.
func (b *bench) program(t testing.TB, change ...func(*authority.Spec)) *rig {
	return rigOf(t, all, `"in"`, b.services, append([]func(*authority.Spec){func(s *authority.Spec) {
		s.Workspace, s.Face = ws, abi.FaceWASI
	}}, change...)...)
}

const (
	pathAt = 4096
	fdAt   = 8
	ioAt   = 16
	dataAt = 8192
)

const (
	rightsRead  = 1 << 1
	rightsWrite = 1 << 6
)

func (r *rig) open(name string, oflags, rights uint64) (uint64, int32) {
	copy(r.mem[pathAt:], name)
	errno := r.wasi("path_open", 3, 0, pathAt, uint64(len(name)), oflags, rights, 0, 0, fdAt)
	return uint64(r.u32(fdAt)), errno
}

func (r *rig) write(fd uint64, text string) int32 {
	copy(r.mem[dataAt:], text)
	r.vectors(ioAt, [2]uint32{dataAt, uint32(len(text))})
	return r.wasi("fd_write", fd, ioAt, 1, 64)
}

func (r *rig) read(fd uint64, n uint32) (string, int32) {
	r.vectors(ioAt, [2]uint32{dataAt, n})
	errno := r.wasi("fd_read", fd, ioAt, 1, 64)
	return string(r.mem[dataAt : dataAt+r.u32(64)]), errno
}

func want(t testing.TB, what string, got, errno int32) {
	t.Helper()
	if got != errno {
		t.Errorf("%s: errno %d, want %d", what, got, errno)
	}
}

// Every pointer of every function, outside the guest's memory: FAULT, whatever else is asked, and the
// guest may go on.
func TestPointersOutOfBounds(t *testing.T) {
	b := newBench(t)
	for _, row := range abi.WASIFunctions() {
		for _, p := range row.Pointers {
			for _, at := range []uint64{1 << 16, 1<<16 - 1, 0xffff_ffff, 0x8000_0000} {
				r := b.program(t)
				args := make([]uint64, len(row.Params))
				for _, q := range row.Pointers {
					args[q.At] = 1024
					if q.Count >= 0 {
						args[q.Count] = 2
					}
				}
				if at == 1<<16-1 && (p.Size <= 1 && p.Count < 0 || p.Size == 0) {
					continue // fits
				}
				args[p.At] = at
				if row.Name == "args_get" && at < 1<<16 {
					continue
				}
				if p.Size == 0 && row.Name == "environ_get" && at == 1<<16 {
					continue // nothing is written there, and the end of memory is a place
				}
				errno := r.wasi(row.Name, args...)
				if p.Size == 0 && at == 1<<16 && errno == 0 {
					continue
				}
				want(t, row.Name+" "+row.Params[p.At].Name, errno, abi.WASIFault)
				if over := r.inv.Over(); over != nil {
					t.Errorf("%s: %v", row.Name, over)
				}
			}
		}
		// Counts that no memory has.
		for _, p := range row.Pointers {
			if p.Count < 0 {
				continue
			}
			r := b.program(t)
			args := make([]uint64, len(row.Params))
			args[p.Count] = 0xffff_ffff
			want(t, row.Name+" "+row.Params[p.Count].Name, r.wasi(row.Name, args...), abi.WASIFault)
		}
	}
}

// Every function that takes a descriptor, with one that the program does not have.
func TestDescriptorsNotOwned(t *testing.T) {
	b := newBench(t)
	for _, row := range abi.WASIFunctions() {
		if len(row.Params) == 0 || row.Params[0].Name != "fd" || row.Refused != 0 {
			continue
		}
		for _, fd := range []uint64{4, 99, 0x7fff_ffff, 0xffff_ffff} {
			r := b.program(t)
			args := make([]uint64, len(row.Params))
			args[0] = fd
			want(t, row.Name, r.wasi(row.Name, args...), abi.WASIBadf)
		}
		// Without a workspace there is none to begin with.
		r := b.program(t, func(s *authority.Spec) { s.Workspace = "" })
		args := make([]uint64, len(row.Params))
		args[0] = 3
		want(t, row.Name+" 3", r.wasi(row.Name, args...), abi.WASIBadf)
	}
}

// What is refused answers its errno, and sockets are no descriptors.
func TestRefusedFunctions(t *testing.T) {
	for _, row := range abi.WASIFunctions() {
		if row.Refused != 0 {
			r := newBench(t).program(t)
			want(t, row.Name, r.wasi(row.Name, make([]uint64, len(row.Params))...), row.Refused)
		}
	}
}

// M4: what is written replaces the version that was opened, and nothing else. The program is told at
// close; at the end of its run the invocation fails.
func TestWritingOverAnotherVersion(t *testing.T) {
	b := newBench(t)
	r := b.program(t)
	fd, errno := r.open("f", 1, rightsRead|rightsWrite)
	want(t, "open", errno, 0)
	want(t, "write", r.write(fd, "first"), 0)
	if got := b.content(t, "f"); got != "" {
		t.Errorf("before it is closed: %q", got)
	}
	want(t, "close", r.wasi("fd_close", fd), 0)
	if got := b.content(t, "f"); got != "first" {
		t.Errorf("closed: %q", got)
	}
	fd, _ = r.open("f", 0, rightsRead|rightsWrite)
	want(t, "write", r.write(fd, "FIRST"), 0)
	other := b.program(t, func(s *authority.Spec) { s.Session = "other" })
	theirs, _ := other.open("f", 8, rightsWrite)
	want(t, "write", other.write(theirs, "theirs"), 0)
	want(t, "close", other.wasi("fd_close", theirs), 0)
	want(t, "close", r.wasi("fd_close", fd), abi.WASIStale)
	if got := b.content(t, "f"); got != "theirs" {
		t.Errorf("after a conflict: %q", got)
	}
	// Too late to tell the program.
	fd, _ = r.open("f", 8, rightsWrite)
	want(t, "write", r.write(fd, "mine"), 0)
	theirs, _ = other.open("f", 8, rightsWrite)
	want(t, "write", other.write(theirs, "again"), 0)
	want(t, "sync", other.wasi("fd_sync", theirs), 0)
	if err := r.inv.Settle(r.ctx, nil); abi.CodeOf(err) != abi.CodeVersionMismatch {
		t.Errorf("the end: %v", err)
	}
	if got := b.content(t, "f"); got != "again" {
		t.Errorf("after a conflict at the end: %q", got)
	}
}

// A run that succeeds keeps what was not closed, by a return or by an exit; one that fails does not.
func TestTheEndOfARun(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*rig)
		want string
	}{
		"return": {func(r *rig) { _ = r.inv.Settle(r.ctx, nil) }, "kept"},
		"exit 0": {func(r *rig) { r.wasi("proc_exit", 0) }, "kept"},
		"exit 1": {func(r *rig) { r.wasi("proc_exit", 1) }, ""},
		"trap":   {func(r *rig) { _ = r.inv.Settle(r.ctx, abi.Errorf(abi.CodeGuestTrap, "trap")) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			r := b.program(t)
			fd, _ := r.open("f", 1, rightsWrite)
			want(t, "write", r.write(fd, "kept"), 0)
			c.end(r)
			if got := b.content(t, "f"); got != c.want {
				t.Errorf("%q", got)
			}
		})
	}
}

// Standard streams are the invocation's input, output and log; what the exit code says is how it ended.
func TestStreams(t *testing.T) {
	b := newBench(t)
	r := b.program(t, func(s *authority.Spec) { s.InputEncoding, s.OutputEncoding = abi.EncodingText, abi.EncodingText })
	if err := r.inv.Decode(); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"i", "n", ""} {
		if got, errno := r.read(0, 1); got != part || errno != 0 {
			t.Errorf("read %q, errno %d", got, errno)
		}
	}
	want(t, "stdout", r.write(1, "a\"b"), 0)
	want(t, "stderr", r.write(2, "told"), 0)
	want(t, "stdin", r.write(0, "x"), abi.WASIBadf)
	r.wasi("proc_exit", 0)
	o := r.inv.Conclude(r.ctx, r.inv.Over(), 0)
	if string(o.Output) != `"a\"b"` || len(o.Receipt.Logs) != 1 || o.Receipt.Logs[0].Text != "told" {
		t.Errorf("%s, %v, %+v", o.Output, o.Err, o.Receipt.Logs)
	}
	// An output over its limit is none.
	r = b.program(t, func(s *authority.Spec) { s.Limits[abi.LimitOutputBytes] = 4 })
	want(t, "in the limit", r.write(1, "1234"), 0)
	want(t, "over it", r.write(1, "5"), abi.WASIFbig)
	if o := r.conclude(); abi.CodeOf(o.Err) != abi.CodeOutputLimit {
		t.Errorf("%v", o.Err)
	}
}

// An initialiser has no input, no output, no arguments and no files; what it may have been told is known.
func TestInitialiser(t *testing.T) { // S13
	b := newBench(t)
	s := spec()
	s.Workspace, s.Face, s.Arguments = ws, abi.FaceWASI, []string{"x"}
	inv := boundary.New(boundary.Spec{Authority: authority.New(s, func() *abi.Error { return nil }), Input: []byte(`1`), Services: b.services})
	inv.Enter(boundary.PhaseInitialize)
	r := &rig{t: t, inv: inv, mem: make(ram, 1<<16), doors: all, ctx: context.Background()}
	want(t, "args", r.wasi("args_sizes_get", 0, 4), 0)
	if r.u32(0) != 0 {
		t.Errorf("%d arguments", r.u32(0))
	}
	if got, errno := r.read(0, 8); got != "" || errno != 0 {
		t.Errorf("read %q, errno %d", got, errno)
	}
	want(t, "prestat", r.wasi("fd_prestat_get", 3, 0), 0)
	if asked := inv.Asked(); len(asked) != 0 {
		t.Errorf("asked %v", asked)
	}
	want(t, "close", r.wasi("fd_close", 0), 0)
	if asked := inv.Asked(); len(asked) != 1 {
		t.Errorf("asked %v", asked)
	}
	if r.open("f", 1, rightsWrite); abi.CodeOf(inv.Over()) != abi.CodeInitializeFailed {
		t.Errorf("over: %v", inv.Over())
	}
}

// The content of open files is bounded by the guest's memory limit, and given back.
func TestHeldContentIsBounded(t *testing.T) {
	b := newBench(t)
	r := b.program(t, func(s *authority.Spec) { s.Limits[abi.LimitMemoryBytes], s.Limits[abi.LimitFileBytes] = 1000, 1<<20 })
	for range 3 {
		fd, errno := r.open("f", 1|8, rightsWrite)
		want(t, "open", errno, 0)
		want(t, "up to it", r.wasi("fd_filestat_set_size", fd, 1000), 0)
		want(t, "over it", r.wasi("fd_filestat_set_size", fd, 1001), abi.WASINomem)
		want(t, "over the file", r.wasi("fd_filestat_set_size", fd, 1<<21), abi.WASIFbig)
		want(t, "close", r.wasi("fd_close", fd), 0)
	}
}

// Sequences of calls, whatever they are, never fault the host, and never write outside the workspace.
func FuzzCalls(f *testing.F) {
	f.Add([]byte{31, 3, 0, 4, 0, 1, 0, 26, 4, 0, 12, 4}, []byte("path/../x"))
	f.Add([]byte{38, 0, 12, 3, 22, 3, 22, 4}, make([]byte, 100))
	b := newBench(f)
	rows := abi.WASIFunctions()
	f.Fuzz(func(t *testing.T, calls, memory []byte) {
		r := b.program(t, func(s *authority.Spec) { s.Limits[abi.LimitHostCalls] = 64 })
		var end context.CancelFunc
		r.ctx, end = context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer end()
		r.mem = make(ram, 4096)
		copy(r.mem[64:], memory)
		for len(calls) > 0 && r.inv.Over() == nil {
			row := &rows[int(calls[0])%len(rows)]
			calls = calls[1:]
			args := make([]uint64, len(row.Params))
			for i := range args {
				if len(calls) > 0 {
					args[i], calls = uint64(calls[0])*uint64(1+i%3), calls[1:]
				}
			}
			r.wasi(row.Name, args...)
		}
		_ = r.inv.Settle(r.ctx, nil)
		if over := r.inv.Over(); over != nil && over.Code == abi.CodeInternal {
			t.Fatal(over, over.Cause)
		}
		if entries, err := os.ReadDir(filepath.Join(b.dir, "workspaces")); err != nil || len(entries) != 1 {
			t.Fatalf("%v, %v", entries, err)
		}
	})
}

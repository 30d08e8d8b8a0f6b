package audit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit/disk"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		childMain(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

var ctx = context.Background()

// mustOpen opens the log of dir and closes it with the test.
func mustOpen(t testing.TB, o Options) *Log {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return l
}

func mustAppend(t testing.TB, l *Log, org, id string, b Body) Position {
	t.Helper()
	p, err := l.Append(ctx, Event{Org: org, ID: id, Body: b})
	if err != nil {
		t.Fatalf("Append %v: %v", b.Kind(), err)
	}
	return p
}

// decision is a complete decided event.
func decision(v Verdict) Decided {
	d := Decided{
		Envelope: Envelope{
			Subject: SubjectRef{"agent", "helper"}, User: &SubjectRef{"user", "ada"}, CallerKind: "agent",
			Space: "main", Environment: "environment:project", Capability: "kb:page.read@1", Session: "s1",
			InputDigest: "hmac-sha256:00", InputBytes: 12,
		},
		Verdict: v, Biome: "kb", Digest: "ab", Generation: 7, Grants: []string{"g1"}, ReachCheck: "enforced",
		Reach: abi.ReachOwner, Declared: abi.Internal, Label: abi.Internal, Ceiling: abi.Secret, Clearance: abi.Confidential,
		Checks: []Check{{Name: "grant", Verdict: "pass"}},
	}
	if v != VerdictAllow {
		d.Code = abi.CodeMissingGrant
		d.Checks = []Check{{Name: "grant", Verdict: "fail", Code: abi.CodeMissingGrant, Detail: "no grant names it"}}
		d.Suggestions = []Suggestion{{Kind: "request-grant"}}
	}
	return d
}

func completed() Ended {
	return Ended{
		Outcome: OutcomeCompleted, Released: true, Label: abi.Internal, OutputBytes: 2, DurationMS: 3, HostCalls: 1,
		Lines: []Line{{Line: 1, Function: "log_write", BytesIn: 4, Label: abi.Internal}},
	}
}

// mustVerify is Verify of a data directory that must pass.
func mustVerify(t testing.TB, data string, head []byte) Report {
	t.Helper()
	r, err := Verify(Dir(data), VerifyOptions{Head: head})
	if err != nil {
		t.Fatalf("Verify: %v", err)
	}
	if !r.OK {
		t.Fatalf("Verify: %+v", *r.Problem)
	}
	return r
}

// quickDir is a new directory for a property that is tried many times, in memory where the system offers that:
// what a disk loses is the test's own to decide there. It is removed with remove.
func quickDir(t *rapid.T) (dir string, remove func()) {
	t.Helper()
	in := "/dev/shm"
	if free, err := disk.Free(in); err != nil || free < 1<<30 {
		in = ""
	}
	dir, err := os.MkdirTemp(in, "ecotone-audit-")
	if err != nil {
		t.Fatal(err)
	}
	return dir, func() { os.RemoveAll(dir) }
}

// copyDir copies the files of a directory.
func copyDir(t testing.TB, from, to string) {
	t.Helper()
	names, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, e := range names {
		src, dst := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		if e.IsDir() {
			copyDir(t, src, dst)
			continue
		}
		data, err := os.ReadFile(src)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dst, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// disk is a file system that fails after a number of written bytes, as a crash or a full disk
// would. Everything after the first failure fails.
type brokenDisk struct {
	mu     sync.Mutex
	budget int64
	syncs  int64 // fail this sync; 0: none
	broken bool
	count  int64 // syncs seen
}

var errBroken = errors.New("the disk broke")

func (d *brokenDisk) open(path string, flag int) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken {
		return nil, errBroken
	}
	f, err := openFile(path, flag)
	if err != nil {
		return nil, err
	}
	return &brokenFile{f, d}, nil
}

type brokenFile struct {
	file
	d *brokenDisk
}

func (f *brokenFile) Write(p []byte) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.broken {
		return 0, errBroken
	}
	if int64(len(p)) > f.d.budget {
		f.d.broken = true
		n, _ := f.file.Write(p[:f.d.budget])
		return n, errBroken
	}
	f.d.budget -= int64(len(p))
	return f.file.Write(p)
}

func (f *brokenFile) WriteAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.broken || int64(len(p)) > f.d.budget {
		f.d.broken = true
		return 0, errBroken
	}
	f.d.budget -= int64(len(p))
	return f.file.WriteAt(p, off)
}

func (f *brokenFile) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.broken {
		return errBroken
	}
	return f.file.Truncate(size)
}

func (f *brokenFile) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.count++
	if f.d.broken || f.d.count == f.d.syncs {
		f.d.broken = true
		return errBroken
	}
	return f.file.Sync()
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}

package audit

import (
	"context"
	"path/filepath"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// Options configure [Open]. Only Dir is mandatory.
type Options struct {
	Dir          string                           // the data directory; the log is in Dir/audit, keys in Dir/keys
	Reserve      int64                            // bytes kept free on the disk; 0 is abi.LimitDiskReserve's default
	Free         func(dir string) (uint64, error) // free bytes of dir's file system; nil asks the system
	Now          func() time.Time                 // nil is time.Now
	SegmentBytes int64                            // entries file is full past this; 0 is 64 MiB
}

// Dir is where the log of a data directory is: what [Verify] reads, and what may be copied
// away to be verified.
func Dir(data string) string { return filepath.Join(data, "audit") }

// Log is an open audit log. All methods are safe for concurrent use.
type Log struct{}

// Open opens or creates the log. What follows the last signed head is cut; when anything that a
// head covers does not verify, Open refuses with AUDIT_UNAVAILABLE and changes nothing. One
// process at a time has a log open. Call [Log.Recover] before the first append, and Close.
func Open(o Options) (*Log, error) {
	return nil, abi.Errorf(abi.CodeAuditUnavailable, "the audit log is not built yet")
}

// Append records one event. When it returns nil the event is on disk under a signed head.
// Concurrent appends share one commit. While the queue is full Append waits for room as
// long as ctx lives; an event that was accepted is waited for to the end, so that the
// answer is never in doubt. Every error is AUDIT_UNAVAILABLE, and means: do not act.
func (l *Log) Append(ctx context.Context, ev Event) (Position, error) {
	return Position{}, abi.Errorf(abi.CodeAuditUnavailable, "the audit log is not built yet")
}

// AppendAsync records one event without waiting for the disk. It keeps its place: an Append that
// the same goroutine makes later is durable only together with it. It waits for room like
// Append. Use it for what need not be durable before going on: effect-closed, and the
// decision of an invocation whose outcome is appended before anything is answered.
func (l *Log) AppendAsync(ctx context.Context, ev Event) error {
	return abi.Errorf(abi.CodeAuditUnavailable, "the audit log is not built yet")
}

// Recover closes the invocations that the process before left open: each gets an ended entry
// with outcome interrupted that lists the effects whose end is unknown (S8). It returns how
// many there were.
func (l *Log) Recover(ctx context.Context) (int, error) { return 0, nil }

// Healthy reports whether appends can succeed: the log is open, nothing failed to be written,
// and the disk has more than its reserve.
func (l *Log) Healthy() bool { return l.Err() == nil }

// Err says why the log is not healthy, or nil.
func (l *Log) Err() error { return nil }

// Head returns the last signed head, to be kept elsewhere and given to [Verify].
func (l *Log) Head() []byte { return nil }

// Digest is the keyed digest of an input, "hmac-sha256:" and hex. Equal inputs of one
// organisation have equal digests; nothing can be compared across organisations or guessed
// without the organisation's audit key (S6, PF-G8).
func (l *Log) Digest(org string, input []byte) (string, error) { return "", nil }

// Rows returns rows of one organisation, in order of their ids. Work per call is bounded: a page may be short, even empty, and
// still have a Next.
func (l *Log) Rows(ctx context.Context, org string, q Query) (Page, error) { return Page{}, nil }

// Get returns one row of org by audit id, or NOT_FOUND: also for a row of somebody else, and for
// one whose key was erased.
func (l *Log) Get(ctx context.Context, org, id string) (Row, error) { return Row{}, nil }

// Erase destroys the organisation's audit key. Its rows can no longer be read by anyone, the tree
// still verifies, and nothing can be appended for the organisation any more. The
// erasure itself is recorded first.
func (l *Log) Erase(ctx context.Context, org string) error { return nil }

// Close commits what was accepted, then closes the files. Later appends fail.
func (l *Log) Close() error { return nil }

package audit

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit/disk"
)

// Options configure [Open]. Only Dir is mandatory.
type Options struct {
	Dir        string     // the data directory; the log is in Dir/audit, keys in Dir/keys
	Durability Durability // what an acknowledged event survives
	Reserve    int64      // bytes kept free on the disk; 0 is abi.LimitDiskReserve's default
	// Free says how many bytes are free on dir's file system. nil asks the system, 20 times a second
	// at most; a function is asked each time.
	Free         func(dir string) (uint64, error)
	Now          func() time.Time // nil is time.Now
	SegmentBytes int64            // an entries file past this is full; 0 is 64 MiB, at most 1 GiB

	open opener
}

const (
	defaultSegment = 64 << 20
	maxSegment     = 1 << 30
)

// Dir is where the log of a data directory is: what [Verify] reads, and what may be copied
// away to be verified.
func Dir(data string) string { return filepath.Join(data, "audit") }

// Log is an open audit log. All methods are safe for concurrent use.
//
// Three locks: covering, then mu, then the key ring's; the queue and the free space have their
// own, under which nothing else is taken. The committer alone writes entries, and alone changes
// the tree and the last time; it takes mu to publish. Who holds covering writes heads.
type Log struct {
	o     Options
	dir   string
	lock  io.Closer
	sign  *signing
	ring  *keyRing
	space space
	queue *queue
	// segments is for queries, and has a lock of its own.
	segments segments

	stop    chan struct{} // closed by Close, when the committer has ended
	dirty   chan struct{} // there is something that no head covers
	done    chan struct{} // closed by the committer
	covered chan struct{} // closed by the coverer

	group    group // the committer's, as are the next two
	w        writer
	lastTime int64
	seen     time.Time // lastTime when the log was opened

	onDisk   atomic.Int64 // so many entries are on disk for certain
	poisoned atomic.Pointer[poison]
	covering sync.Mutex // of heads, and of the last pair of files

	mu         sync.RWMutex
	index      *index
	tree       frontier // of what is committed
	end        int64    // of it in the last entries file
	coveredEnd int64    // of what the last head covers in it
	head       []byte
	headSize   int64
	closed     bool
	found      found
}

// poison is why nothing can be written any more.
type poison struct{ err error }

// found is what [Open] did that the log has yet to tell.
type found struct {
	cut     int64 // bytes that a crash tore
	adopted int64 // entries that no head covered
}

func unavailable(err error) *abi.Error {
	return abi.Errorf(abi.CodeAuditUnavailable, "the audit log cannot be written, so nothing runs").WithCause(err)
}

// Open opens or creates the log. Entries that no head covers are kept when the organisation's key
// authenticates them, and covered by a new head; what a crash tore after them is cut. When
// anything else does not verify, Open refuses with AUDIT_UNAVAILABLE and changes nothing. One
// process at a time has a log open. Call [Log.Recover] before the first append, and Close.
func Open(o Options) (*Log, error) {
	if o.Durability >= numDurabilities {
		return nil, abi.Errorf(abi.CodeInvalidRequest, "the durability of the audit log is not one that there is")
	}
	if o.Reserve == 0 {
		o.Reserve = abi.LimitDiskReserve.Info().Default
	}
	var every time.Duration
	if o.Free == nil {
		o.Free, every = disk.Free, lookEvery
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = defaultSegment
	}
	o.SegmentBytes = min(o.SegmentBytes, maxSegment)
	if o.open == nil {
		o.open = openFile
	}
	l := &Log{
		o: o, dir: Dir(o.Dir), index: newIndex(), queue: newQueue(),
		stop: make(chan struct{}), dirty: make(chan struct{}, 1), done: make(chan struct{}), covered: make(chan struct{}),
	}
	l.segments.dir = l.dir
	l.space = space{free: o.Free, dir: l.dir, reserve: uint64(o.Reserve), every: every}
	if err := l.start(); err != nil {
		err = errors.Join(err, l.w.close())
		if l.lock != nil {
			err = errors.Join(err, l.lock.Close())
		}
		var own *abi.Error
		if errors.As(err, &own) {
			return nil, own
		}
		return nil, abi.Errorf(abi.CodeAuditUnavailable, "the audit log cannot be opened").WithCause(err)
	}
	go l.commitLoop()
	go l.coverLoop()
	return l, nil
}

func (l *Log) start() error {
	keys := filepath.Join(l.o.Dir, "keys")
	for _, dir := range []string{l.dir, keys, filepath.Join(keys, orgKeysName)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	var err error
	if l.lock, err = disk.Lock(filepath.Join(l.dir, "LOCK")); err != nil {
		if errors.Is(err, disk.ErrLocked) {
			return abi.Errorf(abi.CodeAuditUnavailable, "another process has the audit log open").WithCause(err)
		}
		return err
	}
	if _, err := l.o.Free(l.dir); err != nil {
		return abi.Errorf(abi.CodeAuditUnavailable, "the free disk space cannot be determined, so the audit reserve cannot be kept").WithCause(err)
	}
	if l.sign, err = loadSigning(keys, l.dir); err != nil {
		return err
	}
	l.ring = newKeyRing(filepath.Join(keys, orgKeysName))
	if _, err := l.ring.key(SystemOrg, true); err != nil {
		return err
	}

	s := scan{dir: l.dir, verifier: l.sign.verifier, entry: l.index.add, unseal: l.unseal}
	if err := s.run(); err != nil {
		return err
	}
	if s.problem == nil && s.heads == 0 && l.sign.founded {
		s.fail("", 0, 0, "", "the log has no signed head any more")
	}
	if p := s.problem; p != nil {
		return abi.Errorf(abi.CodeAuditUnavailable, "the audit log does not verify: %s, offset %d, entry %d: %s", p.File, p.Offset, p.Index, p.What).
			WithHint("verify a copy of the log, keep it, and restore the directory from a backup")
	}
	l.tree, l.lastTime, l.head, l.headSize = s.tree, s.lastTime, s.last.note, s.last.size
	if s.lastTime > 0 {
		l.seen = time.UnixMilli(s.lastTime).UTC()
	}
	l.found = found{cut: s.torn, adopted: s.unsigned}
	l.w = writer{dir: l.dir, open: l.o.open}
	if s.files == 0 {
		err = l.w.create(0)
	} else {
		err = l.w.resume(&s)
	}
	if err != nil {
		return err
	}
	// Everything is on disk now. A new log gets its first head, an adopted tail the one it lacked.
	l.end, l.coveredEnd = l.w.size, l.w.size
	l.onDisk.Store(l.tree.size)
	if err := l.coverLocked(); err != nil {
		return err
	}
	return l.sign.found(l.dir)
}

// unseal authenticates an entry and forgets what it says.
func (l *Log) unseal(h *header, base uint64, payload, sealed []byte) error {
	_, err := l.ring.open(nil, h, base, payload, sealed)
	return err
}

// Append records one event. When it returns nil the event is as durable as [Options.Durability]
// says. Concurrent appends share one commit. While the queue is full Append waits for room as
// long as ctx lives; an event that was accepted is waited for to the end, so that the
// answer is never in doubt. Every error is AUDIT_UNAVAILABLE, and means: do not act. The body
// is the caller's again when Append returns.
func (l *Log) Append(ctx context.Context, ev Event) (Position, error) {
	r, err := l.prepare(ev)
	if err != nil {
		return Position{}, err
	}
	r.wait = true
	if err := l.send(ctx, r); err != nil {
		return Position{}, err
	}
	<-r.done
	at, err := r.at, r.err
	r.free()
	return at, err
}

// AppendAsync records one event without waiting for the disk. It keeps its place: an Append that
// the same goroutine makes later is durable only together with it. It waits for room like
// Append. Use it for what need not be durable before going on: effect-closed, and the
// decision of an invocation whose outcome is appended before anything is answered. When it
// cannot be recorded after all, the Append that ends its row fails. The body is the caller's
// again when AppendAsync returns.
func (l *Log) AppendAsync(ctx context.Context, ev Event) error {
	r, err := l.prepare(ev)
	if err != nil {
		return err
	}
	return l.send(ctx, r)
}

// prepare does what can be done outside the committer.
func (l *Log) prepare(ev Event) (*request, error) {
	if ev.Org == "" {
		ev.Org = SystemOrg
	}
	r := newRequest()
	err := r.encode(&ev)
	if err == nil {
		if r.key, err = l.ring.key(ev.Org, true); err != nil {
			err = unavailable(err)
		}
	}
	if err != nil {
		r.free()
		return nil, err
	}
	r.org = ev.Org
	return r, nil
}

// standalone reports whether an event of this kind is a row by itself.
func standalone(k Kind) bool { return k == KindRefused || k == KindAdmin || k == KindSystem }

// send hands a request to the committer. After an error it is nobody's.
func (l *Log) send(ctx context.Context, r *request) error {
	err := l.failure()
	if err == nil {
		err = l.queue.push(ctx, r)
	}
	if err != nil {
		r.free()
		return unavailable(err)
	}
	return nil
}

// failure is why nothing can be written, or nil.
func (l *Log) failure() error {
	if p := l.poisoned.Load(); p != nil {
		return p.err
	}
	return nil
}

// poison ends writing for good, and returns err.
func (l *Log) poison(err error) error {
	l.poisoned.CompareAndSwap(nil, &poison{err})
	return err
}

// Entries is how many entries are on disk for certain.
func (l *Log) Entries() int64 { return l.onDisk.Load() }

// Healthy reports whether appends can succeed: the log is open, nothing failed to be written,
// and the disk has more than its reserve.
func (l *Log) Healthy() bool { return l.Err() == nil }

// Err says why the log is not healthy, or nil. It is AUDIT_UNAVAILABLE.
func (l *Log) Err() error {
	err := l.failure()
	l.mu.RLock()
	if l.closed {
		err = errClosed
	}
	l.mu.RUnlock()
	if err == nil {
		err = l.space.take(0)
	}
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// Seen is the time of the last entry when the log was opened, which was not in the future then; zero of a
// log that was empty.
func (l *Log) Seen() time.Time { return l.seen }

// Durability is the mode of [Options].
func (l *Log) Durability() Durability { return l.o.Durability }

// Head returns a signed head over everything that was acknowledged, to be kept elsewhere and given to
// [Verify]. What it covers is on disk, in either mode: a head that is kept does not outlive its
// entries. Of a log that cannot be written any more it is the last head there is.
func (l *Log) Head() []byte {
	_ = l.cover()
	l.mu.RLock()
	defer l.mu.RUnlock()
	return append([]byte(nil), l.head...)
}

// Digest is the keyed digest of an input, "hmac-sha256:" and hex. Equal inputs of one
// organisation have equal digests; nothing can be compared across organisations or guessed
// without the organisation's audit key (S6, PF-G8).
func (l *Log) Digest(org string, input []byte) (string, error) {
	if org == "" {
		org = SystemOrg
	}
	k, err := l.ring.key(org, true)
	if err != nil {
		return "", unavailable(err)
	}
	return k.sum(input), nil
}

// Erase destroys the organisation's audit key. Its rows can no longer be read by anyone, the tree
// still verifies, and nothing can be appended for the organisation any more. The erasure itself
// is recorded first, and a head covers the organisation's last entry before the key goes: what no
// head covers is authenticated by the key when the log is opened again.
func (l *Log) Erase(ctx context.Context, org string) error {
	if org == SystemOrg || !abi.ValidSlug(org) {
		return abi.Errorf(abi.CodeInvalidRequest, "%s is not an organisation that can be erased", abi.Quote(org))
	}
	recall, err := l.ring.retire(org)
	switch {
	case errors.Is(err, errErased): // once more, in case it did not get to the end
		recall = func() {}
	case err != nil:
		return unavailable(err)
	}
	// When this is answered, every entry that the key still sealed is committed.
	_, err = l.Append(ctx, Event{Body: System{Event: "erased", Org: org}})
	if err == nil {
		if err = l.cover(); err != nil {
			err = unavailable(err)
		}
	}
	if err != nil {
		recall()
		return err
	}
	if err := l.ring.erase(org); err != nil {
		return abi.Errorf(abi.CodeInternal, "the organisation's audit key could not be destroyed").WithCause(err)
	}
	return nil
}

// Close commits what was accepted, covers it with a head and closes the files. Later appends fail; so
// do later queries. A second Close does nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	again := l.closed
	l.closed = true
	l.mu.Unlock()
	if again {
		<-l.covered
		return nil
	}
	l.queue.close()
	<-l.done
	close(l.stop)
	<-l.covered
	var err error
	if l.failure() == nil {
		err = l.cover()
	}
	return errors.Join(err, l.w.close(), l.lock.Close())
}

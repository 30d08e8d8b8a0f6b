package audit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/audit/disk"
)

// Options configure [Open]. Only Dir is mandatory.
type Options struct {
	Dir          string                           // the data directory; the log is in Dir/audit, keys in Dir/keys
	Reserve      int64                            // bytes kept free on the disk; 0 is abi.LimitDiskReserve's default
	Free         func(dir string) (uint64, error) // free bytes of dir's file system; nil asks the system
	Now          func() time.Time                 // nil is time.Now
	SegmentBytes int64                            // an entries file past this is full; 0 is 64 MiB, at most 1 GiB

	open opener
}

const (
	defaultSegment = 64 << 20
	maxSegment     = 1 << 30
	queueLength    = 1024
	asyncDelay     = 20 * time.Millisecond // how long events that nobody waits for wait for company
)

// Dir is where the log of a data directory is: what [Verify] reads, and what may be copied
// away to be verified.
func Dir(data string) string { return filepath.Join(data, "audit") }

// Log is an open audit log. All methods are safe for concurrent use.
//
// Lock order: mu, then the key ring's. The committer alone touches the writer, the tree and
// the clock; it takes mu only to publish.
type Log struct {
	o     Options
	dir   string
	lock  io.Closer
	sign  *signing
	ring  *keyRing
	queue chan *request
	stop  chan struct{} // closed by Close
	done  chan struct{} // closed by the committer

	w        writer
	tree     frontier
	lastTime int64

	mu       sync.RWMutex
	index    *index
	head     []byte
	poison   error
	closed   bool
	cutBytes int64
	sending  sync.WaitGroup // appends between the closed check and the queue; Add under mu
}

func unavailable(err error) *abi.Error {
	return abi.Errorf(abi.CodeAuditUnavailable, "the audit log cannot be written, so nothing runs").WithCause(err)
}

// Open opens or creates the log. What follows the last signed head is cut; when anything that a
// head covers does not verify, Open refuses with AUDIT_UNAVAILABLE and changes nothing. One
// process at a time has a log open. Call [Log.Recover] before the first append, and Close.
func Open(o Options) (*Log, error) {
	if o.Reserve == 0 {
		o.Reserve = abi.LimitDiskReserve.Info().Default
	}
	if o.Free == nil {
		o.Free = disk.Free
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
		o: o, dir: Dir(o.Dir), index: newIndex(),
		queue: make(chan *request, queueLength), stop: make(chan struct{}), done: make(chan struct{}),
	}
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

	s := scan{dir: l.dir, verifier: l.sign.verifier, entry: l.index.add}
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
	l.tree, l.lastTime, l.head, l.cutBytes = s.tree, s.lastTime, s.last.note, s.tail
	l.w = writer{dir: l.dir, open: l.o.open}
	if s.files == 0 {
		err = l.w.create(0)
	} else {
		err = l.w.resume(&s)
	}
	if err != nil {
		return err
	}
	if s.heads == 0 {
		root, err := l.tree.root()
		if err != nil {
			return err
		}
		h, err := sign(l.sign, 0, root)
		if err != nil {
			return err
		}
		if err := l.w.group(nil, h.note); err != nil {
			return err
		}
		l.head = h.note
	}
	return l.sign.found(l.dir)
}

// Append records one event. When it returns nil the event is on disk under a signed head.
// Concurrent appends share one commit. While the queue is full Append waits for room as
// long as ctx lives; an event that was accepted is waited for to the end, so that the
// answer is never in doubt. Every error is AUDIT_UNAVAILABLE, and means: do not act.
func (l *Log) Append(ctx context.Context, ev Event) (Position, error) {
	r, err := l.prepare(ev)
	if err != nil {
		return Position{}, err
	}
	r.done = make(chan result, 1)
	if err := l.send(ctx, r); err != nil {
		return Position{}, err
	}
	res := <-r.done
	return res.at, res.err
}

// AppendAsync records one event without waiting for the disk. It keeps its place: an Append that
// the same goroutine makes later is durable only together with it. It waits for room like
// Append. Use it for what need not be durable before going on: effect-closed, and the
// decision of an invocation whose outcome is appended before anything is answered. When it
// cannot be recorded after all, the Append that ends its row fails.
func (l *Log) AppendAsync(ctx context.Context, ev Event) error {
	r, err := l.prepare(ev)
	if err != nil {
		return err
	}
	return l.send(ctx, r)
}

// prepare does what can be done outside the committer.
func (l *Log) prepare(ev Event) (*request, error) {
	if ev.Body == nil {
		return nil, refuse("it has no body")
	}
	kind := ev.Body.Kind()
	if ev.Org == "" {
		ev.Org = SystemOrg
	}
	if ev.ID == "" && standalone(kind) {
		ev.ID = NewID()
	}
	id, err := parseID(ev.ID)
	if err != nil {
		return nil, refuse("its id is not a ULID")
	}
	body, err := ev.Body.settle()
	if err != nil {
		return nil, err
	}
	data, err := encode(body)
	if err != nil {
		return nil, refuse("it does not encode: %w", err)
	}
	if _, err := l.ring.key(ev.Org, true); err != nil {
		return nil, unavailable(err)
	}
	d, decided := body.(Decided)
	return &request{
		header: header{kind: kind, org: ev.Org, id: id, open: decided && d.Verdict == VerdictAllow},
		body:   data,
	}, nil
}

// encode writes a body and keeps it within one entry. Only a receipt can be too long; its
// lines are halved until it fits.
func encode(b Body) ([]byte, error) {
	for {
		data, err := json.Marshal(b)
		if err != nil || len(data) <= maxPayload-headerFixed-63-sealOverhead {
			return data, err
		}
		e, ok := b.(Ended)
		if !ok || len(e.Lines) == 0 {
			return nil, errors.New("larger than an entry may be")
		}
		keep := len(e.Lines) / 2
		e.LinesOmitted += len(e.Lines) - keep
		e.Lines = e.Lines[:keep]
		b = e
	}
}

// standalone reports whether an event of this kind is a row by itself.
func standalone(k Kind) bool { return k == KindRefused || k == KindAdmin || k == KindSystem }

// send hands a request to the committer.
func (l *Log) send(ctx context.Context, r *request) error {
	l.mu.RLock()
	err := l.poison
	if l.closed {
		err = errClosed
	}
	if err == nil {
		l.sending.Add(1)
	}
	l.mu.RUnlock()
	if err != nil {
		return unavailable(err)
	}
	defer l.sending.Done()
	select {
	case l.queue <- r:
		return nil
	case <-ctx.Done():
		return unavailable(ctx.Err())
	}
}

var errClosed = errors.New("the log is closed")

// Healthy reports whether appends can succeed: the log is open, nothing failed to be written,
// and the disk has more than its reserve.
func (l *Log) Healthy() bool { return l.Err() == nil }

// Err says why the log is not healthy, or nil. It is AUDIT_UNAVAILABLE.
func (l *Log) Err() error {
	l.mu.RLock()
	err := l.poison
	if l.closed {
		err = errClosed
	}
	l.mu.RUnlock()
	if err == nil {
		err = l.room(0)
	}
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// room reports whether n more bytes leave the reserve untouched.
func (l *Log) room(n int64) error {
	free, err := l.o.Free(l.dir)
	if err != nil {
		return err
	}
	if free < uint64(l.o.Reserve)+uint64(n) {
		return errors.New("the disk is down to the audit reserve")
	}
	return nil
}

// Head returns the last signed head, to be kept elsewhere and given to [Verify].
func (l *Log) Head() []byte {
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
// still verifies, and nothing can be appended for the organisation any more. The
// erasure itself is recorded first.
func (l *Log) Erase(ctx context.Context, org string) error {
	if org == SystemOrg || !abi.ValidSlug(org) {
		return abi.Errorf(abi.CodeInvalidRequest, "%s is not an organisation that can be erased", abi.Quote(org))
	}
	if _, err := l.Append(ctx, Event{Body: System{Event: "erased", Org: org}}); err != nil {
		return err
	}
	if err := l.ring.erase(org); err != nil {
		return abi.Errorf(abi.CodeInternal, "the organisation's audit key could not be destroyed").WithCause(err)
	}
	return nil
}

// Close commits what was accepted, then closes the files. Later appends fail; so do later
// queries. A second Close does nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		<-l.done
		return nil
	}
	l.closed = true
	l.mu.Unlock()
	l.sending.Wait() // the committer still runs, so that those who wait for room get it
	close(l.stop)
	<-l.done
	return errors.Join(l.w.close(), l.lock.Close())
}

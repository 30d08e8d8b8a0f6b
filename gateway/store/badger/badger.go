// Package badger keeps the gateway's store in a Badger database.
//
// It promises the contract of package store, that a data directory of another schema
// version is refused before anything in it is touched ([Open], M49), and that one process
// at a time has a data directory open. It refuses to know what is stored.
package badger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// storeDir is the database's own folder inside a data directory.
const storeDir = "store"

// gcEvery is how often space of overwritten large values is given back.
const gcEvery = 10 * time.Minute

// Store is a [store.Store] in a Badger database.
type Store struct {
	db     *badgerdb.DB
	schema Schema
	ranges ranges
	users  users

	maxValue int

	stopGC  chan struct{}
	doneGC  sync.WaitGroup
	closing sync.Once
	closed  error
}

var _ store.Store = (*Store)(nil)

// Open opens the data directory dir, or makes one when dir does not exist or is empty; dev
// marks a directory that is made now as one for development and changes nothing about an
// existing one. Open reads DIR/SCHEMA before it does anything else: a missing schema in a
// directory with content, another version, or anything but a schema document is
// STORE_SCHEMA_UNSUPPORTED, and every byte of the directory stays as it was. A directory that
// another process has open is CONFLICT.
//
// The caller closes the store. Other parts of the gateway put their files into dir after Open.
func Open(dir string, dev bool) (*Store, error) {
	schema, err := prepare(dir, dev)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, storeDir)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, abi.Errorf(abi.CodeInternal, "the data directory cannot be written: %w", err)
	}
	db, err := openPatiently(path)
	if err != nil {
		if locked(err) {
			return nil, abi.Errorf(abi.CodeConflict, "another process has the data directory open: %w", err).
				WithHint("stop the other process, or give this one a data directory of its own")
		}
		return nil, abi.Errorf(abi.CodeInternal, "the store does not open: %w", err)
	}
	s := &Store{db: db, schema: schema, maxValue: maxValue, stopGC: make(chan struct{})}
	s.doneGC.Go(s.collect)
	return s, nil
}

// lockPatience is how long a lock is asked for again. A process that starts another one holds its
// own locks through it, from fork to exec: for a moment after it closed them.
const (
	lockPatience = 500 * time.Millisecond
	lockPause    = 25 * time.Millisecond
)

func openPatiently(path string) (*badgerdb.DB, error) {
	for until := time.Now().Add(lockPatience); ; time.Sleep(lockPause) {
		db, err := badgerdb.Open(tuned(badgerdb.DefaultOptions(path)).WithSyncWrites(true))
		if err == nil || !locked(err) || time.Now().After(until) {
			return db, err
		}
	}
}

// locked reports whether somebody else has the directory. Badger's error has no identity; a
// test holds the wording to the pinned version.
func locked(err error) bool { return strings.Contains(err.Error(), "Cannot acquire directory lock") }

// OpenMemory opens a store that lives in memory and is gone when it is closed. It keeps the
// contract except durability.
func OpenMemory() (*Store, error) {
	db, err := badgerdb.Open(tuned(badgerdb.DefaultOptions("")).WithInMemory(true))
	if err != nil {
		return nil, abi.Errorf(abi.CodeInternal, "the store does not open: %w", err)
	}
	return &Store{db: db, schema: Schema{Schema: SchemaVersion}, maxValue: store.MinValue, stopGC: make(chan struct{})}, nil
}

// tuned fits Badger to a few small records and many small values: no block cache, because
// nothing is compressed, and files that start small.
func tuned(o badgerdb.Options) badgerdb.Options {
	return o.WithLogger(nil).
		WithMetricsEnabled(false).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithMemTableSize(48 << 20). // a transaction may hold 15 % of it
		WithNumMemtables(2).
		WithNumCompactors(2).
		WithValueLogFileSize(64 << 20)
}

// Dev reports whether the data directory was made for development (S19).
func (s *Store) Dev() bool { return s.schema.Dev }

// View implements [store.Store].
func (s *Store) View(ctx context.Context, fn func(store.Tx) error) error {
	if err := s.users.enter(); err != nil {
		return err
	}
	defer s.users.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	t := s.db.NewTransaction(false)
	defer t.Discard()
	return fn(&tx{t: t})
}

// Update implements [store.Store].
func (s *Store) Update(ctx context.Context, fn func(store.Tx) error) error {
	if err := s.users.enter(); err != nil {
		return err
	}
	defer s.users.leave()
	for wait := time.Duration(0); ; wait = min(2*wait+time.Millisecond, 50*time.Millisecond) {
		if err := pause(ctx, wait); err != nil {
			return err
		}
		err := s.try(fn)
		if !errors.Is(err, badgerdb.ErrConflict) {
			return err
		}
	}
}

// pause waits, so that transactions in conflict do not run into each other again at once.
func pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// try runs fn once and commits; ErrConflict asks for another try.
func (s *Store) try(fn func(store.Tx) error) error {
	began := s.ranges.begin()
	defer s.ranges.end(began)
	t := s.db.NewTransaction(true)
	defer t.Discard()
	x := &tx{t: t, update: true, maxValue: s.maxValue}
	if err := fn(x); err != nil {
		return err
	}
	ticket, ok := s.ranges.claim(began, x.scanned, x.written)
	if !ok {
		return badgerdb.ErrConflict
	}
	defer s.ranges.settle(ticket)
	if err := t.Commit(); err != nil {
		return translate(err)
	}
	return nil
}

// Close implements [store.Store].
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.users.close()
		close(s.stopGC)
		s.doneGC.Wait()
		if err := s.db.Close(); err != nil {
			s.closed = fmt.Errorf("store: closing: %w", err)
		}
	})
	return s.closed
}

// collect gives back the space of large values that were overwritten.
func (s *Store) collect() {
	tick := time.NewTicker(gcEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stopGC:
			return
		case <-tick.C:
			for s.db.RunValueLogGC(0.5) == nil {
			}
		}
	}
}

// tx is one transaction. What it scanned and wrote is kept for [ranges].
type tx struct {
	t        *badgerdb.Txn
	update   bool
	maxValue int
	size     int // of all changes
	scanning bool
	scanned  []span
	written  []string
}

func (x *tx) Get(key []byte) ([]byte, error) {
	item, err := x.t.Get(key)
	if err != nil {
		return nil, translate(err)
	}
	return valueOf(item)
}

// valueOf copies a value; an empty one is not nil.
func valueOf(item *badgerdb.Item) ([]byte, error) {
	v, err := item.ValueCopy(make([]byte, 0, item.ValueSize()))
	if err != nil {
		return nil, translate(err)
	}
	if v == nil {
		v = []byte{}
	}
	return v, nil
}

func (x *tx) Set(key, value []byte) error {
	return x.change(key, len(value), func() error { return x.t.Set(bytes.Clone(key), append([]byte{}, value...)) })
}

func (x *tx) Delete(key []byte) error {
	return x.change(key, 0, func() error { return x.t.Delete(bytes.Clone(key)) })
}

func (x *tx) change(key []byte, value int, do func() error) error {
	if !x.update {
		return store.ErrReadOnly
	}
	size := x.size + len(key) + value
	if len(key) > maxKey || value > x.maxValue || size > maxTx {
		return store.ErrTooLarge
	}
	if err := do(); err != nil {
		return translate(err)
	}
	x.size = size
	x.written = append(x.written, string(key))
	return nil
}

// Bounds of our own, below Badger's: its error for a long key has no identity, it does not
// count large values against a transaction, and in memory it falls over a value of 1 MiB.
const (
	maxKey   = 60_000
	maxValue = 2 << 20
	maxTx    = 6 << 20
)

func (x *tx) Scan(prefix, after []byte, fn func(k, v []byte) (bool, error)) error {
	if x.scanning {
		return store.ErrBusy
	}
	x.scanning = true
	defer func() { x.scanning = false }()

	o := badgerdb.DefaultIteratorOptions
	o.Prefix = bytes.Clone(prefix)
	o.PrefetchValues = false
	it := x.t.NewIterator(o)
	defer it.Close()

	read := span{prefix: string(prefix), after: string(after), open: true}
	defer func() {
		if x.update {
			x.scanned = append(x.scanned, read)
		}
	}()
	from := prefix
	if bytes.Compare(after, prefix) > 0 {
		from = after
	}
	for it.Seek(from); it.Valid(); it.Next() {
		item := it.Item()
		if len(after) > 0 && bytes.Compare(item.Key(), after) <= 0 {
			continue
		}
		k := item.KeyCopy(nil)
		v, err := valueOf(item)
		if err != nil {
			return err
		}
		more, err := fn(k, v)
		if err != nil || !more {
			read.open, read.last = false, string(k)
			return err
		}
	}
	return nil
}

// translate gives Badger's errors the identities of the contract.
func translate(err error) error {
	switch {
	case err == nil, errors.Is(err, badgerdb.ErrConflict):
		return err
	case errors.Is(err, badgerdb.ErrKeyNotFound):
		return store.ErrNotFound
	case errors.Is(err, badgerdb.ErrTxnTooBig):
		return store.ErrTooLarge
	case errors.Is(err, badgerdb.ErrReadOnlyTxn):
		return store.ErrReadOnly
	case errors.Is(err, badgerdb.ErrDBClosed), errors.Is(err, badgerdb.ErrBlockedWrites):
		return store.ErrClosed
	}
	return fmt.Errorf("store: %w", err)
}

// users counts running transactions, so that Close can wait for them.
type users struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // closed when the last one leaves after close
}

func (u *users) enter() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return store.ErrClosed
	}
	u.n++
	return nil
}

func (u *users) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n--
	if u.n == 0 && u.closed {
		close(u.idle)
	}
}

func (u *users) close() {
	u.mu.Lock()
	u.closed = true
	u.idle = make(chan struct{})
	busy := u.n > 0
	u.mu.Unlock()
	if busy {
		<-u.idle
	}
}

// Package store is the contract of the gateway's key-value store.
//
// It promises serialisable transactions, durability on return and keys that cannot be
// confused with one another. It refuses to know what is stored: records, their encoding
// and their meaning belong to the packages that own them. The suite in storetest holds
// every implementation to this contract.
package store

import (
	"context"
	"errors"
)

var (
	// ErrNotFound is returned by [Tx.Get] for a key that has no value.
	ErrNotFound = errors.New("store: no such key")
	// ErrReadOnly is returned by [Tx.Set] and [Tx.Delete] inside [Store.View].
	ErrReadOnly = errors.New("store: the transaction is read only")
	// ErrTooLarge is returned when a key, a value or all changes of one transaction together
	// are over what the implementation takes: at least [MinKey], [MinValue] and [MinTx].
	ErrTooLarge = errors.New("store: too large for one transaction")
	// ErrClosed is returned by everything after [Store.Close].
	ErrClosed = errors.New("store: closed")
	// ErrBusy is returned by [Tx.Scan] from inside another scan of the same transaction.
	ErrBusy = errors.New("store: a scan is running in this transaction")
)

// What every implementation takes at least, in bytes. Durable ones take a value of 1 MiB and
// what its owner adds to it, too.
const (
	MinKey   = 4 << 10
	MinValue = 1<<20 - 1
	MinTx    = 4 << 20
)

// Store is an ordered map from byte strings to byte strings. Keys are compared bytewise,
// hence case sensitively. Implementations are safe for concurrent use.
type Store interface {
	// View runs fn over one consistent snapshot: nothing committed after View began is seen.
	View(ctx context.Context, fn func(Tx) error) error

	// Update runs fn and commits its changes all together, or none when fn returns an error,
	// which Update then returns as it is. Committed transactions are serialisable, ranges
	// included: a key that appears in a range fn scanned is a conflict. On a conflict fn runs
	// again, so fn must have no effect but its changes. When Update returns nil the changes
	// survive a crash of the process and of the machine. An error from the commit itself
	// leaves open whether they do.
	//
	// ctx bounds waiting and retries; a commit that began is not abandoned.
	Update(ctx context.Context, fn func(Tx) error) error

	// Close waits for running transactions. Calling it twice is safe.
	Close() error
}

// Tx is a transaction. It is valid until the function it was given to returns and serves
// one goroutine. A transaction sees its own changes.
type Tx interface {
	// Get returns a copy of the value, or [ErrNotFound]. A stored empty value is an empty,
	// non-nil slice.
	Get(key []byte) ([]byte, error)

	// Set stores copies of key and value. Keys are never empty.
	Set(key, value []byte) error

	// Delete removes a key. A key that is not there is no error.
	Delete(key []byte) error

	// Scan calls fn in ascending order of keys for every key that begins with prefix and is
	// greater than after (nil: from the first). k and v are copies that fn may keep. It ends
	// when fn answers more = false or an error, which Scan returns. fn may Get, Set and
	// Delete but not Scan; whether the running scan sees those changes is not defined.
	Scan(prefix, after []byte, fn func(k, v []byte) (more bool, err error)) error
}

package files

import (
	"container/list"
	"sync"
)

// Outcome is what a ledger answers. The zero value is that it cannot answer, which is not
// the same as never read (M10).
type Outcome uint8

const (
	Unavailable Outcome = iota
	NeverRead
	Known
)

// Reader is whom a ledger keeps versions for: a session in its workspace.
type Reader struct{ Session, Workspace string }

// Ledger remembers which version of which path a session saw last (M3). Paths are canonical
// (M11). Implementations are safe for concurrent use.
type Ledger interface {
	// Lookup answers Known with the version, or one of the other outcomes.
	Lookup(r Reader, path string) (version string, o Outcome)
	// Record notes the version; false means that it could not.
	Record(r Reader, path, version string) bool
	// Forget drops one path.
	Forget(r Reader, path string)
	// Close drops everything of a session.
	Close(session string)
}

// Bounds of the ledger in memory. Past them the entry unused for longest is dropped, which
// makes another read necessary and never makes one unnecessary.
const (
	ledgerReaders = 10_000
	ledgerPaths   = 4_096
)

// NewLedger returns a ledger in memory that keeps at most readers sessions and paths
// versions of each; 0 takes the default of 10,000 and 4,096.
func NewLedger(readers, paths int) Ledger {
	if readers <= 0 {
		readers = ledgerReaders
	}
	if paths <= 0 {
		paths = ledgerPaths
	}
	return &memoryLedger{readers: newRecent[Reader, *recent[string, string]](readers), paths: paths}
}

type memoryLedger struct {
	mu      sync.Mutex
	readers *recent[Reader, *recent[string, string]]
	paths   int
}

func (l *memoryLedger) Lookup(r Reader, path string) (string, Outcome) {
	if r.Session == "" {
		return "", Unavailable
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if seen, ok := l.readers.get(r); ok {
		if v, ok := seen.get(path); ok {
			return v, Known
		}
	}
	return "", NeverRead
}

func (l *memoryLedger) Record(r Reader, path, version string) bool {
	if r.Session == "" {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	seen, ok := l.readers.get(r)
	if !ok {
		seen = newRecent[string, string](l.paths)
		l.readers.put(r, seen)
	}
	seen.put(path, version)
	return true
}

func (l *memoryLedger) Forget(r Reader, path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seen, ok := l.readers.get(r); ok {
		seen.drop(path)
	}
}

func (l *memoryLedger) Close(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.readers.at {
		if r.Session == session {
			l.readers.drop(r)
		}
	}
}

// recent is a map of at most max entries that gives up the one unused for longest.
type recent[K comparable, V any] struct {
	max   int
	at    map[K]*list.Element
	order *list.List // front: used last
}

type recentEntry[K comparable, V any] struct {
	key   K
	value V
}

func newRecent[K comparable, V any](max int) *recent[K, V] {
	return &recent[K, V]{max: max, at: map[K]*list.Element{}, order: list.New()}
}

func (r *recent[K, V]) get(k K) (v V, ok bool) {
	e := r.at[k]
	if e == nil {
		return v, false
	}
	r.order.MoveToFront(e)
	return e.Value.(*recentEntry[K, V]).value, true
}

func (r *recent[K, V]) put(k K, v V) {
	if e := r.at[k]; e != nil {
		e.Value.(*recentEntry[K, V]).value = v
		r.order.MoveToFront(e)
		return
	}
	if len(r.at) >= r.max {
		r.drop(r.order.Back().Value.(*recentEntry[K, V]).key)
	}
	r.at[k] = r.order.PushFront(&recentEntry[K, V]{k, v})
}

func (r *recent[K, V]) drop(k K) {
	if e := r.at[k]; e != nil {
		r.order.Remove(e)
		delete(r.at, k)
	}
}

package catalogue

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/ecotone-dev/ecotone/abi"
)

// Kept remembers what another catalogue knew, for as long as nothing can have changed it: until the
// version, which is of everything that could, is another. So an answer is as live as without it
// (X12), and a question costs no transaction. That something is not known, and failures, are
// not remembered. Safe for concurrent use.
type Kept struct {
	next    Catalogue
	version func() uint64
	known   atomic.Pointer[remembered]
}

// remembered are answers of one version.
type remembered struct {
	version uint64
	reach   sync.Map // question → abi.Reach
}

type question struct {
	org, digest string
	ref         abi.CapabilityRef
}

var _ Catalogue = (*Kept)(nil)

// NewKept puts a memory before next. version must have risen before a change of what next answers is
// relied on; it is asked with every question.
func NewKept(next Catalogue, version func() uint64) *Kept {
	return &Kept{next: next, version: version}
}

// Reach implements [Catalogue].
func (k *Kept) Reach(ctx context.Context, org, digest string, ref abi.CapabilityRef) (abi.Reach, bool, error) {
	now, q := k.version(), question{org, digest, ref}
	known := k.known.Load()
	if known == nil || known.version != now {
		known = &remembered{version: now}
		k.known.Store(known)
	}
	if r, ok := known.reach.Load(q); ok {
		return r.(abi.Reach), true, nil
	}
	// An answer that is newer than the version it is remembered under is asked for again with the
	// next one; none is ever older.
	r, ok, err := k.next.Reach(ctx, org, digest, ref)
	if ok && err == nil {
		known.reach.Store(q, r)
	}
	return r, ok, err
}

package policy

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// faulty is a store with a disk that can go, before or after what it was told to write is written.
type faulty struct {
	store.Store
	gone    atomic.Bool // nothing can be read or written
	full    atomic.Bool // nothing can be written
	forgets atomic.Bool // what is written is written, and the disk is gone before it says so
}

var errDisk = errors.New("the disk is gone")

func (f *faulty) View(ctx context.Context, fn func(store.Tx) error) error {
	if f.gone.Load() {
		return errDisk
	}
	return f.Store.View(ctx, fn)
}

func (f *faulty) Update(ctx context.Context, fn func(store.Tx) error) error {
	if f.gone.Load() || f.full.Load() {
		return errDisk
	}
	err := f.Store.Update(ctx, fn)
	if f.forgets.Load() {
		return errDisk
	}
	return err
}

func onFaulty(t *testing.T) (*server, *faulty) {
	t.Helper()
	disk := &faulty{Store: memory(t)}
	return startOn(t, disk, false, 0), disk
}

// PF-A20: with the policy store gone nothing is allowed, whatever was; a running invocation ends at its
// next look; and all of it goes on when the store is back.
func TestStoreGone(t *testing.T) {
	s, disk := onFaulty(t)
	s.notesInProject()
	sess, _ := s.session(SessionRequest{Environment: env("project")})
	must(t, s.Probe(t.Context()))
	snap, f, d := s.decide(sess, notes)
	a := s.Authorize(snap, f, &d, session26, time.Time{}, nil)
	if a == nil || a.Current() != nil {
		t.Fatalf("%+v", d.Explain())
	}
	var told []bool
	s.OnChange(func(n *gate.Snapshot) { told = append(told, n.Stale) })

	disk.gone.Store(true)
	code(t, s.Probe(t.Context()), abi.CodePolicyStale)
	code(t, s.Probe(t.Context()), abi.CodePolicyStale)
	s.decides(sess, notes, abi.CodePolicyStale)
	s.decides(sess, relay, abi.CodePolicyStale)
	code(t, asError(a.Current()), abi.CodePolicyStale)
	_, err := s.RevokeGrant(t.Context(), s.op, DefaultOrg, f.Subject.ID())
	code(t, err, abi.CodePolicyStale)
	disk.gone.Store(false)
	must(t, s.Probe(t.Context()))
	s.decides(sess, notes, "")
	if err := a.Current(); err != nil {
		t.Errorf("it was not ended, and is: %v", err)
	}
	if len(told) != 2 || !told[0] || told[1] {
		t.Errorf("told %v", told)
	}
}

// PF-A20: a disk that takes no writes takes no revocations: it can be read, and is not one to go by until it
// can be written.
func TestStoreFull(t *testing.T) {
	s, disk := onFaulty(t)
	g := s.notesInProject()
	sess, _ := s.session(SessionRequest{Environment: env("project")})
	disk.full.Store(true)
	s.decides(sess, notes, "") // nobody tried
	_, err := s.RevokeGrant(t.Context(), s.op, DefaultOrg, g.ID)
	code(t, err, abi.CodeNotReady)
	s.decides(sess, notes, abi.CodePolicyStale)
	code(t, s.Probe(t.Context()), abi.CodePolicyStale)
	disk.full.Store(false)
	must(t, s.Probe(t.Context()))
	s.decides(sess, notes, "") // it was not revoked, as its revoker was told
	_, err = s.RevokeGrant(t.Context(), s.op, DefaultOrg, g.ID)
	must(t, err)
	s.decides(sess, notes, abi.CodeMissingGrant)
}

// PF-A20: a revocation that was written, and of which the store could not say so, is in force: at once when
// the store can be asked, otherwise with the first answer. Until then nothing is decided by what was.
func TestRevocationInDoubt(t *testing.T) {
	for name, gone := range map[string]bool{"the store can be asked": false, "it is gone": true} {
		t.Run(name, func(t *testing.T) {
			s, disk := onFaulty(t)
			g := s.notesInProject()
			sess, _ := s.session(SessionRequest{Environment: env("project")})
			before := s.Snapshot().Generation
			s.audit.before = func(Event) { disk.forgets.Store(true); s.audit.before = nil }
			hold := &once{Store: disk, after: func() { disk.forgets.Store(false); disk.gone.Store(gone) }}
			s.Service.store = hold
			_, err := s.RevokeGrant(t.Context(), s.op, DefaultOrg, g.ID)
			if !gone {
				must(t, err)
			} else {
				code(t, err, abi.CodeNotReady)
				s.decides(sess, notes, abi.CodePolicyStale)
				if last := s.audit.last(); last.Code != abi.CodeNotReady {
					t.Errorf("%+v", last)
				}
				disk.gone.Store(false)
				must(t, s.Probe(t.Context()))
				if last := s.audit.last(); last.Code != "" || last.Name != string(OpGrantRevoke) {
					t.Errorf("the last word on it is %+v", last)
				}
			}
			s.decides(sess, notes, abi.CodeMissingGrant)
			if now := s.Snapshot(); now.Generation != before+1 || now.Stale {
				t.Errorf("%d changes after %d, %v", now.Generation, before, now.Stale)
			}
			s.grant(ada, notes, "project")
			s.again()
		})
	}
}

// once is a store that does something after its first write.
type once struct {
	store.Store
	first sync.Once
	after func()
}

func (o *once) Update(ctx context.Context, fn func(store.Tx) error) error {
	defer o.first.Do(o.after)
	return o.Store.Update(ctx, fn)
}

// S18, PF-A20: a store that is another one than it was, under a running server, is not one to go by.
func TestStoreChangedUnderneath(t *testing.T) {
	s, disk := onFaulty(t)
	before := copyOf(t, disk.Store)
	g := s.notesInProject()
	_, err := s.RevokeGrant(t.Context(), s.op, DefaultOrg, g.ID)
	must(t, err)
	mine := disk.Store
	disk.Store = before
	code(t, s.Probe(t.Context()), abi.CodePolicyStale)
	disk.Store = mine
	must(t, s.Probe(t.Context()))
}

// session26 is an invocation's id.
const session26 = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

package policy

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// Policy in memory counts as long as it is known to be the newest. When the store cannot be asked, or a
// change may or may not have been made, a revocation may be what is missing: then the snapshot is stale,
// and the gate denies everything, until the store answers, takes a write, and holds what is expected
// (PF-A20).

// How often the store is asked, and how long it may take to answer.
const (
	probeEvery    = time.Second
	probePatience = 10 * time.Second
)

// doubt is a change of which it is not known whether the store has it.
type doubt struct {
	change *change
	event  Event
	at     head
	tally  tally
	told   bool // its caller was told that it was not made
}

// Watch asks the store every second whether policy is still the newest, until ctx ends. A store that
// does not answer makes it stale as one does that answers with an error.
func (s *Service) Watch(ctx context.Context) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	answered := make(chan struct{}, 1)
	answered <- struct{}{}
	for {
		select {
		case <-ctx.Done():
			<-answered
			return
		case <-tick.C:
		}
		if asked := s.asked.Load(); asked != nil && time.Since(*asked) > probePatience {
			s.suspect()
		}
		select {
		case <-answered:
			go func() {
				_ = s.Probe(ctx) // what it finds is in the snapshot
				answered <- struct{}{}
			}()
		default:
		}
	}
}

// Probe asks the store whether policy is the newest, and reports POLICY_STALE when that is not so or not
// known. While a change is under way, that asks already.
func (s *Service) Probe(ctx context.Context) error {
	if !s.writer.TryLock() {
		if s.Snapshot().Stale {
			return notSound(nil)
		}
		return nil
	}
	defer s.writer.Unlock()
	return asError(s.settle(context.WithoutCancel(ctx))) // whoever asks may leave; what is found is everybody's
}

func notSound(cause error) *abi.Error {
	return abi.Errorf(abi.CodePolicyStale, "the policy that is known may not be the newest, so nothing runs").WithCause(cause)
}

// ask is one question to the store, or one change; how long it has been asked is looked at by Watch.
func (s *Service) ask(fn func() error) error {
	now := time.Now()
	s.asked.Store(&now)
	defer s.asked.Store(nil)
	return fn()
}

// publish puts a snapshot into force and tells of it.
func (s *Service) publish(next *gate.Snapshot) {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	s.tell(next)
}

func (s *Service) tell(next *gate.Snapshot) {
	s.snap.Store(next)
	for _, fn := range s.onChange {
		fn(next)
	}
}

// mistrust makes the snapshot stale, or what it was before, unless it is so already.
func (s *Service) mistrust(stale bool) {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	if now := s.Snapshot(); now.Stale != stale {
		next := *now
		next.Stale = stale
		s.tell(&next)
	}
}

// suspect makes the snapshot stale. It needs no lock that a change holds.
func (s *Service) suspect() { s.mistrust(true) }

// settle finds out, under writer, whether what is known is the newest, and has the snapshot say so. A
// change in doubt that was made is put into force.
func (s *Service) settle(ctx context.Context) *abi.Error {
	found, err := s.lookUp(ctx, s.Snapshot().Stale)
	switch d := s.doubt; {
	case err != nil:
	case found == s.head:
		s.doubt = nil
	case d != nil && found == d.at:
		s.doubt, s.head, s.tally = nil, d.at, d.tally
		s.passed(d.at)
		if err = s.enforce(d.change, d.at.generation); err == nil && d.told {
			err = s.record(ctx, d.event) // that it was made is the last word on it
		}
	default:
		err = errors.New("the store holds other changes than were made here")
	}
	if err == nil {
		err = s.remember()
	}
	if err != nil {
		s.suspect()
		return notSound(err)
	}
	s.mistrust(false)
	return nil
}

// lookUp reads where the store's chain is. When that was in doubt a write must succeed too: a store that
// takes no revocation is not one to go by.
func (s *Service) lookUp(ctx context.Context, write bool) (at head, err error) {
	look := func(tx store.Tx) error {
		at = head{}
		n, err := tx.Get(generationKey)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := json.Unmarshal(n, &at.generation); err != nil {
			return err
		}
		record, err := tx.Get(changeKey(at.generation))
		if err != nil {
			return err
		}
		at.hash = hashOf(at.generation, record)
		if write {
			return tx.Set(generationKey, n)
		}
		return nil
	}
	err = s.ask(func() error {
		if write {
			return s.store.Update(ctx, look)
		}
		return s.store.View(ctx, look)
	})
	return at, err
}

package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/rate"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// Service owns the policy of one server. It is safe for concurrent use and starts nothing.
type Service struct {
	store        store.Store
	audit        Auditor
	dev          bool
	maxSessions  int64
	maxApprovals int64
	rates        gate.Rates
	clock        func() time.Time
	keep         func(First) error

	snap atomic.Pointer[gate.Snapshot]
	live *sessions

	writer   sync.Mutex // held over every change, from the check of the role to the new snapshot
	onChange []func(*gate.Snapshot)

	mu    sync.RWMutex // guards state
	state *state
}

// Open loads all records. A record that does not decode, or does not fit the others, is an
// error: nobody's rights are guessed.
func Open(ctx context.Context, st store.Store, o Options) (*Service, error) {
	s := &Service{store: st, audit: o.Auditor, dev: o.Dev, maxSessions: o.Sessions, clock: o.Clock, keep: o.Keep, live: newSessions()}
	if s.maxApprovals = o.Approvals; s.maxApprovals <= 0 {
		s.maxApprovals = abi.LimitPendingApprovals.Info().Default
	}
	if s.maxSessions <= 0 {
		s.maxSessions = abi.LimitSessions.Info().Default
	}
	s.rates = o.Rates
	if s.rates.Subject == 0 {
		s.rates.Subject = rate.DefaultSubject
	}
	if s.rates.Client == 0 {
		s.rates.Client = rate.DefaultClient
	}
	if !s.rates.Subject.Valid() || !s.rates.Client.Valid() {
		return nil, abi.Errorf(abi.CodeInvalidRequest, "a rate of new organisations must be from 1 to %d an hour", rate.MaxPerHour)
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	s.state = newState(o.Dev, s.live)
	if err := st.View(ctx, s.load); err != nil {
		return nil, abi.Errorf(abi.CodeInternal, "the policy records cannot be loaded: %w", err)
	}
	s.snap.Store(s.state.snapshot())
	return s, nil
}

var generationKey = store.Key(keySpace, "generation")

// changeKey is where the numbered record of a change is kept.
func changeKey(n uint64) []byte { return store.Key(keySpace, "change", store.Number(n)) }

func (s *Service) load(tx store.Tx) error {
	n, err := tx.Get(generationKey)
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return err
	case json.Unmarshal(n, &s.state.generation) != nil:
		return errors.New("the generation does not decode")
	}
	if g := s.state.generation; g > 0 {
		if _, err := tx.Get(changeKey(g)); err != nil {
			return fmt.Errorf("the record of change %d: %w", g, err)
		}
	}
	now := s.clock()
	for _, t := range tables {
		err := tx.Scan(prefixOf(t.kind), nil, func(_, v []byte) (bool, error) { return true, t.load(s.state, v) })
		if err != nil {
			return err
		}
	}
	return s.loadMarks(tx, now)
}

// loadMarks gives every open session its mark back, and forgets the expired ones.
func (s *Service) loadMarks(tx store.Tx, now time.Time) error {
	for org := range s.live.orgs {
		s.live.count(org, now)
	}
	for id, l := range s.live.live.Load().All() {
		mark, err := loadMark(tx, id)
		if err != nil {
			return err
		}
		l.marked(mark)
	}
	s.live.loaded()
	s.state.limitsAt = s.state.generation
	return nil
}

// Snapshot is the newest policy. It is immutable.
func (s *Service) Snapshot() *gate.Snapshot { return s.snap.Load() }

// OnChange has fn called with every new snapshot, after it is in force and before the change
// is answered. Calls come one at a time; fn must be quick and must not change policy.
func (s *Service) OnChange(fn func(*gate.Snapshot)) {
	s.writer.Lock()
	defer s.writer.Unlock()
	s.onChange = append(s.onChange, fn)
}

// change is what a request comes to.
type change struct {
	records []any // written and applied in this order
	extra   []pair
	org     string // whose shard changes; "" when none does
	limits  bool   // the environments change
	target  string // when it is not known before, as a new id
}

// pair is something of another package that is written with the change.
type pair struct{ key, value []byte }

// intent is who wants to change what.
type intent struct {
	by     session.Principal
	op     Op
	org    string
	target string
	fields []string
	actor  string // who does it, when that is no principal
	// may replaces the table of roles when it is set.
	may func(*state) error
}

// apply carries a change through: role, request (plan), audit event, transaction, snapshot.
// plan reads the state and decides; it changes nothing. A nil change is none at all.
func (s *Service) apply(ctx context.Context, in intent, plan func(*state) (*change, error)) error {
	s.writer.Lock()
	defer s.writer.Unlock()

	e := Event{Name: string(in.op), Org: in.org, Principal: in.by.Name(), Role: string(in.by.Role), Target: in.target, Fields: in.fields, At: s.clock().UTC()}
	if in.actor != "" {
		e.Principal, e.Role = in.actor, ""
	}
	c, err := s.planned(in, plan)
	if err != nil {
		e.Code = abi.CodeOf(err)
		if audit := s.record(context.WithoutCancel(ctx), e); audit != nil {
			return audit
		}
		return err
	}
	if c == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // a caller that leaves must not come between the event and the change
	e.Generation = s.state.generation + 1
	if c.target != "" {
		e.Target = c.target
	}
	if err := s.record(ctx, e); err != nil {
		return err
	}
	if err := s.commit(ctx, c, e); err != nil {
		e.Code = abi.CodeNotReady
		return errors.Join(abi.Errorf(abi.CodeNotReady, "the policy could not be written: %w", err), s.record(ctx, e))
	}
	return s.enforce(c, e.Generation)
}

func (s *Service) planned(in intent, plan func(*state) (*change, error)) (*change, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var err error
	if in.may != nil {
		err = in.may(s.state)
	} else {
		err = Allowed(in.by, in.op, in.org)
	}
	if err != nil {
		return nil, err
	}
	return plan(s.state)
}

func (s *Service) record(ctx context.Context, e Event) error {
	err := errors.New("there is no auditor")
	if s.audit != nil {
		err = s.audit.Admin(ctx, e)
	}
	if err != nil {
		return abi.Errorf(abi.CodeAuditUnavailable, "the change could not be recorded, so it was not made: %w", err)
	}
	return nil
}

func (s *Service) commit(ctx context.Context, c *change, e Event) error {
	numbered, err := json.Marshal(e)
	if err != nil {
		return err
	}
	generation, err := json.Marshal(e.Generation)
	if err != nil {
		return err
	}
	return s.store.Update(ctx, func(tx store.Tx) error {
		for _, r := range c.records {
			if err := put(tx, r); err != nil {
				return err
			}
		}
		for _, p := range append([]pair{{generationKey, generation}, {changeKey(e.Generation), numbered}}, c.extra...) {
			if err := tx.Set(p.key, p.value); err != nil {
				return err
			}
		}
		return nil
	})
}

// enforce puts a committed change into force.
func (s *Service) enforce(c *change, generation uint64) error {
	next, err := s.advance(c, generation)
	if err != nil {
		return err
	}
	s.snap.Store(next)
	for _, fn := range s.onChange {
		fn(next)
	}
	return nil
}

// advance takes a change into the state and makes the snapshot of it.
func (s *Service) advance(c *change, generation uint64) (*gate.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state
	st.generation = generation
	for _, r := range c.records {
		if err := st.apply(r); err != nil {
			return nil, abi.Errorf(abi.CodeInternal, "the change was written and does not apply: %w", err)
		}
	}
	if st.orgs[c.org] != nil {
		st.changed[c.org] = struct{}{}
	}
	if c.limits {
		st.limitsAt = generation
	}
	return st.snapshot(), nil
}

// read runs fn over the state when the role allows it.
func (s *Service) read(p session.Principal, op Op, org string, fn func(*state, *orgState) error) error {
	if err := Allowed(p, op, org); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	o := s.state.orgs[org]
	if o == nil {
		return notThere("organisation", org)
	}
	return fn(s.state, o)
}

func notThere(what, name string) error {
	return abi.Errorf(abi.CodeNotFound, "there is no %s %s", what, abi.Quote(name))
}

// check compares the revision a change starts from with the one there is; 0 is none.
func (e Expect) check(have uint64) error {
	switch {
	case e == Unstated && have != 0:
		return abi.Errorf(abi.CodePreconditionNeeded, "it is there already, at revision %d; say with If-Match which revision you change", have)
	case e == Unstated:
		return nil
	case e == Absent && have != 0:
		return abi.Errorf(abi.CodeAlreadyExists, "it is there already")
	case uint64(e) != have:
		return abi.Errorf(abi.CodePreconditionFailed, "it changed: the revision is %d", have)
	}
	return nil
}

package policy

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/gate"
	"github.com/ecotone-dev/ecotone/gateway/rate"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// Service owns the policy of one server. It is safe for concurrent use and starts nothing: whoever opened it runs Watch.
type Service struct {
	store        store.Store
	audit        Auditor
	dev          bool
	maxUploads   int64
	maxSessions  int64
	maxApprovals int64
	rates        gate.Rates
	wall         func() time.Time // the machine's
	clock        func() time.Time // policy's
	keep         func(First) error
	mark         *Mark // nil: none is kept

	snap atomic.Pointer[gate.Snapshot]
	live *sessions

	writer     sync.Mutex // held over every change, from the check of the role to the new snapshot; guards what follows
	head       head       // of the chain
	tally      tally      // of the records
	checkpoint head       // at or before head
	every      uint64     // changes between checkpoints
	doubt      *doubt     // a change that may have been made; nil: none

	asked atomic.Pointer[time.Time] // since when the store is asked about policy; nil: it is not

	publishing sync.Mutex // held while a snapshot is put into force; guards onChange
	onChange   []func(*gate.Snapshot)

	mu    sync.RWMutex // guards state
	state *state
}

// Open loads all records. A record that does not decode, or does not fit the others, is an
// error: nobody's rights are guessed.
func Open(ctx context.Context, st store.Store, o Options) (*Service, error) {
	s := &Service{store: st, audit: o.Auditor, dev: o.Dev, maxSessions: o.Sessions, keep: o.Keep, mark: o.Mark, every: o.checkpoints, live: newSessions()}
	if s.every == 0 {
		s.every = checkpointEvery
	}
	if s.maxApprovals = o.Approvals; s.maxApprovals <= 0 {
		s.maxApprovals = abi.LimitPendingApprovals.Info().Default
	}
	if s.maxUploads = o.Uploads; s.maxUploads <= 0 {
		s.maxUploads = abi.LimitUploads.Info().Default
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
	s.startClock(o)
	s.state = newState(o.Dev, s.live)
	if err := st.View(ctx, func(tx store.Tx) error { return s.load(tx, o.AcceptMark) }); err != nil {
		var own *abi.Error
		if errors.As(err, &own) && own.Code == abi.CodePolicyStale {
			return nil, own
		}
		return nil, abi.Errorf(abi.CodeInternal, "the policy records cannot be loaded: %w", err)
	}
	if err := s.catchUp(o); err != nil {
		return nil, abi.Errorf(abi.CodeNotReady, "the policy mark cannot be written: %w", err)
	}
	s.snap.Store(s.state.snapshot())
	return s, nil
}

// startClock makes policy's time begin where it was.
func (s *Service) startClock(o Options) {
	floor := o.Seen
	if s.wall = o.Clock; s.wall == nil {
		s.wall = time.Now
	}
	if s.mark != nil {
		floor = s.mark.floor(o.Seen)
	}
	if o.AcceptMark {
		floor = time.Time{}
	}
	s.clock = newClock(s.wall, floor).now
}

func (s *Service) load(tx store.Tx, accept bool) error {
	if err := s.loadChain(tx, accept); err != nil {
		return err
	}
	now := s.clock()
	var loaded tally
	for _, t := range tables {
		err := tx.Scan(prefixOf(t.kind), nil, func(k, v []byte) (bool, error) {
			if !t.apart {
				loaded.add(k, v)
			}
			return true, t.load(s.state, v)
		})
		if err != nil {
			return err
		}
	}
	if err := s.checkTally(loaded); err != nil {
		return err
	}
	return s.loadMarks(tx, now)
}

// catchUp makes the mark say where the store is, when a crash came between the two or the operator
// accepts it as it is.
func (s *Service) catchUp(o Options) error {
	switch {
	case s.mark == nil:
		return nil
	case o.AcceptMark:
		at := s.marked()
		if o.Seen.After(at.time) {
			at.ignored = o.Seen
		}
		return s.mark.replace(at)
	}
	return s.remember()
}

// remember brings the mark to where the store is. While that fails nothing is changed: a store is
// never two changes ahead.
func (s *Service) remember() error {
	if s.mark == nil || s.head == s.mark.at.head {
		return nil
	}
	return s.mark.advance(s.marked())
}

// marked is what the mark should say.
func (s *Service) marked() marked {
	m := marked{head: s.head, checkpoint: s.checkpoint, time: s.clock()}
	if s.mark != nil {
		m.ignored = s.mark.at.ignored
	}
	return m
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

// Now is the time by which rights run out and approvals expire: policy's own, which never goes back (S18).
func (s *Service) Now() time.Time { return s.clock().UTC() }

// Snapshot is the newest policy. It is immutable.
func (s *Service) Snapshot() *gate.Snapshot { return s.snap.Load() }

// OnChange has fn called with every new snapshot, after it is in force and before the change
// is answered. Calls come one at a time; fn must be quick and must not change policy.
func (s *Service) OnChange(fn func(*gate.Snapshot)) {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	s.onChange = append(s.onChange, fn)
}

// change is what a request comes to.
type change struct {
	records []any // written and applied in this order
	gone    []any // removed, before any is written
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
	c, err := s.planned(ctx, in, plan)
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
		return s.unwritten(ctx, e, err)
	}
	if err := s.enforce(c, e.Generation); err != nil {
		return err
	}
	if err := s.remember(); err != nil {
		s.suspect()
		return abi.Errorf(abi.CodeNotReady, "the change is in force, and its mark could not be kept: %w", err)
	}
	return nil
}

// planned is the change that a request comes to, under policy that is known to be the newest.
func (s *Service) planned(ctx context.Context, in intent, plan func(*state) (*change, error)) (*change, error) {
	if s.Snapshot().Stale {
		if err := s.settle(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
	}
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

// commit makes a change durable in the store.
func (s *Service) commit(ctx context.Context, c *change, e Event) error {
	var at head
	var total tally
	err := s.ask(func() error {
		return s.store.Update(ctx, func(tx store.Tx) (err error) {
			at, total, err = s.write(tx, c, e)
			return err
		})
	})
	if err != nil {
		s.doubt = &doubt{change: c, event: e, at: at, tally: total}
		return err
	}
	s.head, s.tally = at, total
	s.passed(at)
	return nil
}

// passed remembers a change from which a later start may begin to read.
func (s *Service) passed(at head) {
	if at.generation%s.every == 0 {
		s.checkpoint = at
	}
}

// unwritten settles a change whose transaction ended with an error: it was made all the same, or it was
// not, or that is not known yet, and until it is nothing is decided.
func (s *Service) unwritten(ctx context.Context, e Event, cause error) error {
	s.suspect()
	unknown := s.settle(ctx)
	if s.head.generation == e.Generation {
		return asError(unknown)
	}
	if s.doubt != nil {
		s.doubt.told = true
	}
	failed := e
	failed.Code = abi.CodeNotReady
	return errors.Join(abi.Errorf(abi.CodeNotReady, "the policy could not be written: %w", cause), s.record(ctx, failed))
}

// enforce puts a committed change into force.
func (s *Service) enforce(c *change, generation uint64) error {
	next, err := s.advance(c, generation)
	if err != nil {
		return err
	}
	s.publish(next)
	return nil
}

// advance takes a change into the state and makes the snapshot of it.
func (s *Service) advance(c *change, generation uint64) (*gate.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state
	st.generation = generation
	for _, r := range c.gone {
		st.forget(r)
	}
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
		return abi.Errorf(abi.CodePreconditionFailed, "it is there already, at revision %d", have)
	case uint64(e) != have:
		return abi.Errorf(abi.CodePreconditionFailed, "it changed: the revision is %d", have)
	}
	return nil
}

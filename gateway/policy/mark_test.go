package policy

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/session"
	"github.com/ecotone-dev/ecotone/gateway/store"
	"github.com/ecotone-dev/ecotone/gateway/store/badger"
)

var testMarkKey = bytes.Repeat([]byte{7}, 32)

// marks is a policy with a mark, of which the store and the mark can be put back.
type marks struct {
	t    *testing.T
	path string
	now  time.Time
}

// open opens a policy over a store, and closes nothing: a policy has nothing to close.
func (m *marks) open(st store.Store, change ...func(*Options)) (*server, error) {
	m.t.Helper()
	mark, err := OpenMark(m.path, testMarkKey)
	must(m.t, err)
	s := &server{t: m.t, store: st, audit: &recorder{}, now: m.now}
	o := Options{Auditor: s.audit, Clock: func() time.Time { return m.now }, Mark: mark, checkpoints: 4}
	for _, c := range change {
		c(&o)
	}
	if s.Service, err = Open(m.t.Context(), st, o); err != nil {
		return nil, err
	}
	_, err = s.Bootstrap(m.t.Context())
	must(m.t, err)
	s.op = session.Principal{ID: operatorPrincipal, Org: DefaultOrg, Role: session.Operator}
	return s, nil
}

func accept(o *Options) { o.AcceptMark = true }

func (m *marks) must(st store.Store, change ...func(*Options)) *server {
	m.t.Helper()
	s, err := m.open(st, change...)
	must(m.t, err)
	return s
}

func newMarks(t *testing.T) (*marks, *server) {
	t.Helper()
	m := &marks{t: t, path: filepath.Join(t.TempDir(), "policy.mark"), now: noon}
	s := m.must(memory(t))
	s.upload(DefaultOrg, "notes", 1, notes)
	return m, s
}

func memory(t tester) store.Store {
	t.Helper()
	st, err := badger.OpenMemory()
	must(t, err)
	t.Cleanup(func() { st.Close() })
	return st
}

// copyOf is a store with the same content: a backup.
func copyOf(t tester, from store.Store) store.Store {
	t.Helper()
	to := memory(t)
	must(t, from.View(t.Context(), func(tx store.Tx) error {
		return to.Update(t.Context(), func(out store.Tx) error {
			return tx.Scan(nil, nil, func(k, v []byte) (bool, error) { return true, out.Set(k, v) })
		})
	}))
	return to
}

// forge changes records so that they look as if the last change had left them so: a store that another
// version wrote, or somebody who knows how.
func forge(t *testing.T, st store.Store, change func(store.Tx) error) {
	t.Helper()
	must(t, st.Update(t.Context(), change))
	must(t, st.Update(t.Context(), func(tx store.Tx) error {
		var total tally
		for _, table := range tables {
			if table.apart {
				continue
			}
			if err := tx.Scan(prefixOf(table.kind), nil, func(k, v []byte) (bool, error) { total.add(k, v); return true, nil }); err != nil {
				return err
			}
		}
		var key, record []byte
		if err := tx.Scan(changes, nil, func(k, v []byte) (bool, error) { key, record = k, v; return true, nil }); err != nil {
			return err
		}
		l, err := decodeLink(record)
		if err != nil {
			return err
		}
		l.tally = total
		return tx.Set(key, l.encode())
	}))
}

func (m *marks) file() []byte {
	m.t.Helper()
	data, err := os.ReadFile(m.path)
	must(m.t, err)
	return data
}

func (m *marks) put(data []byte) {
	m.t.Helper()
	must(m.t, os.WriteFile(m.path, data, 0o600))
}

// S18: a store of yesterday is refused, and taken when the operator says so; then it is what counts.
func TestRolledBackStore(t *testing.T) {
	m, s := newMarks(t)
	g := s.grant(ada, notes, "project")
	yesterday := copyOf(t, s.store)
	_, err := s.RevokeGrant(t.Context(), s.op, DefaultOrg, g.ID)
	must(t, err)
	m.must(s.store)
	_, err = m.open(yesterday)
	code(t, err, abi.CodePolicyStale)
	m.must(s.store) // a refusal changes nothing
	back := m.must(yesterday, accept)
	if len(back.Snapshot().Orgs.At(DefaultOrg).Held(ada, notes)) != 1 {
		t.Error("what was accepted is not what was put back")
	}
	back.grant("user:bob", notes, "project")
	m.must(yesterday)
	_, err = m.open(s.store) // which is the one of another history now
	code(t, err, abi.CodePolicyStale)
}

// S18: a store whose history is another one, though it is as long, is not the one that was marked.
func TestAnotherHistory(t *testing.T) {
	m, s := newMarks(t)
	fork := copyOf(t, s.store)
	s.grant(ada, notes, "project")
	mark := m.file()
	must(t, os.Remove(m.path))
	other := m.must(fork, accept)
	other.upload(DefaultOrg, "other", 2, relay)
	if a, b := s.Snapshot().Generation, other.Snapshot().Generation; a != b {
		t.Fatalf("%d and %d changes", a, b)
	}
	m.put(mark)
	_, err := m.open(fork)
	code(t, err, abi.CodePolicyStale)
	m.must(s.store)
}

// S18: between the store and the mark a crash may come: the store is one change further, and no more.
func TestCrashBeforeTheMark(t *testing.T) {
	m, s := newMarks(t)
	before := m.file()
	s.grant(ada, notes, "project")
	one := m.file()
	g := s.grant("user:bob", notes, "project")
	m.put(one)
	again := m.must(s.store)
	if bytes.Equal(m.file(), one) {
		t.Error("the mark was not made up for")
	}
	if len(again.Snapshot().Orgs.At(DefaultOrg).Held("user:bob", notes)) != 1 {
		t.Errorf("%s is lost", g.ID)
	}
	m.put(before)
	_, err := m.open(s.store)
	code(t, err, abi.CodePolicyStale)
}

// S18: a first start that was cut off before the mark was made is no loss; a mark that is gone later is one.
func TestNoMark(t *testing.T) {
	m := &marks{t: t, path: filepath.Join(t.TempDir(), "policy.mark"), now: noon}
	s := m.must(memory(t))
	must(t, os.Remove(m.path))
	m.must(s.store)
	s.upload(DefaultOrg, "notes", 1, notes)
	must(t, os.Remove(m.path))
	_, err := m.open(s.store)
	code(t, err, abi.CodePolicyStale)
	_, err = m.open(memory(t)) // nothing is marked, and nothing there
	must(t, err)
	_, err = m.open(s.store)
	code(t, err, abi.CodePolicyStale)
	m.must(s.store, accept)
	m.must(s.store)
	_, err = m.open(memory(t)) // an empty store where there was one that was not
	code(t, err, abi.CodePolicyStale)
}

// S18: a mark that was being written when the power went is made up for from its other place, and only
// the change it was of may be in the store. A mark that is damaged otherwise is none.
func TestTornMark(t *testing.T) {
	m, s := newMarks(t)
	before := copyOf(t, s.store)
	s.grant(ada, notes, "project")
	whole := m.file()
	mark, err := OpenMark(m.path, testMarkKey)
	must(t, err)
	// What a start does rests on what is read of the mark, and that is the same however the place is torn: a
	// start is tried with a few, and the reading with all.
	var read *marked
	tried := 0
	rapid.Check(t, func(rt *rapid.T) {
		torn := bytes.Clone(whole)
		from := mark.place * markPlace
		at := rapid.IntRange(0, 300).Draw(rt, "at")
		if rapid.Bool().Draw(rt, "zeroes") {
			clear(torn[from+at : from+markPlace])
		} else {
			torn[from+at] ^= byte(rapid.IntRange(1, 255).Draw(rt, "bits"))
		}
		m.put(torn)
		now, err := OpenMark(m.path, testMarkKey)
		if err != nil || !now.at.torn || read != nil && !reflect.DeepEqual(now.at, *read) {
			rt.Fatalf("torn like this it is read as %+v, %v", now, err)
		}
		read = &now.at
		if tried++; tried > 8 {
			return
		}
		if _, err := m.open(copyOf(rt, before)); abi.CodeOf(err) != abi.CodePolicyStale {
			rt.Fatalf("the store before the change: %v", err)
		}
		m.put(torn)
		m.must(copyOf(rt, s.store))
		if now, err := OpenMark(m.path, testMarkKey); err != nil || now.at.head != mark.at.head || now.at.torn {
			rt.Fatalf("it was not made up for: %+v, %v", now, err)
		}
		// The other place, too: nothing is left.
		clear(torn[(markPlaces-1-mark.place)*markPlace:][:10])
		m.put(torn)
		if _, err := m.open(copyOf(rt, s.store)); abi.CodeOf(err) != abi.CodePolicyStale {
			rt.Fatalf("with nothing left of the mark: %v", err)
		}
	})
	for _, damaged := range [][]byte{{}, whole[:markPlace], append(bytes.Clone(whole), 0)} {
		m.put(damaged)
		_, err := m.open(s.store)
		code(t, err, abi.CodePolicyStale)
	}
	m.put(whole)
	m.must(s.store)
	if other, err := OpenMark(m.path, bytes.Repeat([]byte{8}, 32)); err != nil || other.fails == nil {
		t.Error("another key's mark is believed")
	}
}

// S18, PF-A20: a change that is in force and whose mark cannot be kept is told of, and is made up for.
func TestMarkCannotBeWritten(t *testing.T) {
	m, s := newMarks(t)
	g := s.grant(ada, notes, "project")
	away := m.path + ".away"
	must(t, os.Rename(m.path, away))
	_, err := s.RevokeGrant(t.Context(), s.op, DefaultOrg, g.ID)
	code(t, err, abi.CodeNotReady)
	if len(s.Snapshot().Orgs.At(DefaultOrg).Held(ada, notes)) != 0 {
		t.Error("the revocation is not in force")
	}
	generation := s.Snapshot().Generation
	_, err = s.CreateGrant(t.Context(), s.op, GrantRequest{Org: DefaultOrg, Subject: ada, Capability: notes, Environment: env("project")})
	code(t, err, abi.CodePolicyStale)
	if now := s.Snapshot(); now.Generation != generation || !now.Stale {
		t.Error("policy was changed, or is believed, without a mark of the change before")
	}
	must(t, os.Rename(away, m.path))
	s.grant(ada, notes, "project")
	m.must(s.store)
}

// S18: what the chain and the sum of the records hold: no change and no record can go, come back or be
// another without being missed, also before the last checkpoint.
func TestChainMissesWhatIsGone(t *testing.T) {
	m, s := newMarks(t)
	g := s.grant(ada, notes, "project")
	for range 9 {
		s.session(SessionRequest{})
	}
	_, err := s.RevokeGrant(t.Context(), s.op, DefaultOrg, g.ID)
	must(t, err)
	last := s.Snapshot().Generation
	key := func(kind, id string) []byte { return store.Key(keySpace, kind, DefaultOrg, id) }
	flip := func(k []byte) func(store.Tx) error {
		return func(tx store.Tx) error {
			v, err := tx.Get(k)
			if err != nil {
				return err
			}
			v[len(v)-3] ^= 1
			return tx.Set(k, v)
		}
	}
	for name, spoil := range map[string]func(store.Tx) error{
		"the revocation is gone":     func(tx store.Tx) error { return tx.Delete(key("revocation", g.ID)) },
		"the grant is gone":          func(tx store.Tx) error { return tx.Delete(key("grant", g.ID)) },
		"a limit is gone":            func(tx store.Tx) error { return tx.Delete(store.Key(keySpace, "limits", "environment:project")) },
		"the last change is gone":    func(tx store.Tx) error { return tx.Delete(changeKey(last)) },
		"a late change is gone":      func(tx store.Tx) error { return tx.Delete(changeKey(last - 1)) },
		"the last change is another": flip(changeKey(last)),
		"a late change is another":   flip(changeKey(last - 1)),
		"the checkpoint is another":  flip(changeKey(last / 4 * 4)),
		"the last change comes twice": func(tx store.Tx) error {
			v, err := tx.Get(changeKey(last))
			return errors.Join(err, tx.Set(changeKey(last+1), v))
		},
		"a change is short":   func(tx store.Tx) error { return tx.Set(changeKey(last+1), []byte("short")) },
		"the number is lower": func(tx store.Tx) error { return tx.Set(generationKey, []byte("3")) },
		"the number is gone":  func(tx store.Tx) error { return tx.Delete(generationKey) },
	} {
		t.Run(name, func(t *testing.T) {
			spoilt := copyOf(t, s.store)
			must(t, spoilt.Update(t.Context(), spoil))
			_, err := m.open(spoilt)
			code(t, err, abi.CodePolicyStale)
			if name == "the last change is another" { // which only the mark knows
				return
			}
			_, err = m.open(spoilt, accept) // the chain is not the operator's to accept
			code(t, err, abi.CodePolicyStale)
		})
	}
	// All changes are read only without a mark that knows better.
	early := copyOf(t, s.store)
	must(t, early.Update(t.Context(), func(tx store.Tx) error { return tx.Delete(changeKey(2)) }))
	m.must(early)
	_, err = m.open(early, accept)
	code(t, err, abi.CodePolicyStale)
	m.must(s.store)
}

// S18: what ran out stays so, whatever becomes of the machine's clock: the mark and the audit log know
// better. Only the operator sets policy's clock back.
func TestClockSetBack(t *testing.T) {
	m, s := newMarks(t)
	until := noon.Add(time.Hour)
	_, err := s.CreateGrant(t.Context(), s.op, GrantRequest{Org: DefaultOrg, Subject: ada, Capability: notes, Environment: env("project"), Expires: &until})
	must(t, err)
	m.now = noon.Add(2 * time.Hour)
	s.session(SessionRequest{})
	at := func(s *server) time.Time { return s.clock() }
	if now := at(s); !now.Equal(m.now) {
		t.Fatalf("it is %v", now)
	}
	m.now = noon.AddDate(-1, 0, 0)
	again := m.must(s.store)
	if now := at(again); now.Before(noon.Add(2 * time.Hour)) {
		t.Errorf("policy is back at %v", now)
	}
	m.now = m.now.Add(time.Hour)
	if now := at(again); now.Before(noon.Add(3 * time.Hour)) {
		t.Errorf("policy's time stands still at %v", now)
	}
	seen := func(o *Options) { o.Seen = noon.Add(10 * time.Hour) }
	if now := at(m.must(s.store, seen)); now.Before(noon.Add(10 * time.Hour)) {
		t.Errorf("the audit log has seen later than %v", now)
	}
	if now := at(m.must(s.store, seen, accept)); !now.Equal(m.now) {
		t.Errorf("it was accepted that it is %v, and policy has %v", m.now, now)
	}
	if now := at(m.must(s.store, seen)); !now.Equal(m.now) {
		t.Errorf("afterwards policy has %v", now)
	}
	if now := at(m.must(s.store, func(o *Options) { o.Seen = noon.Add(11 * time.Hour) })); now.Before(noon.Add(11 * time.Hour)) {
		t.Errorf("policy is at %v", now)
	}
}

// S18: a wall clock that is set forward takes policy along, one that is set back does not: policy's time
// goes on with the monotonic clock, and is never before the wall's.
func TestClock(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		wall, since := noon, time.Duration(0)
		floor := noon.Add(time.Duration(rapid.Int64Range(-1e6, 1e6).Draw(rt, "floor")) * time.Millisecond)
		c := clockOf(func() (time.Time, time.Duration) { return wall, since }, noon, floor)
		last := c.now()
		if last.Before(floor) {
			rt.Fatalf("%v is before %v", last, floor)
		}
		for range 20 {
			passed := time.Duration(rapid.Int64Range(0, 1e6).Draw(rt, "passed")) * time.Millisecond
			set := time.Duration(rapid.SampledFrom([]int64{0, 0, 1, -1}).Draw(rt, "set")*rapid.Int64Range(0, 1e6).Draw(rt, "by")) * time.Millisecond
			since, wall = since+passed, wall.Add(passed+set)
			now := c.now()
			if now.Before(last.Add(passed)) || now.Before(wall) {
				rt.Fatalf("%v, %v after %v; the wall clock has %v", now, passed, last, wall)
			}
			if set <= 0 && !now.Equal(last.Add(passed)) {
				rt.Fatalf("%v: the clock was set by %v and policy jumped from %v to %v", passed, set, last, now)
			}
			last = now
		}
	})
	wall := time.Now()
	c := newClock(func() time.Time { return wall }, time.Time{})
	if got := c.now(); got != wall {
		t.Errorf("an ordinary clock has %v, and policy %v", wall, got)
	}
}

package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/store"
)

// The changes of policy are numbered from 1 without a gap. The record of change N holds the hash of
// that of change N-1, what all records of policy sum up to after it, and its audit event. So a store
// that lost or regained a record, or a change, is noticed when it is opened; that all of it is of
// yesterday is noticed by the [Mark], which is kept outside it (S18).

var (
	generationKey = store.Key(keySpace, "generation")
	changes       = store.Key(keySpace, "change")
)

// changeKey is where the record of a change is kept.
func changeKey(n uint64) []byte { return store.Key(keySpace, "change", store.Number(n)) }

type hash [sha256.Size]byte

func (h hash) String() string { return hex.EncodeToString(h[:]) }

// head is a change and the hash of its record, which stands for all changes before it.
type head struct {
	generation uint64
	hash       hash
}

// link is the record of a change as it is stored: two digests, and the event as JSON.
type link struct {
	prev  hash  // of the change before; zero for the first
	tally tally // of all counted records after the change
	event []byte
}

func (l *link) encode() []byte {
	return append(append(l.prev[:], l.tally.bytes()...), l.event...)
}

func decodeLink(data []byte) (l link, err error) {
	if len(data) < 2*sha256.Size {
		return l, errors.New("a change is too short")
	}
	copy(l.prev[:], data)
	l.tally = tallyOf(data[sha256.Size:])
	l.event = data[2*sha256.Size:]
	return l, nil
}

// hashOf is the hash of a change's record. The number is part of it.
func hashOf(n uint64, data []byte) hash {
	return sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, n), data...))
}

// tally is what a set of records comes to, whatever their order: their hashes added up, so that a change
// costs what it changes. It finds what was lost, regained or damaged; whoever can write the store with
// intent can make records that sum up to the same, and is beyond what it promises.
type tally [4]uint64

func tallyOf(data []byte) (t tally) {
	for i := range t {
		t[i] = binary.BigEndian.Uint64(data[8*i:])
	}
	return t
}

func (t tally) bytes() []byte {
	var out []byte
	for _, v := range t {
		out = binary.BigEndian.AppendUint64(out, v)
	}
	return out
}

// recordHash is of one record: key and value, each with its length.
func recordHash(key, value []byte) tally {
	h := sha256.New()
	var n [8]byte
	for _, part := range [][]byte{key, value} {
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	return tallyOf(h.Sum(nil))
}

func (t *tally) add(key, value []byte) {
	for i, v := range recordHash(key, value) {
		t[i] += v
	}
}

func (t *tally) remove(key, value []byte) {
	for i, v := range recordHash(key, value) {
		t[i] -= v
	}
}

// write puts a change into a transaction: its records, what comes with them, and its link. It answers
// where the chain is afterwards.
func (s *Service) write(tx store.Tx, c *change, e Event) (at head, total tally, err error) {
	total = s.tally
	for _, r := range c.gone {
		if err := remove(tx, &total, r); err != nil {
			return at, total, err
		}
	}
	for _, r := range c.records {
		key, value, err := encode(r)
		if err != nil {
			return at, total, err
		}
		if counted(key) {
			old, err := tx.Get(key)
			switch {
			case err == nil:
				total.remove(key, old)
			case !errors.Is(err, store.ErrNotFound):
				return at, total, err
			}
			total.add(key, value)
		}
		if err := tx.Set(key, value); err != nil {
			return at, total, err
		}
	}
	event, err := json.Marshal(e)
	if err != nil {
		return at, total, err
	}
	generation, err := json.Marshal(e.Generation)
	if err != nil {
		return at, total, err
	}
	record := (&link{prev: s.head.hash, tally: total, event: event}).encode()
	at = head{e.Generation, hashOf(e.Generation, record)}
	for _, p := range append([]pair{{generationKey, generation}, {changeKey(e.Generation), record}}, c.extra...) {
		if err := tx.Set(p.key, p.value); err != nil {
			return at, total, err
		}
	}
	return at, total, nil
}

// stale is the refusal of policy records that are not those that were written last.
func stale(format string, args ...any) *abi.Error {
	return abi.Errorf(abi.CodePolicyStale, "the policy records are not the newest that were written: "+format, args...).
		WithHint("put the newest store back; or, to let the policy be what is there, start once with --accept-policy-mark")
}

// follow walks the chain from a change that is known, or from the beginning. It shows each change to
// see and answers the last one with what the records must sum up to.
func follow(tx store.Tx, from head, see func(head)) (at head, total tally, err error) {
	at = from
	var after []byte
	if from.generation > 0 {
		after = changeKey(from.generation)
		record, err := tx.Get(after)
		if err != nil || hashOf(from.generation, record) != from.hash {
			return at, total, stale("change %d is not the one it was", from.generation).WithCause(err)
		}
		l, err := decodeLink(record)
		if err != nil {
			return at, total, err
		}
		total = l.tally
	}
	see(at)
	err = tx.Scan(changes, after, func(key, record []byte) (bool, error) {
		n := at.generation + 1
		if !bytes.Equal(key, changeKey(n)) {
			return false, stale("change %d is missing", n)
		}
		l, err := decodeLink(record)
		if err != nil {
			return false, stale("change %d is damaged", n).WithCause(err)
		}
		if l.prev != at.hash {
			return false, stale("change %d does not follow change %d", n, at.generation)
		}
		at, total = head{n, hashOf(n, record)}, l.tally
		see(at)
		return true, nil
	})
	return at, total, err
}

// loadChain finds the newest change, and holds the chain to the mark unless the mark is to be replaced.
func (s *Service) loadChain(tx store.Tx, accept bool) error {
	var generation uint64
	n, err := tx.Get(generationKey)
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return err
	case json.Unmarshal(n, &generation) != nil:
		return errors.New("the generation does not decode")
	}
	var known marked
	if s.mark != nil && !accept {
		if s.mark.fails != nil {
			return s.mark.fails
		}
		known = s.mark.at
	}
	var reached bool // the change that the mark names
	s.head, s.tally, err = follow(tx, known.checkpoint, func(at head) {
		if at == known.head {
			reached = true
		}
		if at.generation%s.every == 0 {
			s.checkpoint = at
		}
	})
	if err != nil {
		return err
	}
	if s.head.generation != generation {
		return stale("the last change is %d and not %d", s.head.generation, generation)
	}
	s.state.generation = generation
	if s.mark == nil || accept {
		return nil
	}
	return known.admits(s.head.generation, reached)
}

// checkpointEvery is how many changes a start reads at most, and one: what is before the last
// multiple of it stands in the mark.
const checkpointEvery = 1 << 16

// chained are the kinds of records that are counted in the sum: all but what is written outside of changes.
var chained = func() map[string]bool {
	out := map[string]bool{}
	for _, t := range tables {
		out[t.kind] = !t.apart
	}
	return out
}()

// counted reports whether a record is counted.
func counted(key []byte) bool {
	parts, err := store.Split(key)
	return err == nil && len(parts) > 1 && parts[0] == keySpace && chained[parts[1]]
}

// checkTally holds the records that were loaded to what they must come to.
func (s *Service) checkTally(loaded tally) error {
	if loaded != s.tally {
		return stale("records were lost, changed or put back since change %d", s.head.generation).WithCause(fmt.Errorf("%x, not %x", loaded, s.tally))
	}
	return nil
}

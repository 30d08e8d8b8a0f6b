package policy

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// Mark is the newest change of policy as it is remembered outside the store: a store that is put back
// to an earlier time is behind it (S18). It is a file of two places that are written in turn, each
// authenticated, and so one write that is durable at once; a write that is cut off leaves the other
// place, and is recognised by its own.
//
// A change is in the store before it is in the mark. So the store is at the mark or, after a crash
// between the two, one change further.
//
// A mark is one process's, and one goroutine's at a time.
type Mark struct {
	path string
	key  []byte

	at    marked
	place int   // where at is; -1: nowhere
	fails error // why it is not known what the mark says
}

// marked is what a mark says.
type marked struct {
	head       head
	checkpoint head      // an earlier change from which the chain is followed
	time       time.Time // of policy; it never goes back (S18)
	// ignored is up to when the audit log's time is not believed: it was in the future when the operator
	// had policy accepted as it was.
	ignored time.Time
	torn    bool // the next one was being written
}

// admits says whether a store whose last change is generation may be behind a mark.
func (m *marked) admits(generation uint64, reached bool) error {
	at := m.head.generation
	switch {
	case generation < at || m.torn && generation == at:
		return stale("the last change is %d, and there was a later one", generation)
	case !reached:
		return stale("change %d is another than the one that was made", at)
	case generation > at+1:
		return stale("the last change is %d, and the mark of it was never made: it says %d", generation, at)
	}
	return nil
}

// markFile is the form of what is authenticated.
type markFile struct {
	Generation     uint64     `json:"generation"`
	Hash           string     `json:"hash"`
	Checkpoint     uint64     `json:"checkpoint"`
	CheckpointHash string     `json:"checkpointHash"`
	Time           time.Time  `json:"time"`
	Ignored        *time.Time `json:"ignored,omitempty"`
}

const (
	markPlace  = 4096 // bytes of one place: no write of one touches the other's block
	markPlaces = 2
	markMagic  = "ecotone policy mark 1\n"
)

// OpenMark reads the mark of a policy. One that was never made is one of no changes. The key
// authenticates it and must be at least 16 bytes.
func OpenMark(path string, key []byte) (*Mark, error) {
	if len(key) < 16 {
		return nil, abi.Errorf(abi.CodeInternal, "the key of the policy mark is too short")
	}
	m := &Mark{path: path, key: key, place: -1}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, abi.Errorf(abi.CodeNotReady, "the policy mark cannot be read: %w", err)
	}
	m.fails = stale("the mark is damaged")
	if len(data) != markPlaces*markPlace {
		return m, nil
	}
	valid := 0
	for i := range markPlaces {
		at, ok := m.decode(data[i*markPlace : (i+1)*markPlace])
		if !ok {
			continue
		}
		valid++
		if m.place < 0 || at.head.generation >= m.at.head.generation {
			m.at, m.place = at, i
		}
	}
	if valid > 0 {
		m.fails = nil
	}
	m.at.torn = valid == 1
	return m, nil
}

// floor is the latest time that is known to have been. seen is what the audit log knows of it.
func (m *Mark) floor(seen time.Time) time.Time {
	if seen.After(m.at.ignored) && seen.After(m.at.time) {
		return seen
	}
	return m.at.time
}

func (m *Mark) mac(content []byte) []byte {
	h := hmac.New(sha256.New, m.key)
	h.Write([]byte(markMagic))
	h.Write(content)
	return h.Sum(nil)
}

func (m *Mark) encode(at marked) ([]byte, error) {
	f := markFile{
		Generation: at.head.generation, Hash: at.head.hash.String(),
		Checkpoint: at.checkpoint.generation, CheckpointHash: at.checkpoint.hash.String(), Time: at.time.UTC(),
	}
	if !at.ignored.IsZero() {
		ignored := at.ignored.UTC()
		f.Ignored = &ignored
	}
	content, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	out := bytes.Join([][]byte{[]byte(markMagic), content, []byte("\n"), []byte(hex.EncodeToString(m.mac(content))), []byte("\n")}, nil)
	if len(out) > markPlace {
		return nil, errors.New("the mark is too long")
	}
	return append(out, make([]byte, markPlace-len(out))...), nil
}

func (m *Mark) decode(place []byte) (at marked, ok bool) {
	rest, ok := bytes.CutPrefix(place, []byte(markMagic))
	if !ok {
		return at, false
	}
	content, rest, ok := bytes.Cut(rest, []byte("\n"))
	if !ok {
		return at, false
	}
	mac, rest, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || len(bytes.Trim(rest, "\x00")) > 0 {
		return at, false
	}
	sent, err := hex.DecodeString(string(mac))
	if err != nil || !hmac.Equal(sent, m.mac(content)) {
		return at, false
	}
	var f markFile
	if abi.DecodeStrict(content, &f) != nil {
		return at, false
	}
	at.head.generation, at.checkpoint.generation, at.time = f.Generation, f.Checkpoint, f.Time
	if f.Ignored != nil {
		at.ignored = *f.Ignored
	}
	return at, unhex(&at.head.hash, f.Hash) && unhex(&at.checkpoint.hash, f.CheckpointHash)
}

func unhex(d *hash, text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && copy(d[:], raw) == len(d) && len(raw) == len(d)
}

// advance makes the mark of a later change durable. An earlier mark that is not known is not replaced.
func (m *Mark) advance(at marked) error {
	switch {
	case m.fails != nil:
		return m.fails
	case m.place < 0:
		return m.replace(at)
	case at.head.generation <= m.at.head.generation:
		return errors.New("the mark is of a later change") // and one that is cut off would not be told from it
	}
	content, err := m.encode(at)
	if err != nil {
		return err
	}
	to := (m.place + 1) % markPlaces
	if err := m.overwrite(to, content); err != nil {
		return err
	}
	m.at, m.place = at, to
	return nil
}

// replace makes a mark durable whatever was there.
func (m *Mark) replace(at marked) error {
	content, err := m.encode(at)
	if err != nil {
		return err
	}
	if err := m.create(content); err != nil {
		return err
	}
	m.at, m.place, m.fails = at, 0, nil
	return nil
}

// create makes the file, whole or not at all.
func (m *Mark) create(content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(m.path), ".mark-*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(bytes.Repeat(content, markPlaces))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), m.path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(m.path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (m *Mark) overwrite(to int, content []byte) error {
	f, err := os.OpenFile(m.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, int64(to*markPlace))
	return errors.Join(err, f.Sync(), f.Close())
}

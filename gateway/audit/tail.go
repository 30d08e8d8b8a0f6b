package audit

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// tail reads what follows the last head of the last pair of files, of which f has size bytes.
//
// These entries may have been acknowledged, so each whole one counts. Who has the organisations' keys
// authenticates it, with its index and its time, and refuses a log in which one does not hold: a
// crash cannot leave a whole frame with a right checksum and a wrong seal. The first frame
// that is not whole is where a crash tore the file, and the rest goes with it: in
// [DurabilityPower] only what was not acknowledged can be torn. Unless a later entry says that this one was
// on disk before: then it was not a crash, and nothing is cut.
func (s *scan) tail(f io.ReaderAt, in *counter, name string, size int64) error {
	if rest := size - in.n; rest > maxUncovered {
		s.fail(name, in.n, s.tree.size, "", "%d bytes are covered by no head; a running log leaves at most %d", rest, maxUncovered)
		return nil
	}
	for in.n < size {
		e, payload, sealed, bad, err := s.read(in)
		switch {
		case err != nil:
			return err
		case bad != nil && bad.torn:
			return s.tear(f, name, e.offset, size, bad)
		case bad == nil && s.unseal != nil:
			if err := s.unseal(&e.header, s.base, payload, sealed); err != nil {
				bad = &damage{why: errNotAuthentic{err}, id: e.id.String()}
			}
		}
		if bad != nil {
			s.fail(name, e.offset, s.tree.size, bad.id, "%v", bad.why)
			return nil
		}
		if s.take(&e, payload, name); s.problem != nil {
			return nil
		}
		if s.entry != nil {
			s.entry(&e)
		}
		s.unsigned++
		s.entriesKeep = in.n
	}
	return nil
}

type errNotAuthentic struct{ error }

func (e errNotAuthentic) Error() string {
	return "no head covers the entry, and its organisation's key does not authenticate it: " + e.error.Error()
}

// tear ends the log at a frame that is not whole, if a crash can have left it so.
func (s *scan) tear(f io.ReaderAt, name string, offset, size int64, bad *damage) error {
	b := make([]byte, size-offset)
	n, err := f.ReadAt(b, offset)
	if err != nil && err != io.EOF {
		return err
	}
	if later, ok := s.proof(b[:n]); ok {
		s.fail(name, offset, s.tree.size, bad.id, "%v; entry %d says that it was on disk before", bad.why, later)
		return nil
	}
	s.torn += size - offset
	return nil
}

// proof looks in b for an entry that was written when the one at the end of the tree was on disk.
func (s *scan) proof(b []byte) (index uint64, ok bool) {
	for at := 1; at+4+headerFixed+frameExtra < len(b); at++ {
		if b[at] != 0 || b[at+4] != formatVersion || !Kind(b[at+5]).Valid() {
			continue // not the beginning of a frame: a length has a zero byte first
		}
		n := int(binary.BigEndian.Uint32(b[at:]))
		end := at + 4 + n
		if n > maxPayload || end+4 > len(b) || crc32.Checksum(b[at:end], castagnoli) != binary.BigEndian.Uint32(b[end:]) {
			continue
		}
		payload := b[at+4 : end]
		h, sealed, err := parseHeader(payload)
		if err != nil || h.synced <= uint64(s.tree.size) {
			continue
		}
		if s.unseal == nil || s.unseal(&h, s.base, payload, sealed) == nil {
			return h.index, true
		}
	}
	return 0, false
}

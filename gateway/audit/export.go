package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ecotone-dev/ecotone/abi"
)

// An export is JSON lines: one [ExportHead], then one [ExportEntry] for each entry of one organisation that
// the last head covers, in order.
//
// It is verifiable without the log: an entry has the bytes of its leaf and their proof against the head, and
// the head has the keys with which the bodies open, one for each file of the log. To whoever has the log too, those keys
// also open what the organisation has in the last of these files after the export. That no entry of the organisation was left out, only the log itself shows.

// exportFormat is the version of the lines.
const exportFormat = "ecotone-audit-export-1"

// ExportHead is the first line.
type ExportHead struct {
	Format  string       `json:"format"`
	Org     string       `json:"org"`
	Head    string       `json:"head"`    // the signed note
	Key     string       `json:"key"`     // verifier key; whoever kept it elsewhere compares
	Entries int64        `json:"entries"` // lines that follow
	Keys    []ExportKeys `json:"keys"`    // of the bodies; none when the organisation was erased
}

// ExportKeys is the key of the bodies of one organisation in one file.
type ExportKeys struct {
	From uint64 `json:"from"` // index of the file's first entry
	Key  []byte `json:"key"`
}

// ExportEntry is one further line.
type ExportEntry struct {
	Index   uint64          `json:"index"`
	Time    time.Time       `json:"time"`
	Row     string          `json:"auditId"`
	Kind    string          `json:"kind"`
	Body    json.RawMessage `json:"body,omitempty"` // in the clear; absent when the organisation was erased
	Payload []byte          `json:"payload"`        // the leaf
	Proof   []tlog.Hash     `json:"proof"`          // RFC 6962, against the head
}

// proofs are the hashes of a tree as [tlog] stores them, in memory: 64 bytes for an entry.
type proofs []tlog.Hash

// ReadHashes implements [tlog.HashReader].
func (p proofs) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		if at < 0 || at >= int64(len(p)) {
			return nil, errors.New("the tree has no such hash")
		}
		out[i] = p[at]
	}
	return out, nil
}

// Export writes what an organisation's part of a log says, with the proofs, and returns the number of its entries. dir is
// a data directory or a copy of one; it is only read, and may be in use. What does not verify is not
// exported.
func Export(dir, org string, to io.Writer) (int64, error) {
	log := Dir(dir)
	key, err := os.ReadFile(filepath.Join(log, pubName))
	if err != nil {
		return 0, abi.Errorf(abi.CodeNotFound, "there is no audit log in this directory: %w", err)
	}
	verifier, err := parseVerifier(string(key))
	if err != nil {
		return 0, err
	}
	x := exporter{log: log, org: org, key: strings.TrimSpace(string(key)), ring: newKeyRing(filepath.Join(dir, "keys", orgKeysName))}
	s := scan{dir: log, verifier: verifier, allSigs: true, entry: x.note}
	if err := s.run(); err != nil {
		return 0, abi.Errorf(abi.CodeInternal, "the audit log cannot be read").WithCause(err)
	}
	if s.problem == nil && s.heads == 0 {
		s.fail("", 0, 0, "", "the log has no signed head")
	}
	if p := s.problem; p != nil {
		return 0, abi.Errorf(abi.CodeAuditUnavailable, "the audit log does not verify: %s, offset %d, entry %d: %s", p.File, p.Offset, p.Index, p.What).
			WithHint("nothing is exported of a log that was touched; ecotone audit verify says more")
	}
	return x.write(&s.last, to)
}

// exporter is one export under way.
type exporter struct {
	log, org, key string
	ring          *keyRing
	found         []located // of all organisations: the tree has all leaves
}

func (x *exporter) note(e *located) { x.found = append(x.found, *e) }

// write reads the entries a second time: the first time they were held to the heads.
func (x *exporter) write(h *head, to io.Writer) (int64, error) {
	x.found = x.found[:min(int64(len(x.found)), h.size)]
	out := ExportHead{Format: exportFormat, Org: x.org, Head: string(h.note), Key: x.key, Keys: []ExportKeys{}}
	own, err := x.ring.key(x.org, false)
	if err != nil && !errors.Is(err, errErased) && !errors.Is(err, os.ErrNotExist) {
		return 0, abi.Errorf(abi.CodeInternal, "an audit key cannot be read").WithCause(err)
	}
	for i := range x.found {
		e := &x.found[i]
		if e.org != x.org {
			continue
		}
		out.Entries++
		if n := len(out.Keys); own != nil && (n == 0 || out.Keys[n-1].From != e.base) {
			k, err := own.bodyKey(e.base)
			if err != nil {
				return 0, err
			}
			out.Keys = append(out.Keys, ExportKeys{e.base, k})
		}
	}
	tree, err := x.tree()
	if err != nil {
		return 0, err
	}
	lines := json.NewEncoder(to)
	if err := lines.Encode(out); err != nil {
		return 0, err
	}
	return out.Entries, x.each(func(e *located, payload []byte) error {
		if e.org != x.org {
			return nil
		}
		proof, err := tlog.ProveRecord(h.size, int64(e.index), tree)
		if err != nil {
			return err
		}
		line := ExportEntry{Index: e.index, Time: time.UnixMilli(e.time).UTC(), Row: e.id.String(), Kind: e.kind.String(), Payload: payload, Proof: proof}
		if own != nil {
			head, sealed, err := parseHeader(payload)
			if err != nil {
				return err
			}
			if line.Body, err = x.ring.open(nil, &head, e.base, payload, sealed); err != nil {
				return abi.Errorf(abi.CodeInternal, "entry %d cannot be opened with the organisation's key", e.index).WithCause(err)
			}
		}
		return lines.Encode(line)
	})
}

func (x *exporter) tree() (proofs, error) {
	var tree proofs
	var leaf leafHasher
	return tree, x.each(func(e *located, payload []byte) error {
		more, err := tlog.StoredHashesForRecordHash(int64(e.index), leaf.of(payload), tree)
		tree = append(tree, more...)
		return err
	})
}

// each reads the payloads in order.
func (x *exporter) each(do func(e *located, payload []byte) error) error {
	var f *os.File
	var in *bufio.Reader
	var buf []byte
	defer func() {
		if f != nil {
			f.Close()
		}
	}()
	for i := range x.found {
		e := &x.found[i]
		if i == 0 || x.found[i-1].base != e.base {
			if f != nil {
				f.Close()
			}
			var err error
			if f, err = os.Open(filepath.Join(x.log, fileName(e.base, entriesExt))); err != nil {
				return err
			}
			if _, err := f.Seek(e.offset, io.SeekStart); err != nil {
				return err
			}
			in = bufio.NewReaderSize(f, 1<<16)
		}
		var payload []byte
		var err error
		if payload, buf, err = readFrame(in, buf); err != nil {
			return fmt.Errorf("entry %d: %w", e.index, err)
		}
		if err := do(e, payload); err != nil {
			return err
		}
	}
	return nil
}

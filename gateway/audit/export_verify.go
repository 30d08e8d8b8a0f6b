package audit

import (
	"bufio"
	"bytes"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/ecotone-dev/ecotone/abi"
)

// ExportReport is the result of [VerifyExport].
type ExportReport struct {
	OK      bool   `json:"ok"`
	Org     string `json:"org,omitempty"`
	Origin  string `json:"origin,omitempty"`
	Size    int64  `json:"size"`    // of the log, by the head
	Entries int64  `json:"entries"` // that verified
	Opened  int64  `json:"opened"`  // of these, whose body is what was sealed
	Line    int64  `json:"line,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// maxExportLine bounds a line: a payload in base64, its body beside it, and a proof.
const maxExportLine = 4*maxPayload + 1<<16

// VerifyExport checks an export with nothing beside it: that the head is signed, that each entry is in
// the tree it signs, that each body is what was sealed in its entry, and that all lines are there. With a
// key or a head from elsewhere the export must be of that log; a head from elsewhere must be the very one it was
// made against. An error means that it could not be read.
func VerifyExport(from io.Reader, o VerifyOptions) (ExportReport, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 1<<16), maxExportLine)
	v := exportVerifier{o: o, keys: map[uint64]cipher.AEAD{}}
	var problem error
	for lines.Scan() && problem == nil {
		v.report.Line++
		if v.report.Line == 1 {
			problem = v.head(lines.Bytes())
		} else {
			problem = v.entry(lines.Bytes())
		}
	}
	switch err := lines.Err(); {
	case problem != nil:
	case errors.Is(err, bufio.ErrTooLong):
		v.report.Line++
		problem = errors.New("the line is too long")
	case err != nil:
		return ExportReport{}, abi.Errorf(abi.CodeInternal, "the export cannot be read").WithCause(err)
	case v.report.Line == 0:
		problem = errors.New("the export is empty")
	case v.report.Entries != v.entries:
		problem = fmt.Errorf("%d entries are there, and %d were exported", v.report.Entries, v.entries)
	}
	if problem != nil {
		v.report.Problem = problem.Error()
		return v.report, nil
	}
	v.report.OK, v.report.Line = true, 0
	return v.report, nil
}

type exportVerifier struct {
	o       VerifyOptions
	report  ExportReport
	signed  head
	from    []uint64
	keys    map[uint64]cipher.AEAD
	entries int64
	last    int64 // index of the entry before, and 1
}

func (x *exportVerifier) head(line []byte) error {
	var h ExportHead
	if err := abi.DecodeStrict(line, &h); err != nil {
		return fmt.Errorf("the head is not one: %w", err)
	}
	key := h.Key
	if x.o.Key != "" && strings.TrimSpace(x.o.Key) != key {
		return errors.New("the export is of another log than the key from elsewhere")
	}
	verifier, err := parseVerifier(key)
	switch {
	case h.Format != exportFormat:
		return errors.New("the format is unknown")
	case err != nil:
		return errors.New("the public key is malformed")
	case h.Entries < 0:
		return errors.New("the number of entries is negative")
	}
	if x.signed, err = openHead(verifier, []byte(h.Head)); err != nil {
		return err
	}
	if x.o.Head != nil {
		if err := x.against(verifier); err != nil {
			return err
		}
	}
	for _, k := range h.Keys {
		if n := len(x.from); n > 0 && x.from[n-1] >= k.From {
			return errors.New("the keys are not in order")
		}
		if len(k.Key) != keyBytes {
			return errors.New("a key has another length")
		}
		a, err := bodyCipher(k.Key)
		if err != nil {
			return err
		}
		x.from, x.keys[k.From] = append(x.from, k.From), a
	}
	x.report.Org, x.report.Origin, x.report.Size, x.entries = h.Org, verifier.Name(), x.signed.size, h.Entries
	return nil
}

func (x *exportVerifier) against(v note.Verifier) error {
	kept, err := openHead(v, x.o.Head)
	switch {
	case err != nil:
		return fmt.Errorf("the head from elsewhere: %w", err)
	case kept.size != x.signed.size || kept.root != x.signed.root:
		return fmt.Errorf("the head from elsewhere is of size %d, the export's of %d, with another root or size", kept.size, x.signed.size)
	}
	return nil
}

func (x *exportVerifier) entry(line []byte) error {
	var e ExportEntry
	if err := abi.DecodeStrict(line, &e); err != nil {
		return fmt.Errorf("the entry is not one: %w", err)
	}
	h, sealed, err := parseHeader(e.Payload)
	if err != nil {
		return err
	}
	switch {
	case h.index != e.Index || h.id.String() != e.Row || h.kind.String() != e.Kind || h.time != e.Time.UnixMilli():
		return errors.New("the entry is not what its payload says")
	case h.org != x.report.Org:
		return errors.New("the entry is another organisation's")
	case int64(h.index) < x.last:
		return errors.New("the entries are not in order")
	case x.report.Entries == x.entries:
		return errors.New("there are more entries than were exported")
	}
	x.last = int64(h.index) + 1
	var leaf leafHasher
	if err := tlog.CheckRecord(e.Proof, x.signed.size, x.signed.root, int64(h.index), leaf.of(e.Payload)); err != nil {
		return errors.New("the entry is not in the log that the head is of")
	}
	x.report.Entries++
	if len(x.keys) == 0 {
		if e.Body != nil {
			return errors.New("a body is in the clear, and there is no key that shows what was sealed")
		}
		return nil
	}
	var a cipher.AEAD
	for _, from := range x.from { // few: one for each file
		if from <= h.index {
			a = x.keys[from]
		}
	}
	if a == nil {
		return errors.New("there is no key for the entry")
	}
	body, err := unseal(a, nil, sealed, e.Payload[:len(e.Payload)-len(sealed)])
	if err != nil || !sameJSON(body, e.Body) {
		return errors.New("the body is not what was sealed")
	}
	x.report.Opened++
	return nil
}

// sameJSON compares what the encoder may have written with other white space and escapes.
func sameJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return false
	}
	return bytes.Equal(escaped(x.Bytes()), escaped(y.Bytes()))
}

func escaped(raw []byte) []byte {
	var out bytes.Buffer
	json.HTMLEscape(&out, raw)
	return out.Bytes()
}

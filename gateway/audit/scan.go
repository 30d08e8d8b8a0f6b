package audit

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

const (
	entriesExt   = ".entries"
	headsExt     = ".heads"
	fileMagic    = "ECOTONE-AUDIT-1\n"
	fileHeader   = len(fileMagic) + 8
	indexDigits  = 20
	maxTailBytes = maxGroup
	zeroFill     = 8 // this many zero bytes at an end are a lost write, not a damaged byte
)

func fileName(base uint64, ext string) string { return fmt.Sprintf("%0*d%s", indexDigits, base, ext) }

func filePrologue(base uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte(fileMagic), base)
}

// listFiles returns the first indexes of the files with an extension, ascending.
func listFiles(dir, ext string) ([]uint64, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var bases []uint64
	for _, e := range names {
		digits, ok := strings.CutSuffix(e.Name(), ext)
		if !ok || len(digits) != indexDigits {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || fileName(n, ext) != e.Name() {
			continue
		}
		bases = append(bases, n)
	}
	slices.Sort(bases)
	return bases, nil
}

// located is an entry found by a scan.
type located struct {
	header
	base   uint64 // first index of its file
	offset int64  // of its frame
	length int    // of its payload
}

// scan reads a log from the first byte to the last, recomputes its tree and compares it with the
// heads. It is what [Open] and [Verify] have in common.
type scan struct {
	dir      string
	verifier note.Verifier
	allSigs  bool          // check every signature, not only the last of each file
	entry    func(located) // every entry that a head covers
	against  *head         // a head from elsewhere

	tree     frontier
	pending  []located // entries after the last head
	lastTime int64
	last     head // the last head
	heads    int64
	files    int

	// Of the last pair of files: what to keep, and how much follows it.
	base        uint64
	entriesKeep int64
	headsKeep   int64
	tail        int64
	partial     bool // the pair was not even made completely; it holds nothing
	problem     *Problem
}

func (s *scan) fail(file string, offset, index int64, id, format string, args ...any) {
	if s.problem == nil {
		s.problem = &Problem{File: file, Offset: offset, Index: index, ID: id, What: fmt.Sprintf(format, args...)}
	}
}

// run scans. Its error is about reading; what does not verify is left in s.problem.
func (s *scan) run() error {
	s.last.size = -1
	heads, err := listFiles(s.dir, headsExt) // first: a running log makes entries before heads
	if err != nil {
		return err
	}
	bases, err := listFiles(s.dir, entriesExt)
	if err != nil {
		return err
	}
	for i, base := range bases {
		if base != uint64(s.tree.size) {
			s.fail(fileName(base, entriesExt), 0, s.tree.size, "", "entries from %d to %d are missing", s.tree.size, int64(base)-1)
			return nil
		}
		if err := s.pair(base, i == len(bases)-1); err != nil || s.problem != nil {
			return err
		}
	}
	for _, base := range heads {
		if !slices.Contains(bases, base) {
			s.fail(fileName(base, headsExt), 0, int64(base), "", "the heads have no entries file")
		}
	}
	if s.against != nil && s.problem == nil && s.against.size > s.tree.size {
		s.fail("", 0, s.tree.size, "", "the log ends at size %d; the head from elsewhere covers %d", s.tree.size, s.against.size)
	}
	return nil
}

// pair scans one entries file and its heads.
func (s *scan) pair(base uint64, lastPair bool) error {
	name := fileName(base, entriesExt)
	s.base, s.files, s.entriesKeep, s.headsKeep, s.tail = base, s.files+1, int64(fileHeader), 0, 0

	// The size is taken before the heads are read: in a log that is being written, entries are
	// then at most one group ahead of what the heads cover.
	f, err := os.Open(filepath.Join(s.dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	heads, err := os.ReadFile(filepath.Join(s.dir, fileName(base, headsExt)))
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	if zeros := len(heads) - len(bytes.TrimRight(heads, "\x00")); lastPair && zeros >= zeroFill {
		heads = heads[:len(heads)-zeros] // the size of the file reached the disk, its last bytes did not
		s.tail = int64(zeros)
	}
	in := &counter{r: bufio.NewReaderSize(f, 256<<10)}

	prologue := make([]byte, fileHeader)
	n, err := io.ReadFull(in, prologue)
	want := filePrologue(base)
	whole := err == nil && bytes.Equal(prologue, want)
	if !whole && lastPair && len(heads) == 0 && bytes.HasPrefix(want, bytes.TrimRight(prologue[:n], "\x00")) {
		s.partial, s.tail = true, int64(n) // the process died while it made the file
		return nil
	}
	if !whole {
		s.fail(name, 0, int64(base), "", "the file does not start as an entries file of index %d does", base)
		return nil
	}
	if missing && !lastPair {
		s.fail(fileName(base, headsExt), 0, int64(base), "", "the heads file is missing")
		return nil
	}

	var buf []byte
	for {
		msg, torn, ok := nextHead(s.verifier.Name(), heads[s.headsKeep:])
		if !ok {
			s.fail(fileName(base, headsExt), s.headsKeep, s.tree.size, "", "%v", errHeadForm)
			return nil
		}
		if msg == nil {
			if torn > 0 && !lastPair {
				s.fail(fileName(base, headsExt), s.headsKeep, s.tree.size, "", "the head is cut")
			}
			s.tail += int64(torn)
			break
		}
		if err := s.head(in, name, &buf, msg, s.allSigs || int(s.headsKeep)+len(msg) == len(heads)); err != nil || s.problem != nil {
			return err
		}
		s.headsKeep += int64(len(msg))
		s.entriesKeep = in.n
	}
	// Signatures of earlier heads are skipped when opening; the last whole one counts even if a
	// torn one follows it.
	if s.headsKeep > 0 && !s.allSigs {
		if _, err := openHead(s.verifier, s.last.note); err != nil {
			s.fail(fileName(base, headsExt), s.headsKeep-int64(len(s.last.note)), s.tree.size, "", "%v", err)
			return nil
		}
	}
	rest := info.Size() - in.n
	switch {
	case rest > 0 && !lastPair:
		s.fail(name, in.n, s.tree.size, "", "%d bytes are covered by no head", rest)
	case rest > maxTailBytes:
		s.fail(name, in.n, s.tree.size, "", "%d bytes are covered by no head; one group is at most %d", rest, maxTailBytes)
	}
	s.tail += max(rest, 0)
	return nil
}

// head reads the entries up to the next head and checks it.
func (s *scan) head(in *counter, name string, buf *[]byte, msg []byte, checkSig bool) error {
	headsName, at := fileName(s.base, headsExt), s.headsKeep
	h, err := parseHead(s.verifier.Name(), msg)
	if err == nil && checkSig {
		h, err = openHead(s.verifier, msg)
	}
	if err != nil {
		s.fail(headsName, at, s.tree.size, "", "%v", err)
		return nil
	}
	if h.size <= s.last.size {
		s.fail(headsName, at, s.tree.size, "", "the head's size %d does not follow %d", h.size, s.last.size)
		return nil
	}
	from := s.tree.size
	s.pending = s.pending[:0]
	for s.tree.size < h.size {
		offset, index := in.n, s.tree.size
		payload, grown, err := readFrame(in, *buf)
		*buf = grown
		switch {
		case err == io.EOF:
			s.fail(name, offset, index, "", "the entries end at %d; a signed head covers %d", index, h.size)
			return nil
		case errors.Is(err, errFrameCut), errors.Is(err, errFrameLength):
			s.fail(name, offset, index, "", "%v", err)
			return nil
		case errors.Is(err, errFrameSum):
			id := ""
			if hd, _, herr := parseHeader((*buf)[:len(*buf)-4]); herr == nil {
				id = hd.id.String()
			}
			s.fail(name, offset, index, id, "%v", err)
			return nil
		case err != nil:
			return err
		}
		hd, _, err := parseHeader(payload)
		switch {
		case err != nil:
			s.fail(name, offset, index, "", "%v", err)
			return nil
		case hd.index != uint64(index):
			s.fail(name, offset, index, hd.id.String(), "the entry says it is number %d", hd.index)
			return nil
		case hd.time < s.lastTime:
			s.fail(name, offset, index, hd.id.String(), "the entry is older than the one before")
			return nil
		}
		s.lastTime = hd.time
		if err := s.tree.add(payload); err != nil {
			return err
		}
		s.pending = append(s.pending, located{header: hd, base: s.base, offset: offset, length: len(payload)})
		if s.against != nil && s.against.size == s.tree.size && !s.agrees(*s.against) {
			s.fail(name, 0, 0, "", "the first %d entries are not those of the head from elsewhere", s.against.size)
			return nil
		}
	}
	if !s.agrees(h) {
		s.fail(name, s.entriesKeep, from, "", "one of the entries from %d to %d is not what its head at size %d covers", from, h.size-1, h.size)
		return nil
	}
	for _, e := range s.pending {
		if s.entry != nil {
			s.entry(e)
		}
	}
	s.last = h
	s.heads++
	return nil
}

// agrees reports whether the tree so far has the head's root.
func (s *scan) agrees(h head) bool {
	root, err := s.tree.root()
	return err == nil && root == h.root
}

// nextHead takes one whole head off the front. When there is none, msg is nil and torn counts the
// bytes of an unfinished one; ok is false when they cannot be the start of a head.
func nextHead(origin string, b []byte) (msg []byte, torn int, ok bool) {
	at := 0
	for i := range 5 {
		line, _, whole := bytes.Cut(b[at:min(len(b), at+maxHeadBytes)], []byte("\n"))
		if !headLine(origin, i, string(line), whole) {
			return nil, 0, false
		}
		if !whole {
			return nil, len(b), true
		}
		at += len(line) + 1
	}
	return b[:at:at], 0, true
}

// counter counts what was read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

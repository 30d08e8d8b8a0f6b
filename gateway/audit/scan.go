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
	entriesExt  = ".entries"
	headsExt    = ".heads"
	fileFamily  = "ECOTONE-AUDIT-" // then the version, and the end of the line
	fileMagic   = fileFamily + "2\n"
	fileHeader  = len(fileMagic) + 8
	indexDigits = 20
	zeroFill    = 8 // this many zero bytes at an end are a lost write, not a damaged byte
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
	allSigs  bool           // check every signature, not only the last of each file
	entry    func(*located) // every entry that counts
	against  *head          // a head from elsewhere
	// unseal authenticates an entry that no head covers; base is the first index of its file. nil:
	// nobody can.
	unseal func(h *header, base uint64, payload, sealed []byte) error

	tree     frontier
	leaf     leafHasher
	buf      []byte
	pending  []located // entries before the next head
	lastTime int64
	last     head // the last head
	heads    int64
	files    int

	// Of the last pair of files: what heads cover, what follows and counts, what a crash tore.
	base        uint64
	coveredEnd  int64
	unsigned    int64
	entriesKeep int64
	headsKeep   int64
	torn        int64
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
	s.base, s.files, s.headsKeep = base, s.files+1, 0
	s.coveredEnd, s.entriesKeep = int64(fileHeader), int64(fileHeader)

	// The size is taken before the heads are read: in a log that is being written, entries are
	// then no further ahead of what the heads cover than they may be.
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
		s.torn = int64(zeros)
	}
	in := &counter{r: bufio.NewReaderSize(f, 256<<10)}

	prologue := make([]byte, fileHeader)
	n, err := io.ReadFull(in, prologue)
	want := filePrologue(base)
	whole := err == nil && bytes.Equal(prologue, want)
	if !whole && lastPair && len(heads) == 0 && bytes.HasPrefix(want, bytes.TrimRight(prologue[:n], "\x00")) {
		s.partial, s.torn = true, int64(n) // the process died while it made the file
		return nil
	}
	if bytes.HasPrefix(prologue, []byte(fileFamily)) && !bytes.HasPrefix(prologue, []byte(fileMagic)) {
		s.fail(name, 0, int64(base), "", "the file is of another version of the format: %q, and this program reads %q",
			prologue[len(fileFamily):len(fileMagic)-1], fileMagic[len(fileFamily):len(fileMagic)-1])
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

	for {
		if rest := heads[s.headsKeep:]; lastPair && lostSector(rest, s.headsKeep) {
			s.torn += int64(len(rest))
			break
		}
		msg, torn, ok := nextHead(s.verifier.Name(), heads[s.headsKeep:])
		if !ok {
			s.fail(fileName(base, headsExt), s.headsKeep, s.tree.size, "", "%v", errHeadForm)
			return nil
		}
		if msg == nil {
			if torn > 0 && !lastPair {
				s.fail(fileName(base, headsExt), s.headsKeep, s.tree.size, "", "the head is cut")
			}
			s.torn += int64(torn)
			break
		}
		if err := s.head(in, name, msg, s.allSigs || int(s.headsKeep)+len(msg) == len(heads)); err != nil || s.problem != nil {
			return err
		}
		s.headsKeep += int64(len(msg))
		s.coveredEnd, s.entriesKeep = in.n, in.n
	}
	// Signatures of earlier heads are skipped when opening; the last whole one counts even if a
	// torn one follows it.
	if s.headsKeep > 0 && !s.allSigs {
		if _, err := openHead(s.verifier, s.last.note); err != nil {
			s.fail(fileName(base, headsExt), s.headsKeep-int64(len(s.last.note)), s.tree.size, "", "%v", err)
			return nil
		}
	}
	if rest := info.Size() - in.n; rest > 0 && !lastPair {
		s.fail(name, in.n, s.tree.size, "", "%d bytes are covered by no head", rest)
	}
	if s.problem != nil {
		return nil
	}
	return s.tail(f, in, name, info.Size())
}

// head reads the entries up to the next head and checks it.
func (s *scan) head(in *counter, name string, msg []byte, checkSig bool) error {
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
		e, payload, _, bad, err := s.read(in)
		if err != nil {
			return err
		}
		if bad != nil {
			if bad.why == io.EOF {
				bad.why = fmt.Errorf("the entries end at %d; a signed head covers %d", s.tree.size, h.size)
			}
			s.fail(name, e.offset, s.tree.size, bad.id, "%v", bad.why)
			return nil
		}
		if s.take(&e, payload, name); s.problem != nil {
			return nil
		}
		s.pending = append(s.pending, e)
	}
	if !s.agrees(h) {
		s.fail(name, s.entriesKeep, from, "", "one of the entries from %d to %d is not what its head at size %d covers", from, h.size-1, h.size)
		return nil
	}
	if s.entry != nil {
		for i := range s.pending {
			s.entry(&s.pending[i])
		}
	}
	s.last = h
	s.heads++
	return nil
}

// damage is why bytes are not the entry that belongs there.
type damage struct {
	why  error
	id   string
	torn bool // a write that did not reach the disk whole can look so
}

// read reads the next entry and holds it to its place. The payload is valid until the next read.
func (s *scan) read(in *counter) (e located, payload, sealed []byte, bad *damage, err error) {
	e.base, e.offset = s.base, in.n
	payload, s.buf, err = readFrame(in, s.buf)
	switch {
	case err == io.EOF, errors.Is(err, errFrameCut), errors.Is(err, errFrameLength):
		return e, nil, nil, &damage{why: err, torn: true}, nil
	case errors.Is(err, errFrameSum):
		bad = &damage{why: err, torn: true}
		if h, _, err := parseHeader(s.buf[:len(s.buf)-4]); err == nil {
			bad.id = h.id.String()
		}
		return e, nil, nil, bad, nil
	case err != nil:
		return e, nil, nil, nil, err
	}
	e.length = len(payload)
	e.header, sealed, err = parseHeader(payload)
	switch {
	case err != nil:
		return e, nil, nil, &damage{why: err}, nil
	case e.index != uint64(s.tree.size):
		bad = &damage{why: fmt.Errorf("the entry says it is number %d", e.index), id: e.id.String()}
	case e.time < s.lastTime:
		bad = &damage{why: errors.New("the entry is older than the one before"), id: e.id.String()}
	}
	return e, payload, sealed, bad, nil
}

// take adds an entry to the tree, and holds the tree to the head from elsewhere where that ends.
func (s *scan) take(e *located, payload []byte, name string) {
	s.lastTime = e.time
	s.tree.add(s.leaf.of(payload))
	if s.against != nil && s.against.size == s.tree.size && !s.agrees(*s.against) {
		s.fail(name, 0, 0, "", "the first %d entries are not those of the head from elsewhere", s.against.size)
	}
}

// agrees reports whether the tree so far has the head's root.
func (s *scan) agrees(h head) bool { return s.tree.root() == h.root }

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

const sectorBytes = 512 // the least that a disk writes or does not

// lostSector reports whether b, from offset at to the end of its file, can be a head of which a part did
// not reach the disk: the size of the file did, and zeros are read in its place. A head has no zeros.
func lostSector(b []byte, at int64) bool {
	if len(b) > maxHeadBytes {
		return false
	}
	for len(b) > 0 {
		n := min(len(b), sectorBytes-int(at%sectorBytes))
		if len(bytes.TrimLeft(b[:n], "\x00")) == 0 {
			return true
		}
		b, at = b[n:], at+int64(n)
	}
	return false
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

package audit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

// crashed is the data directory of a log whose process died with entries that no head covers: as many
// rows as ids, each of one entry and a group of its own.
type crashed struct {
	dir    string
	ids    []string
	starts []int // of the tail's frames, and their end
	data   []byte
}

func (c *crashed) path() string { return filepath.Join(Dir(c.dir), fileName(0, entriesExt)) }

func crash(t *testing.T, mode Durability) *crashed {
	t.Helper()
	dir := t.TempDir()
	l := mustOpen(t, Options{Dir: dir, Durability: mode})
	mustAppend(t, l, "acme", NewID(), decision(VerdictDeny))
	l.Head()
	c := &crashed{dir: t.TempDir()}
	l.covering.Lock() // no head from here on
	for range 4 {
		c.ids = append(c.ids, NewID())
		c.starts = append(c.starts, int(l.w.size))
		mustAppend(t, l, "acme", c.ids[len(c.ids)-1], decision(VerdictDeny))
	}
	c.starts = append(c.starts, int(l.w.size))
	copyDir(t, dir, c.dir)
	l.covering.Unlock()
	c.data = must(os.ReadFile(c.path()))
	return c
}

// with writes the entries file anew.
func (c *crashed) with(t *testing.T, data []byte) {
	t.Helper()
	if err := os.WriteFile(c.path(), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// holds opens the log and says how many rows of the tail are there; -1: it does not open, and nothing
// was changed.
func (c *crashed) holds(t *testing.T) int {
	t.Helper()
	before := must(os.ReadFile(c.path()))
	l, err := Open(Options{Dir: c.dir})
	if err != nil {
		if abi.CodeOf(err) != abi.CodeAuditUnavailable || !bytes.Equal(before, must(os.ReadFile(c.path()))) {
			t.Fatalf("a refused log was changed: %v", err)
		}
		return -1
	}
	defer l.Close()
	n := 0
	for _, id := range c.ids {
		if _, err := l.Get(ctx, "acme", id); err == nil {
			n++
		}
	}
	return n
}

// S8, promise 4: what was acknowledged and is under no head yet is kept, counted and covered; the public
// key alone counts it and calls it no problem.
func TestAdopts(t *testing.T) {
	for _, mode := range []Durability{DurabilityPower, DurabilityProcess} {
		c := crash(t, mode)
		r := mustVerify(t, c.dir, nil)
		if r.Size != 1 || r.Unsigned != 4 || r.Tail != 0 {
			t.Errorf("%s: before: %+v", mode, r)
		}
		l := mustOpen(t, Options{Dir: c.dir})
		if r := mustVerify(t, c.dir, nil); r.Size != 5 || r.Unsigned != 0 {
			t.Errorf("%s: after: %+v", mode, r)
		}
		if _, err := l.Recover(ctx); err != nil {
			t.Fatal(err)
		}
		for _, id := range c.ids {
			if _, err := l.Get(ctx, "acme", id); err != nil {
				t.Errorf("%s: %v", mode, err)
			}
		}
		page, err := l.Rows(ctx, SystemOrg, Query{})
		if err != nil || len(page.Rows) != 1 || page.Rows[0].System.Adopted != 4 || page.Rows[0].System.CutBytes != 0 {
			t.Errorf("%s: recovery row = %+v, %v", mode, page.Rows, err)
		}
	}
}

// S8, PF-G7: a byte changed in an entry that no head covers. In power mode all but the last group were
// on disk when the next was written, and the next says so: the log is refused, by the verifier too.
// The last group looks like a torn write, and is cut. Nothing before the changed entry is
// lost, ever.
func TestFlippedTail(t *testing.T) {
	for _, mode := range []Durability{DurabilityPower, DurabilityProcess} {
		c := crash(t, mode)
		step := 41
		if testing.Short() {
			step = 173
		}
		for at := c.starts[0]; at < len(c.data); at += step {
			data := bytes.Clone(c.data)
			data[at] ^= 0x10
			c.with(t, data)
			entry := 0
			for at >= c.starts[entry+1] {
				entry++
			}
			last := entry == len(c.ids)-1
			r := must(Verify(Dir(c.dir), VerifyOptions{}))
			if seen := mode == DurabilityPower && !last; r.OK == seen {
				t.Fatalf("%s: byte %d of entry %d: %+v", mode, at, entry, r)
			} else if !seen && (r.Unsigned != int64(entry) || r.Tail != int64(len(data)-c.starts[entry])) {
				t.Fatalf("%s: byte %d of entry %d: %+v", mode, at, entry, r)
			}
			want := entry
			if mode == DurabilityPower && !last {
				want = -1
			}
			if got := c.holds(t); got != want {
				t.Fatalf("%s: byte %d of entry %d: %d rows, want %d", mode, at, entry, got, want)
			}
			c = &crashed{dir: freshCopy(t, c), ids: c.ids, starts: c.starts, data: c.data}
		}
	}
}

// freshCopy puts the log back as the crash left it.
func freshCopy(t *testing.T, c *crashed) string {
	t.Helper()
	heads := filepath.Join(Dir(c.dir), fileName(0, headsExt))
	raw := must(os.ReadFile(heads))
	size := 0
	for range 2 { // the first head, and the one over the first entry
		msg, _, _ := nextHead(must(parseVerifier(string(must(os.ReadFile(filepath.Join(Dir(c.dir), pubName)))))).Name(), raw[size:])
		size += len(msg)
	}
	if err := os.WriteFile(heads, raw[:size], 0o600); err != nil {
		t.Fatal(err)
	}
	c.with(t, c.data)
	return c.dir
}

// S8, PF-G7: whoever writes the folder and has no key of an organisation can shorten the tail, as ever,
// and can put nothing into it: a frame with a right checksum that the key does not authenticate, another
// order, an entry of another place are refused. The public key alone sees order and times only,
// and a head from elsewhere sees all of it.
func TestForgedTail(t *testing.T) {
	frame := func(c *crashed, i int) []byte { return c.data[c.starts[i]:c.starts[i+1]] }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, x := range map[string]struct {
		forge    func(c *crashed) []byte
		verifies bool
		rows     int // -1: refused
	}{
		"forged body, right checksum": {func(c *crashed) []byte {
			f := bytes.Clone(frame(c, 1))
			f[len(f)-40] ^= 1
			return join(c.data[:c.starts[1]], appendFrame(nil, f[4:len(f)-4]), c.data[c.starts[2]:])
		}, true, -1},
		"forged time, right checksum": {func(c *crashed) []byte {
			f := bytes.Clone(frame(c, 3))
			f[4+27]++
			return join(c.data[:c.starts[3]], appendFrame(nil, f[4:len(f)-4]))
		}, true, -1},
		"forged claim to be on disk": {func(c *crashed) []byte {
			f := bytes.Clone(frame(c, 2))
			f[4+59]-- // synced
			return join(c.data[:c.starts[2]], appendFrame(nil, f[4:len(f)-4]), c.data[c.starts[3]:])
		}, true, -1},
		"exchanged":        {func(c *crashed) []byte { return join(c.data[:c.starts[1]], frame(c, 2), frame(c, 1), frame(c, 3)) }, false, -1},
		"one left out":     {func(c *crashed) []byte { return join(c.data[:c.starts[1]], c.data[c.starts[2]:]) }, false, -1},
		"one twice":        {func(c *crashed) []byte { return join(c.data, frame(c, 3)) }, false, -1},
		"one from before":  {func(c *crashed) []byte { return join(c.data, c.data[fileHeader:c.starts[0]]) }, false, -1},
		"shortened":        {func(c *crashed) []byte { return c.data[:c.starts[2]] }, true, 2},
		"shortened inside": {func(c *crashed) []byte { return c.data[:c.starts[3]+9] }, true, 3},
		"garbage behind":   {func(c *crashed) []byte { return join(c.data, []byte("not a frame at all")) }, true, 4},
		"zeros behind":     {func(c *crashed) []byte { return join(c.data, make([]byte, 4096)) }, true, 4},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			c := crash(t, DurabilityPower)
			whole := t.TempDir()
			copyDir(t, c.dir, whole)
			l := mustOpen(t, Options{Dir: whole})
			kept := l.Head() // elsewhere: over the tail as it was
			c.with(t, x.forge(c))
			if r := must(Verify(Dir(c.dir), VerifyOptions{})); r.OK != x.verifies {
				t.Errorf("with the public key: %+v %+v", r, r.Problem)
			}
			intact := bytes.HasPrefix(must(os.ReadFile(c.path())), c.data)
			if r := must(Verify(Dir(c.dir), VerifyOptions{Head: kept})); r.OK != (intact && x.verifies) {
				t.Errorf("with a head from elsewhere: %+v %+v", r, r.Problem)
			}
			if got := c.holds(t); got != x.rows {
				t.Errorf("%d rows, want %d", got, x.rows)
			}
		})
	}
	t.Run("key_lost", func(t *testing.T) {
		c := crash(t, DurabilityPower)
		os.Remove(filepath.Join(c.dir, "keys", orgKeysName, "acme"))
		if got := c.holds(t); got != -1 {
			t.Errorf("a tail that nobody can authenticate was taken: %d rows", got)
		}
	})
}

// Erasing an organisation while nothing covers its entries yet: the head comes before the key goes.
func TestEraseCoversFirst(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, Options{Dir: dir, Durability: DurabilityProcess})
	for range 20 {
		mustAppend(t, l, "acme", NewID(), decision(VerdictDeny))
	}
	if err := l.Erase(ctx, "acme"); err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	copyDir(t, dir, copied) // as a crash right now would leave it
	mustOpen(t, Options{Dir: copied})
	mustVerify(t, copied, nil)
}

// What no head covers is bounded: while no head can be made, who would go past the bound waits.
func TestUncoveredIsBounded(t *testing.T) {
	var l *Log
	var most, written atomic.Int64 // bytes under no head, bytes of entries
	l = mustOpen(t, Options{
		Dir: t.TempDir(), Durability: DurabilityProcess, SegmentBytes: maxSegment,
		open: func(path string, flag int) (file, error) {
			f, err := openFile(path, flag)
			if err != nil || filepath.Ext(path) != entriesExt {
				return f, err
			}
			return &watched{f, func(n int) {
				if l == nil {
					return // it is being opened
				}
				l.mu.RLock()
				most.Store(max(most.Load(), l.end-l.coveredEnd+int64(n)))
				l.mu.RUnlock()
				written.Add(int64(n))
			}}, nil
		},
	})
	long := completed()
	for i := range MaxLines {
		long.Lines = append(long.Lines, Line{Line: i, Function: "file_read", Target: longText})
	}
	const rows = 12
	done := make(chan struct{})
	l.covering.Lock()
	go func() {
		defer close(done)
		for range rows {
			id := NewID()
			for _, b := range []Body{decision(VerdictAllow), long} {
				if _, err := l.Append(ctx, Event{Org: "acme", ID: id, Body: b}); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	eventually(t, "there is as much as may be", func() bool { return written.Load() > maxUncovered-maxPayload })
	select {
	case <-done:
		t.Error("nobody waited for a head")
	case <-time.After(200 * time.Millisecond): // more would have been written by now, or is not yet: never a failure
	}
	l.covering.Unlock()
	<-done
	if n := most.Load(); n > maxUncovered {
		t.Errorf("%d bytes were under no head", n)
	}
	if n := countRows(t, l, "acme"); n != rows {
		t.Errorf("%d rows", n)
	}
}

// watched is a file whose writes are seen before they are made.
type watched struct {
	file
	see func(n int)
}

func (w *watched) Write(p []byte) (int, error) {
	w.see(len(p))
	return w.file.Write(p)
}

// A log of another version of the format is refused, and the refusal says so.
func TestOtherVersion(t *testing.T) {
	dir, _, _ := smallLog(t)
	path := filepath.Join(Dir(dir), fileName(0, entriesExt))
	data := must(os.ReadFile(path))
	copy(data, "ECOTONE-AUDIT-1\n")
	os.WriteFile(path, data, 0o600)
	if _, err := Open(Options{Dir: dir}); abi.CodeOf(err) != abi.CodeAuditUnavailable || !strings.Contains(abi.AsError(err).Message, `of another version of the format: "1"`) {
		t.Errorf("Open: %v", err)
	}
	if r := must(Verify(Dir(dir), VerifyOptions{})); r.OK || !strings.Contains(r.Problem.What, "another version") {
		t.Errorf("Verify: %+v", r.Problem)
	}
}

func TestDurabilityNames(t *testing.T) {
	for _, d := range []Durability{DurabilityPower, DurabilityProcess} {
		if got, err := ParseDurability(d.String()); err != nil || got != d {
			t.Errorf("%s: %v, %v", d, got, err)
		}
	}
	var zero Durability
	if zero != DurabilityPower {
		t.Error("the zero value is not the safer one")
	}
	for _, bad := range []string{"", "Power", "none", "invalid"} {
		if _, err := ParseDurability(bad); abi.CodeOf(err) != abi.CodeInvalidRequest {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := Open(Options{Dir: t.TempDir(), Durability: numDurabilities}); abi.CodeOf(err) != abi.CodeInvalidRequest {
		t.Errorf("Open: %v", err)
	}
}

// recorder notes what is done to files, in order.
type recorder struct {
	file
	name string
	done *[]string
}

func (r *recorder) WriteAt(p []byte, off int64) (int, error) {
	*r.done = append(*r.done, fmt.Sprintf("%s: %d bytes at %d", r.name, len(p), off))
	return r.file.WriteAt(p, off)
}

func (r *recorder) Sync() error {
	*r.done = append(*r.done, r.name+": sync")
	return r.file.Sync()
}

// A kernel that failed to synchronise may take the pages for clean and answer the next synchronisation
// without writing: what is adopted is written again before it is synchronised, and before a head
// says that it is on disk.
func TestAdoptedIsWrittenAgain(t *testing.T) {
	c := crash(t, DurabilityPower)
	var done []string
	mustOpen(t, Options{Dir: c.dir, open: func(path string, flag int) (file, error) {
		f, err := openFile(path, flag)
		if err != nil {
			return nil, err
		}
		return &recorder{f, strings.TrimLeft(filepath.Ext(path), "."), &done}, nil
	}})
	want := []string{
		fmt.Sprintf("entries: %d bytes at %d", len(c.data)-c.starts[0], c.starts[0]), "entries: sync",
		"heads: sync", // without what a crash tore
		"heads: sync", // with the new head
	}
	if !slices.Equal(done, want) {
		t.Errorf("done: %q, want %q", done, want)
	}
}

// A head that lies in two sectors and of which one did not reach the disk is torn, not changed: it is cut,
// what it covered is adopted. A single byte that became zero is not a lost sector.
func TestHalfAHead(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, Options{Dir: dir})
	path := filepath.Join(Dir(dir), fileName(0, headsExt))
	var raw []byte
	start := 0
	for len(raw) <= sectorBytes { // until the last head begins in one sector and ends in the next
		start = len(raw)
		mustAppend(t, l, "acme", NewID(), decision(VerdictDeny))
		l.Head()
		raw = must(os.ReadFile(path))
	}
	rows := int(l.headSize)
	l.Close()
	if start >= sectorBytes || start == 0 {
		t.Fatalf("the last head is from %d to %d", start, len(raw))
	}
	for name, zero := range map[string][2]int{"first": {start, sectorBytes}, "second": {sectorBytes, len(raw)}} {
		lost := bytes.Clone(raw)
		clear(lost[zero[0]:zero[1]])
		os.WriteFile(path, lost, 0o600)
		r := mustVerify(t, dir, nil)
		if r.Unsigned == 0 || r.Size+r.Unsigned != int64(rows) || r.Tail == 0 {
			t.Errorf("%s half lost: %+v", name, r)
		}
		l := mustOpen(t, Options{Dir: dir})
		if n := countRows(t, l, "acme"); n != rows {
			t.Errorf("%s half lost: %d rows of %d", name, n, rows)
		}
		l.Close()
		if r := mustVerify(t, dir, nil); r.Unsigned != 0 || r.Tail != 0 {
			t.Errorf("%s half lost, opened again: %+v", name, r)
		}
	}
	for _, at := range []int{start, start + 40, sectorBytes - 1, sectorBytes, len(raw) - 2} {
		changed := bytes.Clone(raw)
		changed[at] = 0
		os.WriteFile(path, changed, 0o600)
		if r := must(Verify(Dir(dir), VerifyOptions{})); r.OK {
			t.Errorf("byte %d is not seen", at)
		}
	}
	os.WriteFile(path, raw, 0o600)
}

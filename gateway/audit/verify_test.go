package audit

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ecotone-dev/ecotone/abi"
)

// smallLog is a data directory with a closed log in three pairs of files.
func smallLog(t testing.TB) (dir string, positions []Position, heads [][]byte) {
	dir = t.TempDir()
	l := mustOpen(t, Options{Dir: dir, SegmentBytes: 4 << 10})
	for i := range 9 {
		v := VerdictDeny
		if i%2 == 0 {
			v = VerdictAllow
		}
		id := NewID()
		positions = append(positions, mustAppend(t, l, "acme", id, decision(v)))
		heads = append(heads, l.Head())
		if v == VerdictAllow {
			positions = append(positions, mustAppend(t, l, "acme", id, completed()))
			heads = append(heads, l.Head())
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, positions, heads
}

// PF-G7, X48, S8: a byte changed anywhere in a copied log is found, with its entry and offset; the
// gateway does not open such a log.
func TestFlippedByte(t *testing.T) {
	dir, positions, _ := smallLog(t)
	clean := mustVerify(t, dir, nil)
	if clean.Size != int64(len(positions)) || clean.Files < 2 {
		t.Fatalf("clean = %+v", clean)
	}
	copied := t.TempDir()
	copyDir(t, Dir(dir), copied)
	step := 29
	if testing.Short() {
		step = 61
	}
	for _, e := range must(os.ReadDir(copied)) {
		path := filepath.Join(copied, e.Name())
		orig := must(os.ReadFile(path))
		if len(orig) == 0 {
			continue // the lock
		}
		isEntries := strings.HasSuffix(path, entriesExt)
		for _, flip := range []byte{0x01, 0x0a, 0x80} {
			for at := int(flip) % step; at < len(orig); at += step {
				data := bytes.Clone(orig)
				data[at] ^= flip
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
				r, err := Verify(copied, VerifyOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if r.OK || r.Problem == nil {
					t.Fatalf("%s: byte %d ^ %#x is not seen", e.Name(), at, flip)
				}
				if p := r.Problem; isEntries && at >= fileHeader {
					if p.File != e.Name() || p.Offset > int64(at) || p.Index < 0 || p.Index >= int64(len(positions)) {
						t.Fatalf("%s: byte %d: %+v", e.Name(), at, p)
					}
				}
			}
		}
		for _, at := range []int{0, len(orig) / 2, len(orig) - 2, len(orig) - 1} { // whatever the step
			data := bytes.Clone(orig)
			data[at] ^= 0x20
			os.WriteFile(path, data, 0o600)
			if r, err := Verify(copied, VerifyOptions{}); err != nil || r.OK {
				t.Fatalf("%s: byte %d is not seen: %v", e.Name(), at, err)
			}
		}
		os.WriteFile(path, orig, 0o600)
	}
	if r := must(Verify(copied, VerifyOptions{})); !r.OK {
		t.Fatalf("the restored copy: %+v", r.Problem)
	}
	// Not only the verifier: the gateway does not start on it.
	path := filepath.Join(Dir(dir), fileName(0, entriesExt))
	data := must(os.ReadFile(path))
	data[len(data)/2] ^= 1
	os.WriteFile(path, data, 0o600)
	if _, err := Open(Options{Dir: dir}); abi.CodeOf(err) != abi.CodeAuditUnavailable || !strings.Contains(abi.AsError(err).Message, "does not verify") {
		t.Errorf("Open of a changed log: %v", err)
	}
}

// PF-G7, S8: a head has one spelling. No bit of it can be flipped and no character put for another
// without being seen, in the unused bits of its base64 neither.
func TestHeadHasOneSpelling(t *testing.T) {
	l := mustOpen(t, Options{Dir: t.TempDir()})
	defer l.Close()
	for range 4 { // the last character of a signature is chance
		mustAppend(t, l, "acme", NewID(), decision(VerdictDeny))
		whole := l.Head()
		if _, err := openHead(l.sign.verifier, whole); err != nil {
			t.Fatal(err)
		}
		others := []byte("+/=\r\n 09AZaz")
		for at, was := range whole {
			flipped := []byte{was ^ 1, was ^ 2, was ^ 4, was ^ 8, was ^ 16, was ^ 32, was ^ 64, was ^ 128}
			for _, other := range append(flipped, others...) {
				changed := bytes.Clone(whole)
				changed[at] = other
				if _, err := openHead(l.sign.verifier, changed); err == nil && other != was {
					t.Fatalf("byte %d: %q for %q is not seen", at, other, was)
				}
			}
		}
	}
}

// PF-G7: an exact row is named, also by its audit id.
func TestProblemNamesTheRow(t *testing.T) {
	dir, positions, _ := smallLog(t)
	path := filepath.Join(Dir(dir), fileName(0, entriesExt))
	data := must(os.ReadFile(path))
	const entry = 2
	at := fileHeader
	for range entry {
		at += frameExtra + int(data[at+2])<<8 + int(data[at+3])
	}
	data[at+200] ^= 4
	os.WriteFile(path, data, 0o600)
	r := must(Verify(Dir(dir), VerifyOptions{}))
	want := Problem{File: filepath.Base(path), Offset: int64(at), Index: entry, ID: positions[entry].ID, What: errFrameSum.Error()}
	if r.Problem == nil || *r.Problem != want {
		t.Errorf("problem = %+v, want %+v", r.Problem, want)
	}
	// The attacker repairs the checksum: the tree still tells.
	n := int(data[at+2])<<8 + int(data[at+3])
	fixed := append(appendFrame(bytes.Clone(data[:at]), data[at+4:at+4+n]), data[at+frameExtra+n:]...)
	os.WriteFile(path, fixed, 0o600)
	r = must(Verify(Dir(dir), VerifyOptions{}))
	if r.OK || r.Problem.Index != entry || r.Problem.Offset != int64(at) {
		t.Errorf("with a repaired checksum: %+v", r.Problem)
	}
}

// S8: whole groups cut off the end are seen by an old head, and by nothing else; so are replaced ones.
func TestHeadFromElsewhere(t *testing.T) {
	dir, _, heads := smallLog(t)
	for i, h := range heads {
		r, err := Verify(Dir(dir), VerifyOptions{Head: h})
		if err != nil || !r.OK || r.Against != int64(i+1) {
			t.Fatalf("head %d: %+v, %v", i, r, err)
		}
	}
	last := heads[len(heads)-1]

	names := must(os.ReadDir(Dir(dir)))
	cut := t.TempDir()
	copyDir(t, Dir(dir), cut)
	var pairs []string
	for _, n := range names {
		if strings.HasSuffix(n.Name(), headsExt) {
			pairs = append(pairs, strings.TrimSuffix(n.Name(), headsExt))
		}
	}
	tail := pairs[len(pairs)-1]
	os.Remove(filepath.Join(cut, tail+headsExt))
	os.Remove(filepath.Join(cut, tail+entriesExt))
	if r := must(Verify(cut, VerifyOptions{})); !r.OK {
		t.Errorf("a cut at a file cannot be seen from the inside: %+v", r.Problem)
	}
	if r := must(Verify(cut, VerifyOptions{Head: last})); r.OK || !strings.Contains(r.Problem.What, "the log ends at") {
		t.Errorf("cut tail and old head: %+v", r)
	}

	// A file missing in the middle, and heads without entries.
	holed := t.TempDir()
	copyDir(t, Dir(dir), holed)
	os.Remove(filepath.Join(holed, pairs[0]+entriesExt))
	if r := must(Verify(holed, VerifyOptions{})); r.OK {
		t.Error("a missing first file is not seen")
	}
	orphan := t.TempDir()
	copyDir(t, Dir(dir), orphan)
	os.Remove(filepath.Join(orphan, tail+entriesExt))
	if r := must(Verify(orphan, VerifyOptions{})); r.OK {
		t.Error("heads without entries are not seen")
	}

	// Another log, even one that is larger, is not this one.
	other, _, otherHeads := smallLog(t)
	if r := must(Verify(Dir(other), VerifyOptions{Head: last})); r.OK {
		t.Error("another log's head is accepted")
	}
	key := string(must(os.ReadFile(filepath.Join(Dir(dir), pubName))))
	if r := must(Verify(Dir(other), VerifyOptions{Key: key})); r.OK {
		t.Error("another log's key is accepted")
	}
	for _, bad := range [][]byte{{}, []byte("x"), last[:len(last)-3], append(bytes.Clone(last), 'x'), otherHeads[0]} {
		if r := must(Verify(Dir(dir), VerifyOptions{Head: bad})); r.OK {
			t.Errorf("head %.20q is accepted", bad)
		}
	}
}

// S8: a log rewritten under the same key, as whoever holds the machine can, does not pass for the old one.
func TestRewrittenLog(t *testing.T) {
	dir, _, heads := smallLog(t)
	for _, e := range must(os.ReadDir(Dir(dir))) {
		os.Remove(filepath.Join(Dir(dir), e.Name())) // key.pub too, or it would not start
	}
	l := mustOpen(t, Options{Dir: dir})
	for range 20 {
		mustAppend(t, l, "acme", NewID(), decision(VerdictDeny))
	}
	l.Close()
	mustVerify(t, dir, nil)
	if r := must(Verify(Dir(dir), VerifyOptions{Head: heads[3]})); r.OK || !strings.Contains(r.Problem.What, "head from elsewhere") {
		t.Errorf("report = %+v", r)
	}
}

// Verifying works on a copy without keys, and on a log that is being written.
func TestVerifyLive(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, Options{Dir: dir, SegmentBytes: 16 << 10})
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				l.Append(ctx, Event{Org: "acme", ID: NewID(), Body: decision(VerdictDeny)})
			}
		}
	}()
	for range 30 {
		mustVerify(t, dir, l.Head())
	}
	close(stop)
	<-done
	if _, err := Verify(t.TempDir(), VerifyOptions{}); abi.CodeOf(err) != abi.CodeNotFound {
		t.Errorf("Verify of nothing: %v", err)
	}
}

func TestReportJSON(t *testing.T) {
	got := must(json.Marshal(Report{Problem: &Problem{File: "f", Offset: 1, Index: 2, What: "w"}}))
	if want := `{"ok":false,"size":0,"heads":0,"files":0,"problem":{"file":"f","offset":1,"index":2,"what":"w"}}`; string(got) != want {
		t.Errorf("report = %s", got)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// FuzzFrame: whatever the bytes, the frame reader and the header parser answer, within bounds, and what
// they accept they write back as it was.
func FuzzFrame(f *testing.F) {
	h := header{kind: KindDecided, org: "acme", index: 3, prev: 2, time: 5, open: true}
	payload := append(h.append(nil), make([]byte, sealOverhead+9)...)
	good := appendFrame(nil, payload)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		payload, buf, err := readFrame(bytes.NewReader(data), nil)
		if cap(buf) > 2*(maxPayload+frameExtra) {
			t.Fatalf("%d bytes for a frame", cap(buf))
		}
		if err != nil {
			return
		}
		if again := appendFrame(nil, payload); !bytes.Equal(again, data[:len(again)]) {
			t.Fatal("the frame does not round-trip")
		}
		h, sealed, err := parseHeader(payload)
		if err != nil {
			return
		}
		if again := append(h.append(nil), sealed...); !bytes.Equal(again, payload) {
			t.Fatalf("the header does not round-trip: %+v", h)
		}
	})
}

// FuzzHead: a head is taken apart only in the documented form.
func FuzzHead(f *testing.F) {
	origin := originPrefix + "0123456789abcdef"
	good := origin + "\n12\n" + strings.Repeat("A", 43) + "=\n\n" + sigPrefix + origin + " " + strings.Repeat("A", 92) + "\n"
	f.Add([]byte(good))
	f.Add([]byte(good + good[:100]))
	f.Add([]byte(good[:150]))
	f.Fuzz(func(t *testing.T, data []byte) {
		msg, torn, ok := nextHead(origin, data)
		switch {
		case !ok:
			return
		case msg == nil:
			if torn != len(data) || torn >= maxHeadBytes {
				t.Fatalf("%d of %d bytes are torn", torn, len(data))
			}
		default:
			if h, err := parseHead(origin, msg); err == nil && h.size < 0 {
				t.Fatal("negative size")
			}
		}
	})
}

package main

import (
	"fmt"
	"math/rand"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ecotone-dev/ecotone/biomes/internal/biometest"
	"github.com/ecotone-dev/ecotone/guest"
)

func start(t *testing.T) *biometest.Biome {
	return biometest.New(t, map[string]func() int32{
		"read": read, "list": list, "write": write, "edit": edit, "copy": copyFile, "move": move, "remove": remove, "grep": grep, "glob": glob,
	})
}

const (
	capRead   = "ws:file.read@1"
	capList   = "ws:file.list@1"
	capWrite  = "ws:file.write@1"
	capEdit   = "ws:file.edit@1"
	capCopy   = "ws:file.copy@1"
	capMove   = "ws:file.move@1"
	capRemove = "ws:file.remove@1"
	capGrep   = "ws:file.grep@1"
	capGlob   = "ws:file.glob@1"
)

func TestReadNumbersLines(t *testing.T) {
	b := start(t)
	b.Host.PutFile("a.txt", "one\ntwo\n\nfour")
	got := biometest.Into[readOut](b, capRead, readIn{Path: "a.txt"})
	if got.Text != "     1\tone\n     2\ttwo\n     3\t\n     4\tfour" || got.Lines != 4 || got.Truncated || got.Next != nil || got.Size != 13 || got.Version == "" {
		t.Errorf("read %+v", got)
	}
	got = biometest.Into[readOut](b, capRead, readIn{Path: "a.txt", Offset: 2, Limit: 1})
	want := "     2\ttwo\n[truncated: the file goes on; continue with offset 3]\n"
	if got.Text != want || !got.Truncated || *got.Next != (place{Offset: 3}) {
		t.Errorf("read %+v", got)
	}
	for _, in := range []readIn{{Path: "a.txt", Offset: 5}, {Path: "empty"}} {
		b.Host.PutFile("empty", "")
		if got := biometest.Into[readOut](b, capRead, in); got.Text != "" || got.Lines != 0 || got.Truncated {
			t.Errorf("%+v: read %+v", in, got)
		}
	}
	b.Refused(capRead, readIn{Path: "none"}, "FILE_NOT_FOUND")
	b.Host.PutFile("dir/a", "")
	b.Refused(capRead, readIn{Path: "dir"}, "NOT_REGULAR")
	b.Refused(capRead, readIn{Path: "../etc/passwd"}, "PATH_INVALID")
	b.Refused(capRead, readIn{Path: "/etc/passwd"}, "PATH_INVALID")
}

// pages reads a file to its end, page by page, holds every page to its bounds, and returns
// the bytes the pages had.
func pages(t *testing.T, b *biometest.Biome, path string) string {
	t.Helper()
	numbered := regexp.MustCompile(`^ *(\d+)\t`)
	var file strings.Builder
	in := readIn{Path: path}
	for n := 0; ; n++ {
		got := biometest.Into[readOut](b, capRead, in)
		if len(got.Text) > maxText || got.Lines > maxLines+1 {
			t.Fatalf("page %d has %d bytes, %d lines", n, len(got.Text), got.Lines)
		}
		text := got.Text
		if got.Truncated {
			body, marker, ok := strings.Cut(text, "[truncated: ")
			if !ok || !strings.Contains(marker, "offset "+strconv.Itoa(got.Next.Offset)) {
				t.Fatalf("page %d is cut without a marker", n)
			}
			text = body
			if got.Next.Column > 0 {
				text = strings.TrimSuffix(text, "\n") // the line goes on; its end is not in the file
			}
		}
		for i, line := range strings.SplitAfter(text, "\n") {
			if line == "" {
				continue
			}
			m := numbered.FindStringSubmatch(line)
			if m == nil || m[1] != strconv.Itoa(max(in.Offset, 1)+i) {
				t.Fatalf("page %d, line %d has no right number: %.40q", n, i, line)
			}
			file.WriteString(line[len(m[0]):])
		}
		if !got.Truncated {
			return file.String()
		}
		if got.Next.Offset == in.Offset && got.Next.Column <= in.Column {
			t.Fatalf("page %d makes no progress: %+v", n, got.Next)
		}
		in.Offset, in.Column = got.Next.Offset, got.Next.Column
	}
}

// A file of many megabytes pages completely, without gaps, and no answer is over its bound.
func TestReadPagesWithoutGaps(t *testing.T) { // M16
	b := start(t)
	var big strings.Builder
	for i := 0; big.Len() < 10<<20; i++ {
		// Lines of every kind: short, empty, longer than a page, of more than one byte a character.
		switch i % 97 {
		case 0:
			big.WriteString(strings.Repeat("é€𝄞", 9000))
		case 1:
		default:
			fmt.Fprintf(&big, "line %d %s", i, strings.Repeat("x", i%3000))
		}
		big.WriteByte('\n')
	}
	b.Host.PutFile("big", big.String())
	if got := pages(t, b, "big"); got != big.String() {
		t.Errorf("%d bytes paged, the file has %d", len(got), big.Len())
	}
}

func TestReadPagesAnyText(t *testing.T) { // M16
	b := start(t)
	rng := rand.New(rand.NewSource(1))
	alphabet := []string{"a", "é", "€", "𝄞", "\n", "\n\n", "\r\n", "\t", strings.Repeat("y", 999), strings.Repeat("€", 9000), "[truncated ", "    12\t"}
	for round := range 12 {
		var text strings.Builder
		for range rng.Intn(400) {
			text.WriteString(alphabet[rng.Intn(len(alphabet))])
		}
		b.Host.PutFile("any", text.String())
		if got := pages(t, b, "any"); got != text.String() {
			t.Fatalf("round %d: %d bytes paged, the file has %d", round, len(got), text.Len())
		}
	}
	for _, exact := range []int{maxLines - 1, maxLines, maxLines + 1} {
		text := strings.Repeat("z\n", exact)
		b.Host.PutFile("any", text)
		if got := pages(t, b, "any"); got != text {
			t.Errorf("%d lines: %d bytes paged", exact, len(got))
		}
	}
}

// A file that is not text is shown without losing count, and the answer says so.
func TestReadBinary(t *testing.T) {
	b := start(t)
	b.Host.PutFile("bin", strings.Repeat("\xff\xfe\x00\x80", 40_000))
	in, seen := readIn{Path: "bin"}, 0
	for {
		got := biometest.Into[readOut](b, capRead, in)
		if !utf8.ValidString(got.Text) || len(got.Text) > maxText || !got.Lossy {
			t.Fatalf("%d bytes, lossy %v", len(got.Text), got.Lossy)
		}
		if !got.Truncated {
			break
		}
		if got.Next.Column <= in.Column {
			t.Fatalf("no progress at %+v", got.Next)
		}
		in.Offset, in.Column = got.Next.Offset, got.Next.Column
		if seen++; seen > 100 {
			t.Fatal("it does not end")
		}
	}
}

func TestWriteNeedsARead(t *testing.T) { // M3
	b := start(t)
	b.Host.PutFile("old", "1")
	b.Refused(capWrite, writeIn{Path: "old", Text: "2"}, "READ_REQUIRED")
	if got, _ := b.Host.File("old"); got != "1" {
		t.Errorf("the refused write changed the file to %q", got)
	}
	biometest.Into[readOut](b, capRead, readIn{Path: "old"})
	done := biometest.Into[writeOut](b, capWrite, writeIn{Path: "old", Text: "22"})
	if got, _ := b.Host.File("old"); got != "22" || done.Bytes != 2 || done.Version == "" {
		t.Errorf("wrote %+v, the file is %q", done, got)
	}
	biometest.Into[writeOut](b, capWrite, writeIn{Path: "deep/new", Text: "3"})
	// What this session wrote it may write again; another may not.
	biometest.Into[writeOut](b, capWrite, writeIn{Path: "deep/new", Text: "4"})
	b.Host.NewSession()
	b.Refused(capWrite, writeIn{Path: "deep/new", Text: "5"}, "READ_REQUIRED")
}

func TestWriteComparesVersions(t *testing.T) { // M4
	b := start(t)
	b.Host.PutFile("f", "1")
	v1 := biometest.Into[readOut](b, capRead, readIn{Path: "f"}).Version
	b.Host.PutFile("f", "another's")
	b.Refused(capWrite, writeIn{Path: "f", Text: "mine"}, "VERSION_MISMATCH")
	b.Refused(capWrite, writeIn{Path: "f", Text: "mine", Version: v1}, "VERSION_MISMATCH")
	b.Refused(capWrite, writeIn{Path: "f", Text: "mine", Version: "0000000000000000"}, "VERSION_MISMATCH")
	if got, _ := b.Host.File("f"); got != "another's" {
		t.Errorf("the file is %q", got)
	}
	b.Host.RemoveFile("f")
	b.Refused(capWrite, writeIn{Path: "f", Text: "mine"}, "DELETED_SINCE_READ")
}

func TestCreateIsCreateOnly(t *testing.T) { // M5, the tool's side: concurrency is the host's
	b := start(t)
	biometest.Into[writeOut](b, capWrite, writeIn{Path: "f", Text: "1", Create: true})
	b.Refused(capWrite, writeIn{Path: "f", Text: "2", Create: true}, "FILE_EXISTS")
	b.Refused(capWrite, writeIn{Path: "f/below", Text: "2", Create: true}, "NOT_REGULAR")
	b.Refused(capWrite, writeIn{Path: "g", Text: "2", Create: true, Version: "v"}, "ARGUMENT_INVALID")
	if got, _ := b.Host.File("f"); got != "1" {
		t.Errorf("the file is %q", got)
	}
}

func TestEdit(t *testing.T) { // M6
	b := start(t)
	b.Host.PutFile("f", "one two two")
	b.Refused(capEdit, editIn{Path: "f", Old: "one", New: "1"}, "READ_REQUIRED")
	biometest.Into[readOut](b, capRead, readIn{Path: "f"})
	b.Refused(capEdit, editIn{Path: "f", Old: "three", New: "3"}, "EDIT_NO_MATCH")
	b.Refused(capEdit, editIn{Path: "f", Old: "", New: "3"}, "EDIT_EMPTY")
	b.Refused(capEdit, editIn{Path: "f", Old: "one", New: "one"}, "EDIT_IDENTICAL")
	o := b.Run(capEdit, editIn{Path: "f", Old: "two", New: "2"})
	if o.Code() != "EDIT_AMBIGUOUS" || !strings.Contains(o.Failure.Message, "2 times") {
		t.Errorf("ambiguous: %v", o.Failure)
	}
	if got, _ := b.Host.File("f"); got != "one two two" {
		t.Errorf("a refused edit changed the file to %q", got)
	}
	if got := biometest.Into[editOut](b, capEdit, editIn{Path: "f", Old: "one", New: "1"}); got.Count != 1 || got.Version == "" {
		t.Errorf("edited %+v", got)
	}
	if got := biometest.Into[editOut](b, capEdit, editIn{Path: "f", Old: "two", New: "2", All: true}); got.Count != 2 {
		t.Errorf("edited %+v", got)
	}
	if got, _ := b.Host.File("f"); got != "1 2 2" {
		t.Errorf("the file is %q", got)
	}
}

func TestEditNoticesOthers(t *testing.T) { // M7
	b := start(t)
	b.Host.PutFile("f", "one")
	biometest.Into[readOut](b, capRead, readIn{Path: "f"})
	b.Host.PutFile("f", "one more")
	b.Refused(capEdit, editIn{Path: "f", Old: "one", New: "1"}, "VERSION_MISMATCH")
	b.Host.RemoveFile("f")
	b.Refused(capEdit, editIn{Path: "f", Old: "one", New: "1"}, "DELETED_SINCE_READ")
}

func TestCopyAndMove(t *testing.T) { // M13, M14
	b := start(t)
	b.Host.PutFile("a", "A")
	b.Host.PutFile("b", "B")
	b.Host.PutFile("dir/x", "X")
	for _, ref := range []string{capCopy, capMove} {
		b.Refused(ref, pair{"dir", "elsewhere"}, "NOT_REGULAR")
		b.Refused(ref, pair{"a", "b"}, "FILE_EXISTS")
		b.Refused(ref, pair{"none", "c"}, "FILE_NOT_FOUND")
		b.Refused(ref, pair{"a", "../c"}, "PATH_INVALID")
	}
	if got, _ := b.Host.File("b"); got != "B" {
		t.Errorf("b is %q", got)
	}
	biometest.Into[pair](b, capCopy, pair{"a", "c"})
	b.Refused(capWrite, writeIn{Path: "c", Text: "over"}, "READ_REQUIRED") // a copy counts as no read
	biometest.Into[pair](b, capMove, pair{"a", "d/e"})
	if _, there := b.Host.File("a"); there {
		t.Error("a is still there")
	}
	for name, want := range map[string]string{"c": "A", "d/e": "A"} {
		if got, _ := b.Host.File(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}

func TestRemove(t *testing.T) { // M12
	b := start(t)
	b.Host.PutFile("dir/x", "X")
	b.Refused(capRemove, onePath{"dir"}, "DIRECTORY_NOT_EMPTY")
	if _, there := b.Host.File("dir/x"); !there {
		t.Error("the tree was touched")
	}
	biometest.Into[onePath](b, capRemove, onePath{"dir/x"})
	biometest.Into[onePath](b, capRemove, onePath{"dir"})
	b.Refused(capRemove, onePath{"dir"}, "FILE_NOT_FOUND")
}

func TestListGrepGlob(t *testing.T) { // M2
	b := start(t)
	b.Host.PutFile("src/a.go", "package a\nfunc A() {}\n")
	b.Host.PutFile("src/deep/b.go", "package b\n")
	b.Host.PutFile("c.md", strings.Repeat("é", 400)+" package")
	got := biometest.Into[listOut](b, capList, listIn{})
	want := listOut{Entries: []guest.Entry{{Name: "c.md", Kind: "file", Size: 808}, {Name: "src", Kind: "directory"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := biometest.Into[listOut](b, capList, listIn{Limit: 1}); len(got.Entries) != 1 || !got.More {
		t.Errorf("listed %+v", got)
	}
	if got := biometest.Into[listOut](b, capList, listIn{After: "c.md"}); len(got.Entries) != 1 || got.More {
		t.Errorf("listed %+v", got)
	}
	b.Refused(capList, listIn{Path: "c.md"}, "NOT_REGULAR")
	globbed := biometest.Into[globOut](b, capGlob, globIn{Glob: "**/*.go"})
	if diff := cmp.Diff(globOut{Paths: []string{"src/a.go", "src/deep/b.go"}}, globbed); diff != "" {
		t.Error(diff)
	}
	if got := biometest.Into[globOut](b, capGlob, globIn{Glob: "*.none"}); got.Paths == nil || len(got.Paths) != 0 {
		t.Errorf("globbed %+v", got)
	}
	found := biometest.Into[grepOut](b, capGrep, grepIn{Pattern: "^package", Glob: "src/**"})
	if diff := cmp.Diff(grepOut{Matches: []guest.Match{{Path: "src/a.go", Line: 1, Text: "package a"}, {Path: "src/deep/b.go", Line: 1, Text: "package b"}}}, found); diff != "" {
		t.Error(diff)
	}
	long := biometest.Into[grepOut](b, capGrep, grepIn{Pattern: "package$", Limit: 5})
	if len(long.Matches) != 1 || !utf8.ValidString(long.Matches[0].Text) || !strings.HasSuffix(long.Matches[0].Text, "…") || len(long.Matches[0].Text) > maxMatchText+len("…") {
		t.Errorf("found %+v", long)
	}
	b.Refused(capGrep, grepIn{Pattern: "("}, "PATH_INVALID")
}

// A refusal of any host function has a name, and is never an answer.
func TestRefusalsAreNamed(t *testing.T) {
	b := start(t)
	b.Host.PutFile("f", "text")
	for _, tc := range []struct {
		function, ref string
		input         any
	}{
		{"file_read", capRead, readIn{Path: "f"}},
		{"file_list", capList, listIn{}},
		{"file_write", capWrite, writeIn{Path: "g", Text: "1"}},
		{"file_create", capWrite, writeIn{Path: "g", Text: "1", Create: true}},
		{"file_replace", capWrite, writeIn{Path: "g", Text: "1", Version: "v"}},
		{"file_edit", capEdit, editIn{Path: "f", Old: "a", New: "b"}},
		{"file_copy", capCopy, pair{"f", "h"}},
		{"file_move", capMove, pair{"f", "h"}},
		{"file_remove", capRemove, onePath{"f"}},
		{"file_grep", capGrep, grepIn{Pattern: "x"}},
		{"file_glob", capGlob, globIn{Glob: "*"}},
	} {
		for errno, f := range names {
			b.Host.Deny[tc.function] = errno
			b.Refused(tc.ref, tc.input, f.Code)
		}
		b.Host.Deny[tc.function] = guest.ECANCELED
		b.Refused(tc.ref, tc.input, "ECANCELED")
		delete(b.Host.Deny, tc.function)
	}
}

func TestInputIsStrict(t *testing.T) {
	b := start(t)
	for _, in := range []string{``, `{`, `[]`, `{"path":1}`, `{"path":"a","encoding":"x"}`, `{"path":"a"} {}`} {
		if o := b.Unchecked(capRead, in); o.Code() != "INPUT_INVALID" {
			t.Errorf("%s: %v", in, o.Failure)
		}
	}
	for _, in := range []string{`{"path":"a","offset":-1}`, `{"path":"a","limit":-1}`, `{"path":"a","column":-1}`} {
		if o := b.Unchecked(capRead, in); o.Code() != "ARGUMENT_INVALID" {
			t.Errorf("%s: %v", in, o.Failure)
		}
	}
}

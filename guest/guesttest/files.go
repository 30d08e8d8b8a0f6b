package guesttest

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/guest"
)

// node is a file or a directory of the workspace, whose paths are canonical: "." is the root.
type node struct {
	dir     bool
	data    []byte
	version string
}

func (h *Host) version() string {
	h.versions++
	return "v" + strconv.Itoa(h.versions)
}

// put writes a file with the directories above it.
func (h *Host) put(p string, data []byte) *node {
	for dir := path.Dir(p); h.files[dir] == nil; dir = path.Dir(dir) {
		h.files[dir] = &node{dir: true}
	}
	n := &node{data: slices.Clone(data), version: h.version()}
	h.files[p] = n
	return n
}

// clean is the lexical check of a path.
func clean(p string) (string, guest.Errno) {
	if p == "" || !utf8.ValidString(p) || strings.ContainsAny(p, "\x00\\") || strings.HasPrefix(p, "/") {
		return "", guest.EINVAL
	}
	p = path.Clean(p)
	if p == ".." || strings.HasPrefix(p, "../") {
		return "", guest.EINVAL
	}
	return p, 0
}

// regular finds a file; a directory is ENOTREG.
func (h *Host) regular(p string) (*node, guest.Errno) {
	n := h.files[p]
	switch {
	case n == nil:
		return nil, guest.ENOENT
	case n.dir:
		return nil, guest.ENOTREG
	}
	return n, 0
}

// free says whether a file can be made at p.
func (h *Host) free(p string, size int) guest.Errno {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if n := h.files[dir]; n != nil && !n.dir {
			return guest.ENOTREG
		}
	}
	switch {
	case h.files[p] != nil:
		return guest.EEXIST
	case int64(size) > h.Limits.Get(abi.LimitFileBytes):
		return guest.ETOOBIG
	case int64(len(h.files)) > h.Limits.Get(abi.LimitWorkspaceEntries):
		return guest.EQUOTA
	}
	return 0
}

// known compares a file with what the session has read of it.
func (h *Host) known(p string, n *node) guest.Errno {
	version, read := h.ledger[p]
	switch {
	case !read:
		return guest.EREAD
	case version != n.version:
		return guest.EVERSION
	}
	return 0
}

// wrote records what the session knows now, and leaves the version.
func (b boundary) wrote(p string, n *node) int64 {
	b.h.ledger[p] = n.version
	b.leave(nil, map[string]any{"version": n.version})
	return 0
}

// file begins a call on one path.
func (b boundary) file(name, p string) (string, func(), int64) {
	done, refused := b.fills(name)
	if refused != 0 {
		return "", done, refused
	}
	p, e := clean(p)
	return p, done, fail(e)
}

func (b boundary) FileStat(p string) int64 {
	p, done, refused := b.file("file_stat", p)
	defer done()
	if refused != 0 {
		return refused
	}
	n := b.h.files[p]
	if n == nil {
		return fail(guest.ENOENT)
	}
	return b.leave(mustJSON(guest.Info{Kind: n.kind(), Size: int64(len(n.data)), Version: n.version, Classification: classification}), nil)
}

func (n *node) kind() string {
	if n.dir {
		return "directory"
	}
	return "file"
}

func (b boundary) FileRead(p string, off int64, count int) int64 {
	p, done, refused := b.file("file_read", p)
	defer done()
	if refused != 0 {
		return refused
	}
	if off < 0 || count < 0 {
		return fail(guest.EINVAL)
	}
	n, e := b.h.regular(p)
	if e != 0 {
		return fail(e)
	}
	b.h.ledger[p] = n.version
	size := int64(len(n.data))
	from := min(off, size)
	to := min(from+int64(count), size)
	return b.leave(n.data[from:to], map[string]any{
		"size": size, "version": n.version, "classification": classification, "eof": to == size,
	})
}

func (b boundary) FileList(p, after string, limit int) int64 {
	p, done, refused := b.file("file_list", p)
	defer done()
	if refused != 0 {
		return refused
	}
	switch n := b.h.files[p]; {
	case n == nil:
		return fail(guest.ENOENT)
	case !n.dir:
		return fail(guest.ENOTREG)
	}
	var entries []guest.Entry
	for name, n := range b.h.files {
		if name != "." && path.Dir(name) == p && path.Base(name) > after {
			entries = append(entries, guest.Entry{Name: path.Base(name), Kind: n.kind(), Size: int64(len(n.data))})
		}
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	part, more := page(entries, limit)
	return b.leave(mustJSON(part), moreMeta{more})
}

func (b boundary) FileCreate(p string, data []byte) int64 {
	p, done, refused := b.file("file_create", p)
	defer done()
	if refused != 0 {
		return refused
	}
	if e := b.h.free(p, len(data)); e != 0 {
		return fail(e)
	}
	return b.wrote(p, b.h.put(p, data))
}

func (b boundary) FileWrite(p string, data []byte) int64 {
	p, done, refused := b.file("file_write", p)
	defer done()
	if refused != 0 {
		return refused
	}
	n, e := b.h.regular(p)
	switch {
	case e == guest.ENOENT:
		if _, read := b.h.ledger[p]; read {
			return fail(guest.EDELETED)
		}
		e = b.h.free(p, len(data))
	case e == 0:
		e = b.h.known(p, n)
	}
	switch {
	case e != 0:
		return fail(e)
	case int64(len(data)) > b.h.Limits.Get(abi.LimitFileBytes):
		return fail(guest.ETOOBIG)
	}
	return b.wrote(p, b.h.put(p, data))
}

func (b boundary) FileReplace(p, version string, data []byte) int64 {
	p, done, refused := b.file("file_replace", p)
	defer done()
	if refused != 0 {
		return refused
	}
	n, e := b.h.regular(p)
	switch {
	case e != 0:
		return fail(e)
	case version == "" || version != n.version:
		return fail(guest.EVERSION)
	case int64(len(data)) > b.h.Limits.Get(abi.LimitFileBytes):
		return fail(guest.ETOOBIG)
	}
	return b.wrote(p, b.h.put(p, data))
}

func (b boundary) FileEdit(p, old, new string, all bool) int64 {
	p, done, refused := b.file("file_edit", p)
	defer done()
	if refused != 0 {
		return refused
	}
	switch {
	case old == "":
		return fail(guest.EEMPTY)
	case old == new:
		return fail(guest.ESAME)
	}
	n, e := b.h.regular(p)
	if _, read := b.h.ledger[p]; e == guest.ENOENT && read {
		return fail(guest.EDELETED)
	}
	if e == 0 {
		e = b.h.known(p, n)
	}
	if e != 0 {
		return fail(e)
	}
	count := bytes.Count(n.data, []byte(old))
	switch {
	case count == 0:
		return fail(guest.ENOMATCH)
	case count > 1 && !all:
		b.leave(nil, map[string]any{"count": count})
		return fail(guest.EAMBIGUOUS)
	}
	data := bytes.ReplaceAll(n.data, []byte(old), []byte(new))
	if int64(len(data)) > b.h.Limits.Get(abi.LimitFileBytes) {
		return fail(guest.ETOOBIG)
	}
	n = b.h.put(p, data)
	b.h.ledger[p] = n.version
	b.leave(nil, map[string]any{"count": count, "version": n.version})
	return int64(count)
}

// pair begins a call from one path to another: a regular file, to a place that is free.
func (b boundary) pair(name, from, to string) (n *node, src, dst string, done func(), refused int64) {
	src, done, refused = b.file(name, from)
	if refused != 0 {
		return nil, "", "", done, refused
	}
	dst, e := clean(to)
	if e == 0 {
		n, e = b.h.regular(src)
	}
	if e == 0 {
		e = b.h.free(dst, len(n.data))
	}
	return n, src, dst, done, fail(e)
}

func (b boundary) FileCopy(from, to string) int64 {
	n, _, dst, done, refused := b.pair("file_copy", from, to)
	defer done()
	if refused != 0 {
		return refused
	}
	b.h.put(dst, n.data)
	delete(b.h.ledger, dst)
	return 0
}

func (b boundary) FileMove(from, to string) int64 {
	n, src, dst, done, refused := b.pair("file_move", from, to)
	defer done()
	if refused != 0 {
		return refused
	}
	b.h.put(dst, n.data)
	delete(b.h.files, src)
	delete(b.h.ledger, src)
	delete(b.h.ledger, dst)
	return 0
}

func (b boundary) FileRemove(p string) int64 {
	p, done, refused := b.file("file_remove", p)
	defer done()
	if refused != 0 {
		return refused
	}
	n := b.h.files[p]
	switch {
	case n == nil:
		return fail(guest.ENOENT)
	case p == ".":
		return fail(guest.EINVAL)
	case n.dir:
		for name := range b.h.files {
			if strings.HasPrefix(name, p+"/") {
				return fail(guest.ENOTEMPTY)
			}
		}
	}
	delete(b.h.files, p)
	delete(b.h.ledger, p)
	return 0
}

func (b boundary) FileMkdir(p string) int64 {
	p, done, refused := b.file("file_mkdir", p)
	defer done()
	if refused != 0 {
		return refused
	}
	if e := b.h.free(p, 0); e != 0 {
		return fail(e)
	}
	for dir := p; b.h.files[dir] == nil; dir = path.Dir(dir) {
		b.h.files[dir] = &node{dir: true}
	}
	return 0
}

// matching lists the files a glob names, in order.
func (h *Host) matching(glob string) ([]string, guest.Errno) {
	re, e := compileGlob(glob)
	if e != 0 {
		return nil, e
	}
	var out []string
	for name, n := range h.files {
		if !n.dir && re.MatchString(name) {
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out, 0
}

func (b boundary) FileGrep(pattern, glob string, limit int) int64 {
	done, refused := b.fills("file_grep")
	defer done()
	if refused != 0 {
		return refused
	}
	re, err := regexp.Compile(pattern)
	if err != nil || len(pattern) > maxPattern {
		return fail(guest.EINVAL)
	}
	names, e := b.h.matching(glob)
	if e != 0 {
		return fail(e)
	}
	var matches []guest.Match
	for _, name := range names {
		text := strings.TrimSuffix(string(b.h.files[name].data), "\n")
		for i, line := range strings.Split(text, "\n") {
			if re.MatchString(line) {
				matches = append(matches, guest.Match{Path: name, Line: i + 1, Text: line})
			}
		}
	}
	part, more := page(matches, limit)
	return b.leave(mustJSON(part), moreMeta{more})
}

func (b boundary) FileGlob(glob string, limit int) int64 {
	done, refused := b.fills("file_glob")
	defer done()
	if refused != 0 {
		return refused
	}
	names, e := b.h.matching(glob)
	if e != 0 {
		return fail(e)
	}
	part, more := page(names, limit)
	return b.leave(mustJSON(part), moreMeta{more})
}

// maxPattern bounds patterns and globs, in bytes.
const maxPattern = 256

// globForms are the parts of a glob that are not literal, longest first.
var globForms = []struct{ glob, re string }{
	{"**/", `(?:[^/]+/)*`},
	{"/**", `(?:/[^/]+)*`},
	{"**", `.*`},
	{"*", `[^/]*`},
	{"?", `[^/]`},
	{"{", `(?:`},
	{"}", `)`},
	{",", `|`},
	{"[", `[`},
	{"]", `]`},
}

// compileGlob makes a regular expression of a glob. A comma outside braces is rare in names,
// and is not supported.
func compileGlob(glob string) (*regexp.Regexp, guest.Errno) {
	if glob == "" || len(glob) > maxPattern || strings.HasPrefix(glob, "/") || strings.Contains(glob, `\`) {
		return nil, guest.EINVAL
	}
	var b strings.Builder
	b.WriteString("^(?:")
next:
	for rest := glob; rest != ""; {
		for _, f := range globForms {
			if strings.HasPrefix(rest, f.glob) {
				b.WriteString(f.re)
				rest = rest[len(f.glob):]
				continue next
			}
		}
		r, n := utf8.DecodeRuneInString(rest)
		b.WriteString(regexp.QuoteMeta(string(r)))
		rest = rest[n:]
	}
	b.WriteString(")$")
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, guest.EINVAL
	}
	return re, 0
}

package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"regexp/syntax"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/boundary"
	"github.com/ecotone-dev/ecotone/host/files/glob"
)

// Bounds of a search (S10).
const (
	MaxPatternBytes = 256
	maxProgram      = 1000     // instructions of a compiled pattern
	maxScanBytes    = 64 << 20 // of content, in one call
	maxLineBytes    = 512      // of a line that is shown
	pieceBytes      = 4 << 10  // matched between two looks at the context
	sniffBytes      = 8 << 10  // looked through for what text does not have
)

// Glob answers the paths of the files that a glob names, directory by directory in the
// order of names.
func (s *Service) Glob(ctx context.Context, sc boundary.Scope, pattern string, limit int) (boundary.Result, error) {
	match, err := glob.Compile(pattern)
	if err != nil {
		return boundary.Result{}, err
	}
	res := boundary.Result{Target: pattern}
	items := newPage(limit)
	err = s.search(ctx, sc, match, func(c *call, e entry) (bool, error) {
		if items.full() || !c.observe(e.rec.Label) {
			return !items.more, nil
		}
		return items.add(e.path), nil
	})
	if err != nil {
		return res, err
	}
	return items.result(pattern), nil
}

// Grep answers {path, line, text} of the lines that match an RE2 pattern in the files a
// glob names. A line is matched whole whatever its length, and shown up to 512 bytes.
// Binary files are passed over. Meta's more is also set when 64 MiB were searched.
func (s *Service) Grep(ctx context.Context, sc boundary.Scope, pattern, globPattern string, limit int) (boundary.Result, error) {
	match, err := glob.Compile(globPattern)
	if err != nil {
		return boundary.Result{}, err
	}
	re, err := compilePattern(pattern)
	if err != nil {
		return boundary.Result{}, err
	}
	res := boundary.Result{Target: globPattern} // where, not what for: that may be data
	items := newPage(limit)
	left := int64(maxScanBytes)
	err = s.search(ctx, sc, match, func(c *call, e entry) (bool, error) {
		if items.full() || !c.observe(e.rec.Label) {
			return !items.more, nil
		}
		if left -= e.rec.Size; left < 0 {
			items.more = true
			return false, nil
		}
		err := c.grepFile(e, re, items)
		return !items.more, err
	})
	if err != nil {
		return res, err
	}
	return items.result(globPattern), nil
}

// compilePattern bounds the text and the program of a pattern: matching takes time in
// proportion to program times input.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	bad := func(why string) error {
		return abi.Errorf(abi.CodePatternInvalid, "%s is not a pattern: %s", abi.Quote(pattern), why).
			WithHint("patterns are RE2, at most 256 bytes and 1000 instructions")
	}
	if pattern == "" || len(pattern) > MaxPatternBytes {
		return nil, bad("it has no bytes or more than 256")
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		var se *syntax.Error
		if errors.As(err, &se) {
			return nil, bad(se.Code.String())
		}
		return nil, bad("it does not parse")
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > maxProgram {
		return nil, bad("it is too large once compiled")
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, bad("it does not compile")
	}
	return re, nil
}

// search calls fn for every visible file that a glob and the grant name. Directories that
// can hold none are not entered and not observed.
func (s *Service) search(ctx context.Context, sc boundary.Scope, match *glob.Pattern, fn func(*call, entry) (bool, error)) error {
	c, leave, err := s.enter(ctx, sc, reads)
	if err != nil {
		return err
	}
	defer leave()
	if !c.grant.Any() {
		return c.names(RootPath)
	}
	root := c.w.record(RootPath)
	if !c.observe(root.Label) {
		return errAbsent()
	}
	_, err = c.walk(c.w.root, RootPath, 0, match, fn)
	return err
}

func (c *call) walk(dir *os.Root, at string, depth int, match *glob.Pattern, fn func(*call, entry) (bool, error)) (bool, error) {
	return c.each(dir, at, "", func(e entry) (bool, error) {
		if !e.rec.Directory {
			if match.Match(e.path) && c.grant.Match(e.path) {
				return fn(c, e)
			}
			return true, nil
		}
		if depth+1 >= MaxDepth || !match.Above(e.path) || !c.grant.Above(e.path) || !c.observe(e.rec.Label) {
			return true, nil
		}
		sub, err := enter(dir, e.name, e.info)
		switch {
		case errors.Is(err, errSwapped), isAbsent(err), errors.Is(err, fs.ErrPermission):
			return true, nil
		case err != nil:
			return false, diskError(err)
		}
		defer sub.Close()
		return c.walk(sub, e.path, depth+1, match, fn)
	})
}

// hit is one matching line.
type hit struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// grepFile adds the matching lines of a file to items. A file that is not what its record
// says by the time it was read adds nothing.
func (c *call) grepFile(e entry, re *regexp.Regexp, items *page) error {
	f, err := openFile(e.dir, e.name, e.info)
	switch {
	case errors.Is(err, errSwapped), isAbsent(err), errors.Is(err, fs.ErrPermission):
		return nil
	case err != nil:
		return diskError(err)
	}
	defer f.Close()
	before := *items
	if err := c.grepLines(bufio.NewReaderSize(io.LimitReader(f, e.rec.Size), sniffBytes), e.path, re, items); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return diskError(err)
	}
	if now, _, _ := stateOf(info); !e.rec.State.describes(&now, false) {
		*items = before
	}
	return nil
}

func (c *call) grepLines(r *bufio.Reader, p string, re *regexp.Regexp, items *page) error {
	head, err := r.Peek(sniffBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return diskError(err)
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return nil
	}
	for n := 1; ; n++ {
		line := lineReader{ctx: c.ctx, r: r}
		found, err := line.match(re)
		switch {
		case err != nil:
			return err
		case line.empty():
			return nil
		case found && !items.add(hit{p, n, line.text()}):
			return nil
		}
	}
}

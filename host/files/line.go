package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// lineReader reads one line of any length in pieces, and looks at the context before each.
type lineReader struct {
	ctx  context.Context
	r    *bufio.Reader
	head []byte // the first piece, for showing and for matching short lines at once
	rest []byte // what of a piece was not read yet
	ends bool   // the line has no further piece
	err  error
}

// piece reads the next piece of the line.
func (l *lineReader) piece() ([]byte, error) {
	if l.ctx.Err() != nil {
		return nil, contextError(l.ctx)
	}
	var b []byte
	for !l.ends && len(b) < pieceBytes {
		part, err := l.r.Peek(1)
		if len(part) > 0 {
			part, err = l.r.Peek(min(l.r.Buffered(), pieceBytes-len(b)))
		}
		if i := bytes.IndexByte(part, '\n'); i >= 0 {
			part, l.ends = part[:i+1], true
		}
		b = append(b, part...)
		l.r.Discard(len(part))
		if errors.Is(err, io.EOF) {
			l.ends = true
		} else if err != nil {
			return nil, diskError(err)
		}
	}
	return b, nil
}

// match reads the line to its end and reports whether it matches.
func (l *lineReader) match(re *regexp.Regexp) (bool, error) {
	if l.head, l.err = l.piece(); l.err != nil {
		return false, l.err
	}
	if l.ends {
		return len(l.head) > 0 && re.Match(trimEnd(l.head)), nil
	}
	l.rest = l.head
	found := re.MatchReader(bufio.NewReaderSize(l, pieceBytes))
	for l.err == nil && !l.ends { // a match may be known before the line ends
		_, l.err = l.piece()
	}
	return found, l.err
}

// Read gives the line, without its end, to the matcher.
func (l *lineReader) Read(b []byte) (int, error) {
	for len(l.rest) == 0 {
		if l.ends {
			return 0, io.EOF
		}
		var err error
		if l.rest, err = l.piece(); err != nil {
			l.err = err
			return 0, io.EOF
		}
		if l.ends {
			l.rest = trimEnd(l.rest)
		}
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// empty reports whether there was no line.
func (l *lineReader) empty() bool { return len(l.head) == 0 }

// text is the beginning of the line as it is shown.
func (l *lineReader) text() string {
	t := trimEnd(l.head)
	if len(t) > maxLineBytes {
		t = t[:maxLineBytes]
		for i := len(t) - 1; i > len(t)-utf8.UTFMax; i-- {
			if utf8.RuneStart(t[i]) {
				if !utf8.FullRune(t[i:]) {
					t = t[:i]
				}
				break
			}
		}
	}
	return strings.ToValidUTF8(string(t), "�")
}

func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

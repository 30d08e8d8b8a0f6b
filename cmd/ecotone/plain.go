package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// plainWriter keeps what others wrote from steering a terminal: a guest's output, a manifest, a
// file that is verified. Control characters, and those that change direction or do not show, come
// out as JSON writes them, so that a string of JSON stays the same string. It is not safe for
// concurrent use.
type plainWriter struct {
	to   io.Writer
	rest []byte // the beginning of a character that did not come whole
}

// Write implements [io.Writer].
func (p *plainWriter) Write(text []byte) (int, error) {
	text, n := append(p.rest, text...), len(text)
	p.rest = nil
	var b strings.Builder
	for len(text) > 0 {
		if !utf8.FullRune(text) {
			p.rest = append(p.rest, text...)
			break
		}
		r, size := utf8.DecodeRune(text)
		b.WriteString(plainRune(r)) // what is not UTF-8 decodes as U+FFFD
		text = text[size:]
	}
	if _, err := io.WriteString(p.to, b.String()); err != nil {
		return 0, err
	}
	return n, nil
}

func plainRune(r rune) string {
	switch {
	case r == '\n' || r == '\t' || !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
		return string(r)
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

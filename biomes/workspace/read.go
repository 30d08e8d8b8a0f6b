package main

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ecotone-dev/ecotone/guest"
)

// Bounds of one answer (M16). The text includes line numbers and the marker.
const (
	maxLines = 2000
	maxText  = 25_000 // bytes

	step       = 64 << 10 // asked of the host at once, bytes
	markerRoom = 160      // kept free for the marker, bytes
	numberRoom = 12       // what a line number and its tab may take, bytes
)

type readIn struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"` // first line, from 1; 0 is 1
	Column int    `json:"column"` // bytes of that line to leave out
	Limit  int    `json:"limit"`  // lines; 0 is as many as fit
}

type place struct {
	Offset int `json:"offset"`
	Column int `json:"column"`
}

type readOut struct {
	Path      string `json:"path"`
	Text      string `json:"text"`
	Lines     int    `json:"lines"`
	Size      int64  `json:"size"`
	Version   string `json:"version"`
	Truncated bool   `json:"truncated"`
	Next      *place `json:"next,omitempty"`  // where to go on; absent at the end
	Lossy     bool   `json:"lossy,omitempty"` // bytes that are not UTF-8 were replaced
}

// doRead answers numbered lines from a place of the file on. It reads the file from its
// start in steps and keeps one step in memory, whatever the file's size.
func doRead(in readIn) (readOut, error) {
	if in.Offset < 0 || in.Column < 0 || in.Limit < 0 {
		return readOut{}, guest.Failf("ARGUMENT_INVALID", "offset, column and limit are not negative")
	}
	page := newPage(in)
	out := readOut{Path: in.Path}
	for off := int64(0); ; {
		c, err := guest.Files.Read(in.Path, off, step)
		if err != nil {
			return readOut{}, err
		}
		if out.Version != "" && c.Version != out.Version {
			return readOut{}, guest.EVERSION
		}
		out.Version, out.Size = c.Version, c.Size
		off += int64(len(c.Data))
		end := c.EOF || len(c.Data) == 0
		if page.add(c.Data, end) || end {
			break
		}
	}
	page.finish(&out)
	return out, nil
}

// page collects the lines of one answer.
type page struct {
	next  place // where the next byte of the file stands
	skip  place // what the caller has seen already
	limit int
	text  strings.Builder
	lines int
	open  bool   // the line being collected has its number
	rest  []byte // the beginning of a character whose end is in the next chunk
	lossy bool
	cut   bool // the answer is full and the file goes on
}

func newPage(in readIn) *page {
	limit := in.Limit
	if limit == 0 || limit > maxLines {
		limit = maxLines
	}
	return &page{next: place{Offset: 1}, skip: place{max(in.Offset, 1), in.Column}, limit: limit}
}

// add takes the next bytes of the file and reports whether the page is complete.
func (p *page) add(data []byte, end bool) bool {
	if len(p.rest) > 0 {
		data = append(p.rest, data...)
		p.rest = nil
	}
	for len(data) > 0 {
		line, newline := data, false
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			line, newline = data[:i], true
		}
		if !newline && !end {
			// A character may go on in the next chunk.
			whole := len(line) - partial(line)
			p.rest, line = append([]byte(nil), line[whole:]...), line[:whole]
		}
		if p.full() {
			p.cut = true
			return true
		}
		taken := p.take(line)
		if taken < len(line) {
			p.cut = true
			return true
		}
		if !newline {
			return false
		}
		p.endLine()
		data = data[taken+1:]
	}
	return false
}

// full reports whether nothing of another line may be added.
func (p *page) full() bool {
	if p.before() || p.open {
		return false
	}
	return p.lines >= p.limit || p.text.Len()+numberRoom+utf8.UTFMax > maxText-markerRoom
}

// before reports whether the file is still before the place asked for.
func (p *page) before() bool { return p.next.Offset < p.skip.Offset }

// take adds a part of the current line and returns how many bytes of it were used.
func (p *page) take(part []byte) int {
	if p.before() {
		p.next.Column += len(part)
		return len(part)
	}
	used := 0
	if p.next.Offset == p.skip.Offset && p.next.Column < p.skip.Column {
		used = min(len(part), p.skip.Column-p.next.Column)
		p.next.Column += used
		if p.next.Column < p.skip.Column {
			return used // all of it was seen already
		}
	}
	p.number()
	text := part[used:]
	if room := maxText - markerRoom - p.text.Len(); len(text)+1 > room {
		text = text[:max(0, room-1)]
		text = text[:len(text)-partial(text)]
	}
	clean := strings.ToValidUTF8(string(text), "\uFFFD")
	if len(clean) > len(text) {
		// A replacement may be longer than what it stands for; keep to the bound.
		for len(clean)+1 > maxText-markerRoom-p.text.Len() {
			text = text[:len(text)/2]
			clean = strings.ToValidUTF8(string(text), "\uFFFD")
		}
	}
	p.lossy = p.lossy || clean != string(text)
	p.text.WriteString(clean)
	p.next.Column += len(text)
	return used + len(text)
}

func (p *page) number() {
	if !p.open {
		fmt.Fprintf(&p.text, "%6d\t", p.next.Offset)
		p.open = true
		p.lines++
	}
}

func (p *page) endLine() {
	if !p.before() {
		p.number()
		p.text.WriteByte('\n')
		p.open = false
	}
	p.next = place{Offset: p.next.Offset + 1}
}

// partial is how many bytes at b's end begin a character that is not complete.
func partial(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

func (p *page) finish(out *readOut) {
	out.Truncated, out.Lossy, out.Lines = p.cut, p.lossy, p.lines
	if p.cut {
		if p.open {
			p.text.WriteByte('\n')
		}
		out.Next = &p.next
		fmt.Fprintf(&p.text, "[truncated: the file goes on; continue with offset %d", p.next.Offset)
		if p.next.Column > 0 {
			fmt.Fprintf(&p.text, " and column %d", p.next.Column)
		}
		p.text.WriteString("]\n")
	}
	out.Text = p.text.String()
}

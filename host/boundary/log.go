package boundary

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// guestLog collects what a guest logs, within its quota. Past the quota records are
// counted and one marker says so; nothing fails, because logging must not change what a
// guest does.
type guestLog struct {
	lineBytes, quota int64
	used             int64
	records          []LogRecord
	marker           int // 1 + index of the marker
}

// recordCost is what a record costs beyond its text, so that empty ones are not free.
const recordCost = 32

// copied is how much of a message is worth copying: nothing past it can become visible.
func (j *guestLog) copied() int64 { return j.lineBytes + utf8.UTFMax }

func (j *guestLog) add(at time.Duration, level LogLevel, stream string, message []byte) {
	if j.marker > 0 {
		j.drop(at)
		return
	}
	text, cut := plain(message, int(j.lineBytes))
	cost := int64(len(text)) + recordCost
	if cost > j.quota-j.used {
		j.drop(at)
		return
	}
	j.used += cost
	j.records = append(j.records, LogRecord{At: at, Level: level, Stream: stream, Text: text, Cut: cut})
}

// addStream adds what a guest wrote to one of its WASI outputs; the newline that ends it is
// the record's.
func (j *guestLog) addStream(at time.Duration, stream string, text []byte) {
	j.add(at, LogInfo, stream, bytes.TrimSuffix(text, []byte("\n")))
}

func (j *guestLog) drop(at time.Duration) {
	if j.marker == 0 {
		j.records = append(j.records, LogRecord{At: at, Level: LogWarn, Text: "log quota reached; what follows is dropped"})
		j.marker = len(j.records)
	}
	j.records[j.marker-1].Dropped++
}

// plain renders untrusted text as one line of at most most bytes: control and bidirectional
// formatting characters and line separators are escaped, invalid UTF-8 is replaced. It
// reports whether text was cut.
func plain(text []byte, most int) (string, bool) {
	if len(text) <= most && isPlain(text) {
		return string(text), false
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		piece := string(r) // an invalid byte decodes as U+FFFD
		if short, ok := shortEscapes[r]; ok {
			piece = short
		} else if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			piece = fmt.Sprintf(`\u{%x}`, r)
		}
		if b.Len()+len(piece) > most {
			return b.String(), true
		}
		b.WriteString(piece)
		text = text[size:]
	}
	return b.String(), false
}

// isPlain reports whether text is of printable ASCII alone, which almost all text is.
func isPlain[T string | []byte](text T) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

var shortEscapes = map[rune]string{'\n': `\n`, '\r': `\r`, '\t': `\t`}

// maxTarget bounds what a receipt line or a journal entry names, in bytes.
const maxTarget = 256

func plainTarget(s string) string {
	if len(s) <= maxTarget && isPlain(s) {
		return s
	}
	text, cut := plain([]byte(s), maxTarget)
	if cut {
		text += "…"
	}
	return text
}

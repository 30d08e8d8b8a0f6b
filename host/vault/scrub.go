package vault

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"html"
)

// scrubber finds one exact value in what an origin sent back, in the encodings software
// usually gives it. It matches the known value only, so benign data never trips it
// (PF-F13), and it knows nothing of parts: an origin that wants to leak what it was given
// always can.
type scrubber struct {
	hex     Value   // lower case, as all needles are
	needles []Value // with hex
}

func newScrubber(value []byte) *scrubber {
	s := &scrubber{hex: adopt(hex.AppendEncode(nil, value))}
	s.needles = append(s.needles, s.hex, adopt(folded(value)))
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for offset := range 3 {
			s.needles = append(s.needles, adopt(folded(base64Core(enc, value, offset))))
		}
	}
	return s
}

// base64Core is the part of an encoding of (offset unknown bytes ‖ value ‖ anything) that
// depends on value alone.
func base64Core(enc *base64.Encoding, value []byte, offset int) []byte {
	padded := make([]byte, offset+len(value))
	copy(padded[offset:], value)
	defer clear(padded)
	out := enc.AppendEncode(nil, padded)
	from := (offset*8 + 5) / 6          // characters that share bits with what comes before
	to := (offset + len(value)) * 8 / 6 // characters that share bits with what comes after
	return out[from:to]
}

// views undo what may have been done to text around or after an encoding; nil means that
// the view shows nothing new. Case is folded afterwards, because origins fold header names
// and hex.
var views = []func([]byte) []byte{
	func(b []byte) []byte { return b },
	percentDecoded,
	func(b []byte) []byte { return percentDecoded(percentDecoded(b)) },
	backslashDecoded,
	entityDecoded,
	func(b []byte) []byte { return without(b, "\x00") }, // UTF-16 and UTF-32, either order
	func(b []byte) []byte { return without(unescaped(b), " \t\r\n") },
}

// hexView undoes the separators of hex dumps. They occur in other encodings, so it is
// searched for hex only.
func hexView(b []byte) []byte { return without(unescaped(b), " \t\r\n:-,") }

// Data is searched in windows, which bounds the memory of the views and lets a search be
// interrupted. The overlap is longer than any encoding of the longest value: \uXXXX takes
// six bytes for one, a double percent encoding of it nine.
const (
	window  = 512 << 10
	overlap = 16 * MaxValueBytes
)

func (s *scrubber) found(ctx context.Context, data []byte) (bool, error) {
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		piece := data[:min(len(data), window)]
		if s.inWindow(piece) {
			return true, nil
		}
		if len(piece) == len(data) {
			return false, nil
		}
		data = data[window-overlap:]
	}
}

func (s *scrubber) inWindow(piece []byte) bool {
	for _, view := range views {
		if containsAny(view(piece), s.needles) {
			return true
		}
	}
	return containsAny(hexView(piece), []Value{s.hex})
}

func containsAny(b []byte, needles []Value) bool {
	if len(b) < MinValueBytes {
		return false
	}
	b = folded(b)
	for _, n := range needles {
		if bytes.Contains(b, n.Reveal()) {
			return true
		}
	}
	return false
}

func (s *scrubber) wipe() {
	for _, n := range s.needles {
		n.Wipe()
	}
	s.needles = nil
}

func entityDecoded(b []byte) []byte {
	if bytes.IndexByte(b, '&') < 0 {
		return nil
	}
	return []byte(html.UnescapeString(string(b)))
}

// folded is a copy in lower case, of ASCII only: other bytes stay what they are.
func folded(b []byte) []byte {
	out := bytes.Clone(b)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return out
}

func without(b []byte, cut string) []byte {
	if !bytes.ContainsAny(b, cut) {
		return nil // the plain view has seen it
	}
	var drop [256]bool
	for _, c := range []byte(cut) {
		drop[c] = true
	}
	out := make([]byte, 0, len(b))
	for _, c := range b {
		if !drop[c] {
			out = append(out, c)
		}
	}
	return out
}

// unescaped is b without backslash escapes, if it has any.
func unescaped(b []byte) []byte {
	if out := backslashDecoded(b); out != nil {
		return out
	}
	return b
}

// percentDecoded decodes what is well formed and leaves the rest; + stays, a value has no
// spaces that would need it.
func percentDecoded(b []byte) []byte {
	if bytes.IndexByte(b, '%') < 0 {
		return nil
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] == '%' && i+2 < len(b) {
			var c [1]byte
			if _, err := hex.Decode(c[:], b[i+1:i+3]); err == nil {
				out = append(out, c[0])
				i += 2
				continue
			}
		}
		out = append(out, b[i])
	}
	return out
}

// backslashDecoded undoes the escapes of JSON and of languages like it: \uXXXX and \xXX
// below 256, line breaks and tabs, and a backslash before any other byte.
func backslashDecoded(b []byte) []byte {
	if bytes.IndexByte(b, '\\') < 0 {
		return nil
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 == len(b) {
			out = append(out, b[i])
			continue
		}
		i++
		var c [2]byte
		switch {
		case b[i] == 'u' && i+4 < len(b) && decodes(c[:], b[i+1:i+5]) && c[0] == 0:
			out = append(out, c[1])
			i += 4
		case b[i] == 'x' && i+2 < len(b) && decodes(c[:1], b[i+1:i+3]):
			out = append(out, c[0])
			i += 2
		case b[i] == 'n' || b[i] == 'r' || b[i] == 't':
			out = append(out, ' ') // which white space it was makes no difference here
		default:
			out = append(out, b[i])
		}
	}
	return out
}

func decodes(dst, src []byte) bool {
	_, err := hex.Decode(dst, src)
	return err == nil
}

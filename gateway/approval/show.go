package approval

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ecotone-dev/ecotone/abi"
)

// Bounds of what can be asked about. A person has to be able to read it.
const (
	MaxInput   = 64 << 10 // bytes
	MaxEscaped = 256      // characters of the input that cannot be seen as they are
	MaxFiles   = 64       // files the input names
	MaxReason  = 512      // bytes
)

// Check refuses input that nobody could be shown whole, and plainly: it is asked about in full or not at
// all (S17).
func Check(input []byte) *abi.Error {
	if len(input) > MaxInput {
		return abi.Errorf(abi.CodeInputLimit, "an approver is shown at most %d bytes, and the input has %d", MaxInput, len(input))
	}
	escaped := 0
	for b := input; len(b) > 0; {
		r, n := utf8.DecodeRune(b)
		if b = b[n:]; !plain(r) && !unicode.IsSpace(r) || r == utf8.RuneError && n == 1 {
			escaped++
		}
	}
	if escaped > MaxEscaped {
		return abi.Errorf(abi.CodeInvalidRequest, "the input has %d characters that cannot be shown; an approver is shown at most %d", escaped, MaxEscaped)
	}
	return nil
}

// Show is untrusted text as an approver sees it. Whatever has no shape of its own, or gives what stands
// around it another order, is written as \u{…}: a line is read as it is, and two texts that differ
// look different. A backslash is written twice, so that nothing else looks like that.
func Show(input []byte) string {
	var out strings.Builder
	for len(input) > 0 {
		r, n := utf8.DecodeRune(input)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&out, `\x{%02x}`, input[0])
		case r == '\\':
			out.WriteString(`\\`)
		case plain(r):
			out.WriteRune(r)
		default:
			fmt.Fprintf(&out, `\u{%x}`, r)
		}
		input = input[n:]
	}
	return out.String()
}

// blank are letters, marks and symbols that leave nothing to be seen.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x034F, Hi: 0x034F, Stride: 1}, // grapheme joiner
		{Lo: 0x115F, Hi: 0x1160, Stride: 1}, // Hangul fillers
		{Lo: 0x17B4, Hi: 0x17B5, Stride: 1}, // Khmer inherent vowels
		{Lo: 0x180B, Hi: 0x180F, Stride: 1}, // Mongolian selectors
		{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // the Braille pattern without dots
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
		{Lo: 0xFE00, Hi: 0xFE0F, Stride: 1}, // variation selectors
		{Lo: 0xFFA0, Hi: 0xFFA0, Stride: 1}, // half-width Hangul filler
	},
	R32: []unicode.Range32{{Lo: 0xE0100, Hi: 0xE01EF, Stride: 1}}, // variation selectors
}

// plain reports whether a character is seen as what it is. Controls, formats (bidirectional ones, joiners,
// zero widths), private and unassigned ones and every space but the usual one are not.
func plain(r rune) bool { return unicode.IsPrint(r) && !unicode.Is(blank, r) }

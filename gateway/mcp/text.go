package mcp

import (
	"strings"
	"unicode"

	"github.com/ecotone-dev/ecotone/gateway/invoke"
)

// digestShown is how much of a digest is shown where a person reads it.
const digestShown = 12

// marked is an author's text as an agent is shown it: one line, after a mark that says whose it is. The
// author's own brackets are rounded, so that no text can begin or end a mark.
func marked(c *invoke.Capability, text string) string {
	return "[untrusted text from biome " + c.Biome + " " + c.Digest[:min(digestShown, len(c.Digest))] + "] " + plain(text)
}

// plain leaves of a text what is seen as what it is.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '[':
			return '('
		case r == ']':
			return ')'
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
	return strings.Join(strings.Fields(text), " ")
}

package grant

import (
	"strings"
	"unicode/utf8"

	"github.com/ecotone-dev/ecotone/host/files/glob"
)

// Exactly is the glob that names one path or key and nothing else; false when the language has none
// for it: an opening bracket cannot be
// spelled.
func Exactly(name string) (string, bool) {
	var b strings.Builder
	for _, r := range name {
		switch r {
		case '*', '?', '{', '}':
			b.WriteByte('[')
			b.WriteRune(r)
			b.WriteByte(']')
		default:
			b.WriteRune(r)
		}
	}
	out := b.String()
	p, err := glob.Compile(out)
	return out, err == nil && utf8.ValidString(name) && p.Match(name)
}

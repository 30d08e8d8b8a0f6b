// Package logs makes the process's own log: slog, JSON or text, on one writer.
//
// It promises that a value of type [Secret] is never written, and that what looks like one of the gateway's
// tokens is cut out of every line, whoever put it there and however deep. It refuses to know what is
// worth logging. The log is for operators; what must be kept is in the audit.
package logs

import (
	"encoding"
	"fmt"
	"io"
	"log/slog"
	"regexp"
)

// Redacted stands where something secret was.
const Redacted = "[redacted]"

// Secret is text that is never shown: not by fmt, not in JSON, not in a log. [Secret.Reveal] is the one way to it.
type Secret string

// Reveal returns the text.
func (s Secret) Reveal() string { return string(s) }

// String implements [fmt.Stringer].
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return Redacted
}

// GoString implements [fmt.GoStringer].
func (s Secret) GoString() string { return s.String() }

// Format implements [fmt.Formatter], for the verbs that ask neither of the above.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText implements [encoding.TextMarshaler].
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Secret) UnmarshalText(text []byte) error { *s = Secret(text); return nil }

// LogValue implements [slog.LogValuer].
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

var (
	_ slog.LogValuer         = Secret("")
	_ encoding.TextMarshaler = Secret("")
)

// token is what the gateway's own tokens look like, those of principals and of sessions.
var token = regexp.MustCompile(`eco_[a-z]_[0-9A-Za-z_-]{8,}`)

// Clean cuts what looks like a token out of a text.
func Clean(text string) string { return token.ReplaceAllString(text, Redacted) }

// Formats are the forms a log may have.
func Formats() []string { return []string{"json", "text"} }

// New makes the log. level may change while it is used.
func New(to io.Writer, format string, level slog.Leveler) *slog.Logger {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: clean}
	if format == "text" {
		return slog.New(slog.NewTextHandler(to, o))
	}
	return slog.New(slog.NewJSONHandler(to, o))
}

// clean is asked about every attribute that is not a group, the message among them.
func clean(_ []string, a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(Clean(v.String()))
	case slog.KindAny:
		switch held := v.Any().(type) {
		case error:
			a.Value = slog.StringValue(Clean(held.Error()))
		case fmt.Stringer:
			a.Value = slog.StringValue(Clean(held.String()))
		case *slog.Source:
		default:
			a.Value = slog.StringValue(Clean(fmt.Sprintf("%+v", held)))
		}
	}
	return a
}

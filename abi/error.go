package abi

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is the one error type of the project. Code is stable and public, Message
// and Hint are written for the caller, Cause is private: it is logged and never
// sent. An error of any other type is reported outward as [CodeInternal].
type Error struct {
	Code    Code
	Message string // public; never a host path, a stack or another tenant's name
	Hint    string // public; what to do about it
	Cause   error  // private
	Pointer string // JSON pointer or field name the error is about, if any
	Retry   int64  // seconds after which it makes sense to try again; 0: nothing is known
}

// Errorf makes an [Error] with a public message. The operand of %w, and ": " before it,
// become the private cause and are not rendered into the message, wherever the verb
// stands. Verbs take their operands in order; explicit argument indexes and * are not
// supported.
func Errorf(code Code, format string, args ...any) *Error {
	e := &Error{Code: code}
	public := make([]any, 0, len(args))
	var text strings.Builder
	next := 0
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			text.WriteByte(format[i])
			continue
		}
		end := i + 1
		for end < len(format) && strings.IndexByte("+-# 0123456789.", format[end]) >= 0 {
			end++
		}
		verb := format[i:min(end+1, len(format))]
		i = end
		switch {
		case strings.HasSuffix(verb, "%") && len(verb) > 1, next >= len(args):
			text.WriteString(verb)
		case strings.HasSuffix(verb, "w"):
			e.Cause, _ = args[next].(error)
			next++
			kept := strings.TrimSuffix(text.String(), ": ")
			text.Reset()
			text.WriteString(kept)
		default:
			text.WriteString(verb)
			public = append(public, args[next])
			next++
		}
	}
	e.Message = fmt.Sprintf(text.String(), append(public, args[next:]...)...)
	return e
}

// WithHint returns a copy of e that carries a hint.
func (e *Error) WithHint(hint string) *Error { c := *e; c.Hint = hint; return &c }

// After returns a copy of e that says in how many seconds to try again.
func (e *Error) After(seconds int64) *Error { c := *e; c.Retry = seconds; return &c }

// At returns a copy of e that names the field or JSON pointer it is about.
func (e *Error) At(pointer string) *Error { c := *e; c.Pointer = pointer; return &c }

// WithCause returns a copy of e with a private cause.
func (e *Error) WithCause(err error) *Error { c := *e; c.Cause = err; return &c }

// Error renders the code, the public message and the private cause. It is for
// logs: what is sent to a caller is made from the fields.
func (e *Error) Error() string {
	if e == nil {
		return "no error" // a nil *Error in an error that is not nil: a mistake, and no reason to crash
	}
	var b strings.Builder
	b.WriteString(string(e.Code))
	b.WriteString(": ")
	b.WriteString(e.Message)
	if e.Pointer != "" {
		b.WriteString(" (at " + e.Pointer + ")")
	}
	if e.Cause != nil {
		b.WriteString(": " + e.Cause.Error())
	}
	return b.String()
}

// Unwrap returns the private cause.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Cause
}

// Is matches another *Error by code.
func (e *Error) Is(target error) bool {
	var t *Error
	return e != nil && errors.As(target, &t) && t != nil && t.Code == e.Code && t.Message == ""
}

// AsError returns the [Error] in err's chain. Any other error, and an Error whose
// code is not in the catalogue, becomes CodeInternal with err as its private cause; so does
// a nil *Error that was stored in an error. AsError(nil) is nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) && e != nil {
		if _, ok := e.Code.Info(); ok {
			return e
		}
	}
	return &Error{Code: CodeInternal, Message: "something went wrong inside the gateway", Cause: err}
}

// CodeOf returns the code of err as [AsError] sees it, or "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return AsError(err).Code
}

// quoteMax bounds how much of a caller's or module's text is ever shown back, in bytes.
const quoteMax = 96

// Quote renders untrusted text for a message: control bytes and invalid UTF-8
// escaped, cut after 96 bytes.
func Quote(s string) string {
	cut := len(s) > quoteMax
	if cut {
		s = s[:quoteMax]
		for len(s) > 0 && !utf8.ValidString(s[max(0, len(s)-utf8.UTFMax):]) && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
	}
	q := strconv.QuoteToASCII(s)
	if cut {
		q += "…"
	}
	return q
}

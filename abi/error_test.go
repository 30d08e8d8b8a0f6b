package abi_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/ecotone-dev/ecotone/abi"
)

// presentable fails unless what a refusal says outward can be shown anywhere: bounded, valid
// text, no control or bidirectional characters.
func presentable(t *testing.T, err error) {
	t.Helper()
	e := AsError(err)
	if e == nil {
		t.Fatal("no error")
	}
	for _, s := range []string{e.Message, e.Hint, e.Pointer} {
		if !utf8.ValidString(s) || len(s) > 2048 {
			t.Errorf("not presentable: %q", s)
		}
		for _, r := range s {
			if r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
				t.Errorf("control character %U in %q", r, s)
			}
		}
	}
}

func TestErrorfKeepsTheCausePrivate(t *testing.T) {
	cause := fmt.Errorf("open /var/lib/private: %w", fs.ErrPermission)
	for _, tc := range []struct {
		format string
		args   []any
		want   string
	}{
		{"the file cannot be read: %w", []any{cause}, "the file cannot be read"},
		{"file %s: byte %d: %w", []any{"a", 7, cause}, "file a: byte 7"},
		{"%w", []any{cause}, ""},
		{"%w: after", []any{cause}, ": after"},
		{"before %w after %s", []any{cause, "x"}, "before  after x"},
		{"100%% of %q: %w", []any{"x", cause}, `100% of "x"`},
		{"%5d|%-3s|: %w", []any{42, "a", cause}, "   42|a  |"},
	} {
		e := Errorf(CodeInternal, tc.format, tc.args...)
		if e.Message != tc.want {
			t.Errorf("%q: the message is %q, want %q", tc.format, e.Message, tc.want)
		}
		if strings.Contains(e.Message, "private") || strings.Contains(e.Message, "%!") {
			t.Errorf("%q: the message shows the cause: %q", tc.format, e.Message)
		}
		if !errors.Is(e, fs.ErrPermission) {
			t.Errorf("%q: the cause is lost", tc.format)
		}
	}
	if e := Errorf(CodeInternal, "x: %w", error(nil)); e.Message != "x" || e.Cause != nil {
		t.Errorf("a nil cause: %+v", e)
	}
}

func TestErrorValues(t *testing.T) {
	base := Errorf(CodeFileNotFound, "no %s", "a")
	marked := base.WithHint("look elsewhere").At("/path").WithCause(io.EOF)
	if base.Hint != "" || base.Pointer != "" || base.Cause != nil {
		t.Error("a With method changed its receiver")
	}
	if !errors.Is(marked, &Error{Code: CodeFileNotFound}) || errors.Is(marked, &Error{Code: CodeFileExists}) || !errors.Is(marked, io.EOF) {
		t.Error("Is does not match by code, or loses the cause")
	}
	if CodeOf(nil) != "" || AsError(nil) != nil {
		t.Error("nil is not an error")
	}
	if got := CodeOf(fmt.Errorf("wrapped: %w", marked)); got != CodeFileNotFound {
		t.Errorf("wrapped: %s", got)
	}
	for _, foreign := range []error{io.EOF, &Error{Code: "NOT_IN_THE_CATALOGUE", Message: "secret detail"}} {
		e := AsError(foreign)
		if e.Code != CodeInternal || strings.Contains(e.Message, "detail") || strings.Contains(e.Message, "EOF") || e.Cause != foreign {
			t.Errorf("%v goes out as %q", foreign, e.Message)
		}
	}
}

// A nil *Error in an error is a mistake that must not bring a host down, and not pass as success.
func TestNilErrorInAnError(t *testing.T) {
	var none *Error
	var err error = none
	if e := AsError(err); e == nil || e.Code != CodeInternal || e.Error() == "" || CodeOf(err) != CodeInternal {
		t.Errorf("it is taken as %v", e)
	}
	if errors.Is(err, &Error{Code: CodeInternal}) || errors.Unwrap(err) != nil {
		t.Error("it matches something")
	}
}

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "plain", "a\x00b", "\x1b[31m", "\u202egnp.exe", "é\xff\xfe", strings.Repeat("€", 40), strings.Repeat("a", 95) + "€", `"\`, "\u0085"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q := Quote(s)
		if len(q) > 96*6+2+len("…") {
			t.Errorf("%d bytes for %d", len(q), len(s))
		}
		for _, r := range strings.TrimSuffix(q, "…") {
			if r < 0x20 || r > 0x7e {
				t.Errorf("%U in %s", r, q)
			}
		}
	})
}

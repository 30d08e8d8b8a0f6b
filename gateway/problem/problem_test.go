package problem

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
)

// M60, PF-H4: every code of the catalogue makes a document of the catalogue's words; what can be tried again says
// when.
func TestEveryCode(t *testing.T) {
	for _, info := range abi.Codes() {
		d := From(abi.Errorf(info.Code, "what was wrong").At("/here").WithHint("do that"), "01AUDIT")
		if d.Type != "urn:ecotone:code:"+string(info.Code) || d.Title != info.Meaning || d.Status != info.Status || d.Kind != info.Kind || d.Retryable != info.Kind.Retryable() {
			t.Errorf("%s: %+v", info.Code, d)
		}
		if d.Detail != "what was wrong" || d.Pointer != "/here" || d.Hint != "do that" || d.AuditID != "01AUDIT" {
			t.Errorf("%s: %+v", info.Code, d)
		}
		if later := d.Status == http.StatusServiceUnavailable || d.Status == http.StatusTooManyRequests; later != (d.Retry > 0) {
			t.Errorf("%s with status %d is to be tried again after %d s", info.Code, d.Status, d.Retry)
		}
		var back Document
		if err := abi.DecodeStrict(d.Encode(), &back); err != nil || back.Code != info.Code {
			t.Errorf("%s: %v", info.Code, err)
		}
	}
	if d := From(abi.Errorf(abi.CodeRateExceeded, "too often").After(7), ""); d.Retry != 7 {
		t.Errorf("after %d s", d.Retry)
	}
}

// M60: of an error that is no refusal of the gateway's own, and of what caused one, nothing is told.
func TestNothingOfTheInside(t *testing.T) {
	const inside = "open /var/lib/ecotone/keys/master: permission denied"
	for name, err := range map[string]error{
		"a plain error":          errors.New(inside),
		"a cause":                abi.Errorf(abi.CodeNotReady, "it cannot be read: %w", errors.New(inside)),
		"a cause of its own":     abi.Errorf(abi.CodeInternal, "it failed").WithCause(errors.New(inside)),
		"something wrapped":      fmt.Errorf("%s: %w", inside, abi.Errorf(abi.CodeNotFound, "there is no such thing")),
		"nothing that is known":  fmt.Errorf("%s: %w", inside, errors.New(inside)),
		"a code that is no code": &abi.Error{Code: "MADE_UP", Message: "x", Cause: errors.New(inside)},
	} {
		text := string(From(err, "01AUDIT").Encode())
		for _, word := range []string{"/var/", "master", "permission denied"} {
			if strings.Contains(text, word) {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
	if d := From(errors.New(inside), ""); d.Code != abi.CodeInternal || d.Status != http.StatusInternalServerError {
		t.Errorf("%+v", d)
	}
	if d := From(fmt.Errorf("around: %w", abi.Errorf(abi.CodeNotFound, "not there")), ""); d.Code != abi.CodeNotFound {
		t.Errorf("what was wrapped is %s", d.Code)
	}
}

// S6: the document of what is withheld has nothing of the invocation but its id.
func TestWithheld(t *testing.T) {
	a, b := Withheld("01A").Encode(), Withheld("01B").Encode()
	if !bytes.Equal(bytes.ReplaceAll(a, []byte("01A"), nil), bytes.ReplaceAll(b, []byte("01B"), nil)) {
		t.Errorf("%s\n%s", a, b)
	}
	if d := Withheld("01A"); d.Code != abi.CodeClassificationFlow || d.Suggestions != nil || d.Reasons != nil || d.Guest != nil || d.Subject != nil {
		t.Errorf("%+v", d)
	}
}

// many is an error that lists what is wrong.
type many []string

func (m many) Error() string { return "several" }
func (m many) Problems() any { return []string(m) }

func TestProblems(t *testing.T) {
	d := From(abi.Errorf(abi.CodeModuleInvalid, "refused").WithCause(many{"one", "two"}), "")
	if got := fmt.Sprint(d.Problems); got != "[one two]" {
		t.Errorf("%s", got)
	}
}

// Whatever somebody else's words are, the document is one JSON value of one line in which no markup is left.
func TestEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.String()
		in := From(abi.Errorf(abi.CodeGuestError, "%s", words.Draw(t, "detail")), "01A")
		in.Guest = &Guest{Code: words.Draw(t, "code"), Message: words.Draw(t, "message")}
		in.Suggestions = []Suggestion{{Kind: RequestGrant, Subject: words.Draw(t, "subject"), Globs: []string{words.Draw(t, "glob")}}}
		raw := in.Encode()
		if !json.Valid(raw) || bytes.Count(raw, []byte("\n")) != 1 || bytes.ContainsAny(raw, "<>&") {
			t.Fatalf("%s", raw)
		}
		var out Document
		if err := json.Unmarshal(raw, &out); err != nil || out.Guest.Message != strings.ToValidUTF8(in.Guest.Message, "\ufffd") {
			t.Fatalf("%q became %q, %v", in.Guest.Message, out.Guest.Message, err)
		}
	})
}

// What a suggestion is not about is not there.
func TestSuggestionsAreShort(t *testing.T) {
	raw, err := json.Marshal(Suggestion{Kind: Wait, Seconds: 2})
	if err != nil || string(raw) != `{"kind":"wait","seconds":2}` {
		t.Errorf("%s %v", raw, err)
	}
}

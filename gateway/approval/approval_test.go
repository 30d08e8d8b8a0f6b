package approval

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/host/vault"
)

// S17: what hides or reorders text is written out; what was written is told from what looks like it; and
// different texts look different.
func TestShow(t *testing.T) {
	for in, want := range map[string]string{
		`{"to":"a"}`:         `{"to":"a"}`,
		"a\u202egpj.exe":     `a\u{202e}gpj.exe`,
		"\u2066x\u2069":      `\u{2066}x\u{2069}`,
		"a\u200bb\ufeffc":    `a\u{200b}b\u{feff}c`,
		"\u3164\u2800\ufe0f": `\u{3164}\u{2800}\u{fe0f}`,
		"a\u00a0b\x00\x1b[":  `a\u{a0}b\u{0}\u{1b}[`,
		`\u{202e}`:           `\\u{202e}`,
		"grün, 日本語, שלום":    "grün, 日本語, שלום",
		"\xff":               `\x{ff}`,
	} {
		if got := Show([]byte(in)); got != want {
			t.Errorf("%q is shown as %s, want %s", in, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.SliceOf(rapid.Byte()).Draw(t, "a"), rapid.SliceOf(rapid.Byte()).Draw(t, "b")
		shown := Show(a)
		if !utf8.ValidString(shown) || strings.ContainsFunc(shown, func(r rune) bool { return !plain(r) }) {
			t.Errorf("%q", shown)
		}
		if slices.Equal(a, b) != (shown == Show(b)) {
			t.Errorf("%q and %q look alike", a, b)
		}
	})
}

// S17: the view is complete, or the request is refused.
func TestCheck(t *testing.T) {
	for in, code := range map[string]abi.Code{
		`{"a":1}`:                              "",
		strings.Repeat("x", MaxInput):          "",
		strings.Repeat("x", MaxInput+1):        abi.CodeInputLimit,
		strings.Repeat("\u202e", MaxEscaped):   "",
		strings.Repeat("\u202e", MaxEscaped+1): abi.CodeInvalidRequest,
		strings.Repeat("\n\t", MaxEscaped):     "",
	} {
		if err := Check([]byte(in)); abi.CodeOf(asError(err)) != code {
			t.Errorf("%.20q: %v", in, err)
		}
	}
}

func asError(e *abi.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// S17: each member of a basis counts, but the generation.
func TestChanged(t *testing.T) {
	full := func() Basis {
		return Basis{
			Generation: 1, Digest: "d", Install: "i", Grants: []string{"g"}, Reach: abi.ReachOwner, Start: abi.Internal, Ceiling: abi.Secret,
			Calls: []abi.CapabilityRef{"a:b.c@1"}, Endpoints: map[string]uint64{"e": 1}, Secrets: map[string]uint64{"s": 1}, Files: map[string]string{"f": "1"},
		}
	}
	of := reflect.TypeFor[Basis]()
	was := full()
	for i := range of.NumField() {
		now := full()
		reflect.ValueOf(&now).Elem().Field(i).SetZero()
		changed := was.Changed(&now)
		if name := of.Field(i).Name; (len(changed) == 1) == (name == "Generation") {
			t.Errorf("without %s: %v", name, changed)
		}
	}
	same := full()
	if changed := was.Changed(&same); changed != nil {
		t.Errorf("%v", changed)
	}
}

func TestStates(t *testing.T) {
	now := time.Unix(1000, 0)
	open := Request{Expires: now.Add(time.Second)}
	yes, no := &Decision{Verdict: Approve}, &Decision{Verdict: Reject}
	for want, s := range map[State]Standing{
		Pending: {Request: open}, Approved: {Request: open, Decision: yes}, Rejected: {Decision: no}, Expired: {Request: Request{Expires: now}},
		Withdrawn:  {Decision: yes, Withdrawal: &Withdrawal{}},
		Dispatched: {Decision: yes, Use: &Use{}}, Interrupted: {Decision: yes, Use: &Use{}, Result: &Result{State: Interrupted}},
	} {
		if got := s.State(now); got != want {
			t.Errorf("%+v is %s, want %s", s, got, want)
		}
	}
	late := Standing{Request: Request{Expires: now}, Decision: yes}
	if got := late.State(now); got != Expired {
		t.Errorf("approved and too late is %s", got)
	}
}

// What is sealed opens as itself and as nothing else.
func TestBox(t *testing.T) {
	keys, err := vault.NewKeyring(make([]byte, vault.MasterKeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	b := NewBox(keys)
	sealed := b.Seal("acme", "1", Input, []byte("text"))
	if strings.Contains(string(sealed), "text") {
		t.Error("it is not sealed")
	}
	if got, err := b.Open("acme", "1", Input, sealed); err != nil || string(got) != "text" {
		t.Errorf("%q %v", got, err)
	}
	for _, as := range []struct {
		org, id string
		part    Part
	}{{"other", "1", Input}, {"acme", "2", Input}, {"acme", "1", Output}} {
		if _, err := b.Open(as.org, as.id, as.part, sealed); err == nil {
			t.Errorf("it opens as %+v", as)
		}
	}
	for n := range sealed {
		if _, err := b.Open("acme", "1", Input, sealed[:n]); err == nil {
			t.Errorf("%d bytes of it open", n)
		}
	}
}

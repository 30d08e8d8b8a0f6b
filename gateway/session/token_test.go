package session

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ecotone-dev/ecotone/abi"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// PF-F11, PF-F15: the record has the hash alone; the text matches it and nothing near it does.
func TestToken(t *testing.T) {
	for kind, prefix := range tokenPrefix {
		rec, text := NewToken(kind, noon)
		if !strings.HasPrefix(text, prefix+rec.ID) || len(text) != tokenBytes {
			t.Fatalf("a token of %d bytes", len(text))
		}
		data, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		if secret := text[len(prefix)+idBytes:]; strings.Contains(string(data), secret) || len(rec.Hash) != 64 {
			t.Error("the record holds the token")
		}
		p, err := Parse(text)
		if err != nil || p.Kind != kind || p.ID != rec.ID || !p.Matches(&rec, noon) {
			t.Fatalf("%+v %v", p, err)
		}
		if p.Matches(nil, noon) {
			t.Error("it matches nothing")
		}
		for name, spoil := range map[string]func(*Token){
			"kind":       func(r *Token) { r.Kind = "other" },
			"id":         func(r *Token) { r.ID = NewID(noon) },
			"hash":       func(r *Token) { r.Hash = strings.Repeat("0", 64) },
			"short hash": func(r *Token) { r.Hash = r.Hash[:62] },
			"long hash":  func(r *Token) { r.Hash += "00" },
			"no hash":    func(r *Token) { r.Hash = "" },
			"damaged":    func(r *Token) { r.Hash = "zz" + r.Hash[2:] },
			"expired":    func(r *Token) { r.Expires = &noon },
		} {
			bad := rec
			spoil(&bad)
			if p.Matches(&bad, noon) {
				t.Errorf("it matches a record with another %s", name)
			}
		}
		later := noon.Add(time.Second)
		if rec.Expires = &later; !p.Matches(&rec, noon) {
			t.Error("it expired too early")
		}
	}
}

// A record whose hash is all zero bytes, as one that does not decode would leave it, matches no
// token.
func TestNoSecretMatchesNothing(t *testing.T) {
	rec, text := NewToken(KindSession, noon)
	p, _ := Parse(text)
	rec.Hash = ""
	if p.Matches(&rec, noon) || (Presented{}).Matches(&Token{}, noon) {
		t.Error("an empty record matches")
	}
}

// Looking a token up costs no allocation, whether or not it is good.
func TestTokenAllocations(t *testing.T) {
	rec, text := NewToken(KindSession, noon)
	other, _ := NewToken(KindSession, noon)
	if n := testing.AllocsPerRun(100, func() {
		p, err := Parse(text)
		if err != nil || !p.Matches(&rec, noon) || p.Matches(&other, noon) || p.Matches(nil, noon) {
			t.Fatal("the token does not match as it did")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A token has one spelling, and anything else of its length is none.
func TestOneSpelling(t *testing.T) {
	_, text := NewToken(KindSession, noon)
	id := len(prefixSession)
	secret := id + idBytes
	for name, bad := range map[string]string{
		"an id in small letters":      text[:id] + strings.ToLower(text[id:secret]) + text[secret:],
		"an id of more than 128 bits": text[:id] + "8" + text[id+1:],
		"a letter that is not in use": text[:id] + "0U" + text[id+2:],
		"a line break in the secret":  text[:secret] + "\n" + text[secret+1:],
		"a secret in plain base64":    text[:secret] + "+" + text[secret+1:],
		"a secret that is too short":  text[:len(text)-1],
		"a secret that is too long":   text + "A",
		"another kind":                "eco_x_" + text[id:],
	} {
		if _, err := Parse(bad); abi.CodeOf(err) != abi.CodeUnauthenticated {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkToken(b *testing.B) {
	rec, text := NewToken(KindSession, noon)
	b.ReportAllocs()
	for b.Loop() {
		if p, err := Parse(text); err != nil || !p.Matches(&rec, noon) {
			b.Fatal(err)
		}
	}
}

func TestTokensDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		rec, text := NewToken(KindSession, noon)
		if seen[rec.ID] || seen[text[len(text)-43:]] {
			t.Fatal("twice the same")
		}
		seen[rec.ID], seen[text[len(text)-43:]] = true, true
	}
}

func FuzzParse(f *testing.F) {
	_, good := NewToken(KindPrincipal, noon)
	f.Add(good)
	f.Add(strings.ToLower(good))
	f.Add(good[:len(good)-1] + "B") // other trailing bits: a second spelling
	f.Add(good[:len(good)-2] + "\n" + good[len(good)-1:])
	f.Add("eco_s_")
	f.Add("Bearer " + good)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err == nil {
			if !strings.HasPrefix(text, tokenPrefix[p.Kind]+p.ID) || len(text) != tokenBytes {
				t.Fatalf("%q has a second spelling", text)
			}
			return
		}
		if abi.CodeOf(err) != abi.CodeUnauthenticated || len(text) > 12 && strings.Contains(err.Error(), text) {
			t.Fatalf("%v", err)
		}
	})
}

// X29: roles are a closed set.
func TestRole(t *testing.T) {
	for _, r := range []Role{Operator, OrgAdmin, Author, Approver, Auditor} {
		var got Role
		if err := got.UnmarshalText([]byte(r)); err != nil || got != r {
			t.Errorf("%s: %s %v", r, got, err)
		}
	}
	for _, bad := range []string{"", "admin", "Operator", "operator "} {
		var got Role
		if err := got.UnmarshalText([]byte(bad)); err == nil || got != "" {
			t.Errorf("%q is a role: %q", bad, got)
		}
	}
}

func TestSessionCheck(t *testing.T) {
	for _, c := range []struct {
		subject, user abi.Subject
		ok            bool
	}{
		{"user:a", "", true},
		{"app:a", "", true},
		{"agent:a", "user:a", true},
		{"agent:a", "", false},
		{"agent:a", "agent:b", false},
		{"agent:a", "app:b", false},
		{"user:a", "user:b", false},
		{"app:a", "user:b", false},
		{"biome:a", "", false},
	} {
		s := Session{Subject: c.subject, User: c.user}
		if err := s.Check(); (err == nil) != c.ok {
			t.Errorf("%s for %q: %v", c.subject, c.user, err)
		}
	}
}

package store

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// PF-E3: two lists of parts have the same key, or one the other's prefix, only when the lists do.
func TestKeysDoNotCollide(t *testing.T) {
	parts := rapid.SliceOfN(rapid.StringMatching(`[ab:/\x00\x01\x02]{0,4}`), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		a, b := parts.Draw(t, "a"), parts.Draw(t, "b")
		ka, kb := Key(a...), Key(b...)
		if bytes.Equal(ka, kb) != slices.Equal(a, b) {
			t.Fatalf("%q and %q: %x and %x", a, b, ka, kb)
		}
		prefix := len(a) <= len(b) && slices.Equal(a, b[:len(a)])
		if bytes.HasPrefix(kb, ka) != prefix {
			t.Fatalf("%q and %q: %x and %x", a, b, ka, kb)
		}
		back, err := Split(ka)
		if err != nil || !slices.Equal(back, a) {
			t.Fatalf("%q came back as %q: %v", a, back, err)
		}
	})
}

func TestNumberSorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b")
		if (a < b) != (bytes.Compare(Key("n", Number(a)), Key("n", Number(b))) < 0) {
			t.Fatalf("%d and %d sort otherwise", a, b)
		}
	})
}

func FuzzSplit(f *testing.F) {
	f.Add(Key())
	f.Add(Key("a", "", "\x01\x02"))
	f.Add([]byte{1, 0x80, 0})
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 'x'})
	f.Add([]byte{2})
	f.Fuzz(func(t *testing.T, key []byte) {
		parts, err := Split(key)
		if err == nil && !bytes.Equal(Key(parts...), key) {
			t.Fatalf("%x has a second spelling: %q", key, parts)
		}
	})
}
